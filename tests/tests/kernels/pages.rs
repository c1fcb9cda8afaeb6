//! The kernels of the documentation's pages compute on the simulator what Rust computes.
//!
//! Each goes from text through the whole pipeline; its host function's IR checks the arguments and asks for the
//! launches, as a generated launcher does.

use std::fmt::Debug;

use half::f16;
use tirx_core::ir::DType;
use tirx_sim::host::{self, Argument};
use tirx_sim::{Allocation, Memory, Program, StandIns};
use tirx_tests::files::filetest;
use tirx_tests::{Case, Defines, build, constant, stages};

/// An element of a tensor.
trait Element: Copy + PartialEq + Debug {
    const DTYPE: DType;
    fn bytes(self) -> Vec<u8>;
    fn from_bytes(bytes: &[u8]) -> Self;
}

macro_rules! elements {
    ($($ty:ty: $dtype:ident),*) => {$(
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
            fn bytes(self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }
            fn from_bytes(bytes: &[u8]) -> $ty {
                <$ty>::from_le_bytes(bytes.try_into().unwrap())
            }
        }
    )*};
}

elements!(f32: FLOAT32, f16: FLOAT16, i32: INT32);

/// A kernel of a page and what it is called with.
struct PageCall {
    page: &'static str,
    kernel: &'static str,
    defines: Defines,
    memory: Memory,
    tensors: Vec<Allocation>,
    arguments: Vec<Argument>,
    stand_ins: StandIns,
}

impl PageCall {
    fn new(page: &'static str, kernel: &'static str) -> PageCall {
        PageCall {
            page,
            kernel,
            defines: Defines::new(),
            memory: Memory::new(),
            tensors: Vec::new(),
            arguments: Vec::new(),
            stand_ins: StandIns::new(),
        }
    }

    fn define(mut self, name: &str, value: &str) -> PageCall {
        self.defines.insert(name.into(), constant(value));
        self
    }

    /// A compact tensor.
    fn tensor<T: Element>(self, shape: &[i64], values: &[T]) -> PageCall {
        assert_eq!(shape.iter().product::<i64>() as usize, values.len());
        self.view(shape, 0, values)
    }

    /// A tensor of `shape` whose first element is `offset` elements into storage that may be larger.
    fn view<T: Element>(mut self, shape: &[i64], offset: u64, storage: &[T]) -> PageCall {
        let bytes: Vec<u8> = storage.iter().flat_map(|v| v.bytes()).collect();
        let allocation = self.memory.alloc(bytes.len());
        allocation.write(0, &bytes);
        self.arguments.push(Argument::Tensor {
            dtype: T::DTYPE,
            shape: shape.to_vec(),
            address: allocation.address(),
            byte_offset: offset * T::DTYPE.bytes() as u64,
        });
        self.tensors.push(allocation);
        self
    }

    fn scalar(mut self, argument: Argument) -> PageCall {
        self.arguments.push(argument);
        self
    }

    fn stand_in(
        mut self,
        name: &str,
        function: impl Fn(&mut tirx_sim::StandInCall) -> Result<u64, String> + Send + Sync + 'static,
    ) -> PageCall {
        self.stand_ins.register(name, function);
        self
    }

    /// Runs the kernel as a launcher would.
    fn run(self) -> Result<Ran, String> {
        let path = filetest(self.page).map_err(|e| e.to_string())?;
        let case = Case::read(&path)?;
        let modules = build(self.page, &case.text, &[self.kernel], &self.defines)?;
        let (_, module) = &modules[0];
        let (_, func) = &module.functions[0];
        let names: Vec<String> = func.params.iter().map(|p| p.name().to_string()).collect();
        let lowered = stages(module, "sm_90a", &mut |_, _| Ok(()))?;
        host::run(&lowered, &names, &self.arguments, &mut |launch| {
            let program =
                Program::compile(&lowered, &launch.symbol).map_err(|e| e.render(&lowered.sources))?;
            let (args, _maps) = launch.arguments_in(&self.memory);
            let config = tirx_sim::Launch {
                grid: launch.grid,
                block: launch.block,
                cluster: launch.cluster,
                shared_bytes: launch.shared_bytes,
                args: &args,
                peers: &[],
            };
            let stats = program.launch(&self.memory, &config, &self.stand_ins);
            stats.map(|_| ()).map_err(|fault| fault.to_string())
        })?;
        Ok(Ran(self.tensors))
    }

    /// Runs the kernel and compares its last tensor with what is expected.
    fn gives<T: Element>(self, expected: &[T]) {
        let kernel = self.kernel;
        let ran = self.run().unwrap_or_else(|message| panic!("{kernel}: {message}"));
        assert_eq!(ran.tensor::<T>(ran.0.len() - 1), expected, "{kernel}");
    }

    /// Runs the kernel, which must fail with a message that contains `text`.
    fn fails(self, text: &str) {
        let kernel = self.kernel;
        match self.run() {
            Ok(_) => panic!("{kernel}: no error"),
            Err(message) => assert!(message.contains(text), "{kernel}: {message}"),
        }
    }
}

/// What a run left in memory.
struct Ran(Vec<Allocation>);

impl Ran {
    fn tensor<T: Element>(&self, index: usize) -> Vec<T> {
        let mut bytes = vec![0; self.0[index].len()];
        self.0[index].read(0, &mut bytes);
        bytes.chunks_exact(T::DTYPE.bytes()).map(T::from_bytes).collect()
    }
}

/// Numbers without a pattern that a wrong index would preserve.
fn numbers(count: usize) -> Vec<f32> {
    (0..count)
        .map(|i| ((i * i * 7 + i * 13) % 251) as f32 - 125.0)
        .collect()
}

fn collect<T>(count: usize, value: impl FnMut(usize) -> T) -> Vec<T> {
    (0..count).map(value).collect()
}

#[test]
fn functions_and_parameters() {
    let a = numbers(256);
    let out = [0f32; 256];
    for kernel in ["handles", "buffers", "launch_bounds"] {
        let call = PageCall::new("page_functions", kernel);
        call.tensor(&[256], &a).tensor(&[256], &out).gives(&a);
    }
    PageCall::new("page_functions", "scal")
        .tensor(&[256], &a)
        .tensor(&[256], &out)
        .scalar(Argument::Float(3.0))
        .gives(&collect(256, |i| a[i] * 3.0));
    PageCall::new("scale", "scale")
        .tensor(&[256], &a)
        .tensor(&[256], &out)
        .gives(&collect(256, |i| a[i] * 2.0));
    let b = numbers(300)[44..].to_vec();
    PageCall::new("page_functions_jit", "add")
        .define("N", "256")
        .tensor(&[256], &a)
        .tensor(&[256], &b)
        .tensor(&[256], &out)
        .gives(&collect(256, |i| a[i] + b[i]));
}

#[test]
fn one_kernel_for_any_size() {
    for n in [1usize, 100, 200] {
        let a = numbers(n);
        for (page, kernel) in [("page_functions", "scale_dyn"), ("page_launches", "merged")] {
            PageCall::new(page, kernel)
                .tensor(&[n as i64], &a)
                .tensor(&[n as i64], &vec![0f32; n])
                .gives(&collect(n, |i| a[i] * 2.0));
        }
    }
}

#[test]
fn arguments_are_checked_before_the_launch() {
    let a = numbers(256);
    let scale_dyn = || PageCall::new("page_functions", "scale_dyn");
    scale_dyn()
        .tensor(&[100], &a[..100])
        .tensor(&[200], &a[..200])
        .fails("argument 1 `B`: shape[0] is 200, expected 100");
    scale_dyn()
        .tensor(&[16, 16], &a)
        .tensor(&[256], &a)
        .fails("argument 0 `A`: ndim is 2, expected 1");
    scale_dyn()
        .tensor(&[256], &[1i32; 256])
        .tensor(&[256], &a)
        .fails("dtype");
    PageCall::new("page_functions", "handles")
        .tensor(&[255], &a[..255])
        .tensor(&[256], &a)
        .fails("shape[0] is 255, expected 256");
}

#[test]
fn scope_ids_and_clusters() {
    PageCall::new("page_functions", "grid")
        .tensor(&[6, 128], &[-1i32; 6 * 128])
        .gives(&collect(6 * 128, |i| (i % 128) as i32));
    PageCall::new("page_launches", "clusters")
        .tensor(&[8, 32], &[-1i32; 8 * 32])
        .gives(&collect(8 * 32, |i| (i / 64 * 100 + i / 32 % 2) as i32));
    PageCall::new("page_launches", "scope_ids")
        .tensor(&[3, 5, 128], &[-1i32; 3 * 5 * 128])
        .gives(&collect(3 * 5 * 128, |i| (i % 128 / 32 * 1000 + i % 32) as i32));
    PageCall::new("page_launches", "warpgroups")
        .tensor(&[256], &[-1i32; 256])
        .gives(&collect(256, |i| {
            (i / 128 * 10000 + i / 32 % 4 * 100 + i % 32) as i32
        }));
    let a = numbers(256);
    PageCall::new("page_launches", "bounded")
        .tensor(&[256], &a)
        .gives(&collect(256, |i| a[i] + 1.0));
}

#[test]
fn the_four_address_forms() {
    let a = numbers(32);
    let call = |kernel| PageCall::new("page_memory", kernel).tensor(&[4, 8], &a);
    call("row_major")
        .tensor(&[4, 8], &[0f32; 32])
        .gives(&collect(32, |i| a[i] + 1.0));
    // Element (i, j) lies at j * 4 + i.
    call("column_major")
        .tensor(&[4, 8], &[0f32; 32])
        .gives(&collect(32, |at| a[at % 4 * 8 + at / 4] + 1.0));
    call("shifted")
        .view(&[4, 8], 64, &[-7f32; 96])
        .gives(&collect(96, |at| if at < 64 { -7.0 } else { a[at - 64] + 1.0 }));
    // Element (i, j) lies at i * 16 + j.
    call("row_stride")
        .view(&[4, 8], 0, &[-7f32; 56])
        .gives(&collect(56, |at| {
            if at % 16 < 8 {
                a[at / 16 * 8 + at % 16] + 1.0
            } else {
                -7.0
            }
        }));
    call("shifted").tensor(&[4, 8], &[0f32; 32]).fails("byte_offset");
}

#[test]
fn registers_and_scalars() {
    let a = numbers(128);
    let sums = collect(32, |i| a[i * 4] + a[i * 4 + 1] + a[i * 4 + 2] + a[i * 4 + 3]);
    for kernel in ["registers", "explicit_scalar", "scalar"] {
        PageCall::new("page_memory", kernel)
            .tensor(&[32, 4], &a)
            .tensor(&[32], &[0f32; 32])
            .gives(&sums);
    }
    PageCall::new("page_storage", "scalars")
        .tensor(&[64], &[0i32; 64])
        .gives(&collect(64, |i| i as i32 * 3 + 1001));
    PageCall::new("page_storage", "lane_registers")
        .tensor(&[32, 8], &[0f32; 256])
        .gives(&collect(256, |i| i as f32));
}

#[test]
fn immutable_bindings() {
    for m in [0, 7, -5] {
        let half = i32::div_euclid(m, 2);
        PageCall::new("page_memory", "let")
            .tensor(&[32], &[0i32; 32])
            .scalar(Argument::Int(m.into()))
            .gives(&[half + m * 2; 32]);
    }
    let a = collect(50, |i| i as i32 * 31 % 17);
    for m in [3, -3] {
        let half = i32::div_euclid(m * 50, 2);
        PageCall::new("page_storage", "lets")
            .tensor(&[50], &a)
            .tensor(&[50], &[0i32; 50])
            .scalar(Argument::Int(m.into()))
            .gives(&collect(50, |i| a[i] + half * 4));
    }
}

#[test]
fn pointers_vectors_and_views() {
    let a = numbers(256);
    PageCall::new("page_memory", "pointers")
        .tensor(&[32], &a[..32])
        .tensor(&[32], &[0f32; 32])
        .stand_in("ld", |call| {
            let bytes = call.read::<4>(call.bits(0))?;
            Ok(u32::from_le_bytes(bytes).into())
        })
        .gives(&a[..32]);
    PageCall::new("page_memory", "vectors")
        .tensor(&[256], &a)
        .tensor(&[256], &[0f32; 256])
        .gives(&a);
    // Element (i, j) of the transposed matrix is (j, i) of the matrix.
    PageCall::new("page_memory", "views")
        .tensor(&[16, 16], &a)
        .tensor(&[32], &[0f32; 32])
        .gives(&collect(32, |t| a[t * 4] + a[t * 4 + 3] + a[16 + t % 16]));
    PageCall::new("page_storage", "permuted")
        .tensor(&[4, 8], &a[..32])
        .tensor(&[8, 4], &[0f32; 32])
        .gives(&collect(32, |i| a[i % 4 * 8 + i / 4]));
    let ran = PageCall::new("page_storage", "slices")
        .tensor(&[8, 8], &a[..64])
        .tensor(&[8, 8], &[0f32; 64])
        .tensor(&[64], &a[64..128])
        .run()
        .unwrap();
    let swapped = collect(64, |i| a[i / 8 * 8 + (i + 4) % 8]);
    assert_eq!(ran.tensor::<f32>(1), swapped);
    assert_eq!(
        ran.tensor::<f32>(2),
        collect(64, |i| if i < 8 { 5.0 } else { a[64 + i] })
    );
}

#[test]
fn shared_memory() {
    let halves = |count: usize| collect(count, |i| f16::from_f32(((i * 37) % 101) as f32 / 8.0));
    let a = halves(64);
    PageCall::new("page_memory", "shared")
        .tensor(&[64], &a)
        .gives(&collect(64, |i| a[63 - i]));
    let a = halves(256);
    PageCall::new("page_storage", "declared")
        .tensor(&[16, 16], &a)
        .tensor(&[16, 16], &[0f32; 256])
        .gives(&collect(256, |i| {
            (0..4).map(|k| a[i % 16 * 16 + k].to_f32()).sum::<f32>()
        }));
    let a = numbers(256);
    PageCall::new("page_storage", "pooled")
        .tensor(&[256], &a)
        .tensor(&[256], &[0f32; 256])
        .gives(&collect(256, |i| a[255 - i] + (i % 3) as f32));
}

#[test]
fn warps_blocks_and_raw_functions() {
    PageCall::new("page_intrinsics", "warp_reduce")
        .tensor(&[32], &[0f32; 32])
        .gives(&[496f32; 32]);
    let a = numbers(256);
    PageCall::new("page_intrinsics", "relu")
        .tensor(&[256], &a)
        .tensor(&[256], &[0f32; 256])
        .stand_in("my_relu", |call| Ok(call.f32(0).max(0.0).to_bits().into()))
        .gives(&collect(256, |i| a[i].max(0.0)));
    // Whole numbers: the order of the sum does not matter.
    PageCall::new("page_synchronization", "block_sum")
        .tensor(&[128], &a[..128])
        .tensor(&[128], &[0f32; 128])
        .gives(&[a[..128].iter().sum::<f32>(); 128]);
    // Mirrored within warps, within warpgroups, within the block.
    let mirrored = |i: usize| {
        let u = 255 - i;
        let t = u / 128 * 128 + 127 - u % 128;
        (t / 32 * 32 + 31 - t % 32) as i32
    };
    PageCall::new("page_synchronization", "barriers")
        .tensor(&[256], &[0i32; 256])
        .gives(&collect(256, mirrored));
}
