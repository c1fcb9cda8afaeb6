//! The forms of `cvt`, each with operands in a register, in a local and in a shared array.

use std::collections::BTreeMap;

use tirx_core::intrin::convert::{self, Format};
use tirx_core::ir::{Expr, Var};

use tirx_tests::nvcc::nvcc;

use super::{TARGETS, refused_by_nvcc};

/// Kernels that convert values of registers, of a local and of a shared array by turns, for one target.
fn conversions(forms: &[(String, Vec<&'static Format>, &'static Format)]) -> String {
    const CARRIERS: [&str; 10] = [
        "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32", "float64",
    ];
    let parameters = CARRIERS.map(|c| format!("O_{c}: T.Buffer((64,), \"{c}\")"));
    let mut text = format!(
        "@T.prim_func\ndef k({}):\n    T.device_entry()\n    bx = T.cta_id([1])\n    tx = T.thread_id([32])\n",
        parameters.join(", ")
    );
    for c in CARRIERS {
        text.push_str(&format!(
            "    s_{c} = T.alloc_shared((32,), \"{c}\")\n    l_{c} = T.alloc_local((2,), \"{c}\")\n    s_{c}[tx] = O_{c}[tx]\n    \
             l_{c}[0] = O_{c}[tx]\n    l_{c}[1] = O_{c}[tx]\n    r_{c}: T.{c} = O_{c}[tx]\n"
        ));
    }
    for (i, (call, operands, to)) in forms.iter().enumerate() {
        let place = |f: &&Format| match i % 3 {
            0 => format!("r_{}", f.carrier),
            1 => format!("l_{}[tx % 2]", f.carrier),
            _ => format!("s_{}[tx]", f.carrier),
        };
        let values: Vec<String> = operands.iter().map(place).collect();
        let call = call.replace("VALUES", &values.join(", "));
        text.push_str(&format!("    O_{}[tx] = {call}\n", to.carrier));
    }
    text
}

/// Each form of `cvt` is taken by nvcc for the targets that have it, and refused by the compiler for all others.
#[test]
fn each_form_of_cvt_is_taken_where_it_is() {
    const RELEASE: (u32, u32) = (13, 0);
    let mut by_target: BTreeMap<usize, Vec<_>> = BTreeMap::new();
    let mut later = 0;
    for (to, from, values, rounding, flags) in convert::forms() {
        let [to, from] = [to, from].map(|name| Format::named(name).unwrap());
        let value = |f: &Format| Expr::var(&Var::new("x", f.carrier));
        let (random, scaled) = (rounding == "rs", flags.contains(&"scaled"));
        let mut args: Vec<Expr> = (0..values).map(|_| value(from)).collect();
        args.extend(random.then(|| value(Format::named("u32").unwrap())));
        args.extend(scaled.then(|| value(Format::named("u16").unwrap())));
        args.extend([values as i32, random.into(), scaled.into()].map(Expr::int32));
        args.extend([to.name, from.name, rounding].map(Expr::string));
        args.extend(["ftz", "sat", "relu", "satfinite"].map(|f| Expr::int32(flags.contains(&f).into())));
        args.push(Expr::string(if scaled { "n2::ue8m0" } else { "" }));
        let Ok(conversion) = convert::Conversion::from_args(&args) else {
            continue;
        };
        if conversion.release > RELEASE {
            later += 1;
            continue;
        }
        let mut call = format!(
            "T.ptx.cvt(\"{}\", VALUES, atype=\"{}\", rounding=\"{rounding}\"",
            to.name, from.name
        );
        flags
            .iter()
            .filter(|f| **f != "scaled")
            .for_each(|f| call.push_str(&format!(", {f}=True")));
        if random {
            call.push_str(", rbits=r_uint32");
        }
        call.push(')');
        let target = TARGETS
            .iter()
            .position(|t| conversion.arch.holds(t.parse().expect("a known GPU")))
            .unwrap();
        by_target
            .entry(target)
            .or_default()
            .push((call, vec![from; values], to));
    }
    assert_eq!(later, 70, "forms of CUDA 13.1 and 13.2");
    let nvcc = nvcc();
    for (target, forms) in &by_target {
        let target = TARGETS[*target];
        let refused = |nvcc| refused_by_nvcc(nvcc, &conversions(forms), target);
        if let Some(message) = nvcc.as_ref().and_then(refused) {
            panic!("{target}:\n{message}");
        }
    }
    // Refused below, at the call.
    let narrow = conversions(&by_target[&(TARGETS.len() - 1)][..1]);
    let error = tirx_tests::cuda_text("k.py", &narrow, "k", &Default::default(), "sm_90a").unwrap_err();
    assert!(
        error.contains("`T.ptx.cvt` of this form needs sm_100a"),
        "{error}"
    );
}
