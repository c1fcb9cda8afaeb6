//! Litmus tests of the PTX memory model: which values may relaxed accesses of several blocks see? Every outcome that is
//! forbidden never occurs; weak outcomes that GPUs show occur in some schedule.

mod written;

use std::collections::BTreeSet;

use tirx_sim::{Launch, LaunchOptions, Memory, Program, StandIns};
use written::{compiled, ints, read};

/// Schedules of each test.
const SEEDS: u64 = 120;

/// Where `x` and `y` are.
#[derive(Clone, Copy, PartialEq)]
enum At {
    Global,
    /// In the shared memory of the first block of the cluster, which all blocks are.
    Cluster,
}

/// A program of blocks of one thread each. `x` and `y` are zero at first; `see` keeps what a read returned.
fn litmus(at: At, blocks: &[&str]) -> Program {
    let (before, pointer, scope) = match at {
        At::Global => ("", "B.ptr_to([PLACE])", "scope='gpu'"),
        At::Cluster => (
            "
    T.cta_id_in_cluster([BLOCKS])
    S = T.alloc_shared((32,), 'int32'); S[tx] = 0
    T.cuda.cluster_sync()",
            "T.ptx.mapa(S.ptr_to([PLACE]), 0, 'shared::cluster', 'u32', 'uint32')",
            "scope='cluster', space='shared::cluster'",
        ),
    };
    let mut text = "
@T.prim_func
def kernel(B: T.Buffer((64,), 'int32')):
    T.device_entry(); bx = T.cta_id([BLOCKS]); tx = T.thread_id([32])BEFORE
    if tx == 0:
"
    .replace("BEFORE", before)
    .replace("BLOCKS", &blocks.len().to_string());
    for (block, body) in blocks.iter().enumerate() {
        text.push_str(&format!("        if bx == {block}:\n"));
        for line in body.split(';').map(str::trim) {
            let words: Vec<&str> = line.split(' ').collect();
            let place = |name: &str| pointer.replace("PLACE", if name == "x" { "0" } else { "16" });
            let statement = match *words {
                ["st", name, value] => format!(
                    "T.ptx.st_relaxed({}, T.int32({value}), ptx_type='s32', {scope})",
                    place(name)
                ),
                ["release", name, value] => format!(
                    "T.ptx.st_release({}, T.int32({value}), ptx_type='s32', {scope})",
                    place(name)
                ),
                ["ld", name, to] => format!(
                    "B[{}] = T.ptx.ld_relaxed({}, 'int32', 's32', {scope})",
                    32 + to.parse::<usize>().unwrap(),
                    place(name)
                ),
                ["acquire", name, to] => format!(
                    "B[{}] = T.ptx.ld_acquire({}, 'int32', 's32', {scope})",
                    32 + to.parse::<usize>().unwrap(),
                    place(name)
                ),
                ["fence", kind] => format!("T.ptx.fence('{kind}', 'gpu')"),
                ["fence", kind, scope] => format!("T.ptx.fence('{kind}', '{scope}')"),
                ["add", name, value] => format!(
                    "T.ptx.red_scalar({}, T.int32({value}), op='add', ptx_type='s32', sem='relaxed', {scope})",
                    place(name)
                ),
                _ => panic!("{line}"),
            };
            text.push_str(&format!("            {statement}\n"));
        }
    }
    if at == At::Cluster {
        text.push_str("    T.cuda.cluster_sync()\n");
    }
    compiled(&text)
}

/// What the first `count` reads returned, over all schedules.
fn outcomes(blocks: &[&str], count: usize) -> BTreeSet<Vec<i32>> {
    outcomes_at(At::Global, blocks, count)
}

fn outcomes_at(at: At, blocks: &[&str], count: usize) -> BTreeSet<Vec<i32>> {
    let program = litmus(at, blocks);
    let run = |seed| {
        let memory = Memory::new();
        let values = ints(&memory, vec![0; 64]);
        let launch = Launch {
            grid: [blocks.len() as u32, 1, 1],
            block: [32, 1, 1],
            cluster: match at {
                At::Global => [1; 3],
                At::Cluster => [blocks.len() as u32, 1, 1],
            },
            shared_bytes: 0,
            args: &[values.address()],
            peers: &[],
        };
        let options = LaunchOptions {
            seed,
            ..LaunchOptions::default()
        };
        let result = program.launch_with(&memory, &launch, &StandIns::new(), &options);
        result.unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
        read(&values)[32..32 + count].to_vec()
    };
    (0..SEEDS)
        .map(|seed| {
            let first = run(seed);
            assert_eq!(run(seed), first, "seed {seed} gives one result");
            first
        })
        .collect()
}

#[test]
fn message_passing() {
    let relaxed = outcomes(&["st x 1; st y 1", "ld y 0; ld x 1"], 2);
    assert!(
        relaxed.contains(&vec![1, 0]),
        "the message is stale in some schedule: {relaxed:?}"
    );
    assert!(relaxed.contains(&vec![1, 1]), "{relaxed:?}");
    for blocks in [
        ["st x 1; release y 1", "acquire y 0; ld x 1"],
        ["st x 1; fence acq_rel; st y 1", "ld y 0; fence acq_rel; ld x 1"],
    ] {
        let ordered = outcomes(&blocks, 2);
        assert!(!ordered.contains(&vec![1, 0]), "{blocks:?}: {ordered:?}");
        assert!(ordered.contains(&vec![1, 1]), "{blocks:?}: {ordered:?}");
    }
}

#[test]
fn store_buffering() {
    for blocks in [
        ["st x 1; ld y 0", "st y 1; ld x 1"],
        ["st x 1; fence acq_rel; ld y 0", "st y 1; fence acq_rel; ld x 1"],
    ] {
        let weak = outcomes(&blocks, 2);
        assert!(weak.contains(&vec![0, 0]), "{blocks:?}: {weak:?}");
    }
    let strong = outcomes(&["st x 1; fence sc; ld y 0", "st y 1; fence sc; ld x 1"], 2);
    assert!(!strong.contains(&vec![0, 0]), "{strong:?}");
}

#[test]
fn fences_reach_as_far_as_their_scope() {
    // A fence of the block's scope is nothing to another block, and one fence is no pair.
    for blocks in [
        ["st x 1; fence sc cta; ld y 0", "st y 1; fence sc cta; ld x 1"],
        ["st x 1; fence sc; ld y 0", "st y 1; fence sc cta; ld x 1"],
        ["st x 1; fence sc; ld y 0", "st y 1; ld x 1"],
        ["st x 1; ld y 0", "st y 1; fence sc; ld x 1"],
        [
            "st x 1; fence sc cluster; ld y 0",
            "st y 1; fence sc cluster; ld x 1",
        ],
    ] {
        let weak = outcomes(&blocks, 2);
        assert!(weak.contains(&vec![0, 0]), "{blocks:?}: {weak:?}");
    }
    let blocks = ["st x 1; fence sc cluster; ld y 0", "st y 1; fence sc; ld x 1"];
    let strong = outcomes_at(At::Cluster, &blocks, 2);
    assert!(!strong.contains(&vec![0, 0]), "{strong:?}");
    let blocks = ["st x 1; fence sc cta; ld y 0", "st y 1; fence sc cta; ld x 1"];
    let weak = outcomes_at(At::Cluster, &blocks, 2);
    assert!(weak.contains(&vec![0, 0]), "{weak:?}");
}

#[test]
fn a_message_needs_a_fence_on_each_side() {
    for at in [At::Global, At::Cluster] {
        for blocks in [
            ["st x 1; fence acq_rel; st y 1", "ld y 0; ld x 1"],
            ["st x 1; st y 1", "ld y 0; fence acq_rel; ld x 1"],
            ["st x 1; release y 1", "ld y 0; ld x 1"],
            ["st x 1; st y 1", "acquire y 0; ld x 1"],
            [
                "st x 1; fence acq_rel cta; st y 1",
                "ld y 0; fence acq_rel; ld x 1",
            ],
            ["add x 1; add y 1", "ld y 0; ld x 1"],
            ["add x 1; fence acq_rel; add y 1", "ld y 0; ld x 1"],
        ] {
            let weak = outcomes_at(at, &blocks, 2);
            assert!(weak.contains(&vec![1, 0]), "{blocks:?}: {weak:?}");
        }
        let blocks = ["add x 1; fence acq_rel; add y 1", "ld y 0; fence acq_rel; ld x 1"];
        let strong = outcomes_at(at, &blocks, 2);
        assert!(!strong.contains(&vec![1, 0]), "{blocks:?}: {strong:?}");
    }
}

#[test]
fn load_buffering_gives_no_values_out_of_thin_air() {
    let seen = outcomes(&["ld x 0; st y 1", "ld y 1; st x 1"], 2);
    assert!(
        !seen.contains(&vec![1, 1]),
        "no schedule performs a write before an earlier read: {seen:?}"
    );
}

#[test]
fn reads_of_one_place_never_go_back() {
    for blocks in [
        ["st x 1; st x 2", "ld x 0; ld x 1; ld x 2"],
        ["st x 1; fence sc; st x 2", "ld x 0; ld x 1; ld x 2"],
    ] {
        let seen = outcomes(&blocks, 3);
        assert!(seen.len() > 1, "{seen:?}");
        assert!(seen.iter().all(|reads| reads.is_sorted()), "{blocks:?}: {seen:?}");
    }
    // A thread sees what it has written itself.
    let own = outcomes(&["st x 1; ld x 0", "ld y 1"], 1);
    assert_eq!(own, BTreeSet::from([vec![1]]));
}

#[test]
fn independent_reads_of_independent_writes() {
    let blocks = [
        "st x 1",
        "st y 1",
        "ld x 0; fence sc; ld y 1",
        "ld y 2; fence sc; ld x 3",
    ];
    let seen = outcomes(&blocks, 4);
    assert!(!seen.contains(&vec![1, 0, 1, 0]), "{seen:?}");
}

#[test]
fn shared_memory_of_a_cluster_is_no_stronger() {
    let outcomes = |blocks: &[&str], count| outcomes_at(At::Cluster, blocks, count);
    // The reader may be the block whose memory it is; it pauses behind its first read at the earliest.
    for blocks in [
        ["st x 1; st y 1", "ld y 0; ld x 1"],
        ["ld x 2; ld y 0; ld x 1", "st x 1; st y 1"],
    ] {
        let relaxed = outcomes(&blocks, 2);
        assert!(relaxed.contains(&vec![1, 0]), "{blocks:?}: {relaxed:?}");
        assert!(relaxed.contains(&vec![1, 1]), "{blocks:?}: {relaxed:?}");
    }
    for blocks in [
        ["st x 1; release y 1", "acquire y 0; ld x 1"],
        ["st x 1; fence acq_rel; st y 1", "ld y 0; fence acq_rel; ld x 1"],
    ] {
        let ordered = outcomes(&blocks, 2);
        assert!(!ordered.contains(&vec![1, 0]), "{blocks:?}: {ordered:?}");
        assert!(ordered.contains(&vec![1, 1]), "{blocks:?}: {ordered:?}");
    }
    let weak = outcomes(&["st x 1; ld y 0", "st y 1; ld x 1"], 2);
    assert!(weak.contains(&vec![0, 0]), "{weak:?}");
    let strong = outcomes(&["st x 1; fence sc; ld y 0", "st y 1; fence sc; ld x 1"], 2);
    assert!(!strong.contains(&vec![0, 0]), "{strong:?}");
    let coherent = outcomes(&["st x 1; st x 2", "ld x 0; ld x 1; ld x 2"], 3);
    assert!(coherent.iter().all(|reads| reads.is_sorted()), "{coherent:?}");
}
