//! OpenCL with shared virtual memory, where programs use addresses: for GPUs whose Vulkan lacks a feature.

mod program;

use cl3::types::{cl_command_queue, cl_context, cl_device_id, cl_event, cl_int};
use cl3::{
    command_queue as queue, context, device, error_codes as errors, event, memory, platform,
};
use program::Program;
use se_plugin::{Code, Error, Result};
use se_plugin_gpu::backend::{
    Allocation, Backend, BackendError, BackendResult, Found, MemoryKind, Opened, Shader, Span, poll,
};
use se_plugin_gpu::settings::Settings;
use se_plugin_gpu::{Cache, drivers};
use std::ffi::{CStr, c_void};
use std::fmt::Display;
use std::ptr::{NonNull, null, null_mut};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const GONE: &str = "the GPU or its driver is gone; restart the process";

/// Returns a function that describes an error of OpenCL while doing `what`.
fn failed(what: impl Display) -> impl FnOnce(cl_int) -> BackendError {
    move |error| {
        let (code, help) = match error {
            errors::CL_MEM_OBJECT_ALLOCATION_FAILURE
            | errors::CL_OUT_OF_RESOURCES
            | errors::CL_OUT_OF_HOST_MEMORY => {
                (Code::ResourceExhausted, "use less memory, such as a smaller batch")
            }
            errors::CL_DEVICE_NOT_AVAILABLE
            | errors::CL_INVALID_CONTEXT
            | errors::CL_INVALID_COMMAND_QUEUE => (Code::Internal, GONE),
            _ => (Code::Internal, "update the GPU's driver, and see its messages in `dmesg`"),
        };
        let (what, cause) = (format!("opencl cannot {what}"), errors::error_text(error).to_owned());
        BackendError { code, what, cause, help, is_lost: help == GONE }
    }
}

fn text(property: Result<Vec<u8>, cl_int>) -> String {
    let bytes = property.unwrap_or_default();
    String::from_utf8_lossy(&bytes).trim_matches(['\0', ' ', '\n']).to_owned()
}

/// Returns a property of up to 64 bits; 0 if the driver does not have it.
fn number(property: Result<Vec<u8>, cl_int>) -> u64 {
    let mut number = [0; 8];
    number.iter_mut().zip(property.unwrap_or_default()).for_each(|(to, byte)| *to = byte);
    u64::from_le_bytes(number)
}

/// Returns the device, or what it lacks.
fn suitable(id: cl_device_id) -> Result<cl_device_id, String> {
    let of = |what| number(device::get_device_data(id, what));
    let svm = of(device::CL_DEVICE_SVM_CAPABILITIES) & device::CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
    let needs = [
        (of(device::CL_DEVICE_AVAILABLE) != 0, "it is not available"),
        (of(device::CL_DEVICE_COMPILER_AVAILABLE) != 0, "its driver has no compiler"),
        (svm != 0, "its driver has no shared virtual memory"),
        (of(device::CL_DEVICE_ADDRESS_BITS) == 64, "its addresses have fewer than 64 bits"),
        (of(device::CL_DEVICE_ENDIAN_LITTLE) != 0, "it is big-endian"),
        (of(device::CL_DEVICE_MAX_WORK_GROUP_SIZE) >= 256, "its work-groups are too small"),
        (of(device::CL_DEVICE_LOCAL_MEM_SIZE) >= 16 << 10, "it has too little local memory"),
    ];
    let lacks = needs.into_iter().find(|(is_there, _)| !is_there);
    lacks.map_or(Ok(id), |(_, missing)| Err(missing.to_owned()))
}

/// An open GPU.
pub(crate) struct OpenCl {
    id: cl_device_id,
    context: cl_context,
    /// Everything runs in it, in order.
    queue: cl_command_queue,
    /// The options of the compiler.
    options: &'static CStr,
    /// Device and driver, on which programs depend.
    identity: String,
    cache: Option<Cache>,
    /// The addresses of all memory that programs may reach, and how often they have changed: a kernel has to be told.
    reachable: Mutex<(Vec<usize>, u64)>,
}

// SAFETY: any thread may use OpenCL's objects, except kernels, which have locks.
unsafe impl Send for OpenCl {}
// SAFETY: what changes has a lock.
unsafe impl Sync for OpenCl {}

/// A part of the work in the GPU's queue: the event of each command, and the one at the end, or null.
#[derive(Default)]
pub(crate) struct Events {
    commands: Vec<cl_event>,
    done: Option<NonNull<c_void>>,
    is_measured: bool,
}

// SAFETY: any thread may use OpenCL's events.
unsafe impl Send for Events {}

fn release(event: cl_event) {
    // SAFETY: the event is of one batch, and nothing uses it later. There is nothing to do about an error.
    let _ = unsafe { event::release_event(event) };
}

impl Events {
    fn add(&mut self, what: &str, event: Result<cl_event, cl_int>) -> BackendResult {
        self.commands.push(event.map_err(failed(what))?);
        Ok(())
    }
}

/// Returns the address of a range for OpenCL's copies, which are also from and to memory of the host.
fn address(span: &Span<'_, Vec<u8>>) -> *mut c_void {
    span.host().map_or(span.address() as *mut c_void, |host| host.cast())
}

impl OpenCl {
    fn reachable(&self) -> MutexGuard<'_, (Vec<usize>, u64)> {
        self.reachable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn create(id: cl_device_id, settings: &Settings) -> BackendResult<Opened<Self>> {
        let of = |what| device::get_device_data(id, what);
        let context = context::create_context(&[id], null(), None, null_mut());
        let context = context.map_err(failed("open the GPU"))?;
        let properties = [queue::CL_QUEUE_PROPERTIES.into(), queue::CL_QUEUE_PROFILING_ENABLE, 0];
        // SAFETY: the device is that of the context, and a zero ends the properties.
        let queue = unsafe {
            queue::create_command_queue_with_properties(context, id, properties.as_ptr())
        };
        let queue = queue.map_err(failed("create a queue"))?;
        let rounds = number(of(device::CL_DEVICE_SINGLE_FP_CONFIG));
        // Programs need no more than OpenCL C 1.2, which each driver has. PoCL would write the number of warnings to stderr.
        let options = match rounds & device::CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT {
            0 => c"-w -cl-std=CL1.2",
            _ => c"-w -cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt",
        };
        let platform = number(of(device::CL_DEVICE_PLATFORM)) as *mut c_void;
        let platform = text(platform::get_platform_data(platform, platform::CL_PLATFORM_NAME));
        let driver_info = format!("OpenCL ({platform} {})", text(of(device::CL_DRIVER_VERSION)));
        let identity = format!("{} by {driver_info}", text(of(device::CL_DEVICE_NAME)));
        let reachable = Mutex::default();
        let mut backend = Self { id, context, queue, options, identity, cache: None, reachable };
        // It is better to find out now, while the CPU can still be used, whether the driver compiles what it gets. The cache
        // is not used for that.
        // SAFETY: it is not launched.
        backend.compile(&unsafe { Shader::named("band") }, &[4])?;
        backend.cache = Cache::open(settings);
        let total = number(of(device::CL_DEVICE_GLOBAL_MEM_SIZE));
        Ok(Opened { backend, driver_info, total, cooperative: None })
    }
}

// SAFETY: mapped memory has so many bytes, which are zeros; the event of a batch is behind its commands in the only queue.
unsafe impl Backend for OpenCl {
    const NAME: &'static str = "OpenCL";
    type PhysicalDevice = cl_device_id;
    /// The host's memory; empty for the GPU's.
    type Memory = Vec<u8>;
    type Program = Program;
    type Batch = Events;

    fn list() -> Result<Vec<Found<cl_device_id>>> {
        /// PoCL must not start in several threads at once.
        static STARTING: Mutex<()> = Mutex::new(());
        let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        let problems = drivers::load_opencl()?;
        let platforms = platform::get_platform_ids().or_else(|error| match error {
            errors::CL_PLATFORM_NOT_FOUND_KHR => Ok(Vec::new()),
            error => Err(failed("list the platforms")(error).error(None)),
        });
        let mut found = Vec::new();
        for platform in platforms? {
            let ids = device::get_device_ids(platform, device::CL_DEVICE_TYPE_ALL);
            found.extend(ids.unwrap_or_default().into_iter().map(|id| {
                let of = |what| device::get_device_data(id, what);
                let (name, kind) = (text(of(device::CL_DEVICE_NAME)), of(device::CL_DEVICE_TYPE));
                let is_software = number(kind) & device::CL_DEVICE_TYPE_CPU != 0;
                let is_shared = number(of(device::CL_DEVICE_HOST_UNIFIED_MEMORY)) != 0;
                (is_shared, Found { name, is_software, physical_device: suitable(id) })
            }));
        }
        // GPUs with memory of their own come first.
        found.sort_by_key(|(is_shared, _)| *is_shared);
        if found.is_empty() {
            let why: String = problems.iter().map(|problem| format!(": {problem}")).collect();
            let help = "install its OpenCL driver, and see whether `clinfo` lists it";
            return Err(Error::not_found(format!("OpenCL finds no GPU{why}; {help}")));
        }
        drivers::warn(&problems);
        Ok(found.into_iter().map(|(_, found)| found).collect())
    }

    fn open(id: cl_device_id, settings: &Settings) -> Result<Opened<Self>> {
        Self::create(id, settings).map_err(|failure| failure.error(None))
    }

    fn allocate(&self, bytes: u64, kind: MemoryKind) -> BackendResult<Allocation<Vec<u8>>> {
        // `clSVMAlloc` returns no error.
        let full = errors::CL_MEM_OBJECT_ALLOCATION_FAILURE;
        let full = || failed(format_args!("allocate {bytes} bytes"))(full);
        let (mut memory, size) = (Vec::new(), bytes as usize);
        if kind == MemoryKind::Mapped {
            memory.try_reserve_exact(size).map_err(|_| full())?;
            memory.resize(size, 0);
            let host = NonNull::new(memory.as_mut_ptr());
            return Ok(Allocation { address: 0, host, memory });
        }
        // SAFETY: the context is open.
        let address =
            unsafe { memory::svm_alloc(self.context, memory::CL_MEM_READ_WRITE, size, 0) };
        let address = address.map_err(|_| full())? as usize;
        let (all, version) = &mut *self.reachable();
        all.push(address);
        *version += 1;
        Ok(Allocation { address: address as u64, host: None, memory })
    }

    unsafe fn free(&self, memory: Allocation<Vec<u8>>) {
        if memory.host.is_some() {
            return;
        }
        let (address, queue) = (memory.address as usize, self.queue);
        // Held until the driver knows: a kernel is enqueued either before, or without this memory.
        let (all, version) = &mut *self.reachable();
        all.retain(|other| *other != address);
        *version += 1;
        let all = [address as *const c_void];
        // SAFETY: `allocate` made it, and nothing uses it. Kernels that run may have been told it, so the driver frees it behind them.
        let event =
            unsafe { queue::enqueue_svm_free(queue, 1, all.as_ptr(), None, null_mut(), 0, null()) };
        // There is nothing to do about an error.
        let _ = event.map(release).and_then(|()| queue::flush(queue));
    }

    fn supports_float64(&self) -> bool {
        number(device::get_device_data(self.id, device::CL_DEVICE_DOUBLE_FP_CONFIG)) != 0
    }

    fn compile(&self, shader: &Shader, constants: &[u32]) -> BackendResult<Program> {
        self.program(shader, constants)
    }

    fn batch(&self) -> BackendResult<Events> {
        Ok(Events::default())
    }

    unsafe fn begin(&self, batch: &mut Events, is_measured: bool) -> BackendResult {
        batch.is_measured = is_measured;
        Ok(())
    }

    unsafe fn copy(
        &self,
        batch: &mut Events,
        target: Span<'_, Vec<u8>>,
        source: Span<'_, Vec<u8>>,
    ) -> BackendResult {
        let (to, from, size) = (address(&target), address(&source), target.bytes as usize);
        // SAFETY: both ranges are within memory that lives until the batch is done, and do not overlap.
        let event = unsafe { queue::enqueue_svm_mem_cpy(self.queue, 0, to, from, size, 0, null()) };
        batch.add("copy", event)
    }

    unsafe fn fill(
        &self,
        batch: &mut Events,
        target: Span<'_, Vec<u8>>,
        word: u32,
    ) -> BackendResult {
        let (to, size, word) = (address(&target), target.bytes as usize, (&raw const word).cast());
        // SAFETY: the range is within its memory, and aligned, as the caller says; OpenCL copies the word.
        let event =
            unsafe { queue::enqueue_svm_mem_fill(self.queue, to, word, 4, size, 0, null()) };
        batch.add("fill memory", event)
    }

    unsafe fn launch(
        &self,
        batch: &mut Events,
        program: &Program,
        push: &[u8],
        groups: [u32; 3],
    ) -> BackendResult {
        // SAFETY: the caller vouches for what is pushed.
        batch.add("launch a kernel", unsafe { self.enqueue(program, push, groups) })
    }

    unsafe fn send(&self, batch: &mut Events) -> BackendResult {
        let all = &batch.commands;
        let (queue, count) = (self.queue, all.len() as u32);
        // A command that fails then fails the end, too.
        // SAFETY: the queue is open, and there are so many events.
        let done = unsafe { queue::enqueue_marker_with_wait_list(queue, count, all.as_ptr()) };
        batch.done = NonNull::new(done.map_err(failed("send a batch"))?);
        queue::flush(queue).map_err(failed("send a batch"))
    }

    fn wait(&self, batch: &mut Events, limit: Duration) -> BackendResult<bool> {
        let Some(done) = batch.done else { return Ok(true) };
        poll(limit, || {
            let status =
                event::get_event_data(done.as_ptr(), event::CL_EVENT_COMMAND_EXECUTION_STATUS);
            let status = number(Ok(status.map_err(failed("wait for a batch"))?)) as cl_int;
            if status < 0 {
                // What a later command reads may not be there.
                let mut failure = failed("run a batch")(status);
                (failure.is_lost, failure.code, failure.help) = (true, Code::Internal, GONE);
                return Err(failure);
            }
            Ok(status == event::CL_COMPLETE)
        })
    }

    fn times(&self, batch: &mut Events) -> BackendResult<Option<Vec<[i64; 2]>>> {
        let ends = [event::CL_PROFILING_COMMAND_START, event::CL_PROFILING_COMMAND_END];
        let time = |of, end| number(event::get_event_profiling_data(of, end)) as i64;
        let times = || batch.commands.iter().map(|of| ends.map(|end| time(*of, end))).collect();
        Ok(batch.is_measured.then(times))
    }

    unsafe fn reset(&self, batch: &mut Events) -> BackendResult {
        let done = batch.done.take().map(NonNull::as_ptr);
        batch.commands.drain(..).chain(done).for_each(release);
        Ok(())
    }
}
