//! Tests of the lines of kernel files.

use super::*;

#[test]
fn errors_are_at_the_line_of_the_comment() {
    let text = "# sim: k(N=2)\n#   A: int32[N] = i\n#   B: int32[2] = 0 -> A[i + 1]\n#   s = 4\n";
    assert_eq!(
        read("k.py", text).unwrap_err(),
        "error: index 2 is out of range for length 2\n --> k.py:3:1\n  |\n3 | #   B: int32[2] = 0 -> A[i + 1]\n\
         \x20 = help: the expression of an element can use i (its coordinates), the arguments, and names of the file\n"
    );
    for (wrong, line) in [("= 4", "= (4"), ("= i", "= q"), ("= 0 ->", "= 1 / 0 ->")] {
        let text = text.replace("[i + 1]", "[i]").replacen(wrong, line, 1);
        let number = text.lines().position(|l| l.contains(line)).unwrap() + 1;
        let told = read("k.py", &text).unwrap_err();
        assert!(told.contains(&format!("k.py:{number}:1")), "{told}");
    }
}

#[test]
fn runs_are_computed_from_expressions() {
    let text = "def twice(x):\n    return 2 * x\n\n\
                # sim: k\n#   A: int32[2x3] = i * 10 + j\n#   B: int32[2] = 0 -> twice(A[i][2]) + s\n#   s = 4\n";
    let described = describe(text).unwrap();
    let program = function(0, &described[0]).unwrap();
    assert!(
        program.contains("A = [[(i * 10 + j) for j in range(3)] for i in range(2)]"),
        "{program}"
    );
    let runs = read("k.py", text).unwrap();
    let mut expected =
        runs::read("kernel k\nA int32[2x3] 0 1 2 10 11 12\nB int32[2] 0 0 -> 8 28\ns = 4\n").unwrap();
    (expected[0].line, expected[0].lines) = (4, vec![5, 6, 7]);
    assert_eq!(format!("{runs:?}"), format!("{expected:?}"));
    // Compile-time values, in expressions and shapes.
    let text = "# sim: k(N=2, MODE=\"a,b\")\n#   A: int32[NxN] = i + N -> 0\n";
    let runs = read("k.py", text).unwrap();
    assert_eq!(runs[0].values.get("MODE"), Some(&ConstValue::Str("a,b".into())));
    let mut expected = runs::read("kernel k\nA int32[2x2] 2 2 3 3 -> 0 0 0 0\n").unwrap();
    (expected[0].line, expected[0].values) = (1, runs[0].values.clone());
    expected[0].lines = vec![2];
    assert_eq!(format!("{runs:?}"), format!("{expected:?}"));
}

#[test]
fn kernels_are_selected_with_their_values() {
    let text =
        "M = 3\n# sim: k(N=2, MODE=\"a,b\", FAST=True) on sm_100a\n#   A: int32[N] = 1 / 0\n# sim: l\n";
    let all = selected("k.py", text, &NoImports).unwrap();
    assert_eq!((all[0].kernel.as_str(), all[1].kernel.as_str()), ("k", "l"));
    assert_eq!(all[0].archs, ["sm_100a"]);
    assert_eq!(all[0].values["N"], ConstValue::Int(2));
    assert_eq!(all[0].values["MODE"], ConstValue::Str("a,b".into()));
    // A value that is computed from the file's names gives all values.
    let computed = text.replace("N=2", "N=M * 2");
    let computed = selected("k.py", &computed, &NoImports).unwrap();
    assert_eq!(computed[0].values["N"], ConstValue::Int(6));
    assert_eq!(computed[0].values["FAST"], all[0].values["FAST"]);
}

/// The steps of an evaluation are for each run.
#[test]
fn large_runs_are_evaluated_one_by_one() {
    // Many steps that take little time.
    let large =
        |name: &str| format!("# sim: {name}\n#   A: int8[16] = len(\"a\" * 4000000) % 3\n#   s = 1\n");
    let text: String = ["a", "b", "c", "d"].map(large).concat();
    let runs = read("k.py", &text).unwrap();
    assert_eq!(runs.iter().map(|run| run.line).collect::<Vec<_>>(), [1, 4, 7, 10]);
}

#[test]
fn a_comment_that_is_almost_a_description_is_an_error() {
    let lines = "#   A: float32[N] = i\n@T.prim_func\n";
    for head in [
        "# sm: k",
        "# Sim: k",
        "# sim k",
        "#sim: k",
        "# sim : k",
        " # simm: k",
    ] {
        let told = read("k.py", &format!("\n{head}\n{lines}")).unwrap_err();
        assert!(
            told.contains("line 2: ") && told.contains("`# sim: KERNEL`"),
            "{told}"
        );
    }
    // Other comments.
    for text in [
        "# dim: k\n#   A = 3\n",
        "# sum: k\n",
        "# input:\n#   A: float32[4] = i\n",
    ] {
        assert!(read("k.py", text).unwrap().is_empty(), "{text}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    let wrong = |lines: &str| read("k.py", &format!("# sim: k\n{lines}")).unwrap_err();
    assert!(wrong("#   A: int32 = 1\n").contains("is no dtype with a shape"));
    assert!(wrong("#   A\n").contains("is neither"));
    assert!(wrong("#   s = 1\n#   s = 2\n").contains("is given twice"));
    assert!(wrong("#   s = unknown\n").contains("unknown"));
    assert!(
        read("k.py", "# sim: k on hopper\n")
            .unwrap_err()
            .contains("sm_90a")
    );
    assert!(read("k.py", "# sim: \n").is_err());
    assert!(read("k.py", "# sim: k(N)\n").unwrap_err().contains("NAME=VALUE"));
    assert!(wrong("#   A: int8[99999999x99999999] = 1\n").len() > 1);
}

#[test]
fn an_infinite_tolerance_accepts_every_number() {
    let runs = read("k.py", "# sim: k\n#   A: float32[2] = 0 -> 0 +- inf\n").unwrap();
    let (_, tensor) = runs[0].tensors().next().unwrap();
    let bytes = |values: [f32; 2]| values.map(f32::to_le_bytes).concat();
    tensor.compare("A", &bytes([1e30, -3.0]), None).unwrap();
    assert!(tensor.compare("A", &bytes([f32::NAN, 0.0]), None).is_err());
}
