use std::io::Read;
use tirx_core::script::{self, KernelFile, NoImports};
use tirx_core::source::SourceMap;
fn main() {
    let sep = "\n====\n";
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    for (i, src) in text.split(sep).enumerate() {
        let mut map = SourceMap::new();
        let out = match KernelFile::load(&mut map, "k.py", src, &NoImports) {
            Err(e) => format!("ERR {}", e.render(&map)),
            Ok(f) => match f.build(None, &Default::default()) {
                Err(e) => format!("ERR {}", e.render(&map)),
                Ok(m) => script::print(&m),
            },
        };
        println!("@@{i}\n{out}");
    }
}
