//! Small values of the language that are neither numbers nor IR: types, targets, references to metadata.

use std::any::Any;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::super::eval::{Interpreter, Object, Value};
use super::{convert, methods};
use crate::diagnostic::{Result, error};
use crate::ir::{AttrValue, Buffer, Type};
use crate::source::Span;

/// The type of an expression: `x.ty`, `T.handle().ty`.
pub(super) struct TypeValue(pub Type);

impl Object for TypeValue {
    fn type_name(&self) -> &str {
        "type"
    }

    fn attribute(&self, _interp: &mut Interpreter, name: &str, _span: Span) -> Result<Option<Value>> {
        Ok(match (name, &self.0) {
            // TVM's dtypes are texts; what an expression without a value has is the empty one.
            ("dtype", Type::Prim(dtype)) if dtype.is_void() => Some(Value::str("")),
            ("dtype", ty) => Some(Value::DType(ty.dtype())),
            ("storage_scope", Type::Pointer { scope, .. }) => Some(Value::str(&**scope)),
            ("element_type", Type::Pointer { element, .. }) => Some(Value::DType(*element)),
            _ => None,
        })
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other
            .as_any()
            .downcast_ref::<TypeValue>()
            .is_some_and(|o| o.0 == self.0)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// `buffer.ty`: what a buffer is, without its memory.
pub(super) struct BufferType(pub Buffer);

/// The fields of a buffer that belong to its type.
const TYPE_FIELDS: [&str; 7] = [
    "dtype",
    "shape",
    "strides",
    "elem_offset",
    "data_alignment",
    "offset_factor",
    "layout",
];

impl Object for BufferType {
    fn type_name(&self) -> &str {
        "buffer type"
    }

    fn attribute(&self, _interp: &mut Interpreter, name: &str, span: Span) -> Result<Option<Value>> {
        let known = TYPE_FIELDS.contains(&name);
        known.then(|| methods::buffer(&self.0, name, span)).transpose()
    }

    fn equals(&self, other: &dyn Object) -> bool {
        let Some(BufferType(other)) = other.as_any().downcast_ref() else {
            return false;
        };
        let parts = |b: &Buffer| (b.dtype, b.shape.clone(), b.strides.clone(), b.layout.clone());
        parts(&self.0) == parts(other)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The type that an object is; of a buffer's, that of its elements.
pub(super) fn as_type(object: &dyn Object) -> Option<Type> {
    let object = object.as_any();
    match object.downcast_ref::<BufferType>() {
        Some(BufferType(buffer)) => Some(Type::Prim(buffer.dtype)),
        None => object.downcast_ref::<TypeValue>().map(|t| t.0.clone()),
    }
}

/// The type that a value is: `x.ty`, or what `PrimType` and `PointerType` give, which are dtypes here.
pub(crate) fn type_of_value(value: &Value) -> Option<Type> {
    match value {
        Value::DType(dtype) => Some(Type::Prim(*dtype)),
        Value::Object(object) => object.as_any().downcast_ref::<TypeValue>().map(|t| t.0.clone()),
        _ => None,
    }
}

/// `T.target({...})`.
pub(super) struct TargetValue(pub BTreeMap<Arc<str>, AttrValue>);

impl Object for TargetValue {
    fn type_name(&self) -> &str {
        "target"
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other
            .as_any()
            .downcast_ref::<TargetValue>()
            .is_some_and(|o| o.0 == self.0)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The beginning of a string that refers to the metadata.
pub(super) const METADATA_STRING: &str = "metadata[\"tirx.StringImm\"][";

/// `metadata`: a table that TVM keeps beside printed IR and does not print. The text refers to an entry by kind and
/// number; for a string (message parts with line breaks) the reference stands for the string.
pub(super) enum Metadata {
    /// The table.
    Table,
    /// The strings in it.
    Strings,
}

impl Object for Metadata {
    fn type_name(&self) -> &str {
        "metadata"
    }

    fn subscript(&self, _interp: &mut Interpreter, index: &Value, span: Span) -> Result<Value> {
        match (self, index.as_str(), convert::const_int(index)) {
            (Metadata::Table, Some("tirx.StringImm"), _) => Ok(Value::Object(Rc::new(Metadata::Strings))),
            (Metadata::Strings, _, Some(i)) => Ok(Value::str(format!("{METADATA_STRING}{i}]"))),
            _ => error(span, "the text refers to metadata that is not part of it"),
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
