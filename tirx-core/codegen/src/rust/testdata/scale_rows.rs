fn typed(stream: &::tirx_rt::Stream, a: &impl ::tirx_rt::AsTensor<::tirx_rt::f16>, b: &mut impl ::tirx_rt::AsTensorMut<::tirx_rt::f16>, s: ::tirx_rt::f16, k: i32, flag: bool)
k::host(stream, &[::tirx_rt::host::Arg::tensor(a), ::tirx_rt::host::Arg::tensor_mut(b), ::tirx_rt::host::Arg::float(f64::from(s)), ::tirx_rt::host::Arg::int(i64::from(k)), ::tirx_rt::host::Arg::bool(flag)])

pub(super) fn host(stream: &::tirx_rt::Stream, args: &[::tirx_rt::host::Arg<'_>; 5]) -> Result<(), ::tirx_rt::Error> {
let s = ::tirx_rt::f16::from_f64(args[2].as_f64());
let k = args[3].as_i64() as i32;
let flag = args[4].as_i64() != 0;
if args[0].ndim() != 2 { return Err(::tirx_rt::host::mismatch(KERNEL, 0, "a", "ndim", 2, args[0].ndim())); }
let n = args[0].shape(0) as i32;
if i64::from(n) != args[0].shape(0) { return Err(::tirx_rt::host::mismatch(KERNEL, 0, "a", "shape[0]", "at most 2147483647", args[0].shape(0))); }
let dev_id = args[0].device_id();
if args[1].ndim() != 2 { return Err(::tirx_rt::host::mismatch(KERNEL, 1, "b", "ndim", 2, args[1].ndim())); }
if !args[0].strides_is_null() {
if args[0].stride(1) != 1 { return Err(::tirx_rt::host::mismatch(KERNEL, 0, "a", "strides[1]", 1, args[0].stride(1))); }
if n != 1 && args[0].stride(0) != 4 { return Err(::tirx_rt::host::mismatch(KERNEL, 0, "a", "strides[0]", 4, args[0].stride(0))); }
}
if !::tirx_rt::host::Wide::from(i64::from(n)).mul(::tirx_rt::host::Wide::from(4_i64)).equals(::tirx_rt::host::Wide::from(0_i64)) && args[0].data() == 0 { return Err(::tirx_rt::host::mismatch(KERNEL, 0, "a", "data", "a pointer", "null")); }
if !args[1].strides_is_null() {
if args[1].stride(1) != 1 { return Err(::tirx_rt::host::mismatch(KERNEL, 1, "b", "strides[1]", 1, args[1].stride(1))); }
if !::tirx_rt::host::Wide::from(i64::from(n)).mul(::tirx_rt::host::Wide::from(2_i64)).equals(::tirx_rt::host::Wide::from(1_i64)) && args[1].stride(0) != 4 { return Err(::tirx_rt::host::mismatch(KERNEL, 1, "b", "strides[0]", 4, args[1].stride(0))); }
}
if dev_id != args[1].device_id() { return Err(::tirx_rt::host::mismatch(KERNEL, 1, "b", "device_id", format_args!("{dev_id} (a.device_id)"), args[1].device_id())); }
if !::tirx_rt::host::Wide::from(i64::from(n)).mul(::tirx_rt::host::Wide::from(2_i64)).mul(::tirx_rt::host::Wide::from(4_i64)).equals(::tirx_rt::host::Wide::from(0_i64)) && args[1].data() == 0 { return Err(::tirx_rt::host::mismatch(KERNEL, 1, "b", "data", "a pointer", "null")); }
if args[0].shape(1) != 4 { return Err(::tirx_rt::host::mismatch(KERNEL, 0, "a", "shape[1]", 4, args[0].shape(1))); }
if !::tirx_rt::host::Wide::from(i64::from(n)).mul(::tirx_rt::host::Wide::from(2_i64)).equals(::tirx_rt::host::Wide::from(args[1].shape(0))) { return Err(::tirx_rt::host::mismatch(KERNEL, 1, "b", "shape[0]", format_args!("{} (a.shape[0] * 2)", ::tirx_rt::host::Wide::from(i64::from(n)).mul(::tirx_rt::host::Wide::from(2_i64))), args[1].shape(0))); }
if args[1].shape(1) != 4 { return Err(::tirx_rt::host::mismatch(KERNEL, 1, "b", "shape[1]", 4, args[1].shape(1))); }
let a_ptr = args[0].data();
if !a_ptr.is_multiple_of(2) { return Err(::tirx_rt::host::mismatch(KERNEL, 0, "a", "data", "a multiple of 2", format_args!("{a_ptr:#x}"))); }
if !::tirx_rt::host::Wide::from(i64::from(n)).mul(::tirx_rt::host::Wide::from(4_i64)).at_most(::tirx_rt::host::Wide::from(2147483647_i64)) { return Err(::tirx_rt::host::mismatch(KERNEL, 0, "a", "shape", "at most 2147483647 elements, which int32 indices reach", ::tirx_rt::host::Wide::from(i64::from(n)).mul(::tirx_rt::host::Wide::from(4_i64)))); }
let b_ptr = args[1].data();
if !b_ptr.is_multiple_of(2) { return Err(::tirx_rt::host::mismatch(KERNEL, 1, "b", "data", "a multiple of 2", format_args!("{b_ptr:#x}"))); }
if !::tirx_rt::host::Wide::from(i64::from(n)).mul(::tirx_rt::host::Wide::from(2_i64)).mul(::tirx_rt::host::Wide::from(4_i64)).at_most(::tirx_rt::host::Wide::from(2147483647_i64)) { return Err(::tirx_rt::host::mismatch(KERNEL, 1, "b", "shape", "at most 2147483647 elements, which int32 indices reach", ::tirx_rt::host::Wide::from(i64::from(n)).mul(::tirx_rt::host::Wide::from(2_i64)).mul(::tirx_rt::host::Wide::from(4_i64)))); }
let _launching = ::tirx_rt::host::begin(stream, args, &["a", "b", "s", "k", "flag"], KERNEL)?;
::tirx_rt::call_raw!(raw(stream, a_ptr, b_ptr, flag, k, n, s))?;
Ok(())
}

// scale_rows_kernel: a_ptr: device pointer to float16; b_ptr: device pointer to float16; flag: bool; k: int32; n: int32; s: float16
::tirx_rt::raw_launch! {
/*docs*/fn raw(stream: &::tirx_rt::Stream, a_ptr: u64, b_ptr: u64, flag: bool, k: i32, n: i32, s: ::tirx_rt::f16)
LOADED.launch(0, stream, &::tirx_rt::LaunchConfig { grid: [::tirx_rt::host::launch_extent(KERNEL, "blockIdx.x", ::tirx_rt::host::Wide::from(i64::from(n)).add(::tirx_rt::host::Wide::from(255_i64)).floor_div(::tirx_rt::host::Wide::from(256_i64)), "(n + 255) // 256", &[("n", ::tirx_rt::host::Wide::from(i64::from(n)))])?, 1, 1], block: [256, 1, 1], ..::tirx_rt::LaunchConfig::default() }, &[a_ptr, b_ptr, u64::from(flag), u64::from(k.cast_unsigned()), u64::from(n.cast_unsigned()), u64::from(s.to_bits())])
}
