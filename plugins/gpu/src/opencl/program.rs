//! Compiled programs.

use super::{OpenCl, failed, text};
use cl3::error_codes::CL_INVALID_PROGRAM;
use cl3::info_type::InfoType;
use cl3::types::{cl_event, cl_int, cl_kernel, cl_program};
use cl3::{command_queue, kernel, program};
use se_plugin_gpu::Cache;
use se_plugin_gpu::backend::{BackendResult, PUSH_BYTES, Shader, WORKGROUP};
use se_plugin_gpu::translate::opencl::ENTRY;
use std::ptr::{null, null_mut};
use std::sync::{Mutex, PoisonError};

/// A kernel, which stays until the process ends, and the version of the memory that it was told. Its argument is set and it
/// is enqueued under one lock.
pub(crate) struct Program(Mutex<(cl_kernel, u64)>);

// SAFETY: any thread may use a kernel, one at a time.
unsafe impl Send for Program {}
// SAFETY: it has a lock.
unsafe impl Sync for Program {}

impl OpenCl {
    pub(super) fn program(&self, shader: &Shader, constants: &[u32]) -> BackendResult<Program> {
        let what = format!("compile the shader `{}`", shader.name());
        let source = shader.opencl(constants).map_err(|error| {
            let mut failure = failed(&what)(CL_INVALID_PROGRAM);
            failure.cause = error.message().to_owned();
            failure
        })?;
        let key = format!("{} {}\n{source}", self.identity, self.options.to_string_lossy());
        let build = |program: Result<_, _>| self.build(&what, program.map_err(failed(&what))?);
        let load = |binary: &[u8]| {
            let (id, context) = (self.id, self.context);
            // SAFETY: there is one device and one binary, which its driver has made: the file of this user has not changed.
            let program = unsafe { program::create_program_with_binary(context, &[id], &[binary]) };
            build(program).map(|(program, _)| program)
        };
        let compile = || build(program::create_program_with_source(self.context, &[&source]));
        Cache::load_or_compile(self.cache.as_ref(), &key, load, compile)
    }

    /// Builds a program. Returns also its binary, which is empty if the driver has none. The program is released: its kernel
    /// keeps what it needs.
    fn build(&self, what: &str, program: cl_program) -> BackendResult<(Program, Vec<u8>)> {
        let build = || {
            let built = program::build_program(program, &[self.id], self.options, None, null_mut());
            built.map_err(|error| {
                let log = program::CL_PROGRAM_BUILD_LOG;
                let log = text(program::get_program_build_data(program, self.id, log));
                let mut failure = failed(what)(error);
                // The first of many lines.
                let line = log.lines().find(|line| line.contains("error")).unwrap_or_default();
                failure.cause.push_str(&format!(": {}", line.trim()));
                failure
            })?;
            let kernel = kernel::create_kernel(program, ENTRY).map_err(failed(what))?;
            let binary = match program::get_program_info(program, program::CL_PROGRAM_BINARIES) {
                Ok(InfoType::VecVecUchar(mut binaries)) => binaries.pop().unwrap_or_default(),
                _ => Vec::new(),
            };
            Ok((Program(Mutex::new((kernel, 0))), binary))
        };
        let built = build();
        // SAFETY: nothing uses the program later. There is nothing to do about an error.
        let _ = unsafe { program::release_program(program) };
        built
    }

    /// Enqueues a kernel.
    ///
    /// # Safety
    /// `push` is what the program takes, and the memory at the addresses in it lives until the kernel is done.
    pub(super) unsafe fn enqueue(
        &self,
        program: &Program,
        push: &[u8],
        groups: [u32; 3],
    ) -> Result<cl_event, cl_int> {
        let mut argument = [0_u8; PUSH_BYTES];
        argument[..push.len()].copy_from_slice(push);
        let [x, y, z] = groups.map(|count| count as usize);
        let (global, local) = ([x * WORKGROUP as usize, y, z], [WORKGROUP as usize, 1, 1]);
        let (kernel, told) = &mut *program.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Held until the kernel is enqueued: nothing that it was told is freed meanwhile.
        let (all, version) = &*self.reachable();
        if told != version {
            let (what, bytes) = (kernel::CL_KERNEL_EXEC_INFO_SVM_PTRS, size_of_val(&**all));
            // SAFETY: they are the addresses of this context's memory, and are copied.
            unsafe { kernel::set_kernel_exec_info(*kernel, what, bytes, all.as_ptr().cast()) }?;
            *told = *version;
        }
        // SAFETY: the kernel's only argument has this size, and is copied; there are three sizes each; the memory that the
        // kernel uses lives until it is done, as the caller says.
        unsafe {
            kernel::set_kernel_arg(*kernel, 0, PUSH_BYTES, argument.as_ptr().cast())?;
            let (sizes, local, queue) = (global.as_ptr(), local.as_ptr(), self.queue);
            command_queue::enqueue_nd_range_kernel(
                queue,
                *kernel,
                3,
                null(),
                sizes,
                local,
                0,
                null(),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use se_plugin_gpu::backend::{Backend as _, CooperativeMatrix};
    use se_plugin_gpu::settings::Settings;
    use std::process::Command;

    /// The variable that is set in a process with PoCL.
    const MARK: &str = "GPU_TEST_POCL";

    #[test]
    fn pocl_compiles_each_shader() {
        if std::env::var_os(MARK).is_none() {
            let test = "opencl::program::tests::pocl_compiles_each_shader";
            let mut again = Command::new(std::env::current_exe().expect("a program"));
            again.args(["--exact", test]).envs(pocl::environment()).env(MARK, "1");
            let output = again.output().expect("it runs");
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains("1 passed"), "{text}");
            return;
        }
        let physical_device = OpenCl::list()
            .expect("devices")
            .pop()
            .expect("a device")
            .physical_device
            .expect("a device that can be used");
        let opened =
            OpenCl::open(physical_device, &Settings::new("RUST_GPU")).expect("an open device");
        let shaders = concat!(env!("CARGO_MANIFEST_DIR"), "/../../se-plugin-gpu/src/shaders");
        let mut count = 0;
        for entry in std::fs::read_dir(shaders).expect("shaders") {
            let name = entry.expect("a file").file_name().into_string().expect("UTF-8");
            let Some(name) = name.strip_suffix(".spv") else { continue };
            if name.ends_with(CooperativeMatrix::SHADERS) {
                continue;
            }
            // SAFETY: it is not launched.
            let shader = unsafe { Shader::named(name.to_owned().leak()) };
            // The last has no constants, as some shaders.
            for constants in [&[8; 20][..], &[]] {
                let compiled = opened.backend.compile(&shader, constants);
                compiled.unwrap_or_else(|failure| panic!("{}", failure.error(None)));
            }
            count += 1;
        }
        assert!(count > 30, "{count}");
    }
}
