//! Checks that every function of TVM's `T.ptx`, `T.cuda` and `T.nvshmem` exists, and generates the reference page from
//! the rows.
//!
//! `oracle_names.txt` are the names of TVM 0.26, by namespace. `UPDATE_EXPECT=1` writes `docs/reference/intrinsics.md`.

mod calls;
mod conversions;
mod read_by_name;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use self::calls::{called, calls, kernel, left_out, placed};

use tirx_build::Environment;
use tirx_build::toolchain::disassembler;
use tirx_core::intrin::mnemonic::spelling;
use tirx_core::intrin::row::{ArgKind, Collective, CudaForm, Engine, Synchronizes};
use tirx_core::intrin::{Op, ResultRule, Row, rows};
use tirx_core::ir::{Expr, ExprKind, IRModule, Visitor};
use tirx_core::script::eval::{Value, language_name};
use tirx_core::script::lang;
use tirx_tests::nvcc::{Nvcc, Source, nvcc};
use tirx_tests::unit::unit;
use tirx_tests::{root, skip};

/// Functions that TVM's own release does not compile either, with the error message.
const REFUSED: &[&str] = &[
    "cuda.mma_store",
    "cuda.mma_fill",
    "cuda.mma_store_legacy",
    "cuda.mma_fill_legacy",
    "ptx.cp_async.bulk",
];

fn find(name: &str) -> Option<Value> {
    let mut path = String::from("T");
    let mut found = None;
    for part in name.split('.') {
        found = Some(language_name(&path, part)?);
        path = format!("{path}.{part}");
    }
    found
}

/// A template with the braces of PTX, which it doubles, as they are written in PTX.
fn unescaped(template: &str) -> String {
    let (mut text, mut slots, mut chars) = (String::new(), 0_usize, template.chars().peekable());
    while let Some(c) = chars.next() {
        text.push(c);
        match c {
            '{' if chars.next_if_eq(&'{').is_some() => {}
            '{' => slots += 1,
            '}' if slots > 0 => slots -= 1,
            '}' => drop(chars.next_if_eq(&'}')),
            _ => {}
        }
    }
    text
}

#[test]
fn every_function_of_tvm_is_there() {
    let mut counts = BTreeMap::new();
    let mut gaps = Vec::new();
    for name in include_str!("../../oracle_names.txt")
        .lines()
        .filter(|l| !l.starts_with('#'))
    {
        *counts
            .entry(name.split('.').next().unwrap_or_default())
            .or_insert(0) += 1;
        let callable = matches!(find(name), Some(Value::Builtin(_)));
        if callable == REFUSED.contains(&name) {
            gaps.push(name);
        }
    }
    assert_eq!(counts, [("cuda", 73), ("nvshmem", 16), ("ptx", 115)].into());
    assert!(gaps.is_empty(), "{gaps:?}");
}

/// The page: one table per family.
fn page() -> String {
    let mut text = String::from(
        "# Intrinsics\n\n<!-- `UPDATE_EXPECT=1 cargo test -p tirx-tests --test language intrinsics` writes this page from \
         `tirx-core/ir/src/intrin/rows`. -->\n\nEvery operation, by family: spelling, meaning, GPUs and CUDA text. The folder \
         `tests/kernels` has kernels that use the operations. `T.ptx` also takes each instruction by its mnemonic, as the PTX ISA writes it.\n",
    );
    let mut family = "";
    for op in Op::ALL {
        let row = op.row();
        let now = rows::family(*op);
        if now != family {
            family = now;
            text.push_str(&format!("\n## {family}\n"));
        }
        let names: Vec<&str> = row.args.iter().map(|a| a.name).collect();
        // Where the call gives the dtype of the result, the language has a parameter for it, which is no argument of the node.
        let own = || {
            let (signature, _) = lang::described(&format!("T.{}", row.script))?;
            let given = matches!(row.result, ResultRule::Given | ResultRule::GivenLast);
            Some(signature).filter(|signature| given && signature.contains("dtype"))
        };
        let signature = row
            .signature
            .map(str::to_string)
            .or_else(own)
            .unwrap_or_else(|| format!("({})", names.join(", ")));
        text.push_str(&format!(
            "\n### `T.{}{signature}`\n\n{}\n\n",
            row.script,
            op.info().doc.trim()
        ));
        let mut facts = vec![format!("GPUs: {}", op.gpus())];
        for (name, value, arch) in row.needs {
            let value = if *value == "1" {
                String::new()
            } else {
                format!(" `{value}`")
            };
            facts.push(format!(
                "with `{}`{value}: {arch}",
                name.trim_start_matches("has_")
            ));
        }
        for (name, _, (major, minor)) in row.since {
            facts.push(format!("with `{name}`: CUDA {major}.{minor} or later"));
        }
        match row.traits.collective {
            Collective::Thread => {}
            Collective::Warp => facts.push("executed by all lanes of a warp together".into()),
            Collective::Warpgroup => facts.push("executed by the four warps of a warpgroup together".into()),
            Collective::Block => facts.push("executed by all threads of the block together".into()),
        }
        match row.traits.engine {
            Engine::None => {}
            engine => facts.push(format!("asynchronous ({engine:?})")),
        }
        let between = match row.traits.synchronizes {
            Synchronizes::Nobody => "",
            Synchronizes::Memory => "orders accesses to memory",
            Synchronizes::Lanes => {
                "exchanges values of lanes that meet; orders no access to memory (`T.cuda.warp_sync()` does)"
            }
            Synchronizes::Warp => "synchronizes lanes of the warp",
            Synchronizes::Warpgroup => "synchronizes the warpgroup",
            Synchronizes::Block => "synchronizes threads of the block",
            Synchronizes::Cluster => "synchronizes threads of the cluster",
            Synchronizes::Grid => "synchronizes the grid",
            Synchronizes::Grids => "synchronizes grids",
        };
        if !between.is_empty() {
            facts.push(between.into());
        }
        if row.traits.waits {
            facts.push("may wait".into());
        }
        for arg in row.args {
            if let ArgKind::Text(words) = arg.kind {
                let words: Vec<String> = words.iter().map(|w| format!("`\"{w}\"`")).collect();
                facts.push(format!("`{}`: {}", arg.name, words.join(", ")));
            }
        }
        match row.cuda.form {
            CudaForm::Ptx(template) | CudaForm::PurePtx(template) | CudaForm::StatePtx(template) => {
                facts.push(format!("PTX: `{}`", unescaped(template)));
            }
            CudaForm::Function(text) | CudaForm::Expression(text) => facts.push(format!("CUDA: `{text}`")),
            CudaForm::Host => facts.push("in host functions".into()),
            CudaForm::Lowered => facts.push("replaced by a pass".into()),
            CudaForm::Code(_) | CudaForm::Special => {}
        }
        let spelled = spelling::from_op(*op);
        if !spelled.is_empty() {
            let spelled: Vec<String> = spelled.iter().map(|text| format!("`{text}`")).collect();
            facts.push(format!("in TVM 0.27: {}", spelled.join(", ")));
        }
        if !row.section.is_empty() {
            facts.push(format!("described in: {}", row.section));
        }
        for fact in facts {
            text.push_str(&format!("- {fact}\n"));
        }
    }
    text
}

#[test]
fn the_page_is_up_to_date() {
    let path = root().join("docs/reference/intrinsics.md");
    let new = page();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, new).unwrap();
        return;
    }
    let old = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        new == old,
        "docs/reference/intrinsics.md is out of date: run this test with UPDATE_EXPECT=1"
    );
}

/// Whether a kernel works with CTA pairs.
fn pairs(row: &'static Row, module: &IRModule) -> bool {
    struct Pairs(&'static Row, bool);
    impl Visitor for Pairs {
        fn visit_expr(&mut self, e: &Expr) {
            if let ExprKind::Call { op, args } = &e.kind
                && std::ptr::eq(op.row(), self.0)
                && let Ok(operands) = self.0.read(args)
            {
                self.1 |= operands.int("cta_group") == Some(2);
            }
            self.walk_expr(e);
        }
    }
    let mut found = Pairs(row, false);
    module
        .functions
        .iter()
        .for_each(|(_, func)| found.visit_stmt(&func.body));
    found.1
}

/// The messages of nvcc about calls for a target; `None` if it accepts them.
fn refused_by_nvcc(nvcc: &Nvcc, text: &str, target: &str) -> Option<String> {
    let source = tirx_tests::cuda_text("k.py", text, "k", &Default::default(), target)
        .unwrap_or_else(|e| panic!("{e}\n{text}"));
    let refused = nvcc.refused(target, &["-O1"], &[(0, &source)]);
    let refused = refused.unwrap_or_else(|e| panic!("{e}"));
    refused.into_iter().next().map(|(_, message)| message)
}

/// Operands in local arrays and in shared memory are values as variables are: nvcc takes each call with them too.
#[test]
fn operands_of_each_row_may_be_elements_of_arrays() {
    let Some(nvcc) = nvcc() else { return };
    let mut by_target: BTreeMap<(usize, bool), Vec<String>> = BTreeMap::new();
    for row in Op::ALL.iter().map(|op| op.row()).filter(|row| called(row)) {
        for (i, call) in calls(row).iter().enumerate() {
            let Some(call) = placed(call, ["l", "s"][i % 2]) else {
                continue;
            };
            let text = kernel(std::slice::from_ref(&call));
            let modules =
                tirx_tests::build("k.py", &text, &[], &Default::default()).unwrap_or_else(|e| panic!("{e}"));
            let takes = |target: &str| takes(&modules[0].1, target);
            let least = TARGETS.iter().position(|t| takes(t)).unwrap();
            if !left_out(&call) {
                let calls = by_target.entry((least, pairs(row, &modules[0].1))).or_default();
                calls.push(call);
            }
        }
    }
    let count: usize = by_target.values().map(Vec::len).sum();
    assert!(count > 500, "{count} calls with values");
    for ((least, _), calls) in &by_target {
        for calls in calls.chunks(TOGETHER) {
            if let Some(message) = refused_by_nvcc(&nvcc, &kernel(calls), TARGETS[*least]) {
                panic!("{}:\n{message}", TARGETS[*least]);
            }
        }
    }
}

/// How many calls one kernel has: ptxas does not survive all of them at once.
const TOGETHER: usize = 100;

/// Each row at each modifier is printed and read back, and some target takes it.
#[test]
fn each_row_at_each_modifier_is_taken_by_a_target() {
    let mut none = Vec::new();
    for op in Op::ALL {
        let row = op.row();
        if !called(row) {
            continue;
        }
        let calls = calls(row);
        if calls.is_empty() {
            none.push(row.script);
        }
        for call in calls {
            let text = kernel(std::slice::from_ref(&call));
            let modules =
                tirx_tests::build("k.py", &text, &[], &Default::default()).unwrap_or_else(|e| panic!("{e}"));
            tirx_tests::round_trip(&modules[0].1).unwrap_or_else(|e| panic!("{call}: {e}"));
            let takes = |target: &&str| takes(&modules[0].1, target);
            assert!(TARGETS.iter().any(takes), "no target takes {call}");
        }
    }
    assert!(none.is_empty(), "no call of {none:?}");
}

/// Whether a target has all operations of a module.
fn takes(module: &tirx_core::ir::IRModule, target: &str) -> bool {
    let gpu = target.parse().expect("a known GPU");
    tirx_core::codegen::cuda::unsupported(module, gpu).is_ok()
}

/// The targets that calls are compiled for, from the first to the last.
const TARGETS: [&str; 5] = ["sm_80", "sm_89", "sm_90", "sm_90a", "sm_100a"];

/// A call that is tested by a kernel of its own: the row's name, the call, the lowest target that has it, and its CUDA
/// text.
struct Single {
    script: &'static str,
    call: String,
    target: &'static str,
    text: String,
}

/// Every call of every row except those with kernels of their own.
static SINGLES: LazyLock<Vec<Single>> = LazyLock::new(singles);

fn singles() -> Vec<Single> {
    let mut out = Vec::new();
    for op in Op::ALL {
        let row = op.row();
        if !called(row) {
            continue;
        }
        for call in calls(row) {
            if left_out(&call) {
                continue;
            }
            let text = kernel(std::slice::from_ref(&call));
            let compiled =
                |target: &str| tirx_tests::cuda_text("k.py", &text, "k", &Default::default(), target);
            let Some((target, cuda)) = TARGETS.iter().find_map(|t| Some((*t, compiled(t).ok()?))) else {
                panic!("no target takes {call}");
            };
            out.push(Single {
                script: row.script,
                call,
                target,
                text: cuda,
            });
        }
    }
    out
}

/// The opcodes of each function of a cubin, by its number.
fn opcodes(listing: &str) -> BTreeMap<usize, Vec<String>> {
    let mut out: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let mut current = None;
    for line in listing.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix(".text.k_") {
            let number = name.strip_suffix("_kernel:");
            current = number.and_then(|n| n.parse().ok()).or(current);
            continue;
        }
        let Some((_, code)) = line.strip_prefix("/*").and_then(|rest| rest.split_once("*/")) else {
            continue;
        };
        let mut words = code.split_whitespace().skip_while(|word| word.starts_with('@'));
        if let (Some(number), Some(opcode)) = (current, words.next()) {
            out.entry(number)
                .or_default()
                .push(opcode.trim_end_matches(';').to_string());
        }
    }
    out
}

/// nvcc takes each call of a row for the lowest target that has it, and makes of it the machine instruction that `sass.txt` names.
#[test]
fn each_call_becomes_its_machine_instruction() {
    let table = std::fs::read_to_string(root().join("tests/sass.txt")).expect("the table");
    let table: BTreeMap<&str, Vec<&str>> = table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(':'))
        .map(|(name, words)| (name, words.split_whitespace().collect()))
        .collect();
    for family in [
        "ptx.mbarrier",
        "ptx.cp_async",
        "ptx.tcgen05",
        "ptx.wgmma",
        "ptx.clc",
    ] {
        let rows = Op::ALL.iter().map(|op| op.row());
        let missing: Vec<&str> = rows
            .filter(|row| row.script.starts_with(family))
            .filter(|row| !row.args.iter().any(|a| matches!(a.kind, ArgKind::DTypeName)))
            .map(|row| row.script)
            .filter(|script| !table.contains_key(script))
            .collect();
        assert!(missing.is_empty(), "sass.txt does not name {missing:?}");
    }
    let Some(nvcc) = nvcc() else { return };
    let nvdisasm = disassembler(&Environment::process(), nvcc.path.parent());
    if nvdisasm.is_none() {
        skip("there is no nvdisasm (`cargo tirx toolchain nvdisasm`)");
    }
    let dir = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for target in TARGETS {
        let here: Vec<&Single> = SINGLES.iter().filter(|s| s.target == target).collect();
        let texts: Vec<(u64, &str)> = (0..).zip(here.iter().map(|s| &*s.text)).collect();
        let source = Source {
            arch: target,
            flags: &["-O1"],
            text: &unit(&texts),
        };
        let compiled = nvcc.compile(&source).unwrap_or_else(|e| panic!("{target}:\n{e}"));
        let Some(nvdisasm) = &nvdisasm else { continue };
        let cubin = dir.path().join(format!("{target}.cubin"));
        std::fs::write(&cubin, compiled.cubin).unwrap();
        let listing = std::process::Command::new(nvdisasm)
            .arg("-c")
            .arg(&cubin)
            .output();
        let listing = listing.unwrap_or_else(|e| panic!("{}: {e}", nvdisasm.display()));
        let listing = opcodes(&String::from_utf8_lossy(&listing.stdout));
        for (number, single) in here.iter().enumerate() {
            let found = listing.get(&number).map_or(&[][..], |l| l);
            let Some(wanted) = table.get(single.script).filter(|words| !words.contains(&"-")) else {
                continue;
            };
            if !found.iter().any(|op| wanted.iter().any(|w| op.starts_with(w))) {
                let mut known = found.to_vec();
                known.sort();
                known.dedup();
                wrong.push(format!(
                    "{target}: {} has none of {wanted:?} but {known:?}",
                    single.call
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} calls:\n{}", wrong.len(), wrong.join("\n"));
}

/// Below the lowest target that has it each call is rejected with an error that names the operation and the line.
#[test]
fn each_call_is_refused_below_its_target() {
    let mut refused = 0;
    for single in &*SINGLES {
        let text = kernel(std::slice::from_ref(&single.call));
        for target in TARGETS.iter().take_while(|t| **t != single.target) {
            let message = tirx_tests::cuda_text("k.py", &text, "k", &Default::default(), target)
                .expect_err("the target before takes it not");
            let name = format!("`T.{}`", single.script);
            assert!(
                message.contains(&name) && message.contains("needs") && message.contains("k.py:"),
                "{} on {target}:\n{message}",
                single.call
            );
            refused += 1;
        }
    }
    assert!(refused > 100, "{refused} calls are refused somewhere");
}

#[test]
fn what_a_release_of_cuda_does_not_know_is_said_of_its_line() {
    let text = kernel(&[
        "T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([0]), G.ptr_to([0]), 128, S.ptr_to([0]), ignore_oob=True)"
            .into(),
        "T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([0]), G.ptr_to([0]), 128, S.ptr_to([0]))".into(),
    ]);
    let [(release, message)] = &needed_releases(&text)[..] else {
        panic!("one call needs a later release");
    };
    assert_eq!(*release, (13, 2));
    assert!(
        message.contains("`T.ptx.cp_async_bulk_g2s_cta` with ignore_oob needs CUDA 13.2 or later")
            && message.contains("k.py:15:"),
        "{message}"
    );
}

/// An instruction by its mnemonic names its release of PTX and the CUDA that has it, also where its GPU is older than both.
#[test]
fn a_mnemonic_of_a_later_release_says_which_cuda_it_needs() {
    let text = "@T.prim_func
def k(A: T.Buffer((32,), \"float32\")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    T.ptx.red.global_.add.noftz.f32(A.ptr_to([tx]), T.float32(1))
    T.ptx.red.global_.add.f32(A.ptr_to([tx]), T.float32(1))
";
    let needed = needed_releases(&format!("from tvm.script import tirx as T\n{text}"));
    let later: Vec<_> = needed.iter().filter(|(release, _)| *release > (13, 0)).collect();
    let [(release, message)] = &later[..] else {
        panic!("one call needs a later release: {needed:?}");
    };
    assert_eq!(*release, (13, 4));
    assert!(
        message.contains("`red.global.add.noftz.f32` (PTX 9.4) needs CUDA 13.4 or later")
            && message.contains("k.py:7:")
            && message.contains("cuda = \"13.4\""),
        "{message}"
    );
}

/// The releases of CUDA that the calls of a kernel for sm_90a need, each with its message.
fn needed_releases(text: &str) -> Vec<((u32, u32), String)> {
    let (_, module) = tirx_tests::build("k.py", text, &[], &Default::default())
        .unwrap()
        .remove(0);
    let target = tirx_core::transform::Target::SM_90A;
    let mut lowering = tirx_core::transform::Lowering::new(target);
    let lowered = tirx_core::transform::lower(module, &mut lowering).unwrap();
    let source = tirx_core::codegen::cuda::emit(&lowered).unwrap();
    let message = |error: &tirx_core::diagnostic::Diagnostic| error.render(&lowered.sources);
    source
        .since
        .iter()
        .map(|since| (since.release, message(&since.error)))
        .collect()
}

/// PTX ISA: all tcgen05 instructions of a kernel have one `.cta_group`.
#[test]
fn a_kernel_is_of_single_blocks_or_of_pairs() {
    let text = "@T.prim_func
def k(A: T.Buffer((64,), \"uint32\")):
    T.device_entry()
    bx = T.cta_id([2]); tx = T.thread_id([32])
    slot = T.alloc_shared((1,), \"uint32\")
    T.ptx.tcgen05.alloc(slot.ptr_to([0]), 32, cta_group=2)
    T.ptx.tcgen05.dealloc(slot[0], 32, cta_group=1)
    A[tx] = slot[0]
";
    let compile = |text: &str| tirx_tests::cuda_text("k.py", text, "k", &Default::default(), "sm_100a");
    let message = compile(text).expect_err("two groups");
    for part in [
        "`T.ptx.tcgen05.dealloc` has cta_group=1, and other calls of this kernel have cta_group=2",
        "k.py:7:5",
        "`T.ptx.tcgen05.alloc` has cta_group=2",
        "k.py:6:5",
    ] {
        assert!(message.contains(part), "{part:?} is not in:\n{message}");
    }
    compile(&text.replace("cta_group=1", "cta_group=2")).expect("one group");
}

#[test]
fn what_a_gpu_does_not_have_is_an_error_at_its_line() {
    let text = "@T.prim_func
def k(A: T.Buffer((64,), \"uint32\")):
    T.device_entry()
    bx = T.cta_id([1]); tx = T.thread_id([32])
    slot = T.alloc_shared((1,), \"uint32\"); bar = T.alloc_shared((1,), \"uint64\")
    T.ptx.tcgen05.alloc(slot.ptr_to([0]), 32)
    x: T.uint64 = T.ptx.add_f32x2(T.uint64(0), T.uint64(0), dps=False)
    r = T.alloc_local((8,), \"uint32\")
    T.ptx.ld(A.ptr_to([0]), \"uint32\", \"u32\", vec=\"v8\", dst=r.ptr_to([0]))
    T.ptx.cp_async.bulk.tensor.g2s_cluster(2, slot.ptr_to([0]), bar.ptr_to([0]), A.ptr_to([0]), 0, 2, \"\", 0, 64)
    A[tx] = r[0]
";
    let message =
        tirx_tests::cuda_text("k.py", text, "k", &Default::default(), "sm_90a").expect_err("sm_90a has none");
    for part in [
        "`T.ptx.tcgen05.alloc` needs sm_100a or sm_110a or sm_100f or sm_110f, and the target is sm_90a",
        "k.py:6:5",
        "`T.ptx.add_f32x2` needs sm_100 or later",
        "k.py:7:",
        "`T.ptx.ld` of 256 bits needs sm_100 or later",
        "`T.ptx.cp_async.bulk.tensor.g2s_cluster` with cta_group needs sm_100a",
    ] {
        assert!(message.contains(part), "{part:?} is not in:\\n{message}");
    }
    tirx_tests::cuda_text("k.py", text, "k", &Default::default(), "sm_100a").expect("sm_100a has all");
}
