//! Messages of the C interface about drivers that are missing, too old, or fail: the driver is a small C library
//! controlled by environment variables. Each call is a process of its own, because a driver is opened once.

use std::fs;
use std::path::Path;
use std::process::Command;

use tirx_build::{Builder, CApi, Environment};
use tirx_tests::stand_in;

const KERNELS: &str = r#"from tvm.script import tirx as T

@T.prim_func
def fill(A: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    A[tx] = 1.0

@T.prim_func
def mapped(A: T.Buffer((4096,), "float32")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 2, A.data, 64, 64, 256, 32, 8, 1, 1, 0, 0, 2, 0)
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    if tx == 0:
        A[0] = T.cast(T.address_of(A_map) % T.uint64(64), "float32")
"#;

/// Calls a kernel or allocates memory, and prints the error.
const PROGRAM: &str = r#"#include <stdio.h>
#include <string.h>
#include "kernels.h"

int main(int count, char** words) {
  static _Alignas(256) float memory[4096];
  int64_t shape[] = {strcmp(words[1], "mapped") ? 64 : 4096};
  DLTensor a = {memory, {kDLCUDA, 0}, 1, {kDLFloat, 32, 1}, shape, NULL, 0};
  void* address = NULL;
  int32_t status = count;
  if (!strcmp(words[1], "fill")) status = fill(&a, NULL);
  if (!strcmp(words[1], "mapped")) status = mapped(&a, NULL);
  if (!strcmp(words[1], "alloc")) status = tirx_alloc(0, 64, &address);
  if (!strcmp(words[1], "synchronize")) status = tirx_synchronize(0, NULL);
  printf("%d %s\n", (int)status, status ? tirx_last_error() : "");
  return 0;
}
"#;

/// Every function returns the value of the variable `FAKE_` followed by its name, and 0 without.
const DRIVER: &str = r#"#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static int status(const char* name) {
  const char* said = getenv(name);
  return said ? atoi(said) : 0;
}
#define FUNCTION(name, args, body) \
  int name args { body; return status("FAKE_" #name); }
FUNCTION(cuInit, (unsigned a), (void)a)
FUNCTION(cuDeviceGet, (int* a, int b), *a = b)
FUNCTION(cuDevicePrimaryCtxRetain, (void** a, int b), (void)b; *a = (void*)8)
FUNCTION(cuCtxGetCurrent, (void** a), *a = NULL)
FUNCTION(cuCtxSetCurrent, (void* a), (void)a)
FUNCTION(cuCtxGetDevice, (int* a), *a = 0)
FUNCTION(cuCtxSynchronize, (void), )
FUNCTION(cuStreamSynchronize, (void* a), (void)a)
FUNCTION(cuModuleLoadData, (void** a, const void* b), *a = (void*)b)
FUNCTION(cuModuleGetFunction, (void** a, void* b, const char* c), *a = b; (void)c)
FUNCTION(cuFuncGetAttribute, (int* a, int b, void* c), *a = b; (void)c)
FUNCTION(cuFuncSetAttribute, (void* a, int b, int c), (void)a; (void)b; (void)c)
FUNCTION(cuMemAlloc_v2, (uint64_t* a, size_t b), *a = b)
FUNCTION(cuMemFree_v2, (uint64_t a), (void)a)
FUNCTION(cuMemcpyHtoD_v2, (uint64_t a, const void* b, size_t c), (void)a; (void)b; (void)c)
FUNCTION(cuMemcpyDtoH_v2, (void* a, uint64_t b, size_t c), (void)a; (void)b; (void)c)
#ifndef WITHOUT_LAUNCH
FUNCTION(cuLaunchKernelEx, (const void* a, void* b, void** c, void** d), (void)a; (void)b; (void)c; (void)d)
#endif
#ifdef WITH_MAPS
FUNCTION(cuTensorMapEncodeTiled, (void* a), (void)a)
#endif
int cuGetErrorName(int a, const char** name) { *name = a == 7 ? "CUDA_ERROR_SEVEN" : NULL; return a != 7; }
int cuGetErrorString(int a, const char** text) { *text = a == 7 ? "it is the seventh" : NULL; return a != 7; }
"#;

fn done(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {err}");
    String::from_utf8(output.stdout).unwrap()
}

/// A program with the kernels, built with this nvcc.
fn program(folder: &Path, name: &str, nvcc: &str) {
    let api = folder.join(format!("{name}-api"));
    Builder::new()
        .manifest(folder.join("kernels.toml"))
        .out_dir(folder.join(format!("{name}-out")))
        .environment(
            Environment::process()
                .with("TIRX_NVCC", nvcc)
                .with("TIRX_STORE", "none"),
        )
        .c_api(CApi::new("kernels").folder(&api))
        .build()
        .unwrap();
    done(
        Command::new("cc")
            .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"])
            .arg(api.join("include"))
            .arg(folder.join("main.c"))
            .arg(api.join("lib/libkernels.a"))
            .args(["-ldl", "-lm", "-o"])
            .arg(folder.join(name)),
    );
}

#[test]
fn what_a_driver_cannot_do_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = |file: &str| folder.path().join(file);
    let kernel =
        |name: &str| format!("[[kernel]]\nname = \"{name}\"\nsource = \"k.py\"\ntargets = [\"sm_90a\"]\n");
    for (file, text) in [
        ("k.py", KERNELS),
        ("kernels.toml", &(kernel("fill") + &kernel("mapped"))),
        ("main.c", PROGRAM),
        ("driver.c", DRIVER),
    ] {
        fs::write(path(file), text).unwrap();
    }
    let nvcc = stand_in::nvcc(path("nvcc"), "13.0", "");
    program(folder.path(), "with-code", nvcc.to_str().unwrap());
    program(folder.path(), "without-code", "none");
    for (driver, defines) in [
        ("old.so", &["-DWITHOUT_LAUNCH"][..]),
        ("plain.so", &[]),
        ("maps.so", &["-DWITH_MAPS"]),
    ] {
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-o"]).arg(path(driver));
        done(cc.args(defines).arg(path("driver.c")));
    }
    let said = |program: &str, what: &str, driver: &str, variables: &[(&str, &str)]| {
        let mut command = Command::new(path(program));
        command.arg(what).env("TIRX_DRIVER", path(driver));
        done(command.envs(variables.iter().copied()))
    };
    assert_eq!(said("with-code", "fill", "plain.so", &[]), "0 \n");
    assert_eq!(said("with-code", "mapped", "maps.so", &[]), "0 \n");
    let missing = said("with-code", "fill", "nowhere.so", &[]);
    assert!(
        missing.starts_with("4 the driver `")
            && missing.ends_with("nowhere.so` (TIRX_DRIVER) cannot be opened\n"),
        "{missing}"
    );
    for (program, what, driver, variables, expected) in [
        (
            "with-code",
            "fill",
            "old.so",
            &[][..],
            "4 the driver has no `cuLaunchKernelEx`: it is too old",
        ),
        (
            "with-code",
            "alloc",
            "plain.so",
            &[("FAKE_cuInit", "7")],
            "4 the driver does not start: CUDA_ERROR_SEVEN",
        ),
        (
            "with-code",
            "fill",
            "plain.so",
            &[("FAKE_cuInit", "9")],
            "4 the driver does not start: unknown error",
        ),
        (
            "without-code",
            "fill",
            "plain.so",
            &[],
            "5 kernel `fill` was built without nvcc: it has no code for a GPU",
        ),
        (
            "with-code",
            "fill",
            "plain.so",
            &[("FAKE_cuModuleLoadData", "209")],
            "5 kernel `fill` has no code for this device",
        ),
        (
            "with-code",
            "fill",
            "plain.so",
            &[("FAKE_cuModuleLoadData", "7")],
            "4 kernel `fill`: loading the kernel: it is the seventh (CUDA_ERROR_SEVEN)",
        ),
        (
            "with-code",
            "fill",
            "plain.so",
            &[("FAKE_cuModuleGetFunction", "9")],
            "4 kernel `fill`: finding the device function: unknown error (?)",
        ),
        (
            "with-code",
            "fill",
            "plain.so",
            &[("FAKE_cuDeviceGet", "7")],
            "4 kernel `fill`: finding the device: it is the seventh (CUDA_ERROR_SEVEN)",
        ),
        (
            "with-code",
            "fill",
            "plain.so",
            &[("FAKE_cuDevicePrimaryCtxRetain", "7")],
            "4 kernel `fill`: opening the device: it is the seventh (CUDA_ERROR_SEVEN)",
        ),
        (
            "with-code",
            "fill",
            "plain.so",
            &[("FAKE_cuLaunchKernelEx", "7")],
            "4 kernel `fill`: launching: it is the seventh (CUDA_ERROR_SEVEN)",
        ),
        (
            "with-code",
            "alloc",
            "plain.so",
            &[("FAKE_cuMemAlloc_v2", "7")],
            "4 allocating device memory: it is the seventh (CUDA_ERROR_SEVEN)",
        ),
        (
            "with-code",
            "synchronize",
            "plain.so",
            &[("FAKE_cuStreamSynchronize", "7")],
            "4 waiting for the stream: it is the seventh (CUDA_ERROR_SEVEN)",
        ),
        (
            "with-code",
            "mapped",
            "plain.so",
            &[],
            "4 kernel `mapped`: the driver has no tensor maps: it is too old",
        ),
        (
            "with-code",
            "mapped",
            "maps.so",
            &[("FAKE_cuTensorMapEncodeTiled", "7")],
            "4 kernel `mapped`: encoding tensor map `A_map`: it is the seventh (CUDA_ERROR_SEVEN)",
        ),
    ] {
        let found = said(program, what, driver, variables);
        assert_eq!(found, format!("{expected}\n"), "{what}, {driver}, {variables:?}");
    }
}
