//! Cargo is killed at random points, the kernel edited and built again: the program must be the edited kernel's, also
//! after build scripts that outlived their Cargo have ended.
//!
//! `TIRX_KILLS` says how often (four times otherwise): `TIRX_KILLS=50 cargo test -p tirx-tests --test builds kill`.

use std::time::Duration;

use crate::throw_away::{ScratchPackages, real_nvcc};

const KERNELS: &str = r#"from tvm.script import tirx as T

@T.prim_func
def mark(A: T.Buffer((32,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    A[tx] = A[tx] * 7000100
"#;

/// The number is in the PTX, as text; the simulator's image has it as well.
const MANIFEST: &str = "[[kernel]]\nname = \"mark\"\nsource = \"kernels.py\"\ntargets = []\nptx = \"compute_90\"\n\
                        flags = [\"--no-compress\"]\n";

const MAIN: &str = r#"tirx_rt::include_kernels!();

fn main() -> tirx_rt::Result<()> {
    let text = String::from_utf8_lossy(kernels::mark::IMAGE.fatbin.unwrap_or_default()).into_owned();
    let at = text.find("7000").expect("the number is in the PTX");
    let stream = tirx_rt::Device::simulator().new_stream()?;
    let mut a = tirx_rt::Tensor::from_slice(&stream, &[1; 32], [32])?;
    kernels::mark(&stream, &mut a)?;
    println!("{} {}", &text[at..at + 7], a.to_vec()?[0]);
    Ok(())
}
"#;

/// Numbers that look random and are the same every time.
struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % below
    }
}

fn kills(name: &str, prepare: impl Fn(&ScratchPackages)) {
    let place = ScratchPackages::new();
    prepare(&place);
    place.package(name, MANIFEST, KERNELS, MAIN, "");
    let count = std::env::var("TIRX_KILLS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(4u64);
    let mut random = Random(count);
    let mut number = 100;
    let mut edit = || {
        let (old, new) = (number, number + 1);
        number = new;
        place.edit(
            &format!("{name}/kernels.py"),
            &format!("7000{old}"),
            &format!("7000{new}"),
        );
        new
    };
    let run = |expected: i32, when: &str| {
        let (success, out, err) = place.cargo(name, &["run"]);
        assert!(success, "{when}: {err}");
        assert_eq!(out, format!("7000{expected} 7000{expected}\n"), "{when}");
    };
    run(100, "at first");
    for kill in 0..count {
        edit();
        let mut first = place.spawn(name, &["build"]);
        std::thread::sleep(Duration::from_millis(random.next(1500)));
        first.kill().unwrap();
        first.wait().unwrap();
        let expected = edit();
        run(expected, &format!("after kill {kill}"));
        // What the killed build left running has come to its end for some of them.
        if random.next(4) == 0 {
            std::thread::sleep(Duration::from_millis(random.next(2500)));
            run(expected, &format!("later, after kill {kill}"));
        }
    }
}

#[test]
fn kill_with_nvcc() {
    let Some(real) = real_nvcc() else { return };
    kills("killed", |place| {
        place.nvcc(&real, None);
    });
}

#[test]
fn kill_with_a_slow_nvcc() {
    let Some(real) = real_nvcc() else { return };
    kills("killed-slow", |place| {
        place.script(&format!(
            "case $1 in --version) exec '{0}' --version;; esac\nsleep 0.$(($$ % 10))\n'{0}' \"$@\"\nresult=$?\n\
             sleep 0.$(($$ % 9))\nexit $result",
            real.display()
        ));
    });
}
