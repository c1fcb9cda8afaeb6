//! The GPUs of this machine: the meaning of the target `native`.

use std::process::Command;

use super::discover::on_path;
use crate::environment::Environment;
use crate::target;
use tirx_core::ir::Gpu;

/// A GPU of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledGpu {
    /// Its name as the driver reports it.
    pub name: String,
    /// Its compute capability: `9.0`.
    pub capability: String,
}

/// The GPUs of this machine, as `nvidia-smi` lists them. It comes with the driver.
///
/// # Errors
/// Why there are none, as a reason.
pub fn gpus(environment: &Environment) -> Result<Vec<InstalledGpu>, String> {
    let program = on_path(environment, "nvidia-smi")
        .ok_or("there is no `nvidia-smi` on PATH, which the driver brings")?;
    let output = Command::new(program)
        .args(["--query-gpu=compute_cap,name", "--format=csv,noheader"])
        .env_clear()
        .envs(environment.variables())
        .output()
        .map_err(|error| format!("`nvidia-smi` cannot be run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let said = format!("{text}{}", String::from_utf8_lossy(&output.stderr));
        let first = said.lines().find(|line| !line.trim().is_empty());
        return Err(match first {
            Some(line) => format!("`nvidia-smi` says: {}", line.trim()),
            None => format!("`nvidia-smi` failed: {}", output.status),
        });
    }
    let gpus: Vec<InstalledGpu> = text
        .lines()
        .filter_map(|line| {
            let (capability, name) = line.split_once(',')?;
            Some(InstalledGpu {
                name: name.trim().to_string(),
                capability: capability.trim().to_string(),
            })
        })
        .collect();
    match gpus.is_empty() {
        true => Err("`nvidia-smi` lists none".to_string()),
        false => Ok(gpus),
    }
}

/// The architectures of this machine's GPUs, without duplicates, with their architecture-specific features (`sm_90a`).
///
/// # Errors
/// As [`gpus`]; a GPU is of no known architecture.
pub(crate) fn architectures(environment: &Environment) -> Result<Vec<Gpu>, String> {
    let mut all: Vec<Gpu> = Vec::new();
    for gpu in gpus(environment)? {
        let number = gpu.capability.replace('.', "");
        let arch = [format!("sm_{number}a"), format!("sm_{number}")]
            .iter()
            .find_map(|name| target::parse(name).ok());
        let arch = arch.ok_or_else(|| {
            format!(
                "{} has the compute capability {}, which is unknown",
                gpu.name, gpu.capability
            )
        })?;
        if !all.contains(&arch) {
            all.push(arch);
        }
    }
    Ok(all)
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use tirx_test_tools::stand_in;

    use super::*;

    /// An environment with an `nvidia-smi` that runs this script; without one if there is no script.
    fn machine(body: Option<&str>) -> (tempfile::TempDir, Environment) {
        let dir = tempfile::tempdir().unwrap();
        if let Some(body) = body {
            stand_in::script(dir.path().join("nvidia-smi"), body);
        }
        let environment = Environment::empty().with("PATH", dir.path());
        (dir, environment)
    }

    fn names(body: &str) -> Result<Vec<String>, String> {
        let (_dir, environment) = machine(Some(body));
        Ok(architectures(&environment)?.iter().map(Gpu::to_string).collect())
    }

    #[test]
    fn the_gpus_of_a_machine_are_its_architectures() {
        assert_eq!(
            names("echo '9.0, NVIDIA H200'; echo '9.0, NVIDIA H200'; echo '8.9, NVIDIA L4'"),
            Ok(vec!["sm_90a".to_string(), "sm_89".to_string()])
        );
    }

    #[test]
    fn a_machine_without_one_says_why() {
        let (_dir, environment) = machine(None);
        assert!(
            gpus(&environment)
                .unwrap_err()
                .contains("there is no `nvidia-smi` on PATH")
        );
        assert_eq!(
            names("echo \"couldn't communicate with the NVIDIA driver\"; exit 9").unwrap_err(),
            "`nvidia-smi` says: couldn't communicate with the NVIDIA driver"
        );
        assert_eq!(
            names("exit 3").unwrap_err(),
            "`nvidia-smi` failed: exit status: 3"
        );
        let (dir, environment) = machine(Some(""));
        fs::write(dir.path().join("nvidia-smi"), "#!/nowhere/interpreter\n").unwrap();
        let reason = gpus(&environment).unwrap_err();
        assert!(reason.starts_with("`nvidia-smi` cannot be run: "), "{reason}");
        assert_eq!(names("true").unwrap_err(), "`nvidia-smi` lists none");
        assert!(
            names("echo '99.7, NVIDIA X'")
                .unwrap_err()
                .contains("99.7, which is unknown")
        );
    }
}
