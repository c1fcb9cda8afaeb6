//! `cargo tirx fix`: files of TVM 0.26 in the language of 0.27.

use std::fs;

use super::{Folder, fails};

const OLD: &str = r#"from tvm.script import tirx as T


# sim: waits(N=32)
#   A: uint32[32] = i
#   B: uint32[32] = 0 -> A[i]
@T.jit
def waits(A: T.Buffer((N,), "uint32"), B: T.Buffer((N,), "uint32"), *, N: T.constexpr):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([N])
    bar = T.alloc_buffer((1,), "uint64", scope="shared")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), N)  # one arrival of each
        T.ptx.fence.mbarrier_init()
    T.ptx.bar.sync(0, N)
    T.ptx.mbarrier.arrive(  bar.ptr_to([0])  )
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    x: T.uint32 = T.ptx.ld(A.ptr_to([tx]), "uint32", "u32")
    B[tx] = x   # kept
"#;

const NEW: &str = r#"    if tx == 0:
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), N)  # one arrival of each
        T.ptx.fence.mbarrier_init.release.cluster()
    T.ptx.bar.sync(0, N)
    T.ptx.mbarrier.arrive.shared.b64(bar.ptr_to([0]))
    T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
    x: T.uint32
    T.ptx.ld.global_.u32(x, A.ptr_to([tx]))
    B[tx] = x   # kept
"#;

#[test]
fn a_file_is_rewritten_where_it_stands() {
    let folder = Folder::new();
    let path = folder.path("old.py");
    fs::write(&path, OLD).unwrap();
    let checked = folder.run(&["fix", "--tvm", "0.27", "--check", "old.py"]);
    assert_eq!(checked.code, Some(1), "{}", checked.err);
    assert!(checked.err.contains("is written for TVM 0.26"), "{}", checked.err);
    assert_eq!(fs::read_to_string(&path).unwrap(), OLD);
    let written = folder.run(&["fix", "--tvm", "0.27", "old.py"]);
    assert_eq!(written.code, Some(0), "{}", written.err);
    assert!(
        written.out.contains(
            "old.py:15\n- T.ptx.fence.mbarrier_init()\n+ T.ptx.fence.mbarrier_init.release.cluster()\n"
        ),
        "{}",
        written.out
    );
    let text = fs::read_to_string(&path).unwrap();
    let unchanged = OLD.find("    if tx").unwrap();
    assert_eq!(text, format!("{}{NEW}", &OLD[..unchanged]));
    let tested = folder.run(&["test", "old.py"]);
    assert_eq!(tested.code, Some(0), "{}{}", tested.out, tested.err);
    // What is of 0.27 stays.
    let again = folder.run(&["fix", "--tvm", "0.27", "--check", "old.py"]);
    assert_eq!((again.code, again.out.as_str()), (Some(0), ""), "{}", again.err);
}

#[test]
fn a_file_with_a_call_that_stays_is_not_written() {
    let folder = Folder::new();
    let path = folder.path("old.py");
    let text = OLD.replace(
        "B[tx] = x ",
        "B[tx] = T.if_then_else(tx > 1, T.ptx.ld(A.ptr_to([tx]), \"uint32\", \"u32\"), x) ",
    );
    fs::write(&path, &text).unwrap();
    let outcome = folder.run(&["fix", "--tvm", "0.27", "old.py"]);
    fails(
        &outcome,
        1,
        &[
            "old.py:20: T.ptx.ld: it is computed only where the condition before it asks for it: write an `if` statement",
            "1 of 6 calls cannot be rewritten",
        ],
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}
