//! A throw-away package, and an nvcc that is a shell script.

use std::fs;
use std::path::{Path, PathBuf};

use tirx_build::{Builder, Environment, Error, Report};
use tirx_test_tools::stand_in;

/// A package with a manifest and kernels, and a place for outputs.
pub(crate) struct Package(tempfile::TempDir);

impl Package {
    /// With the fixtures.
    pub(crate) fn new() -> Package {
        let package = Package(tempfile::tempdir().unwrap());
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        for file in ["kernels.toml", "kernels.py"] {
            fs::copy(fixtures.join(file), package.path(file)).unwrap();
        }
        fs::create_dir(package.path("out")).unwrap();
        package
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        fs::write(self.path(file), text).unwrap();
    }

    pub(crate) fn read(&self, file: &str) -> Vec<u8> {
        fs::read(self.path(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
    }

    pub(crate) fn text(&self, file: &str) -> String {
        String::from_utf8(self.read(file)).unwrap()
    }

    /// Replaces a text in a file.
    pub(crate) fn edit(&self, file: &str, from: &str, to: &str) {
        let text = self.text(file);
        assert!(text.contains(from), "{from} is not in {file}");
        self.write(file, &text.replacen(from, to, 1));
    }

    /// An nvcc of this release that writes its arguments and a checksum of the text as the one PTX entry of a fat binary, and into `runs`.
    pub(crate) fn nvcc(&self, release: &str) -> PathBuf {
        self.nvcc_that(release, "")
    }

    /// As [`nvcc`](Package::nvcc), after running further commands.
    pub(crate) fn nvcc_that(&self, release: &str, more: &str) -> PathBuf {
        let runs = self.path("runs");
        let commands = format!("echo \"$*\" >> '{}'\n{more}", runs.display());
        stand_in::nvcc(self.path("nvcc"), release, &commands)
    }

    /// How often nvcc compiled so far.
    pub(crate) fn runs(&self) -> usize {
        fs::read_to_string(self.path("runs")).map_or(0, |text| text.lines().count())
    }

    pub(crate) fn script(&self, body: &str) -> PathBuf {
        stand_in::script(self.path("nvcc"), body)
    }

    pub(crate) fn builder(&self, environment: Environment) -> Builder {
        Builder::new()
            .manifest(self.path("kernels.toml"))
            .out_dir(self.path("out"))
            .environment(environment.with("TIRX_CACHE_DIR", self.path("cache")))
            .prefixes(Vec::new())
    }

    pub(crate) fn build(&self, environment: Environment) -> Result<Report, Error> {
        self.builder(environment).build()
    }

    /// Builds with an nvcc that works.
    pub(crate) fn with_nvcc(&self) -> Report {
        let nvcc = self.nvcc("13.0");
        self.build(Environment::empty().with("TIRX_NVCC", nvcc)).unwrap()
    }

    pub(crate) fn refused(&self) -> String {
        self.build(Environment::empty().with("TIRX_NVCC", "none"))
            .unwrap_err()
            .to_string()
    }
}

/// The warnings of a build.
pub(crate) fn warnings(report: &Report) -> Vec<&String> {
    report
        .directives
        .iter()
        .filter(|line| line.starts_with("cargo::warning="))
        .collect()
}
