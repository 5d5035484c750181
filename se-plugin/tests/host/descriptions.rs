//! What a device says of itself, its allocator and its host memory, also with failing methods.

use crate::failing_device::{MEMORY, SWITCH, fault, load, with_device};

#[test]
fn a_device_describes_itself() {
    let _alone = SWITCH.alone();
    for panics in [false, true] {
        with_device(false, |device| {
            let texts = [Some("a name"), None, Some("0000:00:02.1")];
            assert_eq!(device.description().each_ref().map(Option::as_deref), texts);
            assert_eq!(device.figures(), (3, i64::MAX, 2.5));
            for (op, figures) in [
                ("numa_node", (-1, i64::MAX, 2.5)),
                ("memory_bandwidth", (3, -1, 2.5)),
                ("gflops", (3, i64::MAX, -1.0)),
            ] {
                fault(op, panics);
                assert_eq!(device.figures(), figures, "{op}");
            }
            // The latest that is known stands in.
            fault("", false);
            // With it the SDK sets memory aside.
            let first = device.allocate(4096).unwrap();
            let free = device.memory_usage().expect("known")[0];
            let memory = device.allocate(4096).unwrap();
            fault("memory_usage", panics);
            assert_eq!(device.memory_usage().expect("known before")[0], free);
            fault("", false);
            assert_eq!(device.memory_usage().expect("known")[0], free - 4096);
            device.deallocate(memory);
            device.deallocate(first);
        });
    }
    for op in ["hardware_name", "vendor", "pci_bus_id", "host_allocator"] {
        for panics in [false, true] {
            fault(op, panics);
            let host = load(false);
            let count = usize::from(!panics);
            assert_eq!(host.device_count().unwrap(), count, "{op}");
            fault("", false);
            let Ok(device) = host.device(0) else { continue };
            let known = device.description().iter().flatten().count();
            assert_eq!(
                known,
                if op.contains("name") || op.contains("pci") { 1 } else { 2 },
                "{op}"
            );
        }
    }
    fault("memory_usage", false);
    assert_eq!(load(false).device_count().unwrap(), 0, "TensorFlow would run nothing at all");
    fault("", false);
}

#[test]
fn statistics_reach_as_far_as_the_struct() {
    let _alone = SWITCH.alone();
    with_device(false, |device| {
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
            fault("allocator_stats", panics);
            assert!(device.allocator_stats(96).is_none());
        }
        fault("", false);
    });
}

#[test]
fn host_memory_is_the_devices_own() {
    let _alone = SWITCH.alone();
    with_device(false, |device| {
        let [live, total] = MEMORY.counts();
        for bytes in [1, 64, 5000] {
            assert!(device.host_memory(bytes) >= 64);
        }
        assert_eq!(device.host_memory(0), 0);
        assert_eq!(MEMORY.counts(), [live, total + 3]);
        for panics in [false, true] {
            fault("host memory", panics);
            assert_eq!(device.host_memory(64), 0, "null");
            fault("host_allocator", panics);
            assert_eq!(device.host_memory(64), 0, "no memory of another kind");
        }
        fault("", false);
        assert_eq!(MEMORY.counts()[0], live);
    });
}
