//! Tests copies through staging memory: in pieces, and if the driver has less memory than requested.

use gpu::GpuPlatform;
use se_plugin::{Device as _, DevicePtr, HostBuf, Platform as _};
use tf_plugin_testing::device::Host;

/// The bytes of a copy: the driver fails once to allocate the next power of two.
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

/// Copies several pieces, each of several parts, at odd addresses on both sides.
pub(crate) fn large() {
    // The last piece has parts as well, and the last part is odd.
    const LEN: usize = (43 << 20) + 13;
    let host = Host::load::<GpuPlatform>().expect("a platform");
    {
        let device = host.device(0).expect("a device");
        let (stream, created) = device.stream();
        created.expect("a stream");
        let whole = LEN + 8;
        let memory = device.allocate(whole as u64).expect("memory");
        let odd = DevicePtr::new(memory.address() + 3).expect("an address");
        // No two parts have the same bytes: 4 MiB is not a multiple of 251.
        let content: Vec<u8> = (0..=LEN).map(|at| (at % 251) as u8).collect();
        let mut back = vec![254; LEN + 2];
        let mut all = vec![0; whole];
        stream.copy_to_device(memory, &vec![255; whole]).expect("a copy");
        stream.copy_to_device(odd, &content[1..]).expect("a copy");
        stream.copy_to_host(&mut back[1..=LEN], odd).expect("a copy");
        stream.copy_to_host(&mut all, memory).expect("a copy");
        stream.synchronize().expect("copied");
        assert!(back[1..=LEN] == content[1..], "other bytes came back");
        assert_eq!([back[0], back[LEN + 1]], [254; 2], "around the copy to the host");
        assert!(all[3..LEN + 3] == content[1..], "other bytes are on the device");
        let around = all[..3].iter().chain(&all[LEN + 3..]);
        assert!(around.into_iter().all(|byte| *byte == 255), "around the copy to the device");
        device.deallocate(memory);
    }
    assert_eq!(host.violations().len(), 0, "{:#?}", host.violations());
}
