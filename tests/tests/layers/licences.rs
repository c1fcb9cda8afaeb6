//! Crates from elsewhere: `deny.toml` must accept their licences and sources.

use std::process::Command;

use tirx_tests::root;

/// Whether a licence expression holds with these licences: `A OR B`, `A AND B`, brackets, `A/B` of old manifests.
fn accepted(expression: &str, allowed: &[&str]) -> bool {
    let expression = expression.replace('/', " OR ");
    // Brackets from the inside out: each is replaced by what it comes to.
    let mut expression = format!("({expression})");
    while let Some(close) = expression.find(')') {
        let open = expression[..close].rfind('(').unwrap();
        let holds = expression[open + 1..close].split(" OR ").any(|all| {
            all.split(" AND ")
                .all(|one| one.trim() == "yes" || allowed.contains(&one.trim()))
        });
        expression.replace_range(open..=close, if holds { "yes" } else { "no" });
    }
    expression == "yes"
}

#[test]
fn dependencies_have_licences_and_sources_that_are_accepted() {
    let deny = std::fs::read_to_string(root().join("deny.toml")).unwrap();
    let deny: toml::Table = deny.parse().unwrap();
    let allowed: Vec<&str> = deny["licenses"]["allow"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|licence| licence.as_str())
        .collect();
    assert!(accepted("(MIT OR Apache-2.0) AND Unicode-3.0", &allowed));
    assert!(!accepted("(GPL-3.0 OR LGPL-3.0) AND MIT", &allowed));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = Command::new("rustc").arg("-vV").output().unwrap();
    let target = String::from_utf8(target.stdout).unwrap();
    let host = target
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap();
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--offline",
            "--format-version",
            "1",
            "--filter-platform",
            host,
        ])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut refused = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let licence = package["license"].as_str().unwrap_or("none");
        let source = package["source"].as_str().unwrap_or("registry+ here");
        if !accepted(licence, &allowed) || !source.starts_with("registry+") {
            refused.push(format!("{}: {licence}, from {source}", package["name"]));
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
}
