//! Runs the files of `kernels/`; their directives are documented at the top of `tests/src/lib.rs`.
//!
//! The trials of a file share its kernels: each is built once, and lowered once for each GPU.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use tirx_core::codegen::cuda;
use tirx_core::ir::IRModule;
use tirx_core::script::print;
use tirx_tests::files::filetests;
use tirx_tests::unit::BATCH;
use tirx_tests::{Case, RoundTrips, Test, messages, nvcc, skip_test, stages};

/// A file of right kernels: its trials share the loaded kernels and their texts.
struct File {
    case: Case,
    kernels: OnceLock<Result<Vec<Kernel>, String>>,
    texts: Vec<Arc<CudaText>>,
}

/// A kernel of a file.
struct Kernel {
    name: String,
    module: Result<IRModule, String>,
    /// For each GPU that a directive names.
    lowered: BTreeMap<String, OnceLock<Lowered>>,
}

/// A kernel lowered for a GPU.
struct Lowered {
    module: Result<IRModule, String>,
    /// Whether the module prints and parses back after every pass; checked for the file's own GPU.
    round_trips: Result<(), String>,
    /// The printed module after each pass whose output a text gives.
    after: BTreeMap<String, String>,
}

/// The CUDA text of a kernel that nvcc gets.
struct CudaText {
    path: PathBuf,
    kernel: String,
    arch: String,
    text: OnceLock<Result<String, String>>,
}

impl File {
    fn new(case: Case, kernels: &[String]) -> File {
        let archs = case.tests.iter().filter_map(compiled_for);
        let text = |arch: &str, kernel: &String| {
            Arc::new(CudaText {
                path: case.path.clone(),
                kernel: kernel.clone(),
                arch: arch.into(),
                text: OnceLock::new(),
            })
        };
        let texts = archs.flat_map(|arch| kernels.iter().map(move |kernel| text(arch, kernel)));
        File {
            texts: texts.collect(),
            case,
            kernels: OnceLock::new(),
        }
    }

    fn kernels(&self) -> Result<&[Kernel], String> {
        let kernels = self.kernels.get_or_init(|| self.build());
        kernels.as_deref().map_err(String::clone)
    }

    fn build(&self) -> Result<Vec<Kernel>, String> {
        let mut archs = vec![self.case.arch.clone()];
        archs.extend(
            self.case
                .tests
                .iter()
                .filter_map(compiled_for)
                .map(str::to_string),
        );
        // A mistake in the lines of the runs is reported by the trials that run.
        for run in self.case.runs().unwrap_or_default() {
            archs.extend(run.archs(&self.case.arch).map(str::to_string));
        }
        let lowered = || archs.iter().map(|arch| (arch.clone(), OnceLock::new())).collect();
        let kernel = |(name, module)| Kernel {
            name,
            module,
            lowered: lowered(),
        };
        Ok(self.case.build_each()?.into_iter().map(kernel).collect())
    }

    fn kernel(&self, name: &str) -> Result<&Kernel, String> {
        let mut kernels = self.kernels()?.iter();
        let found = kernels.find(|kernel| kernel.name == name);
        found.ok_or_else(|| format!("there is no kernel {name}"))
    }

    fn lowered<'a>(&self, kernel: &'a Kernel, arch: &str) -> Result<&'a Lowered, String> {
        let module = kernel.module.as_ref().map_err(String::clone)?;
        let lowered = kernel.lowered.get(arch);
        let lowered = lowered.ok_or_else(|| format!("no directive names {arch}"))?;
        Ok(lowered.get_or_init(|| self.lower(module, arch)))
    }

    fn lower(&self, module: &IRModule, arch: &str) -> Lowered {
        let (mut after, mut trips, mut round_trips) = (BTreeMap::new(), RoundTrips::default(), Ok(()));
        let own = arch == self.case.arch;
        let asked = |pass: &str| {
            own && self
                .case
                .tests
                .iter()
                .any(|test| matches!(test, Test::Lower(of) if of == pass))
        };
        let module = stages(module, arch, &mut |pass, module| {
            if own && round_trips.is_ok() {
                round_trips = trips
                    .check(module)
                    .map_err(|error| format!("after {pass}: {error}"));
            }
            if asked(pass) {
                after.insert(pass.to_string(), print(module));
            }
            Ok(())
        });
        Lowered {
            module,
            round_trips,
            after,
        }
    }

    /// The CUDA text of a kernel; nvcc gets it later.
    fn cuda(&self, kernel: &Kernel, arch: &str) -> Result<String, String> {
        let emitted = || {
            let lowered = self
                .lowered(kernel, arch)?
                .module
                .as_ref()
                .map_err(String::clone)?;
            let source = cuda::emit(lowered).map_err(|e| format!("{}: {e}", kernel.name))?;
            Ok(source.text)
        };
        let of_kernel = |text: &&Arc<CudaText>| text.kernel == kernel.name && text.arch == arch;
        match self.texts.iter().find(of_kernel) {
            Some(text) => text.text.get_or_init(emitted).clone(),
            None => emitted(),
        }
    }
}

/// The GPU whose code nvcc makes for a test.
fn compiled_for(test: &Test) -> Option<&str> {
    match test {
        Test::Cuda(arch) | Test::Compile(arch) => Some(arch),
        _ => None,
    }
}

impl CudaText {
    /// The text, also if the trial of the file's texts did not run.
    fn get(&self) -> Result<&str, String> {
        let text = self.text.get_or_init(|| {
            let module = Case::read(&self.path)?.build_one(&self.kernel)?;
            let lowered = stages(&module, &self.arch, &mut |_, _| Ok(()))?;
            Ok(cuda::emit(&lowered).map_err(|e| e.to_string())?.text)
        });
        text.as_deref().map_err(String::clone)
    }

    fn name(&self) -> String {
        let file = self.path.file_stem().unwrap_or_default().to_string_lossy();
        format!("{file}::{}", self.kernel)
    }
}

/// The trials of a file: one per kernel, one for the comparison with texts. A file whose kernels cannot be built is one
/// trial, which reports or expects the error. The texts that the file has for nvcc are added to `texts`.
fn trials(path: &Path, texts: &mut Vec<Arc<CudaText>>) -> Vec<Trial> {
    let stem = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let whole =
        |case: Result<Case, String>| Trial::test(stem.clone(), move || Ok(whole(case?)?)).with_kind("file");
    let case = match Case::read(path) {
        Ok(case) if case.errors.is_empty() && !case.tests.contains(&Test::Messages) => case,
        case => return vec![whole(case)],
    };
    let Ok(kernels) = case.entries() else {
        return vec![whole(Ok(case))];
    };
    let file = Arc::new(File::new(case, &kernels));
    texts.extend(file.texts.iter().cloned());
    let mut trials: Vec<Trial> = kernels
        .into_iter()
        .map(|kernel| {
            let file = file.clone();
            let name = format!("{stem}::{kernel}");
            Trial::test(name, move || Ok(one_kernel(&file, &kernel)?)).with_kind("kernel")
        })
        .collect();
    trials.push(Trial::test(stem, move || Ok(compared(&file)?)).with_kind("texts"));
    trials
}

/// One kernel: verified, printed and parsed back after every pass; run where the file says what it leaves.
fn one_kernel(file: &File, name: &str) -> Result<(), String> {
    let (case, kernel) = (&file.case, file.kernel(name)?);
    let module = kernel.module.as_ref().map_err(String::clone)?;
    if case.lowered {
        let lowered = file.lowered(kernel, &case.arch)?;
        lowered.round_trips.clone()?;
        lowered.module.as_ref().map_err(String::clone)?;
    } else {
        RoundTrips::default().check(module)?;
    }
    let runs = case.runs_of(name, module)?;
    if runs.is_empty() {
        return match case.tests.contains(&Test::Sim) {
            true => Err("it is not run".into()),
            false => Ok(()),
        };
    }
    for run in &runs {
        for arch in run.archs(&case.arch) {
            let lowered = file.lowered(kernel, arch)?;
            run.simulate(lowered.module.as_ref().map_err(String::clone)?)
                .map_err(|error| format!("{arch}: {error}"))?;
        }
    }
    Ok(())
}

/// The texts of a file against what is expected.
fn compared(file: &File) -> Result<(), String> {
    let (case, kernels) = (&file.case, file.kernels()?);
    for run in case.runs()? {
        if !kernels.iter().any(|kernel| kernel.name == run.kernel) {
            return Err(format!("there is no kernel {}", run.kernel));
        }
    }
    for test in &case.tests {
        let texts = kernels.iter().map(|kernel| text(file, kernel, test));
        let text: String = texts.collect::<Result<_, _>>()?;
        match test {
            Test::Parse => case.expect("parse.txt", &text)?,
            Test::Lower(pass) => case.expect(&format!("{pass}.txt"), &text)?,
            Test::Cuda(arch) => case.expect(&format!("{arch}.cu"), &text)?,
            Test::Messages | Test::Sim | Test::Compile(_) => {}
        }
    }
    Ok(())
}

/// The text of a kernel that a test asks for.
fn text(file: &File, kernel: &Kernel, test: &Test) -> Result<String, String> {
    match test {
        Test::Messages | Test::Sim => Ok(String::new()),
        Test::Parse => Ok(print(kernel.module.as_ref().map_err(String::clone)?)),
        Test::Lower(pass) => {
            let lowered = file.lowered(kernel, &file.case.arch)?;
            lowered.module.as_ref().map_err(String::clone)?;
            let after = lowered.after.get(pass).cloned();
            after.ok_or_else(|| format!("{}: there is no pass {pass}", kernel.name))
        }
        Test::Compile(arch) | Test::Cuda(arch) => file.cuda(kernel, arch),
    }
}

/// A file whose kernels are wrong.
fn whole(case: Case) -> Result<(), String> {
    if case.tests.contains(&Test::Messages) {
        return case.expect(
            "messages.txt",
            &messages(&format!("{}.py", case.name()), &case.text, &case.arch)?,
        );
    }
    if case.tests.iter().any(|test| compiled_for(test).is_some()) {
        return Err("a kernel that is wrong has no CUDA text".into());
    }
    let file = File::new(case, &[]);
    let case = &file.case;
    if let Err(message) = file.kernels() {
        return expect_error(case, &message);
    }
    for kernel in file.kernels()? {
        if let Err(message) = &kernel.module {
            return expect_error(case, message);
        }
    }
    compared(&file)?;
    for kernel in file.kernels()? {
        let named = |error: &String| format!("{}: {error}", kernel.name);
        let module = kernel.module.as_ref().map_err(named)?;
        RoundTrips::default().check(module).map_err(|e| named(&e))?;
        if case.lowered {
            let lowered = file.lowered(kernel, &case.arch)?;
            if let Err(message) = lowered.module.as_ref().and(lowered.round_trips.as_ref()) {
                return expect_error(case, &named(message));
            }
        }
    }
    match case.errors.is_empty() {
        true => Ok(()),
        false => Err("no error, but one is expected".into()),
    }
}

fn expect_error(case: &Case, message: &str) -> Result<(), String> {
    if case.errors.is_empty() {
        return Err(message.into());
    }
    match case.errors.iter().find(|e| !message.contains(*e)) {
        None => Ok(()),
        Some(missing) => Err(format!("the message does not say {missing:?}:\n{message}")),
    }
}

/// The trials of nvcc: each is a translation unit of kernels of many files.
fn compiled(mut texts: Vec<Arc<CudaText>>) -> Vec<Trial> {
    texts.sort_by_key(|text| (text.arch.clone(), text.name()));
    texts.dedup_by_key(|text| (text.arch.clone(), text.name()));
    let mut trials = Vec::new();
    for of_arch in texts.chunk_by(|a, b| a.arch == b.arch) {
        for (number, unit) in of_arch.chunks(BATCH).enumerate() {
            let name = format!("nvcc::{}::{number}", of_arch[0].arch);
            let unit = unit.to_vec();
            trials
                .push(Trial::ignorable_test(name.clone(), move || accepted(&name, &unit)).with_kind("nvcc"));
        }
    }
    trials
}

/// nvcc takes these texts, which are for one GPU.
fn accepted(trial: &str, texts: &[Arc<CudaText>]) -> Result<Completion, Failed> {
    let Some(nvcc) = nvcc::search() else {
        skip_test(trial, nvcc::UNWANTED);
        return Ok(Completion::ignored_with(nvcc::UNWANTED));
    };
    let mut failures = Vec::new();
    let mut numbered = Vec::new();
    for (number, text) in (0..).zip(texts) {
        match text.get() {
            Ok(text) => numbered.push((number, text)),
            Err(message) => failures.push(format!("{}: {message}", text.name())),
        }
    }
    let refused = nvcc.refused(&texts[0].arch, &["-O3"], &numbered)?;
    let named = |(number, message): (u64, String)| format!("{}:\n{message}", texts[number as usize].name());
    failures.extend(refused.into_iter().map(named));
    match failures.is_empty() {
        true => Ok(Completion::Completed),
        false => Err(failures.join("\n").into()),
    }
}

fn main() -> ExitCode {
    let only = std::env::var("TIRX_FILTER").unwrap_or_default();
    let mut files = match filetests() {
        Ok(files) => files,
        Err(error) => {
            eprintln!("tests/kernels: {error}");
            return ExitCode::FAILURE;
        }
    };
    files.retain(|path| path.to_string_lossy().contains(&only));
    if files.is_empty() {
        eprintln!("no kernel file in tests/kernels has {only:?} in its path");
        return ExitCode::FAILURE;
    }
    let mut texts = Vec::new();
    let mut all: Vec<Trial> = files.iter().flat_map(|file| trials(file, &mut texts)).collect();
    // nvcc comes last, when the other trials have made the texts.
    all.extend(compiled(texts));
    libtest_mimic::run(&Arguments::from_args(), all).exit_code()
}
