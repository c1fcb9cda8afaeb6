//! The manifest's options of a kernel for nvcc.

/// Options of a kernel for nvcc.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NvccOptions {
    /// Further arguments, after all others.
    pub flags: Vec<String>,
    /// `--use_fast_math`: approximate functions, denormals flushed to zero.
    pub fast_math: bool,
    /// Registers per thread: `__maxnreg__` in the text, since nvcc ignores `--maxrregcount` beside launch bounds.
    pub max_registers: Option<u32>,
    /// Lines of the kernel file in the machine code, for profilers and compute-sanitizer: `-lineinfo`.
    pub lineinfo: bool,
    /// `-G` where Cargo builds with the debug profile, for cuda-gdb.
    pub debug: bool,
    /// Whether register spills cause no warning.
    pub allow_spills: bool,
    /// Bytes of registers that a thread may spill: more are an error.
    pub max_spills: Option<u32>,
    /// The least occupancy in percent: less is an error.
    pub min_occupancy: Option<u32>,
}

impl NvccOptions {
    /// The arguments for nvcc. `debug_profile` says that Cargo builds without optimization.
    pub(crate) fn arguments(&self, debug_profile: bool) -> Vec<String> {
        let mut arguments = Vec::new();
        if self.fast_math {
            arguments.push("--use_fast_math".to_string());
        }
        if self.debug && debug_profile {
            arguments.push("-G".to_string());
        } else if self.lineinfo {
            arguments.push("-lineinfo".to_string());
        }
        arguments.extend(self.flags.iter().cloned());
        arguments
    }

    /// Whether the machine code contains line information of the kernel file.
    pub(crate) fn names_lines(&self, debug_profile: bool) -> bool {
        self.lineinfo || (self.debug && debug_profile)
    }
}
