//! example-app
fn main() {}
