//! Keys of function attributes, and the tags and numbers that are their values.

/// Attribute of a device function: the launch parameters by tag.
pub const KERNEL_LAUNCH_PARAMS: &str = "tirx.kernel_launch_params";
/// The tag of the dynamic shared memory size, in bytes; always the last.
pub const DYNAMIC_SHARED_MEMORY: &str = "tirx.use_dyn_shared_memory";
/// The flag of a programmatic dependent launch (the name is TVM's).
pub const PROGRAMMATIC_LAUNCH: &str = "tirx.use_programtic_dependent_launch";
/// The flag of a cooperative launch.
pub const COOPERATIVE_LAUNCH: &str = "tirx.use_cooperative_launch";
/// The second argument of `__launch_bounds__`.
pub const MIN_BLOCKS_PER_SM: &str = "tirx.launch_bounds_min_blocks_per_sm";
/// The third argument of `__launch_bounds__`.
pub const MAX_BLOCKS_PER_CLUSTER: &str = "tirx.launch_bounds_max_blocks_per_cluster";
/// The registers that a thread may use.
pub const MAX_REGISTERS: &str = "tirx.max_registers";
/// `calling_conv` of a device function.
pub const DEVICE_KERNEL_LAUNCH: i64 = 2;
/// Attribute of the region that binds a hardware index (`threadIdx.x`, …): its extent.
pub const THREAD_EXTENT: &str = "thread_extent";
/// Attribute of the region of a virtual thread, which is expanded for each of its values: its extent.
pub const VIRTUAL_THREAD: &str = "virtual_thread";
/// Attribute of a branch without `else` around one call, which is a predicate of the instruction (`pred=`): the operands may be
/// computed where it does not hold.
pub const PREDICATE: &str = "tirx.predicate";
/// Attribute of a region that runs on the GPU.
pub const DEVICE_ENTRY: &str = "tirx.device_entry";
