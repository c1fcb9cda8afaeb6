//! cargo-tirx
fn main() {}
