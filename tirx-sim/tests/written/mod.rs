//! Kernels as text, and their memory.

use tirx_core::script::{KernelFile, NoImports};
use tirx_core::source::SourceMap;
use tirx_core::transform::{Lowering, Target, lower};
use tirx_sim::{Allocation, Memory, Program};

pub(crate) fn compiled(text: &str) -> Program {
    compiled_for(Target::SM_90A, text)
}

pub(crate) fn compiled_for(target: Target, text: &str) -> Program {
    let text = format!("from tvm.script import tirx as T\n\n{text}");
    let mut sources = SourceMap::new();
    let file = match KernelFile::load(&mut sources, "kernel.py", &text, &NoImports) {
        Ok(file) => file,
        Err(d) => panic!("{}", d.render(&sources)),
    };
    let module = match file.build(Some("kernel"), &Default::default()) {
        Ok(module) => module,
        Err(d) => panic!("{}", d.render(&sources)),
    };
    let sources = module.sources.clone();
    let module = match lower(module, &mut Lowering::new(target)) {
        Ok(module) => module,
        Err(d) => panic!("{}", d.render(&sources)),
    };
    let device = |f: &tirx_core::ir::PrimFunc| f.attr("calling_conv").and_then(|v| v.as_int()) == Some(2);
    let name = module
        .functions
        .iter()
        .find(|(_, f)| device(f))
        .unwrap()
        .0
        .to_string();
    match Program::compile(&module, &name) {
        Ok(program) => program,
        Err(d) => panic!("{}", d.render(&module.sources)),
    }
}

pub(crate) fn ints(memory: &Memory, values: impl IntoIterator<Item = i32>) -> Allocation {
    let bytes: Vec<u8> = values.into_iter().flat_map(i32::to_le_bytes).collect();
    let allocation = memory.alloc(bytes.len());
    allocation.write(0, &bytes);
    allocation
}

pub(crate) fn read(allocation: &Allocation) -> Vec<i32> {
    let mut bytes = vec![0; allocation.len()];
    allocation.read(0, &mut bytes);
    bytes
        .chunks_exact(4)
        .map(|b| i32::from_le_bytes(b.try_into().unwrap()))
        .collect()
}
