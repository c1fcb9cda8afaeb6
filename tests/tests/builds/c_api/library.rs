//! A shared library of the C interface, opened as a program opens it, and its tensors.

use std::ffi::{CStr, c_char, c_void};
use std::path::Path;

use tirx_build::{Builder, CApi, Environment};
use tirx_tests::tools::driver;

use super::api;

#[repr(C)]
pub(super) struct DlTensor {
    pub(super) data: *mut c_void,
    pub(super) device: [i32; 2],
    pub(super) ndim: i32,
    pub(super) dtype: [u8; 4],
    pub(super) shape: *const i64,
    pub(super) strides: *const i64,
    pub(super) byte_offset: u64,
}

/// The shared library, opened at run time.
pub(super) struct Opened(libloading::Library);

pub(super) type Alloc = unsafe extern "C" fn(i32, usize, *mut *mut c_void) -> i32;
pub(super) type ToDevice = unsafe extern "C" fn(i32, *mut c_void, *const c_void, usize) -> i32;
pub(super) type ToHost = unsafe extern "C" fn(i32, *mut c_void, *const c_void, usize) -> i32;

impl Opened {
    pub(super) fn open() -> Opened {
        Opened::open_at(&api().join("lib/libexample_kernels.so"))
    }

    pub(super) fn open_at(library: &Path) -> Opened {
        // SAFETY: nothing else in this process reads or sets variables at this time but other opens, which set the same;
        // the library's initializers are the C compiler's own.
        unsafe {
            std::env::set_var("TIRX_DRIVER", driver());
            Opened(libloading::Library::new(library).unwrap())
        }
    }

    pub(super) fn get<T: Copy>(&self, name: &str) -> T {
        // SAFETY: callers name the type of the header.
        unsafe { *self.0.get::<T>(name.as_bytes()).unwrap() }
    }

    pub(super) fn error(&self) -> String {
        let last: unsafe extern "C" fn() -> *const c_char = self.get("tirx_last_error");
        // SAFETY: the function gives a C string.
        unsafe { CStr::from_ptr(last()) }.to_string_lossy().into_owned()
    }

    pub(super) fn upload(&self, values: &[f32]) -> *mut c_void {
        let (alloc, copy): (Alloc, ToDevice) = (self.get("tirx_alloc"), self.get("tirx_copy_to_device"));
        let mut address = std::ptr::null_mut();
        // SAFETY: the source has as many bytes.
        unsafe {
            assert_eq!(alloc(0, values.len() * 4, &mut address), 0, "{}", self.error());
            assert_eq!(
                copy(0, address, values.as_ptr().cast(), values.len() * 4),
                0,
                "{}",
                self.error()
            );
        }
        address
    }

    pub(super) fn download(&self, address: *mut c_void, count: usize) -> Vec<f32> {
        let copy: ToHost = self.get("tirx_copy_to_host");
        let mut values = vec![0f32; count];
        // SAFETY: the destination has as many bytes.
        let status = unsafe { copy(0, values.as_mut_ptr().cast(), address, count * 4) };
        assert_eq!(status, 0, "{}", self.error());
        values
    }
}

pub(super) fn tensor(data: *mut c_void, shape: &[i64]) -> DlTensor {
    DlTensor {
        data,
        device: [2, 0],
        ndim: shape.len() as i32,
        dtype: [2, 32, 1, 0],
        shape: shape.as_ptr(),
        strides: std::ptr::null(),
        byte_offset: 0,
    }
}

/// The C interface of kernels of one file, opened; the folder goes with it.
pub(super) fn library_of(kernels: &[&str], text: &str) -> (tempfile::TempDir, Opened) {
    let folder = tempfile::tempdir().unwrap();
    let entry =
        |name: &&str| format!("[[kernel]]\nname = \"{name}\"\nsource = \"k.py\"\ntargets = [\"sm_90a\"]\n");
    let manifest: String = kernels.iter().map(entry).collect();
    std::fs::write(folder.path().join("kernels.toml"), manifest).unwrap();
    std::fs::write(folder.path().join("k.py"), text).unwrap();
    let name = format!("{}_kernels", kernels[0]);
    let api = CApi::new(name.as_str())
        .shared(true)
        .folder(folder.path().join("api"));
    Builder::new()
        .manifest(folder.path().join("kernels.toml"))
        .out_dir(folder.path().join("out"))
        .environment(Environment::process().with("TIRX_NVCC", "none"))
        .c_api(api)
        .build()
        .unwrap();
    let library = Opened::open_at(&folder.path().join(format!("api/lib/lib{name}.so")));
    (folder, library)
}
