use super::*;

fn refused(text: &str) -> String {
    match Manifest::parse("kernels.toml", text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error.to_string(),
    }
}

const GOOD: &str = r#"
[defaults]
targets = ["sm_90a", "sm_100a"]
ptx = "compute_90"

[toolchain]
cuda = "13.0"
auto-install = true

[[kernel]]
name = "add"
source = "kernels/vector.py"
entry = "add"
specialize = [{ N = 256 }, { N = 1024, mode = "fast", eps = 1e-5, relu = true, tile = [8, 16] }]

[[kernel]]
name = "inline"
script = "pass"
targets = ["sm_80"]
require = true

[[kernel]]
name = "tensor_cores"
script = "pass"
targets = ["sm_90a"]
ptx = "none"
"#;

#[test]
fn reads_every_field() {
    let manifest = Manifest::parse("kernels.toml", GOOD).unwrap();
    assert_eq!(manifest.toolchain.cuda.unwrap().to_string(), "13.0");
    assert!(manifest.toolchain.auto_install);
    let add = &manifest.kernels[0];
    assert!(matches!(&add.text, Text::File(path) if path == "kernels/vector.py"));
    assert_eq!(add.entry.as_deref(), Some("add"));
    assert_eq!(add.targets.native.len(), 2);
    assert_eq!(add.targets.ptx.as_ref().unwrap().compute(), "compute_90");
    assert_eq!(add.specialize[0]["N"], ConstValue::Int(256));
    assert_eq!(add.specialize[1]["mode"], ConstValue::Str("fast".into()));
    assert!(!add.require);
    let inline = &manifest.kernels[1];
    assert_eq!(inline.targets.primary().to_string(), "sm_80");
    assert!(inline.require && matches!(inline.text, Text::Inline(_)));
    assert!(inline.targets.ptx.is_some() && manifest.kernels[2].targets.ptx.is_none());
}

#[test]
fn unknown_keys_are_refused_with_their_place() {
    let message = refused("[[kernel]]\nname = \"add\"\nsorce = \"a.py\"\n");
    assert!(message.contains("unknown key `sorce`"), "{message}");
    assert!(message.contains("--> kernels.toml:3:1"), "{message}");
    assert!(message.contains("did you mean `source`?"), "{message}");
    let message = refused("[toolchain]\nbanana = 1\n");
    assert!(
        message.contains("the keys here are `cuda`, `auto-install`"),
        "{message}"
    );
    let message = refused("[default]\n");
    assert!(
        message.contains("did you mean `defaults`?") && message.contains(":1:2"),
        "{message}"
    );
}

#[test]
fn syntax_and_type_errors_have_their_place() {
    let message = refused("[defaults\n");
    assert!(message.contains("kernels.toml:1:"), "{message}");
    let message = refused("[toolchain]\ncuda = 13\n");
    assert!(
        message.contains("`cuda` is a string, found `13`")
            && message.contains("write it as `cuda = \"13.0\"`"),
        "{message}"
    );
    assert!(message.contains("kernels.toml:2:8"), "{message}");
    let message = refused("[[kernel]]\nsource = \"a.py\"\n");
    assert!(
        message.contains("missing key `name`") && message.contains(":1:1"),
        "{message}"
    );
}

#[test]
fn duplicate_names_point_at_both() {
    let kernel = "[[kernel]]\nname = \"add\"\nsource = \"a.py\"\ntargets = [\"sm_90a\"]\n";
    let message = refused(&format!("{kernel}{kernel}"));
    assert!(message.contains("kernel `add` is declared twice"), "{message}");
    assert!(message.contains("kernels.toml:6:8"), "{message}");
    assert!(
        message.contains("note: the first is here") && message.contains("kernels.toml:2:8"),
        "{message}"
    );
}

#[test]
fn names_must_be_rust_identifiers() {
    for (name, expected) in [
        ("my-add", "use for example `my_add`"),
        ("Add", "use for example `add`"),
        ("2d", "lower-case letters"),
        ("match", "it is a Rust keyword"),
        ("", "lower-case letters"),
    ] {
        let message = refused(&format!(
            "[[kernel]]\nname = \"{name}\"\nsource = \"a.py\"\ntargets = [\"sm_90a\"]\n"
        ));
        assert!(
            message.contains("cannot be a kernel's name") && message.contains(expected),
            "{message}"
        );
    }
}

#[test]
fn targets_are_checked_and_all_errors_reported_at_once() {
    let message = refused(
        "[defaults]\ntargets = [\"sm90a\", \"gpu\"]\nptx = \"sm_90\"\n[toolchain]\ncuda = \"latest\"\n\
         [[kernel]]\nname = \"a\"\nsource = \"a.py\"\nscript = \"\"\n[[kernel]]\nname = \"b\"\nsource = \"a.py\"\n\
         tvm = \"0.25\"\n",
    );
    for part in [
        "unknown architecture `sm90a`",
        "did you mean `sm_90a`?",
        "unknown architecture `gpu`",
        "unknown architecture `sm_90`",
        "`latest` is no CUDA release",
        "`0.25` is no release of TVM",
        "both `source` and `script`",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(refused("[[kernel]]\nname = \"a\"\nsource = \"a.py\"\n").contains("names no targets"));
    assert!(refused("[[kernel]]\nname = \"a\"\ntargets = [\"sm_90a\"]\n").contains("has no text"));
    assert!(refused("[[kernel]]\nname=\"a\"\nsource=\"/a.py\"\ntargets=[\"sm_90a\"]\n").contains("relative"));
}

#[test]
fn specializations_are_checked() {
    let head = "[[kernel]]\nname = \"a\"\nsource = \"a.py\"\ntargets = [\"sm_90a\"]\n";
    assert!(refused(&format!("{head}specialize = []\n")).contains("is empty"));
    let twice = refused(&format!("{head}specialize = [{{ N = 1 }}, {{ N = 1 }}]\n"));
    assert!(
        twice.contains("this specialization twice") && twice.contains(":5:26"),
        "{twice}"
    );
    assert!(
        refused(&format!("{head}specialize = [{{ N = 2026-01-01 }}]\n")).contains("cannot be a compile-time")
    );
}

#[test]
fn the_table_of_keys_is_what_is_read() {
    // The keys that the reader accepts, by section.
    for (section, head) in [
        ("", ""),
        ("defaults", "[defaults]\n"),
        ("toolchain", "[toolchain]\n"),
        ("bundle", "[bundle]\n"),
        ("kernel", "[[kernel]]\n"),
        ("kernel.tune", "[[kernel]]\nname = \"a\"\n[kernel.tune]\n"),
    ] {
        let text = format!("{head}zzzzzzzzzzzz = 1\n");
        let mistake = document::read::<RawManifest>(&text).err().unwrap();
        let crate::document::MistakeKind::Unknown { known, .. } = mistake.kind else {
            panic!("{mistake}");
        };
        let mut known = known.to_vec();
        let mut listed: Vec<&str> = keys::KEYS
            .iter()
            .filter(|key| key.section == section)
            .map(|key| key.name)
            .collect();
        known.sort_unstable();
        listed.sort_unstable();
        assert_eq!(known, listed, "[{section}]");
    }
}

/// `UPDATE_EXPECT=1` writes the page anew.
#[test]
fn the_reference_page_is_the_table() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/kernels-toml.md");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&page, keys::reference()).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(&page).unwrap_or_default(),
        keys::reference()
    );
}

#[test]
fn grids_are_every_combination() {
    let head = "[[kernel]]\nname = \"a\"\nsource = \"a.py\"\ntargets = [\"sm_90a\"]\n";
    let manifest = Manifest::parse(
        "kernels.toml",
        &format!("{head}specialize-grid = {{ N = [1, 2], dtype = [\"float16\", \"float32\"] }}\n"),
    )
    .unwrap();
    assert_eq!(manifest.kernels[0].specialize.len(), 4);
    assert_eq!(
        manifest.kernels[0].specialize[1]["dtype"],
        ConstValue::Str("float32".into())
    );
    for (grid, said) in [
        ("{ N = 4 }", "`N` of `specialize-grid` is no list of values"),
        ("{ N = [] }", "`N` of `specialize-grid` has no values"),
        ("{ N = [2026-01-01] }", "`N` cannot be a compile-time value"),
        ("{ N = [1, 1] }", "has a specialization twice"),
    ] {
        let message = refused(&format!("{head}specialize-grid = {grid}\n"));
        assert!(message.contains(said), "{message}");
    }
}

const TUNED: &str = "[[kernel]]\nname = \"a\"\nsource = \"a.py\"\ntargets = [\"sm_90a\"]\n[kernel.tune]\n";

#[test]
fn candidates_are_the_combinations_that_the_predicate_keeps() {
    let text = format!(
        "{TUNED}values = {{ TILE = [256, 128], MODE = [\"a\\\"\", \"ä\"], FAST = [true, false] }}\n\
         predicate = \"TILE < 200 or MODE == 'a\\\"' and FAST\"\nsizes = [{{ n = 1000, m = 0 }}, {{ n = 5, m = 7 }}]\n\
         [[kernel]]\nname = \"b\"\nsource = \"a.py\"\ntargets = [\"sm_90a\"]\n"
    );
    let manifest = Manifest::parse("kernels.toml", &text).unwrap();
    let kernel = &manifest.kernels[0];
    let shown: Vec<String> = (kernel.specialize.iter())
        .map(|values| crate::generate::value_text(&ConstValue::List(values.values().cloned().collect())))
        .collect();
    let expected = [
        "[true, \"a\\\"\", 256]",
        "[true, \"a\\\"\", 128]",
        "[true, \"ä\", 128]",
        "[false, \"a\\\"\", 128]",
        "[false, \"ä\", 128]",
    ];
    assert_eq!(shown, expected);
    let tune = kernel.tune.as_ref().unwrap();
    assert_eq!(tune.names, ["m", "n"]);
    assert_eq!(tune.points, [[0, 1000], [7, 5]]);
    assert!(manifest.kernels[1].tune.is_none());
}

#[test]
fn mistakes_in_tune_are_reported_with_their_fix() {
    let good = "values = { TILE = [256, 128] }\nsizes = [{ n = 1 }]\n";
    for (rest, message, help) in [
        (
            "sizes = [{ n = 1 }]\n",
            "missing key `values`",
            "for example `values = {",
        ),
        (
            "values = {}\nsizes = [{ n = 1 }]\n",
            "`values` of kernel `a` is empty",
            "at least one parameter",
        ),
        (
            "values = { TILE = [] }\nsizes = [{ n = 1 }]\n",
            "`TILE` of `values` has no values",
            "`TILE = [256, 512]`",
        ),
        (
            "values = { TILE = 128 }\nsizes = [{ n = 1 }]\n",
            "`TILE` of `values` is no list",
            "`TILE = [256, 512]`",
        ),
        (
            "values = { TILE = [128, \"64\"] }\nsizes = [{ n = 1 }]\n",
            "the values of `TILE` are of different types: a number and a string",
            "values of one type",
        ),
        (
            "values = { TILE = [1] }\nsizes = []\n",
            "`sizes` of kernel `a` is empty",
            "`sizes = [{ n = 1000 }",
        ),
        (
            "values = { TILE = [1] }\nsizes = [{}]\n",
            "`sizes` of kernel `a` is empty",
            "`sizes = [{ n = 1000 }",
        ),
        (
            "values = { TILE = [1] }\nsizes = [{ n = -1 }]\n",
            "`n` of `sizes` is no size",
            "write them as",
        ),
        (
            "values = { TILE = [1] }\nsizes = [{ n = 1.5 }]\n",
            "`n` of `sizes` is no size",
            "write them as",
        ),
        (
            "values = { TILE = [1] }\nsizes = [{ n = 1 }, { m = 1 }]\n",
            "name different sizes: n and m",
            "every table gives all sizes",
        ),
        (
            "values = { TILE = [1] }\nsizes = [{ n = 1 }, { n = 1 }]\n",
            "has a point twice",
            "remove one of them",
        ),
        (
            &format!("{good}predicate = \"TILE > 1000\"\n"),
            "`predicate` of kernel `a` excludes all 2 combinations",
            "it is true for",
        ),
        (
            &format!("{good}predicate = \"TILE\"\n"),
            "it gives a number, not a truth value",
            "over TILE",
        ),
        (
            &format!("{good}predicate = \"TIL > 1\"\n"),
            "`predicate` of kernel `a`: ",
            "over TILE",
        ),
        (
            &format!("{good}predicate = \"TILE >\"\n"),
            "`predicate` of kernel `a`: ",
            "over TILE",
        ),
        (
            &format!("{good}tile = 3\n"),
            "unknown key `tile`",
            "the keys here are `values`",
        ),
    ] {
        let text = refused(&format!("{TUNED}{rest}"));
        assert!(text.contains(message) && text.contains(help), "{rest}: {text}");
        assert!(text.contains("kernels.toml:"), "{text}");
    }
    let both = refused(&format!(
        "{}{good}",
        TUNED.replace("[kernel.tune]", "specialize = [{ N = 1 }]\n[kernel.tune]")
    ));
    assert!(
        both.contains("both specializations and `[kernel.tune]`"),
        "{both}"
    );
}
