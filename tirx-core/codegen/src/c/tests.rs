//! Names and constants of C text. Whole launchers are tested by calling them (`tests/tests/builds/c_api`).

use super::expr::integer;
use super::*;

#[test]
fn names_are_those_of_c() {
    assert_eq!(c_name("add::n256"), "add_n256");
    assert_eq!(c_name("double"), "k_double");
    assert_eq!(c_name("3d"), "k_3d");
    assert_eq!(c_name("größe"), "gr__e");
    for taken in [
        "tanh",
        "floor",
        "exp2",
        "memcpy",
        "printf",
        "random",
        "read",
        "tanhf64",
        "co_await",
        "errno",
        "thread_local",
        "size_t",
        "pthread_create",
        "tirx",
        "tirx_alloc",
    ] {
        assert_eq!(c_name(taken), format!("k_{taken}"));
    }
    for free in [
        "my_tanh",
        "tanh_kernel",
        "softmax",
        "gemm",
        "scale",
        "add",
        "f32",
        "n256",
        "tirx2",
    ] {
        assert_eq!(c_name(free), free);
    }
    assert!(is_identifier("my_kernels") && is_identifier("K2"));
    for no in ["", "my kernels", "1st", "a-b", "a::b"] {
        assert!(!is_identifier(no), "{no}");
    }
}

#[test]
fn constants_keep_their_width() {
    assert_eq!(integer(DType::INT32, i128::from(i32::MIN)), "INT32_MIN");
    assert_eq!(integer(DType::INT64, -3), "(-INT64_C(3))");
    assert_eq!(
        integer(DType::UINT64, u64::MAX.into()),
        "UINT64_C(18446744073709551615)"
    );
    assert_eq!(integer(DType::INT8, -3), "((int8_t)-3)");
    assert_eq!(integer(DType::BOOL, 1), "true");
}
