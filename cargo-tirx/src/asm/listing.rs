//! PTX and machine code as text: functions, instructions with their lines and classes, loops.

use std::collections::{BTreeMap, BTreeSet};

use super::loops::{self, Loop};

/// What a text is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    /// Shows PTX.
    Ptx,
    /// What nvdisasm prints.
    Sass,
}

/// An instruction or a label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Item {
    /// As it is written.
    pub(super) text: String,
    /// The operation with its modifiers; empty for a label.
    pub(super) mnemonic: String,
    /// The file and line that it came from.
    pub(super) place: Option<(String, u32)>,
    /// The label that it may jump to.
    pub(super) target: Option<String>,
    /// Whether the next instruction may follow it: a jump without a condition and the end of a function have none.
    pub(super) continues: bool,
    class: &'static str,
}

/// A function's code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) items: Vec<Item>,
}

const TENSOR: &str = "tensor core";
const OTHER: &str = "other";
const SYNCHRONIZATION: &str = "synchronization";
const BRANCHES: &str = "branches";

/// The classes of machine instructions, by the beginning of the operation. The first that fits counts.
const SASS: &[(&str, &[&str])] = &[
    (
        TENSOR,
        &[
            "HMMA",
            "IMMA",
            "DMMA",
            "BMMA",
            "QMMA",
            "OMMA",
            "HGMMA",
            "IGMMA",
            "QGMMA",
            "BGMMA",
            "UTCHMMA",
            "UTCIMMA",
            "UTCQMMA",
            "UTCOMMA",
            "UTCMXQMMA",
        ],
    ),
    (
        "asynchronous copies",
        &[
            "UTMA",
            "UBLKCP",
            "UBLKRED",
            "UBLKPF",
            "LDGSTS",
            "UTCCP",
            "LDGDEPBAR",
        ],
    ),
    ("tensor memory", &["LDTM", "STTM"]),
    ("shared memory", &["LDS", "STS", "LDSM", "STSM", "ATOMS"]),
    ("local memory", &["LDL", "STL"]),
    (
        "global memory",
        &["LDG", "STG", "LD.", "ST.", "RED", "ATOM", "LDE", "STE"],
    ),
    (
        SYNCHRONIZATION,
        &[
            "BAR",
            "SYNCS",
            "DEPBAR",
            "MEMBAR",
            "FENCE",
            "WARPSYNC",
            "UCGABAR",
            "ERRBAR",
            "UTCBAR",
            "WARPGROUP",
            "NANOSLEEP",
            "BSSY",
            "BSYNC",
            "ELECT",
            "ACQBULK",
        ],
    ),
    ("shuffles", &["SHFL", "VOTE", "MATCH", "REDUX", "CREDUX"]),
    ("special functions", &["MUFU"]),
    (
        BRANCHES,
        &["BRA", "BRX", "JMP", "EXIT", "RET", "CALL", "BREAK", "YIELD"],
    ),
    (
        "floating point",
        &[
            "FFMA", "FADD", "FMUL", "FMNMX", "FSET", "FSEL", "HFMA2", "HADD2", "HMUL2", "HMNMX2", "HSET",
            "DFMA", "DADD", "DMUL", "F2F", "F2I", "I2F",
        ],
    ),
];

/// The same of PTX.
const PTX: &[(&str, &[&str])] = &[
    (TENSOR, &["mma.", "wmma.mma", "wgmma.mma_async", "tcgen05.mma"]),
    (
        "asynchronous copies",
        &["cp.async", "cp.reduce.async", "tcgen05.cp"],
    ),
    ("tensor memory", &["tcgen05.ld", "tcgen05.st"]),
    (
        "shared memory",
        &[
            "ld.shared",
            "st.shared",
            "ldmatrix",
            "stmatrix",
            "atom.shared",
            "red.shared",
            "ld.volatile.shared",
        ],
    ),
    ("local memory", &["ld.local", "st.local"]),
    (
        "global memory",
        &[
            "ld.global",
            "st.global",
            "atom.",
            "red.",
            "ld.relaxed",
            "ld.acquire",
            "st.release",
            "st.relaxed",
            "ld.volatile",
        ],
    ),
    (
        SYNCHRONIZATION,
        &[
            "bar.",
            "barrier.",
            "mbarrier.",
            "fence.",
            "membar",
            "wgmma.fence",
            "wgmma.commit",
            "wgmma.wait",
            "tcgen05.wait",
            "tcgen05.fence",
            "tcgen05.commit",
            "griddepcontrol",
            "elect",
        ],
    ),
    ("shuffles", &["shfl", "vote", "match", "redux", "activemask"]),
    (
        "special functions",
        &["ex2", "lg2", "sin", "cos", "rcp", "rsqrt", "sqrt", "tanh"],
    ),
    (BRANCHES, &["bra", "brx", "ret", "exit", "call"]),
    (
        "floating point",
        &[
            "fma.",
            "add.f",
            "add.rn.f",
            "mul.f",
            "mul.rn.f",
            "sub.f",
            "min.f",
            "max.f",
            "add.rn.bf",
            "neg.f",
            "abs.f",
            "div.",
            "cvt.",
        ],
    ),
];

/// The class of an operation. A word ends where the beginning does, at a dot, or where the beginning has one.
fn class(syntax: Syntax, mnemonic: &str) -> &'static str {
    let table = match syntax {
        Syntax::Ptx => PTX,
        Syntax::Sass => SASS,
    };
    // `HFMA2.MMA` is a multiplication on the other pipe, and no matrix product.
    let is = |start: &&str| match mnemonic.strip_prefix(*start) {
        Some(rest) => {
            start.ends_with('.')
                || syntax == Syntax::Ptx
                || rest.is_empty()
                || rest.starts_with(|c: char| c == '.' || c.is_ascii_uppercase() || c.is_ascii_digit())
        }
        None => false,
    };
    let found = table.iter().find(|(_, starts)| starts.iter().any(is));
    found.map_or(OTHER, |(class, _)| class)
}

/// The operation of an instruction's text, behind its predicate.
fn mnemonic(text: &str) -> &str {
    let mut words = text.split_whitespace().filter(|word| *word != "{");
    match words.next() {
        Some(predicate) if predicate.starts_with('@') => words.next().unwrap_or_default(),
        first => first.unwrap_or_default(),
    }
    .trim_end_matches([';', ','])
}

/// Whether nothing follows an operation if it is done: jumps and the ends of functions.
fn ends(mnemonic: &str) -> bool {
    let operation = mnemonic.split('.').next().unwrap_or_default();
    ["BRA", "JMP", "EXIT", "RET", "bra", "exit", "ret"].contains(&operation)
}

/// Whether machine code is run under a condition: `@P0 BRA`, `BRA.U UP0`, `BRA.DIV UR4`.
fn has_condition(text: &str) -> bool {
    let operands = text
        .split_once(char::is_whitespace)
        .map_or("", |(_, operands)| operands);
    let label = operands.split('`').next().unwrap_or_default();
    text.starts_with('@') || operands.contains('`') && !label.trim().is_empty()
}

/// The functions of a text.
pub(super) fn read(text: &str, syntax: Syntax) -> Vec<Function> {
    match syntax {
        Syntax::Ptx => read_ptx(text),
        Syntax::Sass => read_sass(text),
    }
}

/// `File "k.py", line 7` behind nvdisasm's mark.
fn sass_place(line: &str) -> Option<(String, u32)> {
    let rest = line.strip_prefix("//## File \"")?;
    let (file, rest) = rest.split_once("\", line ")?;
    let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((file.to_string(), number.parse().ok()?))
}

fn read_sass(text: &str) -> Vec<Function> {
    let mut functions: Vec<Function> = Vec::new();
    let mut place = None;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line
            .strip_prefix(".text.")
            .and_then(|rest| rest.strip_suffix(':'))
        {
            functions.push(Function {
                name: name.to_string(),
                items: Vec::new(),
            });
            place = None;
            continue;
        }
        let Some(function) = functions.last_mut() else {
            continue;
        };
        if line.starts_with("//##") {
            place = sass_place(line).or(place);
        } else if line.starts_with(".L_") && line.ends_with(':') {
            function.items.push(Item {
                text: line.to_string(),
                continues: true,
                ..Item::default()
            });
        } else if let Some((address, rest)) = line.strip_prefix("/*").and_then(|rest| rest.split_once("*/")) {
            let rest = rest.trim();
            let mnemonic = mnemonic(rest).to_string();
            let target = rest.split_once("`(").and_then(|(_, rest)| rest.split_once(')'));
            function.items.push(Item {
                text: format!("{address}  {rest}"),
                class: class(Syntax::Sass, &mnemonic),
                target: target
                    .map(|(label, _)| format!("{label}:"))
                    .filter(|_| mnemonic.starts_with("BRA") || mnemonic.starts_with("JMP")),
                continues: has_condition(rest) || !ends(&mnemonic),
                mnemonic,
                place: place.clone(),
            });
        }
    }
    // What fills the last line of the code is never run.
    for function in &mut functions {
        let filler = |item: &Item| item.mnemonic == "NOP" || item.mnemonic.is_empty();
        while function.items.last().is_some_and(filler) {
            function.items.pop();
        }
    }
    functions
}

fn read_ptx(text: &str) -> Vec<Function> {
    let mut files: BTreeMap<&str, &str> = BTreeMap::new();
    for line in text.lines() {
        // `.file 1 "kernels/a b.py"`
        if let Some(rest) = line.trim_start().strip_prefix(".file")
            && let Some((number, name)) = rest.trim_start().split_once(char::is_whitespace)
        {
            let name = name.trim_start().trim_start_matches('"');
            files.insert(number, name.split('"').next().unwrap_or_default());
        }
    }
    let mut functions: Vec<Function> = Vec::new();
    let mut place = None;
    let mut within = false;
    for line in text.lines().map(str::trim) {
        let head = line.split_once(".entry ").or(line.split_once(".func "));
        if let Some((_, rest)) = head.filter(|_| !line.starts_with("//") && !line.ends_with(';')) {
            let name = rest.trim().split(['(', ' ']).next().unwrap_or_default();
            functions.push(Function {
                name: name.to_string(),
                items: Vec::new(),
            });
            (within, place) = (false, None);
            continue;
        }
        if line == "{" {
            within = true;
            continue;
        }
        let Some(function) = functions.last_mut().filter(|_| within) else {
            continue;
        };
        if let Some(rest) = line.strip_prefix(".loc") {
            let mut words = rest.split_whitespace();
            let file = words.next().and_then(|number| files.get(number));
            let line = words.next().and_then(|line| line.parse().ok());
            place = file
                .zip(line)
                .map(|(file, line)| (file.to_string(), line))
                .or(place);
        } else if line.starts_with('$') && line.ends_with(':') {
            function.items.push(Item {
                text: line.to_string(),
                continues: true,
                ..Item::default()
            });
        } else if line.ends_with(';') && !line.starts_with(['.', '/']) {
            let mnemonic = mnemonic(line).to_string();
            let target = line
                .split_whitespace()
                .last()
                .filter(|_| mnemonic == "bra" || mnemonic.starts_with("bra."));
            function.items.push(Item {
                text: line.to_string(),
                class: class(Syntax::Ptx, &mnemonic),
                target: target.map(|label| format!("{}:", label.trim_end_matches(';'))),
                continues: line.starts_with('@') || !ends(&mnemonic),
                mnemonic,
                place: place.clone(),
            });
        } else if line == "}"
            && function
                .items
                .last()
                .is_some_and(|item| item.mnemonic.starts_with("ret"))
        {
            within = false;
        }
    }
    functions.retain(|function| !function.items.is_empty());
    functions
}

impl Function {
    /// The items of a part that are instructions.
    fn instructions<'a>(&'a self, part: &'a BTreeSet<usize>) -> impl Iterator<Item = &'a Item> {
        let items = part.iter().filter_map(|at| self.items.get(*at));
        items.filter(|item| !item.mnemonic.is_empty())
    }

    /// All of it.
    pub(super) fn all(&self) -> BTreeSet<usize> {
        (0..self.items.len()).collect()
    }

    /// The instructions of a part.
    pub(super) fn count(&self, part: &BTreeSet<usize>) -> usize {
        self.instructions(part).count()
    }

    /// The lines that a part came from.
    pub(super) fn lines(&self, part: &BTreeSet<usize>) -> Vec<(String, u32)> {
        self.instructions(part)
            .filter_map(|item| item.place.clone())
            .collect()
    }

    /// The instructions of a part by class: `tensor core 8, shared memory 4`.
    pub(super) fn classes(&self, part: &BTreeSet<usize>) -> String {
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for item in self.instructions(part) {
            match counts.iter_mut().find(|(class, _)| *class == item.class) {
                Some((_, count)) => *count += 1,
                None => counts.push((item.class, 1)),
            }
        }
        // Tensor cores first, the rest last, the others by their number.
        counts.sort_by_key(|(class, count)| (*class != TENSOR, *class == OTHER, usize::MAX - count));
        let parts: Vec<String> = counts
            .iter()
            .map(|(class, count)| format!("{class} {count}"))
            .collect();
        parts.join(", ")
    }

    /// The loops, from the control flow.
    fn loops(&self) -> Vec<Loop> {
        loops::find(&self.items)
    }

    /// The loop where the time is probably spent: the one with most matrix instructions in an iteration, those of loops within it left
    /// out; without any, the one with most other work. Loops that only wait are none.
    pub(super) fn hot_loop(&self) -> Option<BTreeSet<usize>> {
        let loops = self.loops();
        let of_class = |one: &Loop, class: &dyn Fn(&str) -> bool| {
            self.instructions(&one.own)
                .filter(|item| class(item.class))
                .count()
        };
        let works = |class: &str| ![OTHER, SYNCHRONIZATION, BRANCHES].contains(&class);
        let waits = |one: &&Loop| {
            of_class(one, &|class| class == SYNCHRONIZATION) > 0
                && of_class(one, &works) == 0
                && !one.has_inner
        };
        let score = |one: &Loop| {
            (
                of_class(one, &|class| class == TENSOR),
                one.depth,
                of_class(one, &works),
                one.own.len(),
            )
        };
        // The first of equal ones.
        let hot = loops
            .iter()
            .filter(|one| !waits(one))
            .rev()
            .max_by_key(|one| score(one));
        hot.map(|hot| hot.items.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SASS_TEXT: &str = "\t.section\t.text.k,\"ax\"\n.text.k:\n\t//## File \"/a/k.py\", line 5\n        /*0000*/   LDC R1, c[0x0][0x28] ;\n.L_x_1:\n\
        \t//## File \"/a/k.py\", line 7 inlined at \"/a/k.py\", line 9\n        /*0010*/    SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R3 ;\n        /*0020*/    @!P0 BRA `(.L_x_1) ;\n\
        .L_x_2:\n\t//## File \"/a/k.py\", line 8\n        /*0030*/   HMMA.16816.F32 R8, R4, R6, R8 ;\n        /*0040*/   LDSM.16.M88.4 R4, [R2] ;\n\
        /*0050*/   HFMA2.MMA R0, -RZ, RZ, 0, 0 ;\n        /*0060*/   @P1 BRA `(.L_x_2) ;\n        /*0070*/   STG.E [R2], R8 ;\n.L_x_3:\n        /*0080*/   BRA `(.L_x_3);\n        /*0090*/   NOP;\n.L_x_4:\n";

    #[test]
    fn machine_code_is_read() {
        let functions = read(SASS_TEXT, Syntax::Sass);
        assert_eq!((functions.len(), functions[0].name.as_str()), (1, "k"));
        let k = &functions[0];
        assert_eq!(k.count(&k.all()), 9);
        assert_eq!(k.items[2].place, Some(("/a/k.py".into(), 7)));
        let hot = k.hot_loop().unwrap();
        assert_eq!(
            k.classes(&hot),
            "tensor core 1, shared memory 1, floating point 1, branches 1"
        );
        assert_eq!(k.lines(&hot).first(), Some(&("/a/k.py".into(), 8)));
        assert_eq!(k.loops().len(), 2, "the jump to itself at the end is none");
    }

    #[test]
    fn ptx_is_read() {
        let text = ".version 9.0\n.visible .entry k(\n.param .u64 k_param_0\n)\n.maxntid 256, 1, 1\n{\n.reg .pred %p<6>;\n.loc 1 5 0\n\
            ld.param.u64 %rd2, [k_param_0];\n$L__BB0_4:\n.loc 1 8 5\nld.global.f32 %f12, [%rd5];\nfma.rn.f32 %f1, %f2, %f3, %f4;\n\
            @%p1 bra $L__BB0_4;\nret;\n}\n.file 1 \"/a/k.py\"\n";
        let functions = read(text, Syntax::Ptx);
        assert_eq!((functions.len(), functions[0].name.as_str()), (1, "k"));
        let hot = functions[0].hot_loop().unwrap();
        assert_eq!(
            functions[0].classes(&hot),
            "global memory 1, floating point 1, branches 1"
        );
        assert_eq!(functions[0].lines(&hot)[0], ("/a/k.py".into(), 8));
    }

    #[test]
    fn a_loop_with_products_around_a_wait_is_the_hot_one() {
        let text = ".text.k:\n.L_x_0:\n/*00*/ HGMMA.64x64x16.F32 R0, gdesc[UR4], R0 ;\n.L_x_1:\n/*10*/ SYNCS.X P0, [UR4] ;\n/*20*/ NOP ;\n\
            /*30*/ @!P0 BRA `(.L_x_1) ;\n/*40*/ @P1 BRA `(.L_x_0) ;\n";
        let functions = read(text, Syntax::Sass);
        assert_eq!(functions[0].hot_loop(), Some(functions[0].all()));
    }

    fn hot(text: &str) -> Option<String> {
        let functions = read(text, Syntax::Sass);
        let hot = functions[0].hot_loop()?;
        Some(functions[0].classes(&hot))
    }

    /// ptxas puts the rare part of a wait behind the code: it jumps back into the loop, and is no loop around all of it.
    #[test]
    fn a_wait_behind_the_code_makes_no_loop_of_the_kernel() {
        let text = ".text.k:\n/*00*/ LDG R0, [R2] ;\n.L_x_0:\n/*10*/ SYNCS.X P0, [UR4] ;\n/*20*/ @!P0 BRA `(.L_x_9) ;\n.L_x_1:\n\
            /*30*/ HGMMA.64x64x16.F32 R0, gdesc[UR4], R0 ;\n/*40*/ HGMMA.64x64x16.F32 R0, gdesc[UR8], R0 ;\n/*50*/ @P1 BRA `(.L_x_0) ;\n\
            /*60*/ STG.E [R2], R8 ;\n/*70*/ STG.E [R4], R8 ;\n/*80*/ EXIT ;\n.L_x_9:\n/*90*/ SYNCS.X P0, [UR4] ;\n/*a0*/ @!P0 BRA `(.L_x_9) ;\n\
            /*b0*/ BRA `(.L_x_1) ;\n";
        assert_eq!(
            hot(text).as_deref(),
            Some("tensor core 2, branches 4, synchronization 2"),
            "the loop with its wait, without the stores"
        );
    }

    /// Of a loop over tiles and the loop over the depth of a tile, the inner one; also where products were moved out of it.
    #[test]
    fn the_loop_with_most_products_in_an_iteration_is_the_hot_one() {
        let mma = "/*10*/ HMMA.16816.F32 R8, R4, R6, R8 ;\n";
        let nested = |outer: usize, inner: usize| {
            format!(
                ".text.k:\n.L_x_0:\n{}.L_x_1:\n{}/*20*/ @P0 BRA `(.L_x_1) ;\n/*30*/ STG.E [R2], R8 ;\n/*40*/ @P1 BRA `(.L_x_0) ;\n/*50*/ EXIT ;\n",
                mma.repeat(outer),
                mma.repeat(inner)
            )
        };
        assert_eq!(hot(&nested(2, 2)).as_deref(), Some("tensor core 2, branches 1"));
        assert_eq!(hot(&nested(0, 1)).as_deref(), Some("tensor core 1, branches 1"));
        assert_eq!(
            hot(&nested(4, 0)).as_deref(),
            Some("tensor core 4, branches 2, global memory 1"),
            "the outer one has them"
        );
        // Two loops beside each other.
        let text = format!(
            ".text.k:\n.L_x_0:\n{}/*20*/ @P0 BRA `(.L_x_0) ;\n.L_x_1:\n{}{}/*30*/ @P0 BRA `(.L_x_1) ;\n/*40*/ EXIT ;\n",
            mma,
            mma.repeat(3),
            "/*38*/ IADD3 R1, R1, R1, RZ ;\n".repeat(2)
        );
        assert_eq!(hot(&text).as_deref(), Some("tensor core 3, branches 1, other 2"));
    }

    #[test]
    fn a_loop_that_only_waits_is_not_hot() {
        let text = ".text.k:\n/*00*/ LDG R0, [R2] ;\n.L_x_0:\n/*10*/ SYNCS.X P0, [UR4] ;\n/*20*/ NOP ;\n/*30*/ @!P0 BRA `(.L_x_0) ;\n/*40*/ EXIT ;\n";
        assert_eq!(hot(text), None);
    }
}
