//! Shell scripts that stand in for programs, and one that stands in for nvcc.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Writes a shell script that can be run, in place of a script that is there and may be running; returns its path.
///
/// # Panics
/// If it cannot be written.
pub fn script(path: impl Into<PathBuf>, body: &str) -> PathBuf {
    let path = path.into();
    let written = || {
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let new = tempfile::NamedTempFile::new_in(folder)?.into_temp_path();
        fs::write(&new, format!("#!/bin/sh\n{body}\n"))?;
        fs::set_permissions(&new, Permissions::from_mode(0o755))?;
        new.persist(&path).map_err(|error| error.error)
    };
    written().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    path
}

/// Writes a script that compiles nothing and answers as the nvcc of `release` (`13.0`). Its output is a fat binary of one PTX entry:
/// the arguments and a checksum of the text. If the arguments ask for machine code and PTX, an ELF file of eight bytes is before the entry.
/// The script runs `commands` first, in which `$*` is the arguments and `$all` the entry.
///
/// # Panics
/// As [`script`].
pub fn nvcc(path: impl Into<PathBuf>, release: &str, commands: &str) -> PathBuf {
    let body = format!(
        "case $1 in --version) echo 'Cuda compilation tools, release {release}, V{release}.88'; exit;; esac\n\
         all=\"$* $(cksum < kernel.cu)\"\n\
         {commands}\n\
         size='\\100\\002'; elf=; case $all in *code=\\[*) size='\\210\\002'; elf=yes;; esac\n\
         while [ $# -gt 0 ]; do if [ \"$1\" = -o ]; then out=$2; fi; shift; done\n\
         {{ printf \"\\120\\355\\125\\272\\001\\000\\020\\000$size\\000\\000\\000\\000\\000\\000\"\n\
         if [ $elf ]; then printf '\\002\\000\\001\\001\\100\\000\\000\\000\\010\\000\\000\\000\\000\\000\\000\\000'\n\
         head -c 48 /dev/zero; printf '\\177ELF----'; fi\n\
         printf '\\001\\000\\001\\001\\100\\000\\000\\000\\000\\002\\000\\000\\000\\000\\000\\000'\n\
         head -c 48 /dev/zero; printf '%-512s' \"$all\"; }} > \"$out\""
    );
    script(path, &body)
}
