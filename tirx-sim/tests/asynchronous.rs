//! Asynchronous copies, mbarriers and tensor maps: correct kernels, and the same kernels with one mistake each.

mod written;

use tirx_sim::{
    FaultKind, Launch, LaunchOptions, Memory, StandIns, TensorMap, TensorMapSwizzle, TensorMapType,
};
use written::{compiled, ints, read};

struct Case {
    text: String,
    grid: [u32; 3],
    block: u32,
    cluster: [u32; 3],
}

impl Case {
    fn new(text: &str, block: u32) -> Case {
        Case {
            text: text.into(),
            grid: [1; 3],
            block,
            cluster: [1; 3],
        }
    }

    /// The same kernel with a text replaced.
    fn with(&self, old: &str, new: &str) -> Case {
        assert!(self.text.contains(old), "{old}");
        Case {
            text: self.text.replacen(old, new, 1),
            ..*self
        }
    }

    fn run(&self, memory: &Memory, args: &[u64], options: LaunchOptions) -> Result<(), String> {
        let launch = Launch {
            grid: self.grid,
            block: [self.block, 1, 1],
            cluster: self.cluster,
            shared_bytes: 0,
            args,
            peers: &[],
        };
        let result = compiled(&self.text).launch_with(memory, &launch, &StandIns::new(), &options);
        result.map(drop).map_err(|f| f.to_string())
    }

    /// The kernel's output for the input 0, 1, 2, …, under several schedules.
    fn result(&self, count: i32, out: usize) -> Result<Vec<i32>, String> {
        let mut last = None;
        for seed in 0..4 {
            let memory = Memory::new();
            let a = ints(&memory, 0..count);
            let b = ints(&memory, vec![0; out]);
            let options = LaunchOptions {
                seed,
                ..LaunchOptions::default()
            };
            self.run(&memory, &[a.address(), b.address()], options)?;
            let values = read(&b);
            assert!(last.is_none_or(|last| last == values), "seed {seed}");
            last = Some(values);
        }
        Ok(last.unwrap_or_default())
    }

    /// The kernel is refused, with this in the message.
    fn refused(&self, message: &str) {
        let result = self.result(4096, 4096);
        let text = result.expect_err(message);
        assert!(text.contains(message), "`{message}` is not in: {text}");
    }
}

const CP_ASYNC: &str = "
@T.prim_func
def kernel(A: T.Buffer((256,), 'int32'), B: T.Buffer((256,), 'int32')):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    S = T.alloc_shared((2, 128), 'int32')
    for stage in range(2):
        if tx < 32:
            T.ptx.cp_async(S.ptr_to([stage, tx * 4]), A.ptr_to([stage * 128 + tx * 4]), 16)
        T.ptx.cp_async.commit_group()
    T.ptx.cp_async.wait_group(1)
    T.cuda.cta_sync()
    B[tx] = S[0, 127 - tx]
    T.ptx.cp_async.wait_group(0)
    T.cuda.cta_sync()
    B[128 + tx] = S[1, 127 - tx]
";

#[test]
fn cp_async_is_waited_for_and_told_to_the_block() {
    let case = Case::new(CP_ASYNC, 64);
    let out = case.result(256, 256).unwrap();
    assert!((0..64).all(|i| out[i] == 127 - i as i32 && out[128 + i] == 255 - i as i32));
    case.with("    T.ptx.cp_async.wait_group(1)\n", "")
        .refused("has not waited for");
    case.with("wait_group(1)", "wait_group(2)")
        .refused("has not waited for");
    case.with("    T.cuda.cta_sync()\n    B[tx]", "    B[tx]")
        .refused("has not waited for");
    case.with("    T.ptx.cp_async.wait_group(0)\n", "")
        .refused("has not waited for");
    case.with(
        "A.ptr_to([stage * 128 + tx * 4])",
        "A.ptr_to([stage * 128 + tx * 4 + 1])",
    )
    .refused("no multiple of 16");
}

const BULK: &str = "
@T.prim_func
def kernel(A: T.Buffer((1024,), 'int32'), B: T.Buffer((1024,), 'int32')):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    S = T.alloc_shared((2, 128), 'int32')
    bars = T.alloc_shared((2,), 'uint64')
    if tx == 0:
        T.ptx.mbarrier.init(bars.ptr_to([0]), 1)
        T.ptx.mbarrier.init(bars.ptr_to([1]), 1)
    T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    phase: T.int32 = 0
    for i in range(4):
        if tx == 0:
            for stage in range(2):
                T.ptx.mbarrier.arrive.expect_tx(bars.ptr_to([stage]), 512)
                T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([stage, 0]), A.ptr_to([(i * 2 + stage) * 128]), 512, bars.ptr_to([stage]))
        for stage in range(2):
            T.ptx.mbarrier.try_wait(bars.ptr_to([stage]), phase)
            B[(i * 2 + stage) * 128 + tx] = S[stage, 127 - tx]
            B[(i * 2 + stage) * 128 + 64 + tx] = S[stage, 63 - tx]
        phase = phase ^ 1
        T.cuda.cta_sync()
";

#[test]
fn bulk_copies_count_their_bytes_at_mbarriers() {
    let case = Case::new(BULK, 64);
    let out = case.result(1024, 1024).unwrap();
    assert!(
        out.iter()
            .enumerate()
            .all(|(i, v)| *v as usize == i / 128 * 128 + 127 - i % 128)
    );
    case.with(
        "            T.ptx.mbarrier.try_wait(bars.ptr_to([stage]), phase)\n",
        "",
    )
    .refused("has not waited for");
    case.with("        phase = phase ^ 1\n", "")
        .refused("nothing orders the two");
    case.with("phase: T.int32 = 0", "phase: T.int32 = 1")
        .refused("has not waited for");
    case.with("        T.cuda.cta_sync()\n", "")
        .refused("nothing orders the two");
    case.with(
        "arrive.expect_tx(bars.ptr_to([stage]), 512)",
        "arrive.expect_tx(bars.ptr_to([stage]), 1024)",
    )
    .refused("waits for 0 of 1 arrivals and 512 bytes of copies");
    case.with(
        "arrive.expect_tx(bars.ptr_to([stage]), 512)",
        "arrive.expect_tx(bars.ptr_to([stage]), 256)",
    )
    .refused("");
    case.with("    T.ptx.fence.mbarrier_init()\n", "")
        .refused("no fence has made visible to the async proxy");
    case.with(
        "    T.ptx.fence.mbarrier_init()\n    T.cuda.cta_sync()\n",
        "    T.ptx.fence.mbarrier_init()\n",
    )
    .refused("mbarrier");
    case.with(
        "        if tx == 0:\n            for",
        "        if tx < 2:\n            for",
    )
    .refused("arrives 2 times at an mbarrier");
    case.with("S.ptr_to([stage, 0])", "S.ptr_to([stage, 1])")
        .refused("a multiple of 16 bytes");
    case.with("128]), 512, bars", "128]), 504, bars")
        .refused("must be a multiple of 16");
    case.with("        T.ptx.mbarrier.init(bars.ptr_to([1]), 1)\n", "")
        .refused("nobody has initialized it");
}

const ROLES: &str = "
@T.prim_func
def kernel(A: T.Buffer((1024,), 'int32'), B: T.Buffer((1024,), 'int32')):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([96])
    S = T.alloc_shared((2, 64), 'int32')
    full = T.alloc_shared((2,), 'uint64')
    empty = T.alloc_shared((2,), 'uint64')
    if tx == 0:
        for s in range(2):
            T.ptx.mbarrier.init(full.ptr_to([s]), 1)
            T.ptx.mbarrier.init(empty.ptr_to([s]), 64)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx >= 64:
        if tx == 64:
            for i in range(16):
                T.ptx.mbarrier.try_wait(empty.ptr_to([i % 2]), 1 - i // 2 % 2)
                T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([i % 2]), 256)
                T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([i % 2, 0]), A.ptr_to([i * 64]), 256, full.ptr_to([i % 2]))
    else:
        for i in range(16):
            T.ptx.mbarrier.try_wait(full.ptr_to([i % 2]), i // 2 % 2)
            B[i * 64 + tx] = S[i % 2, 63 - tx] * 2
            T.ptx.mbarrier.arrive(empty.ptr_to([i % 2]))
";

#[test]
fn producers_and_consumers_take_turns() {
    let case = Case::new(ROLES, 96);
    let out = case.result(1024, 1024).unwrap();
    assert!(
        out.iter()
            .enumerate()
            .all(|(i, v)| *v as usize == 2 * (i / 64 * 64 + 63 - i % 64))
    );
    case.with(
        "                T.ptx.mbarrier.try_wait(empty.ptr_to([i % 2]), 1 - i // 2 % 2)\n",
        "",
    )
    .refused("");
    case.with("1 - i // 2 % 2", "i // 2 % 2")
        .refused("no thread can run any more");
    case.with(
        "            T.ptx.mbarrier.try_wait(full.ptr_to([i % 2]), i // 2 % 2)\n",
        "",
    )
    .refused("before any thread has written it");
    case.with("            T.ptx.mbarrier.arrive(empty.ptr_to([i % 2]))\n", "")
        .refused("waits for 64 of 64 arrivals");
    case.with(
        "T.ptx.mbarrier.arrive(empty.ptr_to([i % 2]))",
        "T.ptx.mbarrier.arrive(empty.ptr_to([0]))",
    )
    .refused("");
    case.with("init(empty.ptr_to([s]), 64)", "init(empty.ptr_to([s]), 63)")
        .refused("");
    case.with("S[i % 2, 63 - tx]", "S[(i + 1) % 2, 63 - tx]")
        .refused("");
}

const STORE: &str = "
@T.prim_func
def kernel(A: T.Buffer((256,), 'int32'), B: T.Buffer((256,), 'int32')):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([128])
    S = T.alloc_shared((128,), 'int32')
    for i in range(2):
        S[tx] = A[i * 128 + 127 - tx]
        T.ptx.fence.proxy_async('shared::cta')
        T.cuda.cta_sync()
        if tx == 0:
            T.ptx.cp_async_bulk_s2g(B.ptr_to([i * 128]), S.ptr_to([0]), 512)
            T.ptx.cp_async.bulk.commit_group()
            T.ptx.cp_async.bulk.wait_group(0)
        T.cuda.cta_sync()
";

#[test]
fn bulk_stores_need_proxy_fences_and_waits() {
    let case = Case::new(STORE, 128);
    let out = case.result(256, 256).unwrap();
    assert!(
        out.iter()
            .enumerate()
            .all(|(i, v)| *v as usize == i / 128 * 128 + 127 - i % 128)
    );
    case.with("        T.ptx.fence.proxy_async('shared::cta')\n", "")
        .refused("no fence.proxy.async");
    case.with("            T.ptx.cp_async.bulk.wait_group(0)\n", "")
        .refused("");
    case.with("            T.ptx.cp_async.bulk.commit_group()\n", "")
        .refused("");
    case.with("        T.cuda.cta_sync()\n        if", "        if")
        .refused("");
    let last = case.with("    for i in range(2):", "    for i in range(1):");
    assert!(last.result(256, 256).is_ok());
    last.with("            T.ptx.cp_async.bulk.wait_group(0)\n", "")
        .refused("ends while an asynchronous operation reads");
}

/// A map of a matrix of 32-bit integers, 64 columns, and the kernel that copies a box in and writes it out plainly.
fn tile(rows: u64, dims: Vec<u64>, box_dims: Vec<u32>, swizzle: TensorMapSwizzle, at: &str) -> Vec<i32> {
    let rank = dims.len();
    let size: u32 = box_dims.iter().product();
    let text = format!(
        "
@T.prim_func
def kernel(M: T.TensorMap(), B: T.Buffer(({size},), 'int32')):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    S = T.alloc_shared(({size},), 'int32', align=1024)
    bar = T.alloc_shared((1,), 'uint64')
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), {bytes})
        T.ptx.cp_async.bulk.tensor.g2s_cta({rank}, S.ptr_to([0]), bar.ptr_to([0]), T.address_of(M), 1, '', {at})
    T.cuda.cta_sync()
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    for i in range({size} // 32):
        B[i * 32 + tx] = S[i * 32 + tx]
",
        bytes = size * 4
    );
    let memory = Memory::new();
    let a = ints(&memory, 0..(rows * 64) as i32);
    let b = ints(&memory, vec![-1; size as usize]);
    let strides = (1..rank).map(|d| dims[..d].iter().product::<u64>() * 4).collect();
    let map = TensorMap {
        dtype: TensorMapType::Int32,
        address: a.address(),
        dims,
        strides,
        element_strides: vec![1; rank],
        box_dims,
        interleave: 0,
        swizzle,
        l2_promotion: 0,
        nan_fill: false,
    };
    let bytes = memory.alloc(128);
    bytes.write(0, &map.encode());
    let case = Case::new(&text, 32);
    // Tensors come before tensor maps that no buffer is bound to.
    let args = [b.address(), bytes.address()];
    if let Err(message) = case.run(&memory, &args, LaunchOptions::default()) {
        panic!(
            "{message} {:?} {args:x?} {:x}",
            compiled(&case.text).params(),
            a.address()
        );
    }
    read(&b)
}

#[test]
fn tensor_copies_follow_their_maps() {
    let out = tile(16, vec![64, 16], vec![32, 8], TensorMapSwizzle::None, "32, 4");
    assert!(
        out.iter()
            .enumerate()
            .all(|(i, v)| *v as usize == (i / 32 + 4) * 64 + 32 + i % 32)
    );
    // Beyond the tensor there are zeros.
    let out = tile(16, vec![64, 16], vec![32, 8], TensorMapSwizzle::None, "-8, 12");
    let expected = |i: usize| match (i % 32, i / 32) {
        (x, y) if x >= 8 && y < 4 => ((y + 12) * 64 + x - 8) as i32,
        _ => 0,
    };
    assert!(out.iter().enumerate().all(|(i, v)| *v == expected(i)));
    // Rows of 128 bytes: pieces of 16 bytes are exchanged within eight rows.
    let out = tile(16, vec![64, 16], vec![32, 16], TensorMapSwizzle::Bytes128, "0, 0");
    let place = |i: usize| i / 32 * 32 + ((i % 32 / 4) ^ (i / 32 % 8)) * 4 + i % 4;
    assert!((0..512).all(|i| out[place(i)] as usize == i / 32 * 64 + i % 32));
    let out = tile(
        16,
        vec![16, 8, 8],
        vec![8, 2, 4],
        TensorMapSwizzle::None,
        "8, 2, 4",
    );
    assert!((0..64).all(|i| out[i] as usize == ((4 + i / 16) * 8 + 2 + i / 8 % 2) * 16 + 8 + i % 8));
}

#[test]
fn copies_may_go_to_all_blocks_of_a_cluster() {
    let text = "
@T.prim_func
def kernel(A: T.Buffer((256,), 'int32'), B: T.Buffer((256,), 'int32')):
    T.device_entry(); bx = T.cta_id([2]); rank = T.cta_id_in_cluster([2]); tx = T.thread_id([64])
    S = T.alloc_shared((128,), 'int32')
    bar = T.alloc_shared((1,), 'uint64')
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cluster_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 512)
        T.ptx.cp_async_bulk_g2s_cluster(S.ptr_to([rank * 64]), A.ptr_to([rank * 64]), 256, bar.ptr_to([0]), multicast=True, cta_mask=3)
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    B[rank * 128 + tx] = S[tx]
    B[rank * 128 + 64 + tx] = S[64 + tx]
    T.cuda.cluster_sync()
";
    let case = Case {
        grid: [2, 1, 1],
        cluster: [2, 1, 1],
        ..Case::new(text, 64)
    };
    let out = case.result(256, 256).unwrap();
    assert!(out.iter().enumerate().all(|(i, v)| *v as usize == i % 128));
    case.with("cta_mask=3", "cta_mask=1").refused("");
    case.with("    T.cuda.cluster_sync()\n    if", "    if")
        .refused("");
    case.with("init(bar.ptr_to([0]), 1)", "init(bar.ptr_to([0]), 2)")
        .refused("waits for 1 of 2 arrivals");
}

#[test]
fn a_timeline_shows_warps_operations_and_waits() {
    let memory = Memory::new();
    let (a, b) = (ints(&memory, 0..1024), ints(&memory, vec![0; 1024]));
    let launch = Launch {
        grid: [1; 3],
        block: [96, 1, 1],
        cluster: [1; 3],
        shared_bytes: 0,
        args: &[a.address(), b.address()],
        peers: &[],
    };
    let options = LaunchOptions {
        timeline: Some(0),
        ..LaunchOptions::default()
    };
    let program = compiled(ROLES);
    let stats = program
        .launch_with(&memory, &launch, &StandIns::new(), &options)
        .unwrap();
    let count = |name: &str| stats.timeline.iter().filter(|e| e.name == name).count();
    assert_eq!(count("the bulk copy"), 16);
    assert!(
        count("waits for an mbarrier") >= 16 && count("block barrier") == 3,
        "{:?}",
        stats.timeline
    );
    assert!(stats.timeline.iter().all(|e| e.start <= e.end));
    let text = tirx_sim::trace(&stats.timeline);
    assert!(text.contains("\"name\":\"operations of warp 2\"") && text.contains("cp_async_bulk_g2s_cta"));
}

#[test]
fn kinds_of_faults() {
    let memory = Memory::new();
    let a = ints(&memory, 0..1024);
    let case = Case::new(BULK, 64).with("    T.ptx.fence.mbarrier_init()\n", "");
    let launch = Launch {
        grid: [1; 3],
        block: [64, 1, 1],
        cluster: [1; 3],
        shared_bytes: 0,
        args: &[a.address(), a.address()],
        peers: &[],
    };
    let fault = compiled(&case.text)
        .launch(&memory, &launch, &StandIns::new())
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Asynchronous);
}

#[test]
fn a_deadlock_is_shown_at_the_wait() {
    let text = "
@T.prim_func
def kernel(A: T.Buffer((256,), 'int32'), B: T.Buffer((256,), 'int32')):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    bar = T.alloc_shared((1,), 'uint64')
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 32)
        B[0] = A[0]
        T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    T.cuda.warp_sync()
    T.ptx.mbarrier.arrive(bar.ptr_to([0]))
";
    let case = Case::new(text, 32);
    case.refused("1 thread waits for parity 0");
    case.refused("kernel.py:11:9\n   |\n11 |         T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)");
}

#[test]
fn faults_of_library_calls_are_shown_at_the_call() {
    let text = "
from tvm.backend.cuda.lang import MBarrier

@T.prim_func
def kernel(A: T.Buffer((256,), 'int32'), B: T.Buffer((256,), 'int32')):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    pool = T.SMEMPool()
    bar = MBarrier(pool, 1)
    pool.commit()
    B[tx] = A[tx]
    bar.wait(0, 0)
";
    Case::new(text, 32).refused("kernel.py:13:5\n   |\n13 |     bar.wait(0, 0)");
}

/// A grid that leaves numbers, and one that takes them: launched as dependent, the second may come before the first.
#[test]
fn dependent_launches_read_what_was_there_before_until_they_wait() {
    let first = "
@T.prim_func
def kernel(A: T.Buffer((64,), 'int32')):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    T.ptx.griddepcontrol.launch_dependents()
    A[tx] = tx + 100
";
    let second = "
@T.prim_func
def kernel(A: T.Buffer((64,), 'int32'), B: T.Buffer((64,), 'int32')):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    T.ptx.griddepcontrol.wait()
    B[tx] = A[tx]
";
    let run = |second: &Case, seed: u64, check_races: bool, wait: bool| {
        let memory = Memory::new();
        let (a, b) = (ints(&memory, 0..64), ints(&memory, vec![0; 64]));
        let args = [a.address(), b.address()];
        let options = |programmatic| LaunchOptions {
            seed,
            check_races,
            programmatic,
            ..LaunchOptions::default()
        };
        Case::new(first, 64).run(&memory, &args[..1], options(false))?;
        if wait {
            memory.synchronize();
        }
        second.run(&memory, &args, options(true))?;
        Ok::<_, String>(read(&b)[1])
    };
    let waits = Case::new(second, 64);
    let does_not = waits.with("    T.ptx.griddepcontrol.wait()\n", "");
    for seed in 0..8 {
        assert_eq!(run(&waits, seed, true, false), Ok(101));
        assert_eq!(run(&waits, seed, false, false), Ok(101));
        let message = run(&does_not, seed, true, false).unwrap_err();
        assert!(
            message.contains("no griddepcontrol.wait orders the two"),
            "{message}"
        );
        assert_eq!(run(&does_not, seed, true, true), Ok(101), "the host has waited");
    }
    assert_eq!(run(&does_not, 0, false, false), Ok(1), "what was there before");
    let values: Vec<_> = (0..8).map(|seed| run(&does_not, seed, false, false)).collect();
    assert!(
        values.contains(&Ok(101)),
        "some schedules let the first end: {values:?}"
    );
}
