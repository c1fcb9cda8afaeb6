//! Small device functions built by hand, with a source text of one line per statement.

#![allow(dead_code, reason = "each test file uses a part")]

use std::cell::RefCell;

use tirx_core::intrin::Op;
use tirx_core::ir::{
    AttrNode, BinOp, Buffer, BufferNode, DType, Expr, ForKind, ForLoop, IRModule, IterKind, IterVar,
    PrimFunc, Stmt, StmtKind, Type, Var,
};
use tirx_core::source::{FileId, SourceMap, Span};
use tirx_sim::{Allocation, Fault, Launch, LaunchOptions, Memory, Program, StandIns, Stats};

pub(crate) const F32: DType = DType::FLOAT32;
pub(crate) const I32: DType = DType::INT32;
pub(crate) const U32: DType = DType::UINT32;
pub(crate) const F16: DType = DType::FLOAT16;

/// A device function under construction.
pub(crate) struct Kernel {
    text: RefCell<String>,
    params: Vec<Var>,
    axes: Vec<(&'static str, Expr, Var)>,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) cluster: [u32; 3],
    pub(crate) shared_bytes: u32,
}

/// A kernel over `blocks` blocks of `threads` threads along x.
pub(crate) fn kernel(blocks: u32, threads: u32) -> Kernel {
    let mut k = Kernel {
        text: RefCell::new(String::new()),
        params: Vec::new(),
        axes: Vec::new(),
        grid: [blocks, 1, 1],
        block: [threads, 1, 1],
        cluster: [1, 1, 1],
        shared_bytes: 0,
    };
    k.axis("blockIdx.x", blocks);
    k.axis("threadIdx.x", threads);
    k
}

impl Kernel {
    pub(crate) fn axis(&mut self, tag: &'static str, extent: u32) -> Expr {
        let var = Var::new(tag.replace('.', "_"), I32);
        self.axes.push((tag, int(extent as i32), var.clone()));
        Expr::var(&var)
    }

    pub(crate) fn tx(&self) -> Expr {
        self.index("threadIdx.x")
    }

    pub(crate) fn bx(&self) -> Expr {
        self.index("blockIdx.x")
    }

    pub(crate) fn index(&self, tag: &str) -> Expr {
        let (_, _, var) = self.axes.iter().find(|(t, ..)| *t == tag).unwrap();
        Expr::var(var)
    }

    /// A tensor parameter.
    pub(crate) fn tensor(&mut self, name: &str, dtype: DType, size: i32) -> Buffer {
        let buffer = buffer(name, dtype, size, "global");
        self.params.push(buffer.data.clone());
        buffer
    }

    /// A scalar parameter.
    pub(crate) fn scalar(&mut self, name: &str, dtype: DType) -> Expr {
        let var = Var::new(name, dtype);
        self.params.push(var.clone());
        Expr::var(&var)
    }

    /// A source line; the span of all of it.
    pub(crate) fn line(&self, text: &str) -> Span {
        let mut all = self.text.borrow_mut();
        let start = all.len() as u32;
        all.push_str(text);
        all.push('\n');
        Span::new(FileId(1), start, start + text.len() as u32)
    }

    pub(crate) fn store(&self, buffer: &Buffer, index: Expr, value: Expr) -> Stmt {
        let span = self.line(&format!("{}[..] = ..", buffer.name));
        Stmt::store(buffer, vec![index], value, span)
    }

    pub(crate) fn call(&self, op: Op, args: Vec<Expr>) -> Stmt {
        let span = self.line(op.info().script);
        Stmt::evaluate(Expr::call(op, DType::VOID, args).at(span))
    }

    pub(crate) fn sync(&self) -> Stmt {
        self.call(Op::CudaCtaSync, vec![])
    }

    pub(crate) fn module(&self, body: impl IntoIterator<Item = Stmt>) -> IRModule {
        let mut sources = SourceMap::new();
        sources.add("kernel.py", self.text.borrow().clone());
        let mut body = Stmt::seq(body);
        for (tag, extent, var) in self.axes.iter().rev() {
            let node = AttrNode::IterVar(IterVar {
                var: var.clone(),
                dom: None,
                kind: IterKind::ThreadIndex,
                thread_tag: (*tag).into(),
            });
            body = Stmt::attr(node, "thread_extent", extent.clone(), body, Span::NONE);
        }
        let func = PrimFunc {
            params: self.params.clone(),
            buffer_map: Vec::new(),
            ret: None,
            attrs: Default::default(),
            body,
            span: Span::NONE,
        };
        IRModule::single("kernel", func, sources)
    }

    pub(crate) fn run(&self, body: impl IntoIterator<Item = Stmt>, args: &[&Data]) -> Result<Stats, Fault> {
        let args: Vec<u64> = args.iter().map(|d| d.argument()).collect();
        self.run_with(
            body,
            &args,
            &memory_of(),
            &StandIns::new(),
            &LaunchOptions::default(),
        )
    }

    pub(crate) fn run_with(
        &self,
        body: impl IntoIterator<Item = Stmt>,
        args: &[u64],
        memory: &Memory,
        stand_ins: &StandIns,
        options: &LaunchOptions,
    ) -> Result<Stats, Fault> {
        let module = self.module(body);
        let program = Program::compile(&module, "kernel")
            .map_err(|d| d.render(&module.sources))
            .unwrap();
        let launch = Launch {
            grid: self.grid,
            block: self.block,
            cluster: self.cluster,
            shared_bytes: self.shared_bytes,
            args,
            peers: &[],
        };
        program.launch_with(memory, &launch, stand_ins, options)
    }
}

thread_local! {
    static MEMORY: Memory = Memory::new();
}

/// The memory of this test's thread.
pub(crate) fn memory_of() -> Memory {
    MEMORY.with(Memory::clone)
}

/// An argument.
pub(crate) enum Data {
    Tensor(Allocation),
    Scalar(u64),
}

impl Data {
    fn argument(&self) -> u64 {
        match self {
            Data::Tensor(a) => a.address(),
            Data::Scalar(bits) => *bits,
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Data::Tensor(a) => {
                let mut out = vec![0; a.len()];
                a.read(0, &mut out);
                out
            }
            Data::Scalar(bits) => bits.to_le_bytes().to_vec(),
        }
    }

    pub(crate) fn f32(&self) -> Vec<f32> {
        let bytes = self.bytes();
        bytes
            .chunks_exact(4)
            .map(|c| f32::from_le_bytes(c.try_into().unwrap()))
            .collect()
    }

    pub(crate) fn i32(&self) -> Vec<i32> {
        let bytes = self.bytes();
        bytes
            .chunks_exact(4)
            .map(|c| i32::from_le_bytes(c.try_into().unwrap()))
            .collect()
    }

    pub(crate) fn i64(&self) -> Vec<i64> {
        let bytes = self.bytes();
        bytes
            .chunks_exact(8)
            .map(|c| i64::from_le_bytes(c.try_into().unwrap()))
            .collect()
    }

    pub(crate) fn f64(&self) -> Vec<f64> {
        let bytes = self.bytes();
        bytes
            .chunks_exact(8)
            .map(|c| f64::from_le_bytes(c.try_into().unwrap()))
            .collect()
    }

    pub(crate) fn u16(&self) -> Vec<u16> {
        let bytes = self.bytes();
        bytes
            .chunks_exact(2)
            .map(|c| u16::from_le_bytes(c.try_into().unwrap()))
            .collect()
    }
}

pub(crate) fn bytes(data: &[u8]) -> Data {
    let allocation = memory_of().alloc(data.len());
    allocation.write(0, data);
    Data::Tensor(allocation)
}

pub(crate) fn f32s(data: impl IntoIterator<Item = f32>) -> Data {
    bytes(&data.into_iter().flat_map(f32::to_le_bytes).collect::<Vec<_>>())
}

pub(crate) fn f64s(data: impl IntoIterator<Item = f64>) -> Data {
    bytes(&data.into_iter().flat_map(f64::to_le_bytes).collect::<Vec<_>>())
}

pub(crate) fn i32s(data: impl IntoIterator<Item = i32>) -> Data {
    bytes(&data.into_iter().flat_map(i32::to_le_bytes).collect::<Vec<_>>())
}

pub(crate) fn i64s(data: impl IntoIterator<Item = i64>) -> Data {
    bytes(&data.into_iter().flat_map(i64::to_le_bytes).collect::<Vec<_>>())
}

pub(crate) fn u16s(data: impl IntoIterator<Item = u16>) -> Data {
    bytes(&data.into_iter().flat_map(u16::to_le_bytes).collect::<Vec<_>>())
}

pub(crate) fn zeros(n: usize) -> Data {
    Data::Tensor(memory_of().alloc(n * 4))
}

pub(crate) fn buffer(name: &str, dtype: DType, size: i32, scope: &str) -> Buffer {
    let data = Var::new(format!("{name}_ptr"), Type::pointer(dtype, scope));
    Buffer::new(BufferNode::flat(name, data, dtype, vec![int(size)], Span::NONE))
}

/// Another buffer over the same memory.
pub(crate) fn view(name: &str, dtype: DType, size: i32, of: &Buffer) -> Buffer {
    Buffer::new(BufferNode::flat(
        name,
        of.data.clone(),
        dtype,
        vec![int(size)],
        Span::NONE,
    ))
}

pub(crate) fn alloc(buffer: &Buffer) -> Stmt {
    Stmt::new(StmtKind::AllocBuffer(buffer.clone(), vec![]), Span::NONE)
}

pub(crate) fn int(v: i32) -> Expr {
    Expr::int32(v)
}

pub(crate) fn uint(v: u32) -> Expr {
    Expr::constant(U32, v as i128)
}

pub(crate) fn float(v: f64) -> Expr {
    Expr::float(F32, v)
}

pub(crate) fn load(buffer: &Buffer, index: Expr) -> Expr {
    Expr::load(buffer, vec![index])
}

pub(crate) fn op(op: BinOp, a: Expr, b: Expr) -> Expr {
    Expr::binary(op, a, b)
}

pub(crate) fn lt(a: Expr, b: Expr) -> Expr {
    op(BinOp::Lt, a, b)
}

pub(crate) fn eq(a: Expr, b: Expr) -> Expr {
    op(BinOp::Eq, a, b)
}

pub(crate) fn rem(a: Expr, b: i32) -> Expr {
    op(BinOp::FloorMod, a, int(b))
}

pub(crate) fn div(a: Expr, b: i32) -> Expr {
    op(BinOp::FloorDiv, a, int(b))
}

pub(crate) fn call(op: Op, dtype: DType, args: Vec<Expr>) -> Expr {
    Expr::call(op, dtype, args)
}

pub(crate) fn seq(stmts: impl IntoIterator<Item = Stmt>) -> Stmt {
    Stmt::seq(stmts)
}

pub(crate) fn when(condition: Expr, then: impl IntoIterator<Item = Stmt>) -> Stmt {
    Stmt::if_else(condition, seq(then), None, Span::NONE)
}

pub(crate) fn choose(
    condition: Expr,
    then: impl IntoIterator<Item = Stmt>,
    other: impl IntoIterator<Item = Stmt>,
) -> Stmt {
    Stmt::if_else(condition, seq(then), Some(seq(other)), Span::NONE)
}

pub(crate) fn range(var: &Var, extent: Expr, body: impl IntoIterator<Item = Stmt>) -> Stmt {
    Stmt::new(
        StmtKind::For(ForLoop {
            var: var.clone(),
            min: int(0),
            extent,
            kind: ForKind::Serial,
            thread: None,
            annotations: vec![],
            step: None,
            body: seq(body),
        }),
        Span::NONE,
    )
}

pub(crate) fn repeat(condition: Expr, body: impl IntoIterator<Item = Stmt>, span: Span) -> Stmt {
    Stmt::new(StmtKind::While(condition, seq(body)), span)
}

pub(crate) fn address(buffer: &Buffer, index: Expr) -> Expr {
    Expr::call(Op::AddressOf, DType::HANDLE, vec![load(buffer, index)])
}

pub(crate) fn evaluate(e: Expr) -> Stmt {
    Stmt::evaluate(e)
}

pub(crate) fn bind(var: &Var, value: Expr) -> Stmt {
    Stmt::bind(var, value, Span::NONE)
}

pub(crate) fn jump(op: Op) -> Stmt {
    Stmt::evaluate(Expr::call(op, DType::VOID, vec![]))
}
