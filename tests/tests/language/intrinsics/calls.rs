//! The calls that are generated from the arguments of a row, and the kernel that makes them.

use tirx_core::intrin::Row;
use tirx_core::intrin::row::{Arg, ArgKind, CudaForm, Many, Space};
use tirx_core::ir::{DType, Expr, Type, Var};

/// Possible values of an argument, as nodes and as text: one list per possibility.
type Choice = Vec<(Expr, String)>;

fn choices(arg: &Arg) -> Vec<Choice> {
    let var = |name: &str, dtype: DType| (Expr::var(&Var::new(name, dtype)), name.to_string());
    let pointer = |text: &str| (Expr::var(&Var::new("p", DType::HANDLE)), text.to_string());
    let one = |item: (Expr, String)| vec![vec![item]];
    let number = |v: i64| vec![(Expr::int32(v as i32), v.to_string())];
    let truth = |v: bool| {
        vec![(
            Expr::bool(v),
            format!("T.bool({})", if v { "True" } else { "False" }),
        )]
    };
    let single = match arg.kind {
        ArgKind::Value(DType::FLOAT32) => one(var("f32", DType::FLOAT32)),
        ArgKind::Value(dtype) if dtype.is_floating() => {
            one((Expr::float(dtype, 1.5), format!("T.{dtype}(1.5)")))
        }
        ArgKind::Value(dtype) if dtype.bits == 64 => one(var("x64", DType::UINT64)),
        ArgKind::Value(_) => one(var("x32", DType::UINT32)),
        ArgKind::Any | ArgKind::Node => one(var("x64", DType::UINT64)),
        ArgKind::Condition | ArgKind::Mask => one(var("x32", DType::UINT32)),
        ArgKind::Array(DType::FLOAT32) => one(pointer("f.data")),
        ArgKind::Array(DType::UINT32) => one(pointer("r.data")),
        ArgKind::Array(_) => one(pointer("S.data")),
        ArgKind::DType => [
            "uint64", "void", "uint32", "int32", "float32", "float64", "uint16", "int64", "int16",
        ]
        .iter()
        .map(|w| vec![(Expr::string(*w), format!("\"{w}\""))])
        .collect(),
        ArgKind::Pointer(Space::Shared) => one(pointer("S.ptr_to([0])")),
        ArgKind::Pointer(_) => one(pointer("G.ptr_to([0])")),
        ArgKind::Register(..) => one(pointer("r.ptr_to([0])")),
        ArgKind::Element(..) => one((
            Expr::var(&Var::new("p", Type::pointer(DType::UINT32, "local"))),
            "r[0]".into(),
        )),
        ArgKind::Text(words) => words
            .iter()
            .map(|w| vec![(Expr::string(*w), format!("\"{w}\""))])
            .collect(),
        ArgKind::DTypeName => one((Expr::string("event"), "\"event\"".into())),
        ArgKind::Name => one((Expr::string("laneid"), "\"laneid\"".into())),
        ArgKind::Flag => vec![number(0), number(1)],
        ArgKind::Bool => vec![truth(false), truth(true)],
        ArgKind::Immediate(low, high) => {
            let known = [low, 1, 2, 4, 8, 16, high];
            known
                .iter()
                .filter(|v| (low..=high).contains(*v))
                .map(|v| number(*v))
                .collect()
        }
        ArgKind::Has(_) | ArgKind::Count(_) => vec![number(0)],
    };
    match arg.many {
        Many::One => single,
        Many::Optional => std::iter::once(Vec::new()).chain(single).collect(),
        Many::List(None) => [1, 4, 2, 3, 5, 8, 16]
            .iter()
            .map(|n| vec![single[0][0].clone(); *n])
            .collect(),
        Many::List(_) => [4, 1, 2, 3, 5, 8, 16]
            .iter()
            .map(|n| vec![single[0][0].clone(); *n])
            .collect(),
    }
}

/// The flat argument list for one choice per argument; `None` where the row rejects it.
fn call(row: &'static Row, all: &[Vec<Choice>], at: &[usize]) -> Option<String> {
    let mut parts: Vec<Choice> = all
        .iter()
        .zip(at)
        .map(|(choices, i)| choices[*i].clone())
        .collect();
    for (i, arg) in row.args.iter().enumerate() {
        if let ArgKind::Has(of) = arg.kind {
            let there = row
                .args
                .iter()
                .position(|a| a.name == of)
                .is_some_and(|p| !parts[p].is_empty());
            parts[i] = vec![(Expr::int32(there.into()), i32::from(there).to_string())];
        }
        if let ArgKind::Count(of) = arg.kind {
            let at = row.args.iter().position(|a| a.name == of);
            let count = at.map_or(0, |p| parts[p].len()) as i32;
            parts[i] = vec![(Expr::int32(count), count.to_string())];
        }
    }
    // A pointer whose memory is determined by another argument.
    let space = row.args.iter().position(|arg| arg.name == "space");
    let space = space.and_then(|p| parts[p].first()).map(|(_, text)| text.clone());
    for (arg, part) in row.args.iter().zip(&mut parts) {
        let pointer = match space.as_deref().unwrap_or_default().trim_matches('"') {
            "local" => "r.ptr_to([0])",
            space if space.starts_with("shared") => "S.ptr_to([0])",
            _ => "G.ptr_to([0])",
        };
        if matches!(arg.kind, ArgKind::Pointer(Space::FromModifiers)) {
            part.iter_mut().for_each(|(_, text)| *text = pointer.into());
        }
    }
    let exprs: Vec<Expr> = parts.iter().flatten().map(|(e, _)| e.clone()).collect();
    row.read(&exprs).ok()?;
    let texts: Vec<&str> = parts.iter().flatten().map(|(_, text)| text.as_str()).collect();
    Some(format!("T.{}({})", row.script, texts.join(", ")))
}

/// Calls of a row: one that it accepts, and that with each modifier changed to each of its values.
pub(crate) fn calls(row: &'static Row) -> Vec<String> {
    let all: Vec<Vec<Choice>> = row.args.iter().map(choices).collect();
    let mut at = vec![0; all.len()];
    let mut tries = 0;
    while call(row, &all, &at).is_none() {
        // The next combination, as an odometer counts.
        let Some(i) = (0..at.len()).rev().find(|i| at[*i] + 1 < all[*i].len()) else {
            return Vec::new();
        };
        at[i] += 1;
        at[i + 1..].fill(0);
        tries += 1;
        if tries > 100_000 {
            return Vec::new();
        }
    }
    let mut found: Vec<String> = call(row, &all, &at).into_iter().collect();
    for i in 0..at.len() {
        for value in 0..all[i].len() {
            let mut other = at.clone();
            other[i] = value;
            // Another list may need another length, or a flag another value.
            let lists: Vec<usize> = (0..at.len()).filter(|j| *j != i && all[*j].len() > 1).collect();
            let direct = call(row, &all, &other);
            let adjusted = || {
                lists.iter().find_map(|j| {
                    (0..all[*j].len()).find_map(|v| {
                        let mut third = other.clone();
                        third[*j] = v;
                        call(row, &all, &third)
                    })
                })
            };
            found.extend(direct.or_else(adjusted));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// A kernel that makes these calls, with what they name.
pub(crate) fn kernel(calls: &[String]) -> String {
    let mut text = String::from(
        "@T.prim_func\ndef k(G_ptr: T.handle):\n    G = T.match_buffer(G_ptr, (64,), \"uint32\", align=64)\n    T.device_entry()\n    \
         bx = T.cta_id([2])\n    tx = T.thread_id([128])\n    \
         S = T.alloc_shared((128,), \"uint64\")\n    r = T.alloc_local((64,), \"uint32\")\n    f = T.alloc_local((4,), \"float32\")\n    f32: T.float32 = T.cast(G[2], \"float32\")\n    x32: T.uint32 = G[0]\n    \
         x64: T.uint64 = T.cast(G[1], \"uint64\")\n    for i in T.unroll(64):\n        r[i] = G[i]\n",
    );
    // The same values as elements of arrays that are indexed at run time: in local memory, in shared memory.
    for (array, scope) in [("l", "local"), ("s", "shared")] {
        for (value, dtype) in [("x32", "uint32"), ("x64", "uint64"), ("f32", "float32")] {
            if calls
                .iter()
                .any(|call| call.contains(&format!("{array}_{value}[")))
            {
                text.push_str(&format!(
                    "    {array}_{value} = T.alloc_{scope}((2,), \"{dtype}\")\n    {array}_{value}[tx % 2] = {value}\n    \
                     {array}_{value}[(tx + 1) % 2] = {value}\n"
                ));
            }
        }
    }
    for call in calls {
        text.push_str(&format!("    T.evaluate({call})\n"));
    }
    text.push_str("    for i in T.unroll(64):\n        G[i] = r[i] + x32 + T.cast(x64, \"uint32\")\n");
    text
}

/// Whether calls of a row are generated from its arguments.
pub(crate) fn called(row: &'static Row) -> bool {
    // What the code generator writes for the dtypes of its operands has kernels of its own.
    // Instructions by their mnemonics have a test of their own: `mnemonics.rs`.
    let own = matches!(row.cuda.form, CudaForm::Special)
        && (!row.script.starts_with("ptx.") || matches!(row.script, "ptx.instruction" | "ptx.addr"));
    if own || matches!(row.cuda.form, CudaForm::Lowered | CudaForm::Host) {
        return false;
    }
    // Dtypes of matrices have kernels of their own; NVSHMEM needs its headers.
    let dtypes =
        row.args.iter().any(|a| matches!(a.kind, ArgKind::DTypeName)) && !row.script.starts_with("cuda.iket");
    !dtypes && !row.script.starts_with("nvshmem.")
}

/// A call with its values, which are variables, in arrays `l` or `s` instead; `None` for a call without values.
pub(crate) fn placed(call: &str, array: &str) -> Option<String> {
    let (name, arguments) = call.split_once('(')?;
    let words = arguments.split_inclusive([',', ')', '(', ' ']);
    let arguments: String = words
        .map(
            |word| match ["x32", "x64", "f32"].iter().find(|v| word.starts_with(**v)) {
                Some(value) => word.replacen(value, &format!("{array}_{value}[tx % 2]"), 1),
                None => word.to_string(),
            },
        )
        .collect();
    let placed = format!("{name}({arguments}");
    (placed != call).then_some(placed)
}

/// Whether the kernels for nvcc leave a call out: PTX of a later toolkit, and a number of registers that ptxas compares with
/// what the kernel needs.
pub(crate) fn left_out(call: &str) -> bool {
    call.contains("g2s_cta(") && call.ends_with(", 0, 1)") && call.contains("x64")
        || call == "T.ptx.setmaxnreg(T.bool(False), 256)"
}
