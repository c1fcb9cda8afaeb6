//! The search through all orders finds what a search that leaves no order out finds, in random synchronizing kernels.
//!
//! `TIRX_ORDERS=2000` sets how many, `TIRX_ORDERS_SEED=1` the first seed.

mod written;

use std::collections::BTreeSet;
use std::fmt::Write;

use tirx_sim::{Exploration, Launch, LaunchOptions, Memory, Program, StandIns};
use written::{compiled, ints, read};

/// Most runs of a search that leaves nothing out. A kernel with more orders is not compared.
const MAX_RUNS: u64 = 4_000;

/// What one run leaves, or its fault.
type Outcomes = BTreeSet<String>;

/// Runs a kernel in the orders of a search. Gives the outcomes, the number of runs, and whether the search came to its end.
fn outcomes(program: &Program, roles: u32, search: &Exploration) -> (Outcomes, u64, bool) {
    let mut found = Outcomes::new();
    let mut runs = 0;
    while search.more() {
        runs += 1;
        let memory = Memory::new();
        let tensors = [3, 2, 4].map(|size| ints(&memory, vec![0; size]));
        let launch = Launch {
            grid: [1; 3],
            block: [roles * 32, 1, 1],
            cluster: [1; 3],
            shared_bytes: 0,
            args: &tensors.each_ref().map(|tensor| tensor.address()),
            peers: &[],
        };
        let options = LaunchOptions::default();
        let none = StandIns::new();
        match program.launch_exploring(&memory, &launch, &none, &options, search) {
            Err(fault) => {
                let line = fault.location.as_ref().map_or(0, |at| at.line);
                found.insert(format!("line {line}, {}: {}", fault.kind, fault.message));
            }
            Ok(_) if search.left() => {}
            Ok(_) => {
                let left: Vec<Vec<i32>> = tensors.iter().map(read).collect();
                found.insert(format!("{left:?}"));
            }
        }
    }
    (found, runs, search.explored().cut.is_none())
}

/// Random numbers (splitmix64).
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % bound
    }
}

/// A step of a role: lines of text. It adds what it has read to `seen`. Most kernels have no step that fails in most orders.
fn step(draws: &mut Draws, bars: u64, fails: bool) -> Vec<String> {
    let flag = draws.below(2);
    let value = draws.below(3);
    let bar = draws.below(bars);
    let parity = draws.below(2);
    let load = format!("T.ptx.ld_acquire(F.ptr_to([{flag}]), \"int32\", \"s32\", scope=\"gpu\")");
    let read = |text: &str| format!("seen = seen * 7 + {text}");
    let one = |text: String| vec![text];
    match draws.below(if fails { 18 } else { 14 }) {
        0 => one(read(&format!("T.cuda.atomic_add(S.ptr_to([{flag}]), 1)"))),
        1 => one(read(&format!(
            "T.cuda.atomic_cas(S.ptr_to([{flag}]), {value}, {})",
            value + 1
        ))),
        2 => one(read(&format!(
            "T.ptx.atom_scalar(L.ptr_to([{flag}]), {value}, op=\"exch\", ptx_type=\"b32\", scope=\"gpu\", sem=\"acq_rel\")"
        ))),
        3 | 4 => one(format!(
            "T.ptx.st_release(F.ptr_to([{flag}]), {}, ptx_type=\"s32\", scope=\"gpu\")",
            value + 1
        )),
        5 => one(read(&load)),
        6 | 7 => {
            let test = ["<", "!=", "=="][draws.below(3) as usize];
            let against = if test == "==" { 0 } else { value };
            vec![
                format!("while {load} {test} {against}:"),
                "    T.cuda.nano_sleep(T.uint64(20))".to_string(),
            ]
        }
        8 => vec![
            format!("while T.cuda.atomic_cas(L.ptr_to([{flag}]), 0, 1) != 0:"),
            "    T.cuda.nano_sleep(T.uint64(20))".to_string(),
        ],
        9 => vec![
            format!(
                "while T.ptx.atom_scalar(L.ptr_to([{flag}]), 1, op=\"exch\", ptx_type=\"b32\", scope=\"gpu\", sem=\"acquire\") != 0:"
            ),
            "    T.cuda.nano_sleep(T.uint64(20))".to_string(),
        ],
        10 => one(format!(
            "T.ptx.atom_scalar(L.ptr_to([{flag}]), 0, op=\"exch\", ptx_type=\"b32\", scope=\"gpu\", sem=\"release\")"
        )),
        11 => one(format!("T.ptx.mbarrier.arrive(bar.ptr_to([{bar}]))")),
        12 | 13 => one(format!("T.ptx.mbarrier.try_wait(bar.ptr_to([{bar}]), {parity})")),
        14 => one(format!("T.ptx.mbarrier.arrive(bar.ptr_to([{bar}]))")),
        15 => one(format!(
            "T.ptx.mbarrier.arrive.no_complete(bar.ptr_to([{bar}]), 1)"
        )),
        16 => one(format!(
            "T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([{bar}]), {})",
            16 * value
        )),
        _ => one(format!("T.ptx.mbarrier.inval(bar.ptr_to([{bar}]))")),
    }
}

/// A kernel of two or three roles.
fn random_kernel(seed: u64) -> (String, u32) {
    let mut draws = Draws(seed);
    let roles = 2 + draws.below(2) as u32;
    let threads = roles * 32;
    let counts = [0, 1].map(|_| 1 + draws.below(3));
    let fails = draws.below(3) == 0;
    let mut text = format!(
        "@T.prim_func\ndef kernel(B: T.Buffer((3,), \"int32\"), F: T.Buffer((2,), \"int32\"), L: T.Buffer((4,), \"int32\")):\n    \
         T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([{threads}])\n    \
         S = T.alloc_shared((2,), \"int32\")\n    bar = T.alloc_shared((2,), \"uint64\")\n    if tx == 0:\n        \
         S[0] = 0\n        S[1] = 0\n        T.ptx.mbarrier.init(bar.ptr_to([0]), {})\n        \
         T.ptx.mbarrier.init(bar.ptr_to([1]), {})\n    T.cuda.cta_sync()\n",
        counts[0], counts[1]
    );
    for role in 0..roles {
        let _ = writeln!(text, "    if tx == {}:\n        seen: T.int32 = 1", role * 32);
        for _ in 0..2 + draws.below(if roles == 2 { 4 } else { 2 }) {
            let lines = step(&mut draws, 2, fails);
            let indent = match draws.below(6) {
                0 => {
                    let _ = writeln!(text, "        if seen % 2 == 1:");
                    "            "
                }
                _ => "        ",
            };
            for line in lines {
                let _ = writeln!(text, "{indent}{line}");
            }
        }
        let _ = writeln!(text, "        B[{role}] = seen");
    }
    (text, roles)
}

fn number(variable: &str, otherwise: u64) -> u64 {
    let text = std::env::var(variable).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn orders_that_are_left_out_make_no_difference() {
    let (count, first) = (number("TIRX_ORDERS", 150), number("TIRX_ORDERS_SEED", 1));
    let (mut compared, mut reduced, mut all) = (0, 0, 0);
    for seed in first..first + count {
        let (text, roles) = random_kernel(seed);
        let program = compiled(&text);
        let (expected, every, whole) = outcomes(&program, roles, &Exploration::unreduced(MAX_RUNS));
        if !whole {
            continue;
        }
        let (found, runs, whole) = outcomes(&program, roles, &Exploration::new(MAX_RUNS));
        assert!(
            whole,
            "seed {seed}: {runs} runs, {every} without reduction:\n{text}"
        );
        let missing: Vec<_> = expected.difference(&found).collect();
        let more: Vec<_> = found.difference(&expected).collect();
        assert!(
            missing.is_empty() && more.is_empty(),
            "seed {seed}: not found {missing:#?}, and found alone {more:#?}, in:\n{text}"
        );
        compared += 1;
        reduced += runs;
        all += every;
    }
    println!("{compared} of {count} kernels compared: {reduced} runs instead of {all}");
    assert!(
        compared > count / 2,
        "{compared} of {count} kernels were compared"
    );
}
