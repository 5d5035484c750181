//! Hosts of other versions: no device, no error, nothing written behind a struct.

use crate::platform::{HostPlatform, PRIORITIES, longer, refuses_shorter};
use se_plugin::__private::PlatformExport;
use se_plugin::Platform as _;
use std::ffi::CStr;
use tf_plugin_testing::device::{Host, Sizes};

fn load(sizes: Sizes) -> se_plugin::Result<Host> {
    Host::load_with::<HostPlatform>(sizes, &PlatformExport::new())
}

/// Returns the number of devices, and checks that nothing else went wrong.
fn devices(sizes: Sizes) -> usize {
    let host = load(sizes).unwrap_or_else(|error| panic!("{sizes:?}: {error}"));
    assert_eq!(host.violations(), [], "{sizes:?}");
    let count = host.device_count().unwrap();
    if count > 0 {
        drop(host.device(0).unwrap());
    }
    assert_eq!(host.violations(), [], "{sizes:?}");
    count
}

#[test]
fn longer_structs_are_taken() {
    for more in 0..=64 {
        let sizes = longer!(
            Sizes {
                params,
                platform,
                platform_fns,
                device_fns,
                stream_executor,
                timer_fns,
                device
            },
            more
        );
        assert_eq!(devices(sizes), 1, "{more}");
    }
}

#[test]
fn a_short_stream_executor_means_no_devices() {
    for stream_executor in 8..288 {
        assert_eq!(devices(Sizes { stream_executor, ..Sizes::default() }), 0, "{stream_executor}");
    }
}

/// Checks `create_stream_with_options`, for which TensorFlow has room since 2.22, up to byte 296 of the struct.
#[test]
fn streams_with_options_are_offered_where_there_is_room() {
    for stream_executor in 288..=304 {
        let host = load(Sizes { stream_executor, ..Sizes::default() }).unwrap();
        let device = host.device(0).unwrap();
        let created = device.stream_with_options(Some((24, Some(-1))));
        assert_eq!(created.is_some(), stream_executor >= 296, "{stream_executor}");
        created.map_or(Ok(()), |(_, created)| created).unwrap();
        assert_eq!(host.violations(), [], "{stream_executor}");
    }

    let host = load(Sizes { stream_executor: 296, ..Sizes::default() }).unwrap();
    let device = host.device(0).unwrap();
    let asked = |options| -> se_plugin::Result<Vec<Option<i32>>> {
        PRIORITIES.lock().unwrap().clear();
        let (stream, created) = device.stream_with_options(options).expect("there is room");
        created?;
        stream.synchronize()?;
        Ok(PRIORITIES.lock().unwrap().clone())
    };
    for size in 8..=64 {
        assert_eq!(asked(Some((size, None))).unwrap(), [None], "{size}");
        // A number that the struct does not cover is not read.
        let priority = (size >= 24).then_some(-3);
        assert_eq!(asked(Some((size, Some(-3)))).unwrap(), [priority], "{size}");
    }
    // Without options it is `create_stream`.
    assert_eq!(asked(None).unwrap(), []);
    for size in 0..8 {
        let error = asked(Some((size, None))).expect_err("no size");
        assert!(error.message().contains("SP_StreamOptions"), "{size}: {error}");
    }
    drop(device);
    assert_eq!((host.live(), host.violations()), (0, vec![]));
}

#[test]
fn optional_fields_may_be_missing() {
    let all = Sizes::default();
    assert_eq!(devices(Sizes { platform: 34, ..all }), 1, "before `force_memory_growth`");
    assert_eq!(devices(Sizes { platform_fns: 72, ..all }), 1, "without timers");
    for device_fns in 8..40 {
        assert_eq!(devices(Sizes { device_fns, ..all }), 1, "{device_fns}");
    }
    for device in 32..56 {
        assert_eq!(devices(Sizes { device, ..all }), 1, "{device}");
    }
}

#[test]
fn tables_without_room_are_refused_with_the_reason() {
    refuses_shorter!(load, Sizes {
        params: 64, "SE_PlatformRegistrationParams";
        platform: 32, "SP_Platform ";
        platform_fns: 72, "SP_PlatformFns";
    });
    let error = load(Sizes { params: 0, ..Sizes::default() }).expect_err("no size");
    assert!(error.message().contains("struct_size"), "{error}");
}

#[test]
fn a_device_without_room_fails_alone() {
    for device in 0..32 {
        let host = load(Sizes { device, ..Sizes::default() }).unwrap();
        assert!(host.device(0).is_err(), "{device}");
        assert_eq!((host.live(), host.violations()), (0, vec![]), "{device}");
    }
}

#[test]
fn another_major_version_means_no_devices() {
    for major in [-1, 1, 2, i32::MAX] {
        assert_eq!(devices(Sizes { major, ..Sizes::default() }), 0, "{major}");
    }
}

#[test]
fn a_second_load_has_other_names_and_no_devices() {
    let export = PlatformExport::new();
    assert_eq!(export.device_type(), None);
    let first = Host::load_with::<HostPlatform>(Sizes::default(), &export).unwrap();
    let second = Host::load_with::<HostPlatform>(Sizes::default(), &export).unwrap();
    let third = Host::load_with::<HostPlatform>(Sizes::default(), &export).unwrap();
    assert_eq!(first.device_count().unwrap(), 1);
    assert_eq!([&second, &third].map(|host| host.device_count().unwrap()), [0, 0]);
    let names = [&first, &second, &third].map(Host::names);
    assert!(names[0] != names[1] && names[1] != names[2] && names[0] != names[2], "{names:?}");
    assert!(second.null_members().is_empty());
    assert_eq!(export.device_type().map(CStr::to_str), Some(Ok(HostPlatform::TYPE)));
}
