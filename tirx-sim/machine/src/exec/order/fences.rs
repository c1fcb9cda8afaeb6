//! Fences of threads (`fence.acq_rel`, `fence.sc`): how they order the relaxed accesses around them.
//!
//! A fence makes later relaxed writes of its lane release, and earlier relaxed reads of its lane acquire. With `fence.sc`
//! (`__threadfence()` is one) the write or the read may be another lane's, if a barrier of the block, a warp barrier or a
//! named barrier stands between them and the fence. Programs use this: all threads fence, all meet at a barrier, one
//! thread writes a flag. It follows from the total order of `fence.sc` (PTX ISA, "Fence-SC"): in the opposite order of
//! the two fences the flag would be read before it was written.

use std::collections::BTreeMap;

use super::{Clock, Known, Order};
use crate::alu::LANES;
use crate::bytecode::Scope;

/// How many scopes there are.
const SCOPES: usize = 4;

/// The `fence.sc` of a launch so far, in the order of this run: what came before each. Two of them are ordered if each is
/// within the other's scope.
#[derive(Debug, Default)]
pub(crate) struct FenceOrder {
    sys: Option<Clock>,
    /// Of a device, by its first block.
    gpus: BTreeMap<u32, Clock>,
    /// Of the blocks of a cluster, by the first of these.
    clusters: BTreeMap<u32, Clock>,
}

/// The effect of a lane's fences and relaxed reads, by scope.
#[derive(Clone, Debug, Default)]
pub(super) struct Fences {
    /// Released by a fence of at least this scope, for later relaxed writes of this scope or a wider one.
    released: [Option<Known>; SCOPES],
    /// Released by a `fence.sc` of this lane or of lanes that it has met at a barrier.
    handed: [Option<Known>; SCOPES],
    /// Seen by relaxed reads, and released by a thread within this scope, for later fences.
    pending: [Option<Known>; SCOPES],
    /// Seen by relaxed reads of lanes that it has met at a barrier, for a later `fence.sc`.
    met: [Option<Known>; SCOPES],
}

fn join(into: &mut Option<Known>, known: &Option<Known>) {
    match (into, known) {
        (_, None) => {}
        (Some(into), Some(known)) => into.join(known),
        (none, Some(known)) => *none = Some(known.clone()),
    }
}

impl Order {
    /// `fence.acq_rel`, or `fence.sc`.
    pub(crate) fn fence(&mut self, warp: usize, mask: u32, scope: Scope, sc: bool) {
        if !self.fine {
            return;
        }
        let within = ..=scope as usize;
        if let Some(fences) = &mut self.warps[warp].fences {
            let mut seen = Vec::new();
            for lane in (0..LANES).filter(|l| mask >> l & 1 != 0) {
                let own = fences[lane].pending[within].iter_mut();
                let met = fences[lane].met[within].iter_mut().filter(|_| sc);
                seen.extend(own.chain(met).filter_map(Option::take).map(|known| (lane, known)));
            }
            for (lane, known) in seen {
                self.acquire(warp, 1 << lane, &known);
            }
        }
        for lane in (0..LANES).filter(|l| mask >> l & 1 != 0) {
            let known = Some(self.release(warp, 1 << lane));
            let fences = &mut self.warps[warp].fences.get_or_insert_default()[lane];
            fences.released[within].fill(known.clone());
            if sc {
                fences.handed[within].iter_mut().for_each(|h| join(h, &known));
            }
        }
    }

    /// `fence.sc` behind those `so_far`: other blocks' writes before these are seen. Within a block reads see the last write in any
    /// case.
    pub(crate) fn join_fences(&mut self, warp: usize, mask: u32, scope: Scope, so_far: &mut FenceOrder) {
        let (wide, all) = (scope >= Scope::Gpu, scope == Scope::Sys);
        if !self.fine || scope == Scope::Cta {
            return;
        }
        let near = so_far.clusters.get(&self.cluster.0).into_iter();
        let of_device = so_far.gpus.get(&self.device.0).into_iter().filter(|_| wide);
        let of_all = so_far.sys.iter().filter(|_| all);
        for before in near.chain(of_device).chain(of_all) {
            self.change(warp, mask, |known| known.sc.join(before));
        }
        let released = self.release(warp, mask);
        let mut known = released.all;
        known.join(&released.sc);
        if all {
            match &mut so_far.sys {
                Some(all) => all.join(&known),
                none => *none = Some(known.clone()),
            }
        }
        if wide {
            match so_far.gpus.get_mut(&self.device.0) {
                Some(all) => all.join(&known),
                None => {
                    so_far.gpus.insert(self.device.0, known.clone());
                }
            }
        }
        match so_far.clusters.get_mut(&self.cluster.0) {
            Some(all) => all.join(&known),
            None => {
                so_far.clusters.insert(self.cluster.0, known);
            }
        }
    }

    /// Lanes meet at a barrier: each gets what any of them has released by `fence.sc` or seen by relaxed reads.
    pub(crate) fn hand_on(&mut self, lanes: &[(usize, u32)]) {
        if !self.fine || lanes.iter().all(|(w, _)| self.warps[*w].fences.is_none()) {
            return;
        }
        let each = |mask: u32| (0..LANES).filter(move |l| mask >> l & 1 != 0);
        let mut all = Fences::default();
        for (warp, mask) in lanes {
            let Some(fences) = &self.warps[*warp].fences else {
                continue;
            };
            for lane in each(*mask) {
                for scope in 0..SCOPES {
                    join(&mut all.handed[scope], &fences[lane].handed[scope]);
                    join(&mut all.met[scope], &fences[lane].pending[scope]);
                    join(&mut all.met[scope], &fences[lane].met[scope]);
                }
            }
        }
        for (warp, mask) in lanes {
            let fences = self.warps[*warp].fences.get_or_insert_default();
            for lane in each(*mask) {
                fences[lane].handed = all.handed.clone();
                fences[lane].met = all.met.clone();
            }
        }
    }

    /// What a lane's relaxed write within a scope releases, and how far: as far as its fences reach, at most within the scope.
    /// What a narrower fence alone has released is known to fewer threads, and to those it is known.
    pub(crate) fn released(&self, warp: usize, lane: u32, scope: Scope) -> Vec<(Scope, Known)> {
        let mut all: Vec<(Scope, Known)> = Vec::new();
        // "The fences of tcgen05 compose with execution ordering instructions, like morally strong ld/st/atom instructions".
        if !self.known(warp, lane).told.is_empty() {
            all.push((scope, self.published(warp, 1 << lane)));
        }
        let Some(fences) = &self.warps[warp].fences else {
            return all;
        };
        let fences = &fences[lane as usize % LANES];
        for within in [Scope::Sys, Scope::Gpu, Scope::Cluster, Scope::Cta]
            .into_iter()
            .filter(|s| *s <= scope)
        {
            let mut released = fences.released[within as usize].clone();
            join(&mut released, &fences.handed[within as usize]);
            match released {
                Some(known) if all.last().is_none_or(|(_, wider)| !known.is(wider)) => {
                    all.push((within, known))
                }
                _ => {}
            }
        }
        all
    }

    /// A lane's relaxed read has seen what was released as far away as within a scope: a fence that reaches so far acquires it.
    pub(super) fn suspect(&mut self, warp: usize, lane: u32, scope: Scope, released: &Known) {
        let fences = self.warps[warp].fences.get_or_insert_default();
        let pending = &mut fences[lane as usize % LANES].pending[scope as usize];
        join(pending, &Some(released.clone()));
    }
}
