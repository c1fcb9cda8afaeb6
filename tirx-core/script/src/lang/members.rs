//! What buffers, pools and the classes of the library have, with signatures and meanings, for documentation.
//!
//! Signatures and the documentation of classes are read from where they are defined; what the methods mean, that have no documentation of
//! their own, is the table here.

use std::sync::LazyLock;

use super::{methods, pool};
use crate::eval::library_text;

/// A class, a method or a field of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name: `Buffer.ptr_to`, `Pipeline`, `MBarrier.arrive`.
    pub name: String,
    /// Its signature, `(indices)`; empty for a field.
    pub signature: String,
    /// What it means.
    pub meaning: String,
    /// The module that a kernel file imports a class or function from; empty for a member.
    pub module: &'static str,
}

/// All members, sorted by name.
pub fn members() -> &'static [Member] {
    static ALL: LazyLock<Vec<Member>> = LazyLock::new(|| {
        let own = methods::documented().into_iter().chain(pool::documented());
        let mut all: Vec<Member> = own
            .map(|(name, signature)| Member {
                meaning: meaning_of(&name, ""),
                name,
                signature,
                module: "",
            })
            .chain(library_text::documented().into_iter().map(|defined| Member {
                meaning: meaning_of(&defined.name, &defined.documentation),
                name: defined.name,
                signature: defined.signature,
                module: defined.module,
            }))
            .collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    });
    &ALL
}

/// The meaning of a member: its own documentation, else that of the table, by its whole name or by the method's.
fn meaning_of(name: &str, documentation: &str) -> String {
    if !documentation.is_empty() {
        return documentation.to_string();
    }
    let of = |wanted: &str| MEANINGS.iter().find(|(known, _)| *known == wanted);
    let method = || name.rsplit_once('.').and_then(|(_, method)| of(method));
    of(name)
        .or_else(method)
        .map_or(String::new(), |(_, meaning)| (*meaning).to_string())
}

/// Meanings by whole names, or by methods that mean one thing in all classes.
const MEANINGS: &[(&str, &str)] = &[
    (
        "Buffer.access_ptr",
        "A pointer to an element with the kind of access (`\"r\"`, `\"w\"`, `\"rw\"`), as functions of CUDA take it.",
    ),
    (
        "Buffer.allocated_addr",
        "The addresses of tensor memory that the buffer was allocated at.",
    ),
    (
        "Buffer.byte_offset",
        "The bytes from the pointer to the first element.",
    ),
    (
        "Buffer.byte_offset_of",
        "The bytes from the pointer to the element at indices.",
    ),
    (
        "Buffer.chunk",
        "Parts of equal extents: an index selects one of them.",
    ),
    ("Buffer.data", "The pointer to the buffer's memory."),
    ("Buffer.data_alignment", "The alignment of the pointer in bytes."),
    ("Buffer.dtype", "The dtype of an element."),
    (
        "Buffer.elem_offset",
        "The elements from the pointer to the first element.",
    ),
    (
        "Buffer.elem_offset_of",
        "The elements from the pointer to the element at indices.",
    ),
    (
        "Buffer.get_flattened_buffer",
        "The buffer with one dimension over the same memory.",
    ),
    ("Buffer.is_scalar", "Whether the buffer has one element."),
    (
        "Buffer.layout",
        "The layout, which gives the location of each element; `None` for the default.",
    ),
    (
        "Buffer.local",
        "This thread's elements of a buffer in registers, as a separate buffer.",
    ),
    ("Buffer.name", "The name."),
    (
        "Buffer.offset_factor",
        "A number that divides the offset of the first element.",
    ),
    (
        "Buffer.offset_of",
        "The offset of the element at indices, by the buffer's layout.",
    ),
    (
        "Buffer.permute",
        "The buffer with its dimensions in another order.",
    ),
    ("Buffer.ptr_to", "A pointer to the element at indices."),
    (
        "Buffer.rearrange",
        "The buffer with its dimensions split, joined and exchanged by a text such as `\"(a b) c -> a (b c)\"`.",
    ),
    ("Buffer.same_as", "Whether both are one buffer."),
    (
        "Buffer.scope",
        "The memory that it is in: \"global\", \"shared\", \"local\", …",
    ),
    ("Buffer.shape", "The extents of its dimensions."),
    (
        "Buffer.strides",
        "Elements from one index of a dimension to the next; empty for a compact buffer.",
    ),
    (
        "Buffer.sub",
        "A part of the buffer, as a separate buffer: `A.sub[0:16, :]`.",
    ),
    (
        "Buffer.tile",
        "Tiles of given extents: an index selects one of them.",
    ),
    ("Buffer.ty", "The type of the buffer: dtype, shape, layout."),
    ("Buffer.view", "The same memory with another shape or layout."),
    ("Buffer.vload", "The vector of elements that begins at indices."),
    (
        "Buffer.vstore",
        "Stores a vector of elements that begins at indices.",
    ),
    (
        "Buffer.with_dtype",
        "The same memory with elements of another dtype.",
    ),
    (
        "SMEMPool.alloc",
        "A buffer of dynamic shared memory, after the earlier buffers.",
    ),
    (
        "SMEMPool.alloc_tcgen05_mma_AB",
        "A buffer for an operand of `wgmma` or `tcgen05.mma`, with the layout that the instruction reads.",
    ),
    (
        "SMEMPool.buf",
        "The buffer of bytes that the pool's buffers are in.",
    ),
    (
        "SMEMPool.commit",
        "Ends the pool: the launch gives the block as much shared memory as was allocated.",
    ),
    (
        "SMEMPool.max_offset",
        "The most bytes that were allocated at a time.",
    ),
    (
        "SMEMPool.move_base_to",
        "The offset in bytes of the next buffer, which may reuse memory.",
    ),
    ("SMEMPool.offset", "The offset in bytes of the next buffer."),
    ("SMEMPool.ptr", "The pointer to the pool's memory."),
    (
        "TMEMPool.addr",
        "The address in tensor memory, which `tcgen05.alloc` wrote.",
    ),
    ("TMEMPool.alloc", "A buffer in the next columns of tensor memory."),
    (
        "TMEMPool.alloc_tcgen05_mma_A",
        "A buffer for operand A of `tcgen05.mma` in tensor memory.",
    ),
    (
        "TMEMPool.alloc_tcgen05_mma_D",
        "A buffer for the accumulator of `tcgen05.mma`.",
    ),
    (
        "TMEMPool.commit",
        "Allocates the columns: one warp calls `tcgen05.alloc`.",
    ),
    (
        "TMEMPool.dealloc",
        "Frees the columns: the warp that allocated them calls `tcgen05.dealloc`.",
    ),
    (
        "TMEMPool.move_base_to",
        "The column of the next buffer, which may reuse columns.",
    ),
    (
        "MBarrier.arrive",
        "The thread arrives at the barrier of a slot; `remote` names a block of the cluster.",
    ),
    (
        "MBarrier.init",
        "Initializes the barriers for `count` arrivals each; one thread does it.",
    ),
    ("MBarrier.ptr_to", "A pointer to the barrier of a slot."),
    (
        "MBarrier.wait",
        "Waits until the phase of a slot's barrier with this parity is complete.",
    ),
    (
        "TMABar.arrive",
        "The thread arrives; with `tx_count` it expects so many bytes of copies.",
    ),
    (
        "TCGen05Bar.arrive",
        "Commits `tcgen05` operations: the barrier of a slot gets an arrival when they are complete.",
    ),
    (
        "PipelineState.init",
        "Sets the state to the first slot, with a parity.",
    ),
    (
        "PipelineState.advance",
        "Advances to the next slot; after the last slot the parity changes.",
    ),
    (
        "SmemDescriptor.init",
        "Encodes the descriptor of a tile of shared memory.",
    ),
    ("SmemDescriptor.desc", "The descriptor: 64 bits."),
    (
        "SmemDescriptor.add_16B_offset",
        "The descriptor moved by `offset` units of 16 bytes.",
    ),
    ("CudaProfiler.init", "Begins the records of this thread's group."),
    ("CudaProfiler.start", "An event begins."),
    ("CudaProfiler.end", "The event ends."),
    ("CudaProfiler.finalize", "Ends the records."),
    (
        "ClusterLaunchControlScheduler.run_scheduler",
        "The loop of the warp that requests the next cluster and tells the other warps.",
    ),
    (
        "ClusterLaunchControlScheduler.worker",
        "The scheduler as a warp that works on tiles sees it.",
    ),
    ("IketProfiler.mark", "An event of a name, with a value."),
    (
        "IketProfiler.range_start",
        "A range begins; gives the token that ends it.",
    ),
    ("IketProfiler.range_end", "The range of a token ends."),
    ("IketProfiler.range_push", "A range begins that `range_pop` ends."),
    ("IketProfiler.range_pop", "Ends the range that began last."),
    ("IketProfiler.sentinel_token", "A token that stands for no range."),
    (
        "IketProfiler.compile",
        "Compiles a module, as `tvm.compile` does.",
    ),
    (
        "alloc_tcgen05_ldst_frag",
        "Registers of a warpgroup as `tcgen05.ld` and `.st` of a shape fill them.",
    ),
    (
        "mma_atom_layout",
        "The layout of the smallest tile with a swizzle: 8 rows.",
    ),
    (
        "init",
        "Begins with the first piece of work of this block or cluster.",
    ),
    ("next_tile", "Goes on to the next piece of work."),
    ("next_tile_stride", "Goes on by so many pieces of work."),
    ("valid", "Whether there is work left."),
    (
        "update_current_m_n_idx",
        "Computes the indices of a tile from its linear index.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_has_a_meaning() {
        let all = members();
        let without: Vec<&str> = all
            .iter()
            .filter(|member| member.meaning.is_empty())
            .map(|member| member.name.as_str())
            .collect();
        assert_eq!(without, Vec::<&str>::new());
        for name in [
            "Buffer.ptr_to",
            "Buffer.shape",
            "SMEMPool.alloc",
            "Pipeline",
            "MBarrier.arrive",
            "TMEMPool.alloc_sf",
        ] {
            assert!(all.iter().any(|member| member.name == name), "{name}");
        }
        for (known, _) in MEANINGS {
            let is_it = |name: &str| {
                name == *known || name.rsplit_once('.').is_some_and(|(_, method)| method == *known)
            };
            assert!(
                all.iter().any(|member| is_it(&member.name)),
                "{known} is no member"
            );
        }
        let arrive = all.iter().find(|member| member.name == "MBarrier.arrive");
        assert_eq!(
            arrive.map(|member| member.signature.as_str()),
            Some("(stage, remote=None, pred=None, count=None)")
        );
    }
}
