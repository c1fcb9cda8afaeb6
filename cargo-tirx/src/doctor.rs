//! `cargo tirx doctor`: what a build here finds, what it uses and why, and what is missing.

use std::path::{Path, PathBuf};
use std::process::Command;

use tirx_build::manifest::Manifest;
use tirx_build::target::Targets;
use tirx_build::toolchain::{self, Search};
use tirx_build::{BundleAction, Environment, build_script_declares_kernels, store};

use crate::failure::{Result, user};
use crate::output::{Output, counted, out};

#[derive(clap::Args, Debug)]
pub(crate) struct Doctor {
    /// The manifest.
    #[arg(long, value_name = "PATH", default_value = "kernels.toml")]
    manifest: PathBuf,
}

/// Variables that change what a build does.
const VARIABLES: [&str; 17] = [
    "TIRX_NVCC",
    "NVCC",
    "CUDA_HOME",
    "CUDA_PATH",
    "TIRX_OFFLINE",
    "TIRX_LOCKED",
    "TIRX_PYTHON",
    "TIRX_CACHE_DIR",
    "TIRX_STORE",
    "TIRX_STORE_LIMIT",
    "TIRX_NVCC_TIMEOUT",
    "TIRX_NVCC_WRAPPER",
    "TIRX_DUMP",
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
    "CARGO_NET_OFFLINE",
    "CC",
];

/// The report, and the problems that keep a build from making machine code.
#[derive(Default)]
struct Report {
    text: String,
    missing: Vec<String>,
}

impl Report {
    fn line(&mut self, what: &str, text: impl AsRef<str>) {
        let mut lines = text.as_ref().lines();
        let first = lines.next().unwrap_or_default();
        self.text.push_str(&format!("{what:<12}{first}\n"));
        for line in lines {
            self.text.push_str(&format!("{:<12}{line}\n", ""));
        }
    }
}

pub(crate) fn run(command: &Doctor, _: &Output) -> Result<()> {
    let environment = Environment::process();
    let mut report = Report::default();
    report.line("tirx", env!("CARGO_PKG_VERSION"));
    let manifest = manifest(&command.manifest, &mut report);
    let bundled = bundle(&command.manifest, manifest.as_ref(), &mut report);
    nvcc(&environment, manifest.as_ref(), bundled, &mut report);
    match toolchain::gpus(&environment) {
        Ok(gpus) => {
            let gpus: Vec<String> = gpus
                .iter()
                .map(|gpu| format!("{} (compute capability {})", gpu.name, gpu.capability))
                .collect();
            report.line("GPU", gpus.join("\n"));
        }
        Err(reason) => report.line(
            "GPU",
            format!("none: {reason}; programs here run kernels on the simulator"),
        ),
    }
    report.line("python", python(&environment));
    report.line("packages", packages(&environment));
    report.line("C compiler", compiler(&environment));
    match toolchain::cache_dir(&environment) {
        Some(place) => report.line("cache", format!("`{}`", place.display())),
        None => report.line("cache", "none: set TIRX_CACHE_DIR or HOME"),
    }
    match store::shared_dir(&environment) {
        Some(place) => report.line("store", format!("`{}`", place.display())),
        None => report.line("store", "none: every package compiles for itself"),
    }
    let set: Vec<String> = VARIABLES
        .iter()
        .filter_map(|name| Some(format!("{name}={}", environment.get(name)?.to_string_lossy())))
        .collect();
    match set.is_empty() {
        true => report.line("variables", "none that a build looks at"),
        false => report.line("variables", set.join("\n")),
    }
    out(&report.text)?;
    match report.missing.is_empty() {
        true => out("\nnothing is missing\n"),
        false => Err(user(report.missing.join("\n"))),
    }
}

fn manifest(path: &Path, report: &mut Report) -> Option<Manifest> {
    let shown = path.to_string_lossy().replace('\\', "/");
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            report.line("manifest", format!("none: `{shown}` cannot be read: {error}"));
            return None;
        }
    };
    match Manifest::parse(&shown, &text) {
        Ok(manifest) => {
            let pin = match manifest.toolchain.cuda {
                Some(pin) => format!("pins CUDA {pin}"),
                None => "pins no CUDA release".to_string(),
            };
            let install = match manifest.toolchain.auto_install {
                true => "a build may fetch it",
                false => "a build fetches nothing",
            };
            let targets: std::collections::BTreeSet<String> = manifest
                .kernels
                .iter()
                .flat_map(|kernel| Targets::each(&kernel.targets))
                .map(|(target, _)| target)
                .collect();
            let targets: Vec<String> = targets.into_iter().collect();
            report.line(
                "manifest",
                format!(
                    "`{shown}`: {} for {}; {pin}, {install}",
                    counted(manifest.kernels.len(), "kernel"),
                    targets.join(", ")
                ),
            );
            Some(manifest)
        }
        Err(error) => {
            report.line("manifest", format!("`{shown}` is wrong"));
            report.missing.push(error.to_string().replacen("error: ", "", 1));
            None
        }
    }
}

/// Whether there is a bundle that fits the manifest.
fn bundle(path: &Path, manifest: Option<&Manifest>, report: &mut Report) -> bool {
    let Some(manifest) = manifest else { return false };
    let folder = path.parent().unwrap_or(Path::new(""));
    let place = folder.join(
        manifest
            .bundle
            .as_deref()
            .unwrap_or(tirx_build::bundle::DEFAULT_NAME),
    );
    if !place.exists() && manifest.bundle.is_none() {
        report.line("bundle", format!("none at `{}`", place.display()));
        return false;
    }
    if crate::bundle::package(path).is_some_and(|package| build_script_declares_kernels(&package)) {
        report.line(
            "bundle",
            format!(
                "`{}`, with kernels of the build script: `cargo tirx bundle --locked` checks whether it is up to date",
                place.display()
            ),
        );
        return place.exists();
    }
    match crate::dependencies::builder(path).bundle(BundleAction::Locked, false, "") {
        Ok(bundle) => {
            report.line(
                "bundle",
                format!(
                    "`{}`: up to date, {} by nvcc {}; builds here need no nvcc",
                    bundle.path.display(),
                    counted(bundle.kernels.len(), "kernel"),
                    bundle.nvcc
                ),
            );
            true
        }
        Err(error) => {
            let text = error.to_string();
            report.line("bundle", text.trim_start_matches("error: "));
            false
        }
    }
}

fn nvcc(environment: &Environment, manifest: Option<&Manifest>, bundled: bool, report: &mut Report) {
    let pin = manifest.and_then(|manifest| manifest.toolchain.cuda);
    let needs = manifest.and_then(|manifest| {
        let needs = manifest
            .kernels
            .iter()
            .filter_map(|kernel| kernel.targets.most_demanding());
        needs.max_by_key(|(_, version)| *version)
    });
    let search = Search {
        environment,
        pin,
        needs,
        prefixes: None,
    };
    if environment.get("TIRX_NVCC").is_some_and(|value| value == "none") {
        report.line(
            "nvcc",
            "none, for TIRX_NVCC is `none`: builds make kernels for the simulator",
        );
        return;
    }
    let mut lines = Vec::new();
    let mut used = false;
    for candidate in toolchain::survey(&search) {
        match &candidate.verdict {
            Ok(_) if !used => {
                used = true;
                lines.push(format!("{}: used, as the first that fits", candidate.shown));
            }
            Ok(_) => lines.push(format!("{}: not used, as another comes first", candidate.shown)),
            Err(reason) => lines.push(format!("{}: not used: {reason}", candidate.shown)),
        }
    }
    if lines.is_empty() {
        lines.push("none was found".to_string());
    }
    report.line("nvcc", lines.join("\n"));
    if !used && !bundled {
        let option = pin.map_or(String::new(), |pin| format!(" --cuda {pin}"));
        report.missing.push(format!(
            "no nvcc that a build here can use: kernels run on the simulator only\n  = help: run `cargo tirx toolchain \
             install{option}`, set TIRX_NVCC to the nvcc to use, or bring a bundle (`cargo tirx bundle` on a machine with nvcc)"
        ));
    }
}

/// The first line that a program prints, if it runs.
fn answer(program: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().next().unwrap_or_default().trim().to_string();
    output.status.success().then_some(line)
}

fn python(environment: &Environment) -> String {
    const NEED: &str = "only `cargo tirx toolchain install` and `auto-install` need it";
    let Some(python) = toolchain::python(environment) else {
        return format!("none on PATH; {NEED}");
    };
    let shown = python.display();
    match (
        answer(&python, &["--version"]),
        answer(&python, &["-m", "pip", "--version"]),
    ) {
        (None, _) => format!("`{shown}` does not run; {NEED}"),
        (Some(version), Some(_)) => format!("`{shown}` ({version}), with pip"),
        (Some(version), None) => {
            format!("`{shown}` ({version}), without pip: a virtual environment brings it")
        }
    }
}

/// Where pip would fetch nvcc from, and under whose terms.
fn packages(environment: &Environment) -> String {
    const PASSED_ON: [&str; 9] = [
        "PIP_INDEX_URL",
        "PIP_EXTRA_INDEX_URL",
        "PIP_FIND_LINKS",
        "PIP_NO_INDEX",
        "PIP_CONFIG_FILE",
        "PIP_PROXY",
        "PIP_CERT",
        "HTTPS_PROXY",
        "https_proxy",
    ];
    let set = PASSED_ON
        .into_iter()
        .filter_map(|name| Some((name, environment.get(name)?)))
        .map(|(name, value)| format!("{name}={}", without_password(&value.to_string_lossy())));
    let from: Vec<String> = set.collect();
    let from = match from.is_empty() {
        true => "as pip is configured (PIP_INDEX_URL, PIP_FIND_LINKS and HTTPS_PROXY name a mirror or proxy)"
            .to_string(),
        false => format!("with {}", from.join(", ")),
    };
    format!(
        "exact versions, their hashes checked, fetched {from};\nnvcc is NVIDIA's, under the licence that its packages carry; \
         tirx contains nothing of it"
    )
}

/// A URL without the user's name and password, which a report is not to show.
fn without_password(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let end = rest.find('/').unwrap_or(rest.len());
            match rest[..end].rfind('@') {
                Some(at) => format!("{scheme}://…{}", &rest[at..]),
                None => url.to_string(),
            }
        }
        None => url.to_string(),
    }
}

fn compiler(environment: &Environment) -> String {
    let name = environment.path("CC").unwrap_or_else(|| PathBuf::from("cc"));
    match answer(&name, &["--version"]) {
        Some(version) => format!("`{}` ({version})", name.display()),
        None => format!(
            "`{}` does not run; only the C interface (`Builder::c_api`) needs it",
            name.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_is_named_without_its_password() {
        assert_eq!(
            without_password("https://me:secret@mirror.example/simple?a=b@c"),
            "https://…@mirror.example/simple?a=b@c"
        );
        assert_eq!(
            without_password("https://mirror.example/a@b"),
            "https://mirror.example/a@b"
        );
        assert_eq!(without_password("/wheels"), "/wheels");
    }
}
