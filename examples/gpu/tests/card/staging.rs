//! Copies while the driver has less memory than is asked for.

use gpu::GpuPlatform;
use se_plugin::{Device as _, HostBuf, Platform as _};

/// The next power of two is more, and the driver does not have it once.
const BYTES: usize = 3 << 20;

pub(crate) fn with_less() {
    let device = GpuPlatform::new().and_then(|platform| platform.open(0)).expect("a device");
    let memory = device.allocate(BYTES as u64).expect("memory");
    let content: Vec<u8> = (0..BYTES).map(|index| (index % 251) as u8).collect();
    device.copy_to_device(memory, &content).expect("a copy");
    let mut copied = vec![0; BYTES];
    device.copy_to_host(HostBuf::from_slice(&mut copied), memory).expect("a copy");
    assert!(copied == content, "other bytes");
}
