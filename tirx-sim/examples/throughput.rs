//! Lane operations per second on one core: a shared-memory tiled float32 matrix product, as its kernel text lowers.
//!
//! ```text
//! cargo run --release -p tirx-sim --example throughput [N [repetitions]]
//! ```

use std::time::Instant;

use tirx_core::intrin::Op;
use tirx_core::ir::{
    AttrNode, Buffer, BufferNode, DType, Expr, IRModule, IterKind, IterVar, PrimFunc, Stmt, StmtKind, Type,
    Var,
};
use tirx_core::source::{SourceMap, Span};
use tirx_sim::{Launch, LaunchOptions, Memory, Program, StandIns};

/// Edge of a tile and of a block.
const TILE: i32 = 16;

fn int(v: i32) -> Expr {
    Expr::int32(v)
}

fn buffer(name: &str, size: i32, scope: &str) -> Buffer {
    let data = Var::new(format!("{name}_ptr"), Type::pointer(DType::FLOAT32, scope));
    let node = BufferNode::flat(name, data, DType::FLOAT32, vec![int(size)], Span::NONE);
    Buffer::new(node)
}

fn load(buffer: &Buffer, index: Expr) -> Expr {
    Expr::load(buffer, vec![index])
}

fn store(buffer: &Buffer, index: Expr, value: Expr) -> Stmt {
    Stmt::store(buffer, vec![index], value, Span::NONE)
}

/// `C = A @ B` for `n` by `n` matrices: the final device function of the tiled kernel.
fn matmul(n: i32) -> IRModule {
    let tensors: Vec<Buffer> = ["A", "B", "C"]
        .iter()
        .map(|t| buffer(t, n * n, "global"))
        .collect();
    let axes: Vec<(&str, i32, Var)> = [
        ("blockIdx.x", n / TILE),
        ("threadIdx.x", TILE),
        ("blockIdx.y", n / TILE),
        ("threadIdx.y", TILE),
    ]
    .into_iter()
    .map(|(tag, extent)| (tag, extent, Var::new(tag.replace('.', "_"), DType::INT32)))
    .collect();
    let [bx, tx, by, ty] = [0, 1, 2, 3].map(|i: usize| Expr::var(&axes[i].2));
    let (shared_a, shared_b) = (
        buffer("As", TILE * TILE, "shared"),
        buffer("Bs", TILE * TILE, "shared"),
    );
    let acc = buffer("acc", 1, "local");
    let (k, kk) = (Var::new("k", DType::INT32), Var::new("kk", DType::INT32));
    let (row, column, in_row, in_tile) = (
        Var::new("row", DType::INT32),
        Var::new("column", DType::INT32),
        Var::new("in_row", DType::INT32),
        Var::new("in_tile", DType::INT32),
    );
    let v = Expr::var;
    let sync = || Stmt::evaluate(Expr::call(Op::CudaCtaSync, DType::VOID, vec![]));
    let alloc = |b: &Buffer| Stmt::new(StmtKind::AllocBuffer(b.clone(), vec![]), Span::NONE);
    let bind = |var: &Var, value: Expr| Stmt::bind(var, value, Span::NONE);
    let zero = || int(0);
    let product = load(&shared_a, v(&in_row) + v(&kk)) * load(&shared_b, v(&kk) * int(TILE) + tx.clone());
    let inner = store(&acc, zero(), load(&acc, zero()) + product);
    let global_a = v(&row) + v(&k) * int(TILE) + tx.clone();
    let global_b = v(&k) * int(TILE * n) + ty.clone() * int(n) + v(&column) + tx.clone();
    let body = Stmt::seq([
        alloc(&shared_a),
        alloc(&shared_b),
        alloc(&acc),
        store(&acc, zero(), Expr::float(DType::FLOAT32, 0.0)),
        bind(&row, by * int(TILE * n) + ty.clone() * int(n)),
        bind(&column, bx * int(TILE)),
        bind(&in_row, ty * int(TILE)),
        bind(&in_tile, v(&in_row) + tx.clone()),
        Stmt::for_serial(
            &k,
            int(n / TILE),
            Stmt::seq([
                store(&shared_a, v(&in_tile), load(&tensors[0], global_a)),
                store(&shared_b, v(&in_tile), load(&tensors[1], global_b)),
                sync(),
                Stmt::for_serial(&kk, int(TILE), inner, Span::NONE),
                sync(),
            ]),
            Span::NONE,
        ),
        store(&tensors[2], v(&row) + v(&column) + tx, load(&acc, zero())),
    ]);
    let body = axes.iter().rev().fold(body, |body, (tag, extent, var)| {
        let node = AttrNode::IterVar(IterVar {
            var: var.clone(),
            dom: None,
            kind: IterKind::ThreadIndex,
            thread_tag: (*tag).into(),
        });
        Stmt::attr(node, "thread_extent", int(*extent), body, Span::NONE)
    });
    let func = PrimFunc {
        params: tensors.iter().map(|t| t.data.clone()).collect(),
        buffer_map: Vec::new(),
        ret: None,
        attrs: Default::default(),
        body,
        span: Span::NONE,
    };
    IRModule::single("matmul", func, SourceMap::new())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let n: i32 = args.next().map_or(Ok(256), |a| a.parse())?;
    let repetitions: u32 = args.next().map_or(Ok(5), |a| a.parse())?;
    let module = matmul(n);
    let program = Program::compile(&module, "matmul")?;
    let memory = Memory::new();
    let bytes = (n * n) as usize * 4;
    let tensors = [memory.alloc(bytes), memory.alloc(bytes), memory.alloc(bytes)];
    for (seed, tensor) in tensors[..2].iter().enumerate() {
        for i in 0..(n * n) as usize {
            let value = ((i * 7 + seed * 3) % 11) as f32 - 5.0;
            tensor.write(i * 4, &value.to_le_bytes());
        }
    }
    let args: Vec<u64> = tensors.iter().map(|t| t.address()).collect();
    let blocks = (n / TILE) as u32;
    let launch = Launch {
        grid: [blocks, blocks, 1],
        block: [TILE as u32, TILE as u32, 1],
        cluster: [1, 1, 1],
        shared_bytes: 0,
        args: &args,
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    for check_races in [true, false] {
        let options = LaunchOptions {
            check_races,
            ..LaunchOptions::default()
        };
        let mut best = f64::MAX;
        let mut lane_ops = 0;
        for _ in 0..repetitions {
            let start = Instant::now();
            let stats = pool.install(|| program.launch_with(&memory, &launch, &StandIns::new(), &options))?;
            best = best.min(start.elapsed().as_secs_f64());
            lane_ops = stats.lane_ops;
        }
        println!(
            "{n}x{n} matmul, one thread, race check {}: {:.1} ms, {:.2e} lane operations per second, {:.2e} multiply-adds per second",
            if check_races { "on" } else { "off" },
            best * 1e3,
            lane_ops as f64 / best,
            (n as f64).powi(3) / best,
        );
    }
    Ok(())
}
