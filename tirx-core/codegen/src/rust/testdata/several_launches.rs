fn typed(stream: &::tirx_rt::Stream, a: &mut impl ::tirx_rt::AsTensorMut<f32>)
k::host(stream, &[::tirx_rt::host::Arg::tensor_mut(a)])

pub(super) fn host(stream: &::tirx_rt::Stream, args: &[::tirx_rt::host::Arg<'_>; 1]) -> Result<(), ::tirx_rt::Error> {
if args[0].ndim() != 1 { return Err(::tirx_rt::host::mismatch(KERNEL, 0, "a", "ndim", 1, args[0].ndim())); }
let n = args[0].shape(0) as i32;
if i64::from(n) != args[0].shape(0) { return Err(::tirx_rt::host::mismatch(KERNEL, 0, "a", "shape[0]", "at most 2147483647", args[0].shape(0))); }
if !args[0].strides_is_null() && n != 1 && args[0].stride(0) != 1 { return Err(::tirx_rt::host::mismatch(KERNEL, 0, "a", "strides[0]", 1, args[0].stride(0))); }
if n != 0 && args[0].data() == 0 { return Err(::tirx_rt::host::mismatch(KERNEL, 0, "a", "data", "a pointer", "null")); }
let a_ptr = args[0].data();
if !a_ptr.is_multiple_of(4) { return Err(::tirx_rt::host::mismatch(KERNEL, 0, "a", "data", "a multiple of 4", format_args!("{a_ptr:#x}"))); }
let _launching = ::tirx_rt::host::begin(stream, args, &["a"], KERNEL)?;
::tirx_rt::call_raw!(raw_two_kernel(stream, a_ptr, n))?;
for i in 0_i32..3 {
::tirx_rt::call_raw!(raw_two_kernel_1(stream, a_ptr, i, n))?;
}
if n > 3 {
::tirx_rt::call_raw!(raw_two_kernel_2(stream, a_ptr, n))?;
}
Ok(())
}

// two_kernel: a_ptr: device pointer to float32; n: int32
::tirx_rt::raw_launch! {
/*docs*/fn raw_two_kernel(stream: &::tirx_rt::Stream, a_ptr: u64, n: i32)
LOADED.launch(0, stream, &::tirx_rt::LaunchConfig { grid: [::tirx_rt::host::extent(KERNEL, "blockIdx.x", i64::from(n))?, 1, 1], ..::tirx_rt::LaunchConfig::default() }, &[a_ptr, u64::from(n.cast_unsigned())])
}

// two_kernel_1: a_ptr: device pointer to float32; i: int32; n: int32
::tirx_rt::raw_launch! {
/*docs*/fn raw_two_kernel_1(stream: &::tirx_rt::Stream, a_ptr: u64, i: i32, n: i32)
LOADED.launch(1, stream, &::tirx_rt::LaunchConfig { grid: [::tirx_rt::host::extent(KERNEL, "blockIdx.x", i64::from(n))?, 1, 1], ..::tirx_rt::LaunchConfig::default() }, &[a_ptr, u64::from(i.cast_unsigned()), u64::from(n.cast_unsigned())])
}

// two_kernel_2: a_ptr: device pointer to float32; n: int32
::tirx_rt::raw_launch! {
/*docs*/fn raw_two_kernel_2(stream: &::tirx_rt::Stream, a_ptr: u64, n: i32)
LOADED.launch(2, stream, &::tirx_rt::LaunchConfig { grid: [::tirx_rt::host::extent(KERNEL, "blockIdx.x", i64::from(n))?, 1, 1], ..::tirx_rt::LaunchConfig::default() }, &[a_ptr, u64::from(n.cast_unsigned())])
}
