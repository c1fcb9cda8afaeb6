//! Rust names of specializations: `n256`, `n256_m64`, `mode_fast`.

use std::collections::BTreeMap;

use tirx_core::codegen::rust::snake_case;
use tirx_core::script::ConstValue;

/// The name by which generated code calls the crate `tirx-rt`, in every module.
pub(crate) const RUN_TIME: &str = "tirx_rt";

/// The name of a specialization. `order` gives the parameters in the kernel's order; values of others follow in the
/// alphabet's.
pub(crate) fn specialization(order: &[String], values: &BTreeMap<String, ConstValue>) -> String {
    let known = order.iter().filter_map(|name| values.get_key_value(name));
    let rest = values.iter().filter(|(name, _)| !order.contains(name));
    let parts: Vec<String> = known.chain(rest).map(|(name, value)| part(name, value)).collect();
    free(parts.join("_"))
}

/// The name, if generated code does not use it for something else.
fn free(name: String) -> String {
    match name == RUN_TIME {
        true => name + "_",
        false => name,
    }
}

/// The name of one of several kernels of an entry: the kernel file's name in characters that Rust allows.
pub(crate) fn result(name: &str) -> String {
    let word: String = name
        .chars()
        .map(|c| if c.is_alphanumeric() || c == '_' { c } else { '_' })
        .collect();
    let word = snake_case(&word);
    if word.starts_with(|c: char| c.is_ascii_digit()) || word.is_empty() {
        return format!("k{word}");
    }
    free(word)
}

fn part(name: &str, value: &ConstValue) -> String {
    let name = snake_case(name);
    let name = name.trim_end_matches('_');
    let word = word(value);
    // `n256`, but `k1_2` and `mode_fast`: digits after digits and words after words would run together.
    let close = word.starts_with(|c: char| c.is_ascii_digit())
        && !name.ends_with(|c: char| c.is_ascii_digit())
        && matches!(value, ConstValue::Int(_));
    if close {
        format!("{name}{word}")
    } else {
        format!("{name}_{word}")
    }
}

fn word(value: &ConstValue) -> String {
    match value {
        ConstValue::None => "none".to_string(),
        ConstValue::Bool(v) => v.to_string(),
        ConstValue::Int(v) if *v < 0 => format!("neg{}", v.unsigned_abs()),
        ConstValue::Int(v) => v.to_string(),
        ConstValue::Float(v) => sanitize(&format!("{v:?}").replace('-', "neg")),
        ConstValue::Str(v) => sanitize(v),
        ConstValue::List(items) => items.iter().map(word).collect::<Vec<_>>().join("_"),
        ConstValue::Dict(items) => {
            let parts: Vec<String> = items.iter().map(|(name, value)| part(name, value)).collect();
            parts.join("_")
        }
    }
}

fn sanitize(text: &str) -> String {
    let mut word = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            word.push(c.to_ascii_lowercase());
        } else if !word.ends_with('_') {
            word.push('_');
        }
    }
    word.trim_matches('_').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specializations_have_readable_names() {
        let name = |values: &[(&str, ConstValue)]| {
            let order = ["N".to_string(), "M".to_string()];
            let values = values.iter().map(|(k, v)| (k.to_string(), v.clone())).collect();
            specialization(&order, &values)
        };
        assert_eq!(name(&[("N", ConstValue::Int(256))]), "n256");
        assert_eq!(
            name(&[("M", ConstValue::Int(64)), ("N", ConstValue::Int(256))]),
            "n256_m64"
        );
        assert_eq!(name(&[("k1", ConstValue::Int(2))]), "k1_2");
        assert_eq!(name(&[("off", ConstValue::Int(-3))]), "off_neg3");
        assert_eq!(
            name(&[("mode", ConstValue::Str("fast-math!".into()))]),
            "mode_fast_math"
        );
        assert_eq!(name(&[("relu", ConstValue::Bool(true))]), "relu_true");
        assert_eq!(name(&[("eps", ConstValue::Float(1e-5))]), "eps_1eneg5");
        assert_eq!(name(&[("eps", ConstValue::Float(0.5))]), "eps_0_5");
        let tile = ConstValue::List(vec![ConstValue::Int(8), ConstValue::Int(16)]);
        assert_eq!(name(&[("tile", tile)]), "tile_8_16");
    }
}
