//! How rows are written: functions for arguments and CUDA text, and methods that add a property to a row.

use super::super::gpu_set::GpuSet;
use super::super::operands::Operands;
use super::super::{Effect, OpInfo, ResultRule};
use super::{
    AlignmentBy, Arg, ArgKind, Cuda, CudaForm, Given, Machine, Many, NeedsBy, Release, Row, SinceBy, Traits,
    Words,
};
use crate::ir::DType;

/// An argument with one value.
pub const fn arg(name: &'static str, kind: ArgKind) -> Arg {
    Arg {
        name,
        kind,
        many: Many::One,
    }
}

/// An optional argument.
pub const fn optional(name: &'static str, kind: ArgKind) -> Arg {
    Arg {
        name,
        kind,
        many: Many::Optional,
    }
}

/// A list of values whose length `len` computes.
pub const fn list(name: &'static str, kind: ArgKind, len: fn(&Operands) -> usize) -> Arg {
    Arg {
        name,
        kind,
        many: Many::List(Some(len)),
    }
}

/// A list of all remaining values.
pub const fn rest(name: &'static str, kind: ArgKind) -> Arg {
    Arg {
        name,
        kind,
        many: Many::List(None),
    }
}

/// Inline assembly of a template.
pub const fn ptx(template: &'static str) -> Cuda {
    Cuda::new(CudaForm::Ptx(template))
}

/// Inline assembly without effects besides its value.
pub const fn pure_ptx(template: &'static str) -> Cuda {
    Cuda::new(CudaForm::PurePtx(template))
}

/// Inline assembly that does not touch memory.
pub const fn state_ptx(template: &'static str) -> Cuda {
    Cuda::new(CudaForm::StatePtx(template))
}

/// A C++ function with this body.
pub const fn code(body: &'static str) -> Cuda {
    Cuda::new(CudaForm::Code(body))
}

/// A function of CUDA C++.
pub const fn function(name: &'static str) -> Cuda {
    Cuda::new(CudaForm::Function(name))
}

/// An expression of CUDA C++.
pub const fn expression(text: &'static str) -> Cuda {
    Cuda::new(CudaForm::Expression(text))
}

/// Text written by hand in the code generator.
pub const fn special() -> Cuda {
    Cuda::new(CudaForm::Special)
}

/// No text: a pass replaces it.
pub const fn lowered() -> Cuda {
    Cuda::new(CudaForm::Lowered)
}

/// No text: it occurs in host functions only.
pub const fn host() -> Cuda {
    Cuda::new(CudaForm::Host)
}

impl Cuda {
    const fn new(form: CudaForm) -> Cuda {
        Cuda {
            form,
            words: None,
            headers: &[],
            helpers: &[],
        }
    }

    /// The same with helper functions.
    pub const fn helpers(self, helpers: &'static [&'static str]) -> Cuda {
        Cuda { helpers, ..self }
    }

    /// The same with words for the template.
    pub const fn words(self, words: fn(&Operands, Machine) -> Result<Words, String>) -> Cuda {
        Cuda {
            words: Some(words),
            ..self
        }
    }

    /// The same with headers.
    pub const fn headers(self, headers: &'static [&'static str]) -> Cuda {
        Cuda { headers, ..self }
    }
}

impl Row {
    /// A row without arguments and result, which runs exactly as often and in the order written.
    pub const fn new(name: &'static str, script: &'static str, cuda: Cuda) -> Row {
        Row {
            name,
            script,
            also: &[],
            signature: None,
            args: &[],
            words: &[],
            complete: None,
            check: None,
            result: ResultRule::Is(DType::VOID),
            effect: Effect::UpdateState,
            traits: Traits::PLAIN,
            sources: &[],
            destinations: &[],
            alignment: None,
            arch: None,
            needs: &[],
            needs_by: None,
            since: &[],
            since_by: None,
            range: None,
            cuda,
            section: "",
        }
    }

    /// The same with arguments.
    pub const fn args(self, args: &'static [Arg]) -> Row {
        Row { args, ..self }
    }

    /// The same with a signature.
    pub const fn signature(self, signature: &'static str) -> Row {
        Row {
            signature: Some(signature),
            ..self
        }
    }

    /// The same with other spellings.
    pub const fn also(self, also: &'static [&'static str]) -> Row {
        Row { also, ..self }
    }

    /// The same with parameters from which other arguments are computed.
    pub const fn completed(
        self,
        words: &'static [Arg],
        complete: fn(&mut Given) -> Result<(), String>,
    ) -> Row {
        Row {
            words,
            complete: Some(complete),
            ..self
        }
    }

    /// The same with a check of its modifiers.
    pub const fn checked(self, check: fn(&Operands) -> Result<(), String>) -> Row {
        Row {
            check: Some(check),
            ..self
        }
    }

    /// The same with a value.
    pub const fn gives(self, dtype: DType) -> Row {
        Row {
            result: ResultRule::Is(dtype),
            ..self
        }
    }

    /// The same with a result whose dtype a rule computes.
    pub const fn value(self, result: ResultRule) -> Row {
        Row { result, ..self }
    }

    /// The same with bounds of its result.
    pub const fn range(self, least: i64, most: i64) -> Row {
        Row {
            range: Some((least, most)),
            ..self
        }
    }

    /// The same with architectures that depend on several arguments.
    pub const fn needs_by(self, needs: NeedsBy) -> Row {
        Row {
            needs_by: Some(needs),
            ..self
        }
    }

    /// The same with an effect.
    pub const fn effect(self, effect: Effect) -> Row {
        Row { effect, ..self }
    }

    /// The same with traits.
    pub const fn traits(self, traits: Traits) -> Row {
        Row { traits, ..self }
    }

    /// The same, only reading through these pointer arguments.
    pub const fn sources(self, sources: &'static [&'static str]) -> Row {
        Row { sources, ..self }
    }

    /// The same, only writing through these pointer arguments.
    pub const fn destinations(self, destinations: &'static [&'static str]) -> Row {
        Row { destinations, ..self }
    }

    /// The same with addresses that are aligned as a rule says.
    pub const fn aligned(self, rule: AlignmentBy) -> Row {
        Row {
            alignment: Some(rule),
            ..self
        }
    }

    /// The same for these GPUs.
    pub const fn arch(self, arch: GpuSet) -> Row {
        Row {
            arch: Some(arch),
            ..self
        }
    }

    /// The same with modifiers that fewer GPUs have.
    pub const fn needs(self, needs: &'static [(&'static str, &'static str, GpuSet)]) -> Row {
        Row { needs, ..self }
    }

    /// The same with modifier values that only later releases of CUDA know.
    pub const fn since(self, since: &'static [(&'static str, &'static str, Release)]) -> Row {
        Row { since, ..self }
    }

    /// The same with a release of CUDA that depends on several arguments.
    pub const fn since_by(self, since: SinceBy) -> Row {
        Row {
            since_by: Some(since),
            ..self
        }
    }

    /// The same with the section that describes it.
    pub const fn section(self, section: &'static str) -> Row {
        Row { section, ..self }
    }

    /// The row with its family and its documentation.
    pub(in crate::intrin) const fn info(&'static self, family: &'static str, doc: &'static str) -> OpInfo {
        OpInfo {
            script: self.script,
            family,
            doc,
            row: self,
        }
    }

    /// The argument of a name.
    pub fn arg(&self, name: &str) -> Option<&'static Arg> {
        self.args.iter().find(|a| a.name == name)
    }
}
