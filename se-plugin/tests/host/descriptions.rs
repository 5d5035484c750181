//! The description of a device, its allocator and its host memory, also with failing methods.

use crate::platform::{MEMORY, SWITCH, Switched, with_switched};
use tf_plugin_testing::device::Host;

#[test]
fn a_device_describes_itself() {
    with_switched(|device| {
        let texts = [Some("a name"), None, Some("0000:00:02.1")];
        assert_eq!(device.description().each_ref().map(Option::as_deref), texts);
        assert_eq!(device.figures(), (3, i64::MAX, 2.5));
        // The first allocation makes the SDK set memory aside.
        device.deallocate(device.allocate(4096).unwrap());
        for panics in [false, true] {
            for (op, figures) in [
                ("numa_node", (-1, i64::MAX, 2.5)),
                ("memory_bandwidth", (3, -1, 2.5)),
                ("gflops", (3, i64::MAX, -1.0)),
            ] {
                SWITCH.set(op, panics);
                assert_eq!(device.figures(), figures, "{op}");
            }
            // After a failure, the result is the latest known one.
            SWITCH.set("", false);
            let free = device.memory_usage().expect("known")[0];
            let memory = device.allocate(4096).unwrap();
            SWITCH.set("memory_usage", panics);
            assert_eq!(device.memory_usage().expect("known before")[0], free);
            SWITCH.set("", false);
            assert_eq!(device.memory_usage().expect("known")[0], free - 4096);
            device.deallocate(memory);
        }
    });
}

#[test]
fn a_device_that_cannot_describe_itself_has_no_description_or_is_not_counted() {
    let _alone = SWITCH.alone();
    for (op, known) in
        [("hardware_name", 1), ("vendor", 2), ("pci_bus_id", 1), ("host_allocator", 2)]
    {
        for panics in [false, true] {
            SWITCH.set(op, panics);
            let host = Host::load::<Switched>().unwrap();
            assert_eq!(host.device_count().unwrap(), usize::from(!panics), "{op}");
            SWITCH.set("", false);
            let Ok(device) = host.device(0) else { continue };
            assert_eq!(device.description().iter().flatten().count(), known, "{op}");
        }
    }
    SWITCH.set("memory_usage", false);
    let count = Host::load::<Switched>().unwrap().device_count().unwrap();
    assert_eq!(count, 0, "TensorFlow would run nothing at all");
}

#[test]
fn statistics_reach_as_far_as_the_struct() {
    with_switched(|device| {
        let all = device.allocator_stats(96).expect("known");
        assert_eq!(
            [all.num_allocs, all.bytes_in_use, all.peak_bytes_in_use, all.largest_alloc_size],
            [1, 2, 3, 4]
        );
        assert_eq!((all.has_bytes_limit, all.bytes_limit), (1, 5));
        assert_eq!((all.bytes_reserved, all.peak_bytes_reserved), (6, 7));
        assert_eq!((all.has_bytes_reservable_limit, all.bytes_reservable_limit), (0, 0));
        assert_eq!(all.largest_free_block_bytes, i64::MAX);
        let short = device.allocator_stats(56).expect("known");
        assert_eq!((short.bytes_limit, short.largest_free_block_bytes), (5, 0));
        assert!(device.allocator_stats(0).is_none());
        for panics in [false, true] {
            SWITCH.set("allocator_stats", panics);
            assert!(device.allocator_stats(96).is_none());
        }
    });
}

#[test]
fn host_memory_is_the_devices_own() {
    with_switched(|device| {
        let [live, total] = MEMORY.counts();
        for bytes in [1, 64, 5000] {
            assert!(device.host_memory(bytes) >= 64);
        }
        assert_eq!(device.host_memory(0), 0);
        assert_eq!(MEMORY.counts(), [live, total + 3]);
        for panics in [false, true] {
            SWITCH.set("host memory", panics);
            assert_eq!(device.host_memory(64), 0, "null");
            SWITCH.set("host_allocator", panics);
            assert_eq!(device.host_memory(64), 0, "no memory of another kind");
        }
        assert_eq!(MEMORY.counts()[0], live);
    });
}
