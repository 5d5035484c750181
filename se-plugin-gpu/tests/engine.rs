//! The engine without a driver: the device conformance cases on the smallest backend. Its memory is the host's, each
//! command is done at once, and it runs no shaders; all else are the defaults of the trait.

use se_plugin::{Code, Device as _, HostBuf, Platform as _, Result, Stream as _};
use se_plugin_gpu::backend::{
    Allocation, Backend, BackendError, BackendResult, Found, MemoryKind, Opened, Shader, Span,
};
use se_plugin_gpu::launch::{Launch, Operand};
use se_plugin_gpu::settings::Settings;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::Cell;
use std::ptr::NonNull;
use std::time::Duration;

se_plugin_gpu::plugin! {
    /// The platform.
    pub HostGpu, name = "HOST_GPU", type = "HOST_GPU", backend = Host, ops = [math]
}

/// An open GPU.
#[derive(Debug)]
pub struct Host;

/// Memory of either kind: where it is, and its layout.
#[derive(Debug)]
pub struct Block(usize, Layout);

thread_local! {
    /// The address that the next memory of a GPU seems to have, as if it were another GPU's.
    static SEEMING: Cell<Option<u64>> = const { Cell::new(None) };
}

fn failed(code: Code, what: &str) -> BackendError {
    let (what, cause) = (format!("host cannot {what}"), String::from("it is a test"));
    BackendError { code, what, cause, help: "use a GPU", is_lost: false }
}

/// Returns the address of a range of memory of either kind.
fn at(span: &Span<'_, Block>) -> *mut u8 {
    span.host().unwrap_or(span.address() as *mut u8)
}

#[expect(unsafe_code, reason = "memory by addresses")]
// SAFETY: mapped memory has as many bytes as were requested, which are zeros; each command is done when its function returns.
unsafe impl Backend for Host {
    const NAME: &'static str = "Host";
    type PhysicalDevice = ();
    type Memory = Block;
    type Program = ();
    type Batch = ();

    fn list() -> Result<Vec<Found<()>>> {
        let names = ["host", "host too"].map(String::from);
        let found = names.map(|name| Found { name, is_software: false, physical_device: Ok(()) });
        Ok(found.into())
    }
    fn open((): (), _: &Settings) -> Result<Opened<Self>> {
        let driver_info = String::from("no driver");
        Ok(Opened { backend: Self, driver_info, total: 1 << 30, cooperative: None })
    }
    fn allocate(&self, bytes: u64, kind: MemoryKind) -> BackendResult<Allocation<Block>> {
        let full = || failed(Code::ResourceExhausted, "allocate so many bytes");
        let layout = Layout::from_size_align(bytes as usize, 256).map_err(|_| full())?;
        // SAFETY: `bytes` is not 0.
        let host = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(full)?;
        let start = host.as_ptr().expose_provenance();
        let memory = Block(start, layout);
        Ok(match kind {
            MemoryKind::Local => {
                let address = SEEMING.take().unwrap_or(start as u64);
                Allocation { address, host: None, memory }
            }
            MemoryKind::Mapped => Allocation { address: 0, host: Some(host), memory },
        })
    }
    unsafe fn free(&self, memory: Allocation<Block>) {
        let Block(start, layout) = memory.memory;
        // SAFETY: `allocate` has allocated it with this layout, and nothing uses it, as the caller says.
        unsafe { dealloc(std::ptr::with_exposed_provenance_mut(start), layout) };
    }
    fn compile(&self, shader: &Shader, _: &[u32]) -> BackendResult {
        Err(failed(Code::Unimplemented, &format!("compile `{}`", shader.name())))
    }
    fn batch(&self) -> BackendResult {
        Ok(())
    }
    unsafe fn copy(
        &self,
        (): &mut (),
        target: Span<'_, Block>,
        source: Span<'_, Block>,
    ) -> BackendResult {
        // SAFETY: both ranges are within their memory and do not overlap, as the caller says.
        unsafe { at(&target).copy_from_nonoverlapping(at(&source), target.bytes as usize) };
        Ok(())
    }
    unsafe fn fill(&self, (): &mut (), target: Span<'_, Block>, word: u32) -> BackendResult {
        let (start, words) = (at(&target).cast::<u32>(), target.bytes as usize / 4);
        for word_at in 0..words {
            // SAFETY: the range is within its memory, and both its ends are aligned to words, as the caller says.
            unsafe { start.add(word_at).write(word) };
        }
        Ok(())
    }
    unsafe fn launch(&self, (): &mut (), (): &(), _: &[u8], _: [u32; 3]) -> BackendResult {
        Err(failed(Code::Unimplemented, "launch a shader"))
    }
    unsafe fn send(&self, (): &mut ()) -> BackendResult {
        Ok(())
    }
    fn wait(&self, (): &mut (), _: Duration) -> BackendResult<bool> {
        Ok(true)
    }
}

tf_plugin_testing::device::conformance!(HostGpu);

#[test]
fn two_gpus_share_no_address_and_copy_to_each_other() {
    const LEN: usize = (9 << 20) + 5;
    let platform = HostGpu::new().unwrap();
    assert_eq!(platform.device_count().unwrap(), 2);
    let [one, other] = [0, 1].map(|ordinal| platform.open(ordinal).unwrap());
    let from = one.allocate(LEN as u64).unwrap();
    // The driver of the other GPU returns an address in the middle of that.
    SEEMING.set(Some(from.address() + 4096));
    let to = other.allocate(LEN as u64).unwrap();
    assert!(SEEMING.take().is_none(), "the driver was not called");
    let apart = to.address().abs_diff(from.address());
    assert!(apart >= LEN as u64, "{apart} bytes apart");

    let content: Vec<u8> = (0..LEN).map(|at| (at % 251) as u8).collect();
    let mut back = vec![0; LEN];
    one.copy_to_device(from, &content).unwrap();
    other.copy_on_device(to, from, LEN as u64).unwrap();
    other.copy_to_host(HostBuf::from_slice(&mut back), to).unwrap();
    assert!(back == content, "other bytes");
    // In order with a stream, and back.
    let stream = other.create_stream().unwrap();
    stream.fill(to, se_plugin::Pattern::Byte(7), LEN as u64).unwrap();
    stream.copy_on_device(from, to, LEN as u64).unwrap();
    stream.synchronize().unwrap();
    one.copy_to_host(HostBuf::from_slice(&mut back), from).unwrap();
    assert!(back.iter().all(|byte| *byte == 7), "other bytes");
    let outside = stream.copy_on_device(from, to, LEN as u64 + 1).unwrap_err();
    assert_eq!(outside.code(), Code::InvalidArgument, "{outside}");
}

/// The program would be given an address that its GPU may not have, or has for something else.
#[test]
#[expect(unsafe_code, reason = "the contract of shaders")]
fn a_launch_with_the_memory_of_another_gpu_is_refused() {
    // SAFETY: the program accesses no memory.
    const NOTHING: &Shader = &unsafe { Shader::new("nothing", &[], "void main() {}") };
    let platform = HostGpu::new().unwrap();
    let [one, other] = [0, 1].map(|ordinal| platform.open(ordinal).unwrap());
    let [own, others] = [&one, &other].map(|device| device.allocate(64).unwrap());
    let stream = one.create_stream().unwrap();
    let launch = |memory, bytes| {
        let operands = &[Operand::Bytes(memory, bytes)];
        let (constants, numbers, groups) = (&[], &[], [1, 1, 1]);
        Launch { op: "Nothing", shader: NOTHING, constants, operands, numbers, groups }
            .enqueue_on(&stream)
            .unwrap_err()
    };
    let error = launch(others, 64);
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    let text = error.to_string();
    assert!(text.contains("`Nothing` uses 64 bytes at ") && text.contains("not within"), "{text}");
    // The memory of its own GPU passes, and the backend is called.
    let error = launch(own, 64);
    assert_eq!(error.code(), Code::Unimplemented, "{error}");
}
