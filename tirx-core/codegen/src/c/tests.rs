//! Names and constants of C text. Whole launchers are tested by calling them (`tests/tests/c_api`).

use super::expr::integer;
use super::*;

#[test]
fn names_are_those_of_c() {
    assert_eq!(c_name("add::n256"), "add_n256");
    assert_eq!(c_name("double"), "k_double");
    assert_eq!(c_name("3d"), "k_3d");
    assert_eq!(c_name("größe"), "gr__e");
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
