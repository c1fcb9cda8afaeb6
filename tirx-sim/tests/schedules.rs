//! A seed gives one result and one report, on any number of threads, and the report is of the first cause.

mod written;

use tirx_sim::{Launch, LaunchOptions, Memory, Program, StandIns};
use written::{compiled, ints, read};

struct Grid {
    program: Program,
    blocks: u32,
    values: Vec<i32>,
}

impl Grid {
    /// A kernel of one tensor `B`, which holds these values before.
    fn new(blocks: u32, values: impl IntoIterator<Item = i32>, text: &str) -> Grid {
        Grid {
            program: compiled(text),
            blocks,
            values: values.into_iter().collect(),
        }
    }

    /// The tensor after a run and the report, if there is one.
    fn run(&self, seed: u64) -> (Vec<i32>, String) {
        let memory = Memory::new();
        let values = ints(&memory, self.values.iter().copied());
        let launch = Launch {
            grid: [self.blocks, 1, 1],
            block: [32, 1, 1],
            cluster: [1; 3],
            shared_bytes: 0,
            args: &[values.address()],
            peers: &[],
        };
        let options = LaunchOptions {
            seed,
            step_limit: Some(10_000_000),
            ..LaunchOptions::default()
        };
        let result = self
            .program
            .launch_with(&memory, &launch, &StandIns::new(), &options);
        let report = result.err().map_or_else(String::new, |fault| fault.to_string());
        (read(&values), report)
    }

    /// The same on several numbers of threads, which all give the same.
    #[track_caller]
    fn run_on_threads(&self, seed: u64) -> (Vec<i32>, String) {
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            pool.build().unwrap().install(|| self.run(seed))
        };
        let first = on(1);
        for threads in [2, 8, 3, 8, 8, 5, 8, 8] {
            assert_eq!(on(threads), first, "seed {seed} on {threads} threads");
        }
        first
    }
}

#[test]
fn blocks_that_poll_flags_of_higher_blocks_are_not_stuck() {
    // Nobody waits for the last block.
    let text = "
@T.prim_func
def kernel(B: T.Buffer((25,), 'int32')):
    T.device_entry(); bx = T.cta_id([24]); tx = T.thread_id([32])
    if tx == 0:
        while T.ptx.ld_acquire(B.ptr_to([bx + 1]), 'int32', 's32', scope='gpu') == 0:
            T.cuda.nano_sleep(T.uint64(20))
        T.ptx.st_release(B.ptr_to([bx]), T.int32(1), ptx_type='s32', scope='gpu')
";
    let grid = Grid::new(24, (0..25).map(|i| i32::from(i == 24)), text);
    for seed in 0..4 {
        assert_eq!(grid.run_on_threads(seed), (vec![1; 25], String::new()));
    }
}

#[test]
fn what_atomics_give_depends_on_the_seed_alone() {
    let text = "
@T.prim_func
def kernel(B: T.Buffer((17,), 'int32')):
    T.device_entry(); bx = T.cta_id([16]); tx = T.thread_id([32])
    if tx == 0:
        B[bx] = T.cuda.atomic_add(B.ptr_to([16]), 1)
";
    let grid = Grid::new(16, [0; 17], text);
    let orders: Vec<_> = (0..8).map(|seed| grid.run_on_threads(seed).0).collect();
    assert!(orders.iter().all(|order| order[16] == 16), "{orders:?}");
    assert!(orders.iter().any(|order| *order != orders[0]), "{orders:?}");
}

#[test]
fn a_race_between_blocks_has_one_report() {
    let text = "
@T.prim_func
def kernel(B: T.Buffer((33,), 'int32')):
    T.device_entry(); bx = T.cta_id([16]); tx = T.thread_id([32])
    for i in range(20):
        B[tx] = B[tx + 1] + bx
";
    let grid = Grid::new(16, 0..33, text);
    for seed in 0..4 {
        let (_, report) = grid.run_on_threads(seed);
        assert!(report.contains("data race"), "{report}");
    }
}

#[test]
fn blocks_that_wait_for_one_that_failed_are_not_reported() {
    let text = "
@T.prim_func
def kernel(B: T.Buffer((5,), 'int32')):
    T.device_entry(); bx = T.cta_id([4]); tx = T.thread_id([32])
    if tx == 0:
        if bx == 3:
            B[bx + 700] = 1
            T.ptx.st_release(B.ptr_to([4]), T.int32(1), ptx_type='s32', scope='gpu')
        else:
            while T.ptx.ld_acquire(B.ptr_to([4]), 'int32', 's32', scope='gpu') == 0:
                T.cuda.nano_sleep(T.uint64(20))
";
    let grid = Grid::new(4, [0; 5], text);
    for seed in 0..4 {
        let (_, report) = grid.run_on_threads(seed);
        assert!(report.contains("writes `B[703]`"), "{report}");
    }
}
