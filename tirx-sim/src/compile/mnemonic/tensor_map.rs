//! Tensor maps that a kernel changes: `tensormap.replace`, and the copy that publishes one.

use tirx_ir::intrin::Op;
use tirx_ir::intrin::mnemonic::InstructionCall;
use tirx_ir::{DType, Expr};
use tirx_source::diagnostic::{Result, error};

use super::super::Compiler;
use super::super::ptx_memory::moved;
use super::lanes::lane_id;
use super::simulated::reasons;
use super::{left, right};
use tirx_sim_machine::bytecode::{AsyncInst, Inst, Scope};
use tirx_sim_machine::numeric::Kind;
use tirx_sim_machine::tensor_map::field;

/// Types of elements as `tensormap.replace.tile.elemtype` numbers them, by their numbers in `CUtensorMapDataType`, which has
/// float64 and bfloat16 before the float32 whose denormals are zero.
const TYPES: [i128; 13] = [0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12];

impl Compiler<'_> {
    /// Writes a field of a map. The map is the simulator's own form, which the host has encoded.
    pub(super) fn replace_field(&mut self, call: &InstructionCall) -> Result<()> {
        let tokens = &call.tokens;
        let (map, value) = (
            self.named_operand(call, "addr")?,
            self.named_operand(call, "new_val")?,
        );
        let number = call.get("ord").and_then(Expr::as_int).unwrap_or(0) as u32;
        let known = value.as_int();
        let (at, kind, value) = match () {
            () if tokens.has("global_address") => (field::ADDRESS, Kind::U64, value.clone()),
            () if tokens.has("global_stride") => {
                let high = right(value.clone(), Expr::int32(32));
                self.write_field(map, field::HIGH_STRIDES + number, Kind::U8, &high)?;
                (field::STRIDES + 4 * number, Kind::U32, value.clone())
            }
            () if tokens.has("global_dim") => (field::DIMS + 4 * number, Kind::U32, value.clone()),
            () if tokens.has("box_dim") => (field::BOX_DIMS + number, Kind::U8, value.clone()),
            () if tokens.has("element_stride") => (field::ELEMENT_STRIDES + number, Kind::U8, value.clone()),
            // Counted from 0.
            () if tokens.has("rank") => {
                let one = Expr::constant(value.dtype, 1);
                (field::RANK, Kind::U8, value.clone() + one)
            }
            () if tokens.has("interleave_layout") => (field::INTERLEAVE, Kind::U8, value.clone()),
            () if tokens.has("swizzle_mode") => (field::SWIZZLE, Kind::U8, value.clone()),
            () if tokens.has("fill_mode") => (field::FILL, Kind::U8, value.clone()),
            () if tokens.has("elemtype") => {
                let ty = known.and_then(|value| usize::try_from(value).ok());
                let Some(ty) = ty.and_then(|ty| TYPES.get(ty)) else {
                    return error(
                        self.span,
                        "tensormap.replace: the type of the elements is a number up to 12",
                    );
                };
                (field::TYPE, Kind::U8, Expr::constant(DType::UINT32, *ty))
            }
            () => return self.refuse(call, &reasons::OPERANDS),
        };
        self.write_field(map, at, kind, &value)
    }

    fn write_field(&mut self, map: &Expr, at: u32, kind: Kind, value: &Expr) -> Result<()> {
        let value = self.value(value)?;
        let value = self.convert(value, kind)?;
        self.store_pointer(&moved(map, at), kind, &[value])
    }

    /// `tensormap.cp_fenceproxy`: the lanes of the warp copy a map together, and release it.
    pub(super) fn publish_map(&mut self, call: &InstructionCall) -> Result<()> {
        let (to, from) = (
            self.named_operand(call, "dst_mem")?,
            self.named_operand(call, "src_mem")?,
        );
        self.emit(Inst::WarpSync);
        let lane = lane_id();
        let word = |pointer: &Expr| {
            let bytes = left(lane.clone(), Expr::int32(2));
            match pointer.dtype == DType::UINT32 {
                true => pointer.clone() + bytes.cast(DType::UINT32),
                false => Expr::call(
                    Op::HandleAddByteOffset,
                    pointer.dtype,
                    vec![pointer.clone(), bytes],
                ),
            }
        };
        let value = self.load_pointer(&word(from), Kind::U32, 1)?;
        self.store_pointer(&word(to), Kind::U32, &value)?;
        self.emit(Inst::Fence {
            scope: Scope::from_modifier(call.tokens.get("scope")),
            sc: false,
        });
        // The lanes copy the map as one: each releases all of it.
        self.emit(Inst::WarpSync);
        self.push_async(AsyncInst::FenceMaps { acquires: false })
    }
}
