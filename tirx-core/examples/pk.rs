use std::collections::BTreeMap;
use tirx_core::script::*;
use tirx_core::source::SourceMap;
fn main() {
    for arg in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&arg).unwrap();
        for (i, part) in text.split("####").enumerate() {
            let body = if text.contains("####") {
                if i == 0 {
                    continue;
                }
                let (t, b) = part.split_once('\n').unwrap();
                println!("===== {}", t.trim());
                b
            } else {
                part
            };
            let mut s = SourceMap::new();
            match KernelFile::load(&mut s, &arg, body, &NoImports) {
                Err(e) => println!("ERROR {}", e.render(&s)),
                Ok(f) => {
                    for e in f.entries() {
                        match f.build(Some(&e.name), &BTreeMap::new()) {
                            Err(d) => println!("ERROR {}", d.render(&s)),
                            Ok(m) => println!("{}", print(&m)),
                        }
                    }
                }
            }
        }
    }
}
