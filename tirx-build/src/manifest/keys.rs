//! All keys of `kernels.toml`: type, example, meaning. Messages about values of a wrong type and the reference page
//! (`docs/reference/kernels-toml.md`) are generated from this table; a test compares it with what is read.

/// A key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The table it stands in: `defaults`, `toolchain`, `kernel`, `kernel.tune`; empty for the tables themselves.
    pub section: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub form: &'static str,
    /// An example.
    pub example: &'static str,
    /// Its default.
    pub default: &'static str,
    /// Its meaning.
    pub meaning: &'static str,
}

const fn key(
    section: &'static str,
    name: &'static str,
    form: &'static str,
    example: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> Key {
    Key {
        section,
        name,
        form,
        example,
        default,
        meaning,
    }
}

const TARGETS: &str = "targets = [\"sm_90a\", \"sm_100a\"]";
const PTX: &str = "ptx = \"compute_90\"";

/// The keys, in the order of the reference.
#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    key("", "defaults", "a table", "[defaults]", "", "Defaults for every kernel."),
    key("", "toolchain", "a table", "[toolchain]", "", "The nvcc to compile with."),
    key("", "bundle", "a table, or the string `\"optional\"`", "[bundle]", "",
        "Compiled kernels, for builds without nvcc. `bundle = \"optional\"`, above all tables, stands for a table with \
         `optional = true`."),
    key("", "kernel", "a list of tables", "[[kernel]]", "", "A kernel; repeat the table for each kernel."),
    key("defaults", "targets", "a list of strings", TARGETS, "", "As `targets` of a kernel."),
    key("defaults", "ptx", "a string", PTX, "`\"none\"`", "As `ptx` of a kernel."),
    key("defaults", "require", "`true` or `false`", "require = true", "`false`", "As `require` of a kernel."),
    key("defaults", "flags", "a list of strings", "flags = [\"-lineinfo\"]", "none", "As `flags` of a kernel."),
    key("defaults", "fast-math", "`true` or `false`", "fast-math = true", "`false`", "As `fast-math` of a kernel."),
    key("defaults", "max-registers", "an integer", "max-registers = 64", "none", "As `max-registers` of a kernel."),
    key("defaults", "lineinfo", "`true` or `false`", "lineinfo = true", "`false`", "As `lineinfo` of a kernel."),
    key("defaults", "debug", "`true` or `false`", "debug = true", "`false`", "As `debug` of a kernel."),
    key("defaults", "allow-spills", "`true` or `false`", "allow-spills = true", "`false`", "As `allow-spills` of a kernel."),
    key("defaults", "max-spills", "an integer", "max-spills = 0", "none", "As `max-spills` of a kernel."),
    key("defaults", "min-occupancy", "an integer", "min-occupancy = 50", "none", "As `min-occupancy` of a kernel."),
    key("defaults", "multiprocessors", "an integer", "multiprocessors = 132", "none", "As `multiprocessors` of a kernel."),
    key("defaults", "tvm", "a string", "tvm = \"0.27\"", "none", "As `tvm` of a kernel."),
    key("toolchain", "cuda", "a string", "cuda = \"13.0\"", "any release",
        "The release that nvcc must be of: `\"13.0\"`, or `\"13\"` for any 13."),
    key("toolchain", "auto-install", "`true` or `false`", "auto-install = true", "`false`",
        "Fetch this release through pip, into a per-user cache, if there is no nvcc."),
    key("bundle", "path", "a string", "path = \"shipped/kernels.bundle\"", "`kernels.bundle`, if it is there",
        "The bundle's folder or file, from the manifest's folder."),
    key("bundle", "optional", "`true` or `false`", "optional = true", "`false`",
        "Without nvcc, a kernel that the bundle lacks, or that has changed since, runs on the simulator only, with one \
         warning; by default the kernel is an error. `TIRX_BUNDLE=optional` has the same effect for one build; \
         `TIRX_BUNDLE=ignore` builds without the bundle."),
    key("kernel", "name", "a string", "name = \"add\"", "must be given",
        "The Rust function and module: lower-case letters, digits and `_`."),
    key("kernel", "source", "a string", "source = \"kernels/vector.py\"", "this or `script`",
        "The kernel file, from the manifest's folder."),
    key("kernel", "script", "a string", "script = \"\"\"…\"\"\"", "this or `source`", "The kernel's text itself."),
    key("kernel", "entry", "a string", "entry = \"add\"", "the kernel's name, or the file's only kernel",
        "The definition in the text."),
    key("kernel", "specialize", "a list of tables", "specialize = [{ N = 256 }, { N = 1024 }]", "none",
        "Values of compile-time parameters; one Rust function each. `\"None\"` leaves a `T.Optional` parameter out."),
    key("kernel", "specialize-grid", "a table of lists", "specialize-grid = { N = [256, 512], dtype = [\"float16\", \"bfloat16\"] }",
        "none", "As `specialize`, for every combination of the values."),
    key("kernel", "tune", "a table", "[kernel.tune]", "none",
        "Specializations that give equal results at different speeds; the launcher `tuned` chooses one of them by the sizes of \
         a call. Excludes `specialize` and `specialize-grid`."),
    key("kernel", "targets", "a list of strings", TARGETS, "that of `[defaults]`",
        "GPUs to compile for: one native image each in the fat binary. `\"native\"` means the GPUs of the machine that builds."),
    key("kernel", "ptx", "a string", PTX, "that of `[defaults]`",
        "PTX for GPUs that are newer than the targets; the driver compiles it when the kernel is loaded. A kernel \
         with instructions that only its targets have, such as `wgmma`, gets no PTX and a warning; `\"none\"` turns \
         the warning off."),
    key("kernel", "require", "`true` or `false`", "require = true", "`false`",
        "A build that cannot make machine code is an error; otherwise the kernel runs on the simulator only."),
    key("kernel", "feature", "a string", "feature = \"fp8\"", "none",
        "The package's Cargo feature that the kernel belongs to: without it the kernel is not built."),
    key("kernel", "flags", "a list of strings", "flags = [\"--extra-device-vectorization\"]", "none",
        "Further arguments for nvcc."),
    key("kernel", "fast-math", "`true` or `false`", "fast-math = true", "`false`",
        "`--use_fast_math`: approximate functions, denormals are zero. The simulator computes without it."),
    key("kernel", "max-registers", "an integer", "max-registers = 64", "none",
        "The registers that a thread may use: more blocks fit, values may be spilled to memory. `T.attr({\"tirx.max_registers\": 64})` in the kernel has the same effect; the smaller number applies."),
    key("kernel", "lineinfo", "`true` or `false`", "lineinfo = true", "`false`",
        "Lines of the kernel file in the machine code: profilers and compute-sanitizer show them if you start these tools in the manifest's folder."),
    key("kernel", "debug", "`true` or `false`", "debug = true", "`false`",
        "Compile with `-G`, for cuda-gdb, if Cargo builds with the debug profile."),
    key("kernel", "allow-spills", "`true` or `false`", "allow-spills = true", "`false`",
        "No warning if nvcc spills registers to memory."),
    key("kernel", "max-spills", "an integer", "max-spills = 0", "none",
        "The bytes of registers that a thread may spill to memory: more are an error, fewer cause no warning."),
    key("kernel", "min-occupancy", "an integer", "min-occupancy = 50", "none",
        "The least occupancy in percent, as `cargo tirx stats` computes it: less is an error."),
    key("kernel", "multiprocessors", "an integer", "multiprocessors = 132", "none",
        "Multiprocessors of the GPU that the kernel is built for, 132 on an H100 SXM or 148 on a B200: the number that \
         `torch.cuda.get_device_properties` gives in its file."),
    key("kernel", "tvm", "a string", "tvm = \"0.27\"", "found from the file",
        "The release of TVM that the file is written for, `\"0.26\"` or `\"0.27\"`, if the file does not show it."),
    key("kernel.tune", "values", "a table of lists", "values = { TILE = [128, 64], STAGES = [2, 3] }", "must be given",
        "Compile-time parameters with their values. Each combination is a candidate; the combination of all first values \
         should be a good choice, because the first candidate is the default."),
    key("kernel.tune", "predicate", "a string", "predicate = \"TILE * STAGES <= 256\"", "every combination is a candidate",
        "A Python expression over the parameters of `values`: combinations for which it is false are no candidates."),
    key("kernel.tune", "sizes", "a list of tables", "sizes = [{ n = 1000 }, { n = 1_000_000 }]", "the kernel's sizes are all fixed",
        "The sizes for which `cargo tirx tune` measures: values of the extents and integer parameters that matter for the \
         choice, and of all others that a launch needs. Every table has the same names."),
];

/// The reference page.
pub fn reference() -> String {
    let mut page = String::from(
        "# kernels.toml\n\nEvery key that a manifest may have. A misspelt key is an error. This page is made from the \
         table that the build reads.\n",
    );
    let sections = [
        ("", "Tables"),
        ("defaults", "`[defaults]`"),
        ("toolchain", "`[toolchain]`"),
        ("bundle", "`[bundle]`"),
        ("kernel", "`[[kernel]]`"),
        ("kernel.tune", "`[kernel.tune]`"),
    ];
    for (section, title) in sections {
        page.push_str(&format!(
            "\n## {title}\n\n| key | form | left out | meaning |\n|---|---|---|---|\n"
        ));
        for key in KEYS.iter().filter(|key| key.section == section) {
            let example = key.example.replace('|', "\\|");
            page.push_str(&format!(
                "| `{}` | {}: `{example}` | {} | {} |\n",
                key.name, key.form, key.default, key.meaning
            ));
        }
    }
    page
}
