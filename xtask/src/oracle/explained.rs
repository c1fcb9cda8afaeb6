//! Differences from the reference that no rule of [`intended`](super::intended) removes: how modules that differ are recognized,
//! and why they may.

use tirx_core::ir::abi::keys::DEVICE_KERNEL_LAUNCH;
use tirx_core::ir::{
    Attr, AttrNode, AttrValue, Buffer, ForLoop, IRModule, Mismatch, Stmt, StmtKind, Visitor,
};
use tirx_core::script::print;

/// The first difference between two modules.
pub(super) struct Parting<'a> {
    /// The pass after which it occurs.
    pub(super) pass: &'a str,
    /// Its place, and the two sides.
    pub(super) at: &'a Mismatch,
    /// Our module and the reference's; none where the reference's text cannot be parsed.
    pub(super) modules: Option<(&'a IRModule, &'a IRModule)>,
    /// The kernel as it was before the first pass.
    pub(super) written: &'a IRModule,
}

impl Parting<'_> {
    fn after(&self, passes: &[&str]) -> bool {
        passes.contains(&self.pass)
    }

    fn ours_has(&self, part: &str) -> bool {
        self.at.left.contains(part)
    }

    fn theirs_has(&self, part: &str) -> bool {
        self.at.right.contains(part)
    }

    /// Both sides, where they are integers.
    fn numbers(&self) -> Option<(i64, i64)> {
        Some((
            self.at.left.trim().parse().ok()?,
            self.at.right.trim().parse().ok()?,
        ))
    }

    /// Whether our module binds the index of a block in its cluster.
    fn in_cluster(&self) -> bool {
        self.modules.is_some_and(|(ours, _)| {
            has_statement(ours, |stmt| {
                thread_tag(stmt).is_some_and(|t| t.starts_with("clusterCtaIdx"))
            })
        })
    }
}

/// Whether a kernel has statements of tile primitives.
fn has_tiles(module: &IRModule) -> bool {
    has_statement(module, |stmt| matches!(stmt.kind, StmtKind::Tile(_)))
}

/// The hardware index that a statement binds.
fn thread_tag(stmt: &Stmt) -> Option<&str> {
    match &stmt.kind {
        StmtKind::Attr(Attr {
            node: AttrNode::IterVar(iter),
            ..
        }) => Some(&iter.thread_tag),
        StmtKind::For(ForLoop {
            thread: Some(iter), ..
        }) => Some(&iter.thread_tag),
        _ => None,
    }
}

fn has_statement(module: &IRModule, is: impl Fn(&Stmt) -> bool) -> bool {
    struct Find<F>(F, bool);
    impl<F: Fn(&Stmt) -> bool> Visitor for Find<F> {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            self.1 |= (self.0)(stmt);
            self.walk_stmt(stmt);
        }
    }
    let mut find = Find(is, false);
    module
        .functions
        .iter()
        .for_each(|(_, func)| find.visit_stmt(&func.body));
    find.1
}

/// The reason, and the difference.
type Known = (&'static str, fn(&Parting<'_>) -> bool);

/// Why modules differ, and how that is recognized; the first that fits is taken.
const KNOWN: &[Known] = &[
    (
        "the index of a cluster is read once; TVM reads the register at every use",
        |p| p.theirs_has("T.ptx.fetch_register(") && !p.ours_has("T.ptx.fetch_register("),
    ),
    (
        "the rank-aware scheduler binds its first row before its branches; TVM's computes it in each",
        |p| p.after(&["BindTarget"]) && p.ours_has("(my_rank + 1) * "),
    ),
    (
        "a buffer of a padded layout holds its padding; TVM's allocation is too small for its accesses",
        |p| p.at.path.contains(".shape[") && p.numbers().is_some_and(|(ours, theirs)| ours > theirs),
    ),
    (
        "TVM prints a shared scalar as `x: T.int32`, which reads back as a local one",
        |p| {
            let shared = |text: &str| text.starts_with("pointer to ") && text.ends_with(" in shared");
            let local = |text: &str| text.starts_with("pointer to ") && text.ends_with(" in local");
            let (ours, theirs) = (p.at.left.trim(), p.at.right.trim());
            shared(ours) && local(theirs) || local(ours) && shared(theirs)
        },
    ),
    (
        "TVM 0.27 prints symbolic extents as `TypeVar`s, which read back nowhere",
        |p| p.modules.is_none() && p.ours_has("unknown name \"TypeVar"),
    ),
    (
        "TVM 0.27 prints an element that a tile primitive takes as `b.source[0]`, which reads back nowhere",
        |p| p.modules.is_none() && p.ours_has("a buffer has no attribute \"source\""),
    ),
    (
        "TVM 0.27 prints a product of two widths, which reads back nowhere",
        |p| p.modules.is_none() && p.ours_has("T.Mul: needs operands of one dtype"),
    ),
    (
        "TVM 0.27 calls the only function of a module by its own name",
        |p| p.at.path.contains("root") && p.ours_has("\"main\"") && !p.theirs_has("\"main\""),
    ),
    ("TVM 0.27 counts columns of tensor memory without a sign", |p| {
        p.at.path.contains(".args[")
            && p.at.right.trim()
                == format!(
                    "T.uint32({}) (uint32)",
                    p.at.left.trim().trim_end_matches(" (int32)")
                )
    }),
    (
        "TVM 0.27 takes the events of its profiler out; here they stay to the CUDA text, where they are nothing",
        |p| p.after(&["LowerIket"]) && p.ours_has("T.cuda.iket."),
    ),
    (
        "TVM 0.27 names the row of a swizzled tile, by `T.Let`, where it indexes it",
        |p| {
            let named = |(_, theirs): (&IRModule, &IRModule)| print(theirs).contains("compose_q");
            p.theirs_has("compose_q") || p.after(&["StmtSimplify3"]) && p.modules.is_some_and(named)
        },
    ),
    (
        "TVM 0.27 shares shifts, and what is computed of them, among common subexpressions",
        |p| p.after(&["CommonSubexprElim"]) && p.theirs_has("cse_v") && !p.ours_has("cse_v"),
    ),
    (
        "a limit of registers, an attribute of TVM 0.27, reaches the kernel; 0.26 leaves it with the host",
        |p| {
            p.after(&["SplitHostDevice"])
                && p.ours_has("tirx.max_registers")
                && !p.theirs_has("tirx.max_registers")
        },
    ),
    (
        "a view under another dtype is declared; TVM uses it without a declaration",
        |p| p.after(&["BindTarget"]) && p.ours_has(" = T.decl_buffer(") && !p.theirs_has("decl_buffer"),
    ),
    (
        "of a grid of one cluster the number of the cluster is known at once; TVM knows it in StmtSimplify",
        |p| p.after(&["LowerTIRx"]) && p.theirs_has("group * 524288") && !p.ours_has("group"),
    ),
    (
        "TVM takes the factor out of a sum that is divided: `s // 4 + 3`",
        |p| p.after(&["LowerTIRx", "StmtSimplify"]) && p.ours_has("(s * 2 + 25) // 8"),
    ),
    (
        "strides of a buffer whose layout is the default are honoured",
        |p| {
            p.after(&["LowerTIRx", "UnifyThreadBinding"])
                && p.at.path.contains(".indices[")
                && p.modules.is_some_and(|(ours, _)| has_strides(ours))
                || p.after(&["MakePackedAPI"]) && has_strides(p.written)
        },
    ),
    (
        "a grid of clusters keeps its dimensions; TVM's has one, of their product, which no GPU launches",
        |p| {
            p.in_cluster() && (p.numbers().is_some() || p.at.path.ends_with("tirx.kernel_launch_params"))
                || p.ours_has("which are not whole clusters")
        },
    ),
    (
        "`print_buffer` becomes loops here, in TVM in the CUDA text",
        |p| p.after(&["LowerIntrin"]) && p.theirs_has("T.print_buffer"),
    ),
    ("constants of a fixed-point product are folded", |p| {
        p.after(&["LowerIntrin"]) && p.theirs_has("T.Select(T.NE(0, 0)")
    }),
    (
        "a remainder of what is known not to be negative needs no choice",
        |p| p.after(&["LowerIntrin"]) && p.ours_has("T.truncmod(") && p.theirs_has("T.Let(T.Select("),
    ),
    ("a quotient of unsigned integers needs no choice", |p| {
        p.after(&["LowerIntrin"])
            && p.ours_has("T.Div(")
            && p.ours_has("T.uint")
            && p.theirs_has("T.Select(T.truncmod(")
    }),
    (
        "TVM prints a load of a buffer of one element as the buffer, which reads back as its pointer",
        |p| {
            let pointer = |text: &str| text.trim().ends_with("_ptr (handle)");
            let load = |text: &str| text.contains("[0] (");
            p.at.path.contains(".args[")
                && (pointer(&p.at.left) && load(&p.at.right) || load(&p.at.left) && pointer(&p.at.right))
        },
    ),
    (
        "TVM prints a load of a buffer of one element as the buffer, and computes with that",
        |p| p.modules.is_none() && p.ours_has("unsupported operands for") && p.ours_has(": the buffer "),
    ),
    (
        "TVM takes `==` as the whole condition of a `while` for a comparison of objects: the loop never runs",
        |p| {
            let never = |text: &str| text.trim() == "T.bool(False)";
            let equal = |text: &str| text.contains(" == ");
            p.at.path.ends_with(".condition")
                && (equal(&p.at.left) && never(&p.at.right) || never(&p.at.left) && equal(&p.at.right))
        },
    ),
    (
        "elements of a pool behind an odd number of smaller ones begin behind them; TVM's overlap the last",
        |p| {
            p.at.path.ends_with(".elem_offset")
                && p.numbers().is_some_and(|(ours, theirs)| ours == theirs + 1)
        },
    ),
    (
        "TVM prints a declaration as a view, and with more elements than there are that reads back nowhere",
        |p| p.modules.is_none() && p.ours_has("elements but the new shape has"),
    ),
    (
        "a loop of as many lanes as CUDA has no vector for stays a loop",
        |p| {
            p.after(&["VectorizeLoop"])
                && p.ours_has("for i")
                && (p.theirs_has("T.Ramp") || p.theirs_has("T.Broadcast"))
        },
    ),
    (
        "a function that CUDA has for scalars alone is computed lane by lane in the CUDA text; in TVM by a loop",
        |p| {
            let loops = p.at.right.lines().any(|line| line.starts_with("for "));
            let whole = p.at.left.lines().all(|line| !line.starts_with("for "));
            let functions = ["T.clz(", "T.popcount(", "T.erf("];
            loops && whole && functions.iter().any(|function| p.ours_has(function))
        },
    ),
    (
        "an attribute of the launch counts wherever in the region it stands, and a kernel with grid_sync is cooperative",
        |p| {
            let flags = [
                "tirx.use_programtic_dependent_launch",
                "tirx.use_cooperative_launch",
            ];
            p.after(&["SplitHostDevice"])
                && p.at.path.ends_with("tirx.kernel_launch_params")
                && flags.iter().any(|flag| p.ours_has(flag) && !p.theirs_has(flag))
        },
    ),
    (
        "TVM's text of nested `T.Let` does not declare the inner name, and reads back nowhere",
        |p| p.modules.is_none() && p.ours_has("unknown name") && !p.ours_has("\"T."),
    ),
    (
        "a view of a buffer with strides steps by them; TVM's keeps them with another rank, and reads back nowhere",
        |p| p.modules.is_none() && p.ours_has("strides were given for"),
    ),
    (
        "functions of numbers in host code stay operators; TVM's become LLVM's",
        |p| p.modules.is_none() && p.ours_has("T.call_llvm_pure_intrin is not supported"),
    ),
    (
        "an integer becomes a float with one rounding; TVM's has two",
        |p| {
            let number = |text: &str| -> Option<f64> {
                let inner = text.trim().strip_prefix("T.float32(")?;
                inner.strip_suffix(")")?.parse().ok()
            };
            let sides = number(&p.at.left).zip(number(&p.at.right));
            sides.is_some_and(|(ours, theirs)| (ours - theirs).abs() < ours.abs() * 2e-7)
        },
    ),
    (
        "TVM's default order of ld.mmio and st.mmio is one that PTX does not have; TVM refuses it when it prints CUDA",
        |p| p.modules.is_none() && p.ours_has("_mmio: sem must be one of relaxed"),
    ),
    (
        "TVM prints `decl_buffer` with a layout as a view without it",
        |p| {
            p.at.path.ends_with(".layout")
                && p.at.left.trim() == "(1, 0, 0)"
                && p.at.right.trim() == "(2, 0, 0)"
        },
    ),
    (
        "TVM prints `decl_buffer` with a layout as a view without it; of half bytes its index is another expression",
        |p| {
            p.after(&["LowerTIRx"])
                && p.ours_has("// 2 * 2 + (1 - threadIdx_x) % 2")
                && p.theirs_has("63 - threadIdx_x")
        },
    ),
    ("messages give an extent as a number, whatever its width", |p| {
        p.at.path.ends_with(".message") && p.theirs_has("T.int64(") && !p.ours_has("T.int64(")
    }),
    (
        "an attribute's name of an argument is read back as a variable of its own",
        |p| p.after(&["MakePackedAPI"]) && p.at.right.trim() == "n: T.int32" && p.ours_has("args"),
    ),
    (
        "a name given to a result of a small float holds the rounded value; TVM writes the result out",
        |p| {
            p.after(&["StmtSimplify", "FP8ComputeLegalize", "StmtSimplify3"])
                && p.theirs_has("T.float8_e4m3fn(1.75) + T.Cast(\"float8_e4m3fn\"")
        },
    ),
    (
        "small floats are computed with as float32, a chain of constants too",
        |p| {
            p.after(&["FP8ComputeLegalize"])
                && p.ours_has("T.Sub(T.float32(")
                && p.theirs_has("T.Sub(T.float8_")
        },
    ),
    (
        "memory that describes a view is read as any other; in TVM by a buffer that nothing declares",
        |p| p.after(&["LowerTIRx"]) && p.at.path.ends_with(".buffer") && p.at.left.trim() == "widths",
    ),
    ("the size of shared memory is simplified at once", |p| {
        p.after(&["LowerTIRx", "FlattenBuffer"]) && p.at.path.ends_with(".S.shape[0]")
    }),
    (
        "`get_flattened_buffer` declares its buffer; TVM's is declared nowhere, and no kernel can access it",
        |p| p.after(&["BindTarget"]) && p.at.path.ends_with(".F.shape") && p.theirs_has(", "),
    ),
    ("TVM prints `rearrange` as a view without its layout", |p| {
        p.at.path.ends_with(".layout") && p.at.left.trim() == "(2, 0, 0)" && p.at.right.trim() == "(3, 0, 0)"
    }),
    (
        "`warp_id_in_cta` that nothing reads is left out, with what it shares",
        |p| p.after(&["CommonSubexprElim"]) && p.theirs_has("threadIdx_x // 32"),
    ),
    (
        "the size of a pool keeps its dtype; SplitHostDevice casts it",
        |p| p.after(&["NarrowDataType"]) && p.ours_has("T.int64(") && p.theirs_has("(int32)"),
    ),
    (
        "an extent that a later argument gives is read from there; TVM leaves it without a value",
        |p| p.after(&["MakePackedAPI"]) && p.ours_has("_shape = T.handle(") && p.theirs_has(": T.int32"),
    ),
    ("a stride is compared as it is, not narrowed and widened", |p| {
        p.after(&["MakePackedAPI"])
            && p.ours_has("T.tvm_struct_get(")
            && p.theirs_has("T.Cast(\"int64\", T.Cast(\"int32\"")
    }),
    (
        "a function that launches kernels takes tensors of the GPU, whatever machine it runs on itself",
        |p| p.after(&["MakePackedAPI"]) && p.at.path.ends_with(".condition.b") && p.numbers() == Some((2, 1)),
    ),
    (
        "small floats are computed with as float32 where CUDA has no operators for them; nvcc refuses TVM's text",
        |p| {
            p.after(&["FP8ComputeLegalize", "MakePackedAPI"])
                && p.ours_has("T.Cast(\"float32")
                && !p.theirs_has("T.Cast(\"float32")
        },
    ),
    (
        "what a condition said of memory is not taken to hold after a store to it",
        |p| p.after(&["StmtSimplify"]) && p.ours_has("[0]") && p.theirs_has("T.bool(True)"),
    ),
    (
        "a buffer without dimensions is accessed with one index; with two in TVM",
        |p| p.at.path.ends_with(".shape") && p.at.left.trim() == "[1]" && p.at.right.trim() == "[1, 1]",
    ),
    (
        "kernel parameters stand in order of names, and TVM's text has lost the name of a symbolic offset",
        |p| p.after(&["SplitHostDevice"]) && p.modules.is_some_and(|(ours, _)| symbolic_offset(ours)),
    ),
    (
        "ld.mmio and st.mmio are relaxed, as PTX has them; TVM's default is an order that it refuses itself",
        |p| {
            let (ours, theirs) = (p.at.left.trim(), p.at.right.trim());
            ours == "\"relaxed\"" && ["\"acquire\"", "\"release\""].contains(&theirs)
        },
    ),
    (
        "an unsigned index is converted to int32; TVM leaves it as it is",
        |p| {
            let ours = p.at.left.trim().trim_end_matches(" (int32)");
            let widened = format!("T.Cast(\"uint32\", {ours})");
            p.at.path.contains(".indices[")
                && p.theirs_has("(uint32)")
                && (p.ours_has("T.Cast(\"int32\"") || p.theirs_has(&widened))
        },
    ),
    (
        "`T.cuda.wait_until` becomes its loop where it is read, also from TVM's flat IR, with a variable that has a layout",
        |p| p.after(&["FlattenBuffer"]) && p.at.path.ends_with("].seen.layout"),
    ),
    (
        "rounding to the nearest even number is `round` here and `nearbyint` in TVM",
        |p| p.after(&["LowerIntrin"]) && p.ours_has("T.round(") && p.theirs_has("T.nearbyint("),
    ),
    (
        "TVM's text calls a parameter `I` or `R` by another name, which messages then say",
        |p| p.at.path.ends_with(".message") && p.at.left.replace("_1: ", ": ") == p.at.right,
    ),
    (
        "a function that only device code calls is device code; TVM gives one that does not say so to the host, and fails",
        |p| {
            let target = |text: &str| text.contains("\"kind\"");
            p.at.path.ends_with(".attrs.target")
                && target(&p.at.left)
                && !p.theirs_has("arch")
                && p.ours_has("arch")
                || p.modules
                    .is_some_and(|(ours, theirs)| host_kernel(ours) || host_kernel(theirs))
        },
    ),
    (
        "tile primitives are dispatched to code of our own: their machine code is compared",
        |p| p.pass != "BindTarget" && has_tiles(p.written),
    ),
    (
        "TVM's text has the source of a CUDA function in place of the words of a message",
        |p| p.at.path.ends_with(".message") && p.theirs_has("__device__") && !p.ours_has("__device__"),
    ),
    (
        "TVM's text declares no variable for an allocation that it prints as a statement",
        |p| p.ours_has("T.alloc_") && p.at.right.lines().any(|line| line.starts_with("T.evaluate(")),
    ),
    (
        "tensor maps are checked and encoded by the launcher; TVM calls its run-time library",
        |p| {
            let map = |text: &str| text.trim() == "tensor map";
            p.theirs_has("T.reinterpret(T.handle().ty")
                || p.ours_has("T.reinterpret(T.handle().ty")
                || p.ours_has("cuTensorMapEncodeTiled")
                || map(&p.at.left) != map(&p.at.right)
        },
    ),
    (
        "an operand that is 0 or 1 stays a number; TVM's text has it as bool",
        |p| {
            let flag = |text: &str| text.contains("T.bool(True)") || text.contains("T.bool(False)");
            p.at.path.contains(".args[") && flag(&p.at.left) != flag(&p.at.right)
        },
    ),
    (
        "registers of an `mma` are operands; TVM's text binds their addresses first",
        |p| p.after(&["BindTarget"]) && p.ours_has("T.ptx.mma(") && p.theirs_has("T.let[T.handle("),
    ),
    (
        "an expression that occurs only within a larger shared one gets no name",
        |p| {
            p.after(&["CommonSubexprElim"])
                && (p.ours_has("T.Select(") && p.ours_has("cse_v") || p.theirs_has("tile_row: T.let"))
        },
    ),
    (
        "TVM evaluates an index that has no name, which does nothing",
        |p| p.after(&["LowerTIRx"]) && p.at.right.trim() == "v = T.int32()\nT.evaluate(v)",
    ),
    (
        "a branch whose condition is a constant goes in StmtSimplify; in TVM with the tile primitives",
        |p| p.after(&["LowerTIRx"]) && p.ours_has("if T.bool(False):") && !p.theirs_has("T.bool(False)"),
    ),
    (
        "an empty loop stays in the text, where it does nothing; TVM leaves it out in UnrollLoop",
        |p| {
            p.after(&["UnrollLoop"])
                && p.ours_has("for i in range(4):\n    T.evaluate(0)")
                && !p.theirs_has("range(4)")
        },
    ),
    (
        "TVM prints the address behind a buffer's end as that of an element, which reads back nowhere",
        |p| p.modules.is_none() && p.ours_has("is out of range for dimension") && p.ours_has("T.address_of("),
    ),
    (
        "a factor of several terms stays with each where what it multiplies may leave its dtype",
        |p| {
            p.after(&["FlattenBuffer", "StmtSimplify2"])
                && p.ours_has(" * (p + q)")
                && p.theirs_has(" * (p + q)")
        },
    ),
    (
        "TVM's text names a parameter that has no name, which messages then say",
        |p| {
            p.after(&["SplitHostDevice"]) && p.at.right.trim().starts_with("_ptr")
                || p.at.path.ends_with(".message") && p.theirs_has("(: Tensor(")
        },
    ),
    (
        "TVM prints operands that its CUDA text adds, which read back nowhere",
        |p| p.modules.is_none() && p.ours_has("positional arguments but"),
    ),
    (
        "TVM prints a region of one element as a load, or as the buffer's attribute, which reads back nowhere",
        |p| {
            let texts = [
                "cannot store the buffer",
                "must be a buffer or a region",
                "has no attribute \"buffer\"",
            ];
            p.modules.is_none() && texts.iter().any(|text| p.ours_has(text))
                || p.ours_has("Region(") && p.theirs_has("BufferLoad {")
        },
    ),
    (
        "tensor memory that is declared has its own size; TVM's is an array of a thread",
        |p| p.after(&["LowerTIRx"]) && p.at.path.ends_with(".acc.shape[0]"),
    ),
    (
        "offsets of a pointer are bytes; TVM's are another call, of the same address",
        |p| {
            p.ours_has("T.ptr_byte_offset(") && p.theirs_has("T.tvm_access_ptr(")
                || p.after(&["CommonSubexprElim"])
                    && (p.theirs_has("T.ptx.ldmatrix(")
                        || p.numbers() == Some((32, 16))
                        || p.at.left.trim() == format!("{} * 16", p.at.right.trim()))
        },
    ),
    (
        "bounds that are known let a quotient be computed without a choice",
        |p| {
            p.after(&["LowerIntrin"])
                && p.ours_has("T.Div(")
                && !p.ours_has("T.shift_right(")
                && p.theirs_has("T.shift_right(")
        },
    ),
    ("what a function of another library gives is computed once", |p| {
        p.after(&["LowerIntrin"]) && p.ours_has("T.nvshmem.") && p.theirs_has("T.truncmod(")
    }),
    (
        "extents within messages and declarations of the host stay as they are written",
        |p| {
            p.after(&["MakePackedAPI", "LowerTVMBuiltin", "HostLowerIntrin"])
                && (p.at.path.ends_with(".message") || p.at.path.contains(".shape["))
                && p.ours_has("//")
        },
    ),
    (
        "the terms of a flattened index stand in another order until StmtSimplify2",
        |p| p.after(&["FlattenBuffer"]) && p.ours_has("blockIdx_x") && p.at.right.trim() == "z",
    ),
    (
        "a tile scheduler's order is computed by other expressions of the same value",
        |p| p.after(&["BindTarget"]) && p.ours_has("square_row * 2 + within // 2"),
    ),
];

/// Whether a buffer that the kernel declares or takes has explicit strides.
fn has_strides(module: &IRModule) -> bool {
    let strided = |buffer: &Buffer| !buffer.strides.is_empty();
    let mut functions = module.functions.iter();
    functions.any(|(_, func)| func.buffer_map.iter().any(|(_, buffer)| strided(buffer)))
        || has_statement(
            module,
            |stmt| matches!(&stmt.kind, StmtKind::DeclBuffer(buffer) if strided(buffer)),
        )
}

/// Whether a parameter has an offset that its tensor defines.
fn symbolic_offset(module: &IRModule) -> bool {
    let offset = |buffer: &Buffer| buffer.elem_offset.as_ref().is_some_and(|o| o.as_var().is_some());
    let mut functions = module.functions.iter();
    functions.any(|(_, func)| func.buffer_map.iter().any(|(_, buffer)| offset(buffer)))
}

/// Whether a function is launched as a kernel and has a host target.
fn host_kernel(module: &IRModule) -> bool {
    module.functions.iter().any(|(_, func)| {
        let kind = match func.attr("target") {
            Some(AttrValue::Target(fields)) => fields.get("kind").and_then(AttrValue::as_str),
            _ => None,
        };
        kind == Some("llvm")
            && func.attr("calling_conv").and_then(AttrValue::as_int) == Some(DEVICE_KERNEL_LAUNCH)
    })
}

/// The reason why two modules differ, if it is known and intended.
pub(super) fn explanation(parting: &Parting<'_>) -> Option<&'static str> {
    KNOWN
        .iter()
        .find(|(_, is)| is(parting))
        .map(|(reason, _)| *reason)
}
