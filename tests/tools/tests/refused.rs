//! nvcc names the text that it refuses, and answers again without being run.

use tirx_test_tools::nvcc::{UNOPTIMIZED, nvcc};

fn kernel(body: &str) -> String {
    format!(
        "#include <cstdint>\n\nextern \"C\" __global__ void __launch_bounds__(32) k_kernel(int* A) {{\n{body}\n}}\n"
    )
}

#[test]
fn a_refused_text_is_named_among_others() {
    let Some(nvcc) = nvcc() else { return };
    let texts = ["A[0] = 1;", "A[0] = b;", "A[1] = 2;"].map(kernel);
    let numbered: Vec<(u64, &str)> = (0..).zip(texts.iter().map(String::as_str)).collect();
    // The second time the answers about the others are known.
    for _ in 0..2 {
        let refused = nvcc.refused("sm_90a", UNOPTIMIZED, &numbered).unwrap();
        let [(1, message)] = &refused[..] else {
            panic!("one text is wrong: {refused:?}");
        };
        assert!(message.contains("identifier \"b\" is undefined"), "{message}");
    }
}
