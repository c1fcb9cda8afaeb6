//! What is known of each element type: one row each, which everything that names types or numbers them reads.

use std::fmt;

use crate::TypeCode::{self, *};
use crate::minifloat::{MiniStyle::*, Minifloat};
use crate::{DType, UnknownDType};

/// A vector type of CUDA C++: how many lanes, its name, the function that makes one of its lanes (none for the packed
/// types of narrow floats).
pub type CudaVector = (u16, &'static str, Option<&'static str>);

/// A value in a register of inline assembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsmRegister {
    /// Its C++ type.
    pub cpp: &'static str,
    /// Its letter in constraints.
    pub letter: &'static str,
    /// The C++ type that has its bits where `asm` does not take the type itself.
    pub carrier: Option<&'static str>,
}

/// An element type. A name that is `None` does not exist there.
#[derive(Clone, Copy, Debug)]
pub struct ElementType {
    /// Kind of element.
    pub code: TypeCode,
    /// Width in bits.
    pub bits: u8,
    /// TVM's name, which text has.
    pub name: &'static str,
    /// The type in CUDA C++.
    pub cuda: Option<&'static str>,
    /// The header that declares the type in CUDA C++, where it needs one.
    pub cuda_header: Option<&'static str>,
    /// CUDA's own vectors of it.
    pub cuda_vectors: &'static [CudaVector],
    /// Its part of the names of CUDA's functions, such as `__float_as_int`.
    pub cuda_brief: Option<&'static str>,
    /// Its values in inline assembly.
    pub asm: Option<AsmRegister>,
    /// What C, PyTorch, Triton and others call it: messages name TVM's name.
    pub elsewhere: &'static [&'static str],
    /// PTX's name.
    pub ptx: Option<&'static str>,
    /// Whether matrix instructions multiply or add it.
    pub in_matrices: bool,
    /// The Rust type of a value.
    pub rust: Option<&'static str>,
    /// The C type of a value, as the C interface passes its bits.
    pub c: Option<&'static str>,
    /// NumPy's name; for floats that NumPy lacks, that of their bits.
    pub numpy: Option<&'static str>,
    /// `CUtensorMapDataType`.
    pub tensor_map: Option<u32>,
    /// The largest finite value of a float, as TVM gives it.
    pub largest: Option<f64>,
    /// How bits become values, for floats of 8 bits and less.
    pub format: Option<Minifloat>,
}

impl ElementType {
    const fn new(code: TypeCode, bits: u8, name: &'static str) -> ElementType {
        ElementType {
            code,
            bits,
            name,
            cuda: None,
            cuda_header: None,
            cuda_vectors: &[],
            cuda_brief: None,
            asm: None,
            elsewhere: &[],
            ptx: None,
            in_matrices: false,
            rust: None,
            c: None,
            numpy: None,
            tensor_map: None,
            largest: None,
            format: None,
        }
    }

    const fn cuda(mut self, name: &'static str, vectors: &'static [CudaVector]) -> ElementType {
        self.cuda = Some(name);
        self.cuda_vectors = vectors;
        self
    }

    /// The header that declares it.
    const fn header(mut self, name: &'static str) -> ElementType {
        self.cuda_header = Some(name);
        self
    }

    const fn brief(mut self, name: &'static str) -> ElementType {
        self.cuda_brief = Some(name);
        self
    }

    const fn asm(mut self, cpp: &'static str, letter: &'static str) -> ElementType {
        let carrier = None;
        self.asm = Some(AsmRegister { cpp, letter, carrier });
        self
    }

    /// A register that another type carries.
    const fn carried(mut self, cpp: &'static str, letter: &'static str, by: &'static str) -> ElementType {
        let carrier = Some(by);
        self.asm = Some(AsmRegister { cpp, letter, carrier });
        self
    }

    const fn elsewhere(mut self, names: &'static [&'static str]) -> ElementType {
        self.elsewhere = names;
        self
    }

    const fn ptx(mut self, name: &'static str) -> ElementType {
        self.ptx = Some(name);
        self
    }

    const fn matrix(mut self, name: &'static str) -> ElementType {
        self.in_matrices = true;
        self.ptx(name)
    }

    /// Names in Rust, C and NumPy.
    const fn host(mut self, rust: &'static str, c: &'static str, numpy: &'static str) -> ElementType {
        (self.rust, self.c, self.numpy) = (Some(rust), Some(c), Some(numpy));
        self
    }

    /// A pointer's names in Rust and C.
    const fn address(mut self, rust: &'static str, c: &'static str) -> ElementType {
        (self.rust, self.c) = (Some(rust), Some(c));
        self
    }

    const fn tensor_map(mut self, number: u32) -> ElementType {
        self.tensor_map = Some(number);
        self
    }

    const fn largest(mut self, value: f64) -> ElementType {
        self.largest = Some(value);
        self
    }

    /// A float of 8 or 6 bits, or two of 4: NumPy has the bytes.
    const fn format(mut self, format: Minifloat) -> ElementType {
        self.format = Some(format);
        if self.bits > 4 {
            self.numpy = Some("|u1");
        }
        self
    }

    /// The row of a dtype's elements.
    pub fn from_dtype(dtype: DType) -> Option<&'static ElementType> {
        ELEMENT_TYPES
            .iter()
            .find(|row| row.code == dtype.code && row.bits == dtype.bits)
    }

    /// The row with TVM's name.
    pub fn named(name: &str) -> Option<&'static ElementType> {
        ELEMENT_TYPES.iter().find(|row| row.name == name)
    }

    /// The row that other languages and libraries name so.
    pub fn named_elsewhere(name: &str) -> Option<&'static ElementType> {
        ELEMENT_TYPES.iter().find(|row| row.elsewhere.contains(&name))
    }

    /// The type that matrix instructions name so, by TVM's name or PTX's.
    pub fn of_matrices(name: &str) -> Option<&'static ElementType> {
        let mut rows = ELEMENT_TYPES.iter().filter(|row| row.in_matrices);
        rows.find(|row| row.name == name || row.ptx == Some(name))
    }

    /// The dtype of one element.
    pub const fn dtype(&self) -> DType {
        DType::scalar(self.code, self.bits)
    }
}

/// The built-in vectors of a C++ type: `int2`, made by `make_int2`, and so on.
macro_rules! vectors {
    ($name:literal: $($lanes:literal),+) => {
        &[$(($lanes, concat!($name, $lanes), Some(concat!("make_", $name, $lanes)))),+]
    };
}

/// The packed types of two and four narrow floats.
macro_rules! packed {
    ($two:literal, $four:literal) => {
        &[(2, $two, None), (4, $four, None)]
    };
}

const fn row(code: TypeCode, bits: u8, name: &'static str) -> ElementType {
    ElementType::new(code, bits, name)
}

const fn format(exponent: u8, mantissa: u8, bias: i8, style: crate::minifloat::MiniStyle) -> Minifloat {
    Minifloat::new(exponent, mantissa, bias, style)
}

/// All element types.
#[rustfmt::skip]
pub static ELEMENT_TYPES: &[ElementType] = &[
    row(Bool, 8, "bool").cuda("bool", &[]).host("bool", "bool", "|b1").tensor_map(0)
        .asm("unsigned int", "r"),
    row(Int, 1, "int1").matrix("b1"),
    row(Int, 4, "int4").matrix("s4"),
    row(Int, 8, "int8").header("cstdint").cuda("int8_t", vectors!("char": 2, 3, 4)).matrix("s8").host("i8", "int8_t", "|i1").tensor_map(0)
        .carried("signed char", "h", "short"),
    row(Int, 16, "int16").header("cstdint").cuda("int16_t", vectors!("short": 2, 3, 4)).ptx("s16").host("i16", "int16_t", "<i2").tensor_map(1)
        .brief("short").asm("short", "h"),
    row(Int, 32, "int32").cuda("int", vectors!("int": 2, 3, 4)).matrix("s32").host("i32", "int32_t", "<i4").tensor_map(3)
        .brief("int").asm("int", "r").elsewhere(&["int"]),
    row(Int, 64, "int64").header("cstdint").cuda("int64_t", vectors!("longlong": 2)).ptx("s64").host("i64", "int64_t", "<i8").tensor_map(5)
        .brief("longlong").asm("long long", "l").elsewhere(&["long"]),
    row(Int, 128, "int128").header("cstdint").cuda("__int128", &[])
        .asm("__int128", "q"),
    row(UInt, 1, "uint1").matrix("b1"),
    row(UInt, 4, "uint4").matrix("u4"),
    row(UInt, 8, "uint8").header("cstdint").cuda("uint8_t", vectors!("uchar": 2, 3, 4)).matrix("u8").host("u8", "uint8_t", "|u1").tensor_map(0)
        .carried("unsigned char", "h", "unsigned short"),
    row(UInt, 16, "uint16").header("cstdint").cuda("uint16_t", vectors!("ushort": 2, 3, 4)).ptx("u16").host("u16", "uint16_t", "<u2").tensor_map(1)
        .brief("ushort").asm("unsigned short", "h"),
    row(UInt, 32, "uint32").cuda("unsigned int", vectors!("uint": 2, 3, 4)).ptx("u32").host("u32", "uint32_t", "<u4").tensor_map(2)
        .brief("uint").asm("unsigned int", "r").elsewhere(&["uint"]),
    row(UInt, 64, "uint64").header("cstdint").cuda("uint64_t", vectors!("ulonglong": 2)).ptx("u64").host("u64", "uint64_t", "<u8").tensor_map(4)
        .asm("unsigned long long", "l"),
    row(UInt, 128, "uint128").header("cstdint").cuda("unsigned __int128", &[])
        .asm("unsigned __int128", "q"),
    row(Float, 16, "float16").header("cuda_fp16.h").cuda("half", &[(2, "half2", Some("make_half2"))]).matrix("f16")
        .host("::tirx_rt::f16", "uint16_t", "<f2").tensor_map(6).largest(65504.0)
        .brief("half").carried("half", "h", "unsigned short").elsewhere(&["half", "fp16"]),
    row(Float, 32, "float32").cuda("float", vectors!("float": 2, 3, 4)).matrix("f32")
        .host("f32", "float", "<f4").tensor_map(7).largest(f32::MAX as f64)
        .brief("float").asm("float", "f").elsewhere(&["float", "fp32"]),
    row(Float, 64, "float64").cuda("double", vectors!("double": 2)).matrix("f64")
        .host("f64", "double", "<f8").tensor_map(8).largest(f64::MAX)
        .brief("double").asm("double", "d").elsewhere(&["double", "fp64"]),
    row(BFloat, 16, "bfloat16").header("cuda_bf16.h").cuda("nv_bfloat16", &[(2, "nv_bfloat162", Some("make_bfloat162"))]).matrix("bf16")
        .host("::tirx_rt::bf16", "uint16_t", "<u2").tensor_map(9).largest(3.389_531_389_251_535_5e38)
        .brief("bfloat16").carried("nv_bfloat16", "h", "unsigned short").elsewhere(&["bf16"]),
    row(Float8_e3m4, 8, "float8_e3m4").largest(31.0).format(format(3, 4, 3, Ieee)),
    row(Float8_e4m3, 8, "float8_e4m3").largest(448.0).format(format(4, 3, 7, Ieee)),
    row(Float8_e4m3b11fnuz, 8, "float8_e4m3b11fnuz").largest(30.0).format(format(4, 3, 11, Fnuz)),
    row(Float8_e4m3fn, 8, "float8_e4m3fn").header("cuda_fp8.h").cuda("__nv_fp8_e4m3", packed!("__nv_fp8x2_e4m3", "__nv_fp8x4_e4m3"))
        .matrix("e4m3").tensor_map(0).largest(448.0).format(format(4, 3, 7, Fn))
        .elsewhere(&["e4m3", "fp8", "fp8_e4m3", "fp8e4m3"]),
    row(Float8_e4m3fnuz, 8, "float8_e4m3fnuz").matrix("e4m3").largest(448.0).format(format(4, 3, 8, Fnuz)),
    row(Float8_e5m2, 8, "float8_e5m2").header("cuda_fp8.h").cuda("__nv_fp8_e5m2", packed!("__nv_fp8x2_e5m2", "__nv_fp8x4_e5m2"))
        .matrix("e5m2").tensor_map(0).largest(57344.0).format(format(5, 2, 15, Ieee))
        .elsewhere(&["e5m2", "fp8_e5m2", "fp8e5m2"]),
    row(Float8_e5m2fnuz, 8, "float8_e5m2fnuz").largest(57344.0).format(format(5, 2, 16, Fnuz)),
    row(Float8_e8m0fnu, 8, "float8_e8m0fnu").header("cuda_fp8.h").cuda("__nv_fp8_e8m0", &[])
        .matrix("ue8m0").tensor_map(0).largest(3.402_823_669_209_385e38).format(format(8, 0, 127, PowerOfTwo))
        .elsewhere(&["ue8m0"]),
    row(Float6_e2m3fn, 6, "float6_e2m3fn").header("cuda_fp6.h").cuda("__nv_fp6_e2m3", packed!("__nv_fp6x2_e2m3", "__nv_fp6x4_e2m3"))
        .matrix("e2m3").largest(7.5).format(format(2, 3, 1, Finite)),
    row(Float6_e3m2fn, 6, "float6_e3m2fn").header("cuda_fp6.h").cuda("__nv_fp6_e3m2", packed!("__nv_fp6x2_e3m2", "__nv_fp6x4_e3m2"))
        .matrix("e3m2").largest(28.0).format(format(3, 2, 3, Finite)),
    row(Float4_e2m1fn, 4, "float4_e2m1fn").header("cuda_fp4.h").cuda("__nv_fp4_e2m1", packed!("__nv_fp4x2_e2m1", "__nv_fp4x4_e2m1"))
        .matrix("e2m1").tensor_map(14).largest(6.0).format(format(2, 1, 1, Finite))
        .elsewhere(&["fp4", "e2m1", "fp4_e2m1"]),
    row(Handle, 64, "handle").cuda("void*", &[]).address("u64", "void*"),
];

impl Minifloat {
    /// The format of a type code; `None` for formats of 16 bits and more, and for what is no float.
    pub fn from_type_code(code: TypeCode) -> Option<Minifloat> {
        ELEMENT_TYPES.iter().find(|row| row.code == code)?.format
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_void() {
            return f.write_str("void");
        }
        match self.code {
            TypeCode::Int => write!(f, "int{}", self.bits)?,
            TypeCode::UInt => write!(f, "uint{}", self.bits)?,
            TypeCode::Float => write!(f, "float{}", self.bits)?,
            TypeCode::Handle => f.write_str("handle")?,
            _ => f.write_str(ElementType::from_dtype(*self).map_or("?", |row| row.name))?,
        }
        if self.lanes > 1 {
            write!(f, "x{}", self.lanes)?;
        }
        Ok(())
    }
}

impl std::str::FromStr for DType {
    type Err = UnknownDType;

    fn from_str(s: &str) -> Result<DType, UnknownDType> {
        if s == "void" {
            return Ok(DType::VOID);
        }
        if let Some(row) = ElementType::named(s) {
            return Ok(row.dtype());
        }
        // A trailing "x<digits>" is the lane count; names of types contain no 'x' before digits at their end.
        let unknown = || UnknownDType(s.to_string());
        let (name, lanes) = s.rsplit_once('x').ok_or_else(unknown)?;
        let digits = !lanes.is_empty() && lanes.bytes().all(|b| b.is_ascii_digit());
        let lanes = lanes.parse::<u16>().ok().filter(|lanes| digits && *lanes > 0);
        let row = ElementType::named(name).filter(|row| row.code != Handle);
        match (row, lanes) {
            (Some(row), Some(lanes)) => Ok(row.dtype().with_lanes(lanes)),
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_one_row() {
        for (i, row) in ELEMENT_TYPES.iter().enumerate() {
            let same = |other: &&ElementType| other.name == row.name || other.dtype() == row.dtype();
            assert_eq!(ELEMENT_TYPES.iter().filter(same).count(), 1, "{}", row.name);
            assert_eq!(row.dtype().to_string(), row.name);
            assert_eq!(row.name.parse(), Ok(row.dtype()));
            assert_eq!(row.largest.is_some(), row.dtype().is_floating(), "{}", row.name);
            assert_eq!(row.format.is_some(), row.dtype().is_small_float(), "{}", row.name);
            assert!(
                i == 0
                    || ELEMENT_TYPES[..i]
                        .iter()
                        .all(|r| r.cuda.is_none() || r.cuda != row.cuda)
            );
            if let Some(format) = row.format {
                assert_eq!(format.bits(), u32::from(row.bits), "{}", row.name);
            }
        }
        assert!(
            TypeCode::ALL
                .iter()
                .all(|code| ELEMENT_TYPES.iter().any(|row| row.code == *code))
        );
    }

    #[test]
    fn matrix_types_are_found_by_both_names() {
        let bits = |name: &str| ElementType::of_matrices(name).map(|row| row.bits);
        assert_eq!(bits("float8_e4m3fn"), bits("e4m3"));
        assert_eq!((bits("s4"), bits("uint64"), bits("u64")), (Some(4), None, None));
    }
}
