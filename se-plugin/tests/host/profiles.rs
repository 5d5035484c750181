//! Profilers in the in-process host.

use crate::platform::{HostPlatform, longer, platform, refuses_shorter};
use crate::switch::Switch;
use se_plugin::Code;
use se_plugin::prelude::*;
use se_plugin::profiler::{Profiler, XPlane, XSpace};
use tf_plugin_testing::device::{Host, ProfilerHost, ProfilerSizes};

static SWITCH: Switch = Switch::new();

struct Faulty;

impl Profiler for Faulty {
    fn start(&self) -> Result<()> {
        SWITCH.trip("start")
    }
    fn stop(&self) -> Result<()> {
        SWITCH.trip("stop")
    }
    fn collect(&self) -> Result<XSpace> {
        SWITCH.trip("collect")?;
        Ok(XSpace { planes: vec![XPlane { name: "there".into(), ..XPlane::default() }] })
    }
}

platform!(WithoutProfiler, graph: None, profiler: None);
platform!(WithProfiler, graph: None, profiler: Some(|| Box::new(Faulty)));
platform!(WithoutConstructor, graph: None, profiler: Some(|| panic!("requested it")));

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn a_profile_has_what_was_done_meanwhile() {
    let host = Host::load::<HostPlatform>().unwrap();
    let device = host.device(0).unwrap();
    let (stream, _) = device.stream();
    let profiler = ProfilerHost::load::<HostPlatform>().unwrap();
    assert_eq!(profiler.device_type(), "RUST_TEST");
    for _ in 0..2 {
        let memory = device.allocate(64).unwrap();
        let space = profiler.profile(|| {
            stream.copy_to_device(memory, &[3; 64]).unwrap();
            stream.synchronize().unwrap();
        });
        let space = space.unwrap();
        for part in [&b"/device:CUSTOM:RUST_TEST:0"[..], b"Stream ", b"copy_to_device"] {
            assert!(contains(&space, part), "{}", space.escape_ascii());
        }
        device.deallocate(memory);
    }
    assert_eq!(profiler.violations(), []);
}

#[test]
fn a_plugin_without_a_profiler_collects_nothing() {
    let _alone = SWITCH.alone();
    for host in [
        ProfilerHost::load::<WithoutProfiler>(),
        ProfilerHost::load::<WithoutConstructor>(),
        ProfilerHost::load_with::<WithProfiler>(ProfilerSizes::default(), 1),
        ProfilerHost::load_with::<WithProfiler>(
            ProfilerSizes { major: 1, ..ProfilerSizes::default() },
            0,
        ),
    ] {
        let host = host.unwrap();
        assert!(host.profile(|| ()).unwrap().is_empty());
        assert_eq!(host.violations(), []);
    }
    let second = ProfilerHost::load_with::<WithProfiler>(ProfilerSizes::default(), 1).unwrap();
    assert_eq!(second.device_type(), "RUST_TEST_DUP_B");
}

#[test]
fn failures_are_told_and_the_size_is_set() {
    let _alone = SWITCH.alone();
    let host = ProfilerHost::load::<WithProfiler>().unwrap();
    for panics in [false, true] {
        for op in ["start", "stop", "collect"] {
            SWITCH.set(op, panics);
            let error = host.profile(|| ()).unwrap_err();
            assert!(error.message().contains("requested it"), "{op}: {error}");
            let expected = if panics { Code::Internal } else { Code::Unavailable };
            assert_eq!(error.code(), expected, "{op}: {error}");
            SWITCH.set("", false);
            assert!(contains(&host.profile(|| ()).unwrap(), b"there"), "{op}");
            assert_eq!(host.violations(), [], "{op}");
        }
    }
}

#[test]
fn only_what_was_asked_for_is_written() {
    let _alone = SWITCH.alone();
    let host = ProfilerHost::load::<WithProfiler>().unwrap();
    let size = host.collect().unwrap().len();
    // The buffer must have exactly this size.
    for room in [1, size, size + 1] {
        let error = host.take(room).unwrap_err();
        assert!(error.message().contains("request the size first"), "{room}: {error}");
    }
    assert_eq!(host.collect().unwrap().len(), size);
}

#[test]
fn hosts_of_other_versions() {
    let _alone = SWITCH.alone();
    let ours = ProfilerSizes::default();
    let load = |sizes| ProfilerHost::load_with::<WithProfiler>(sizes, 0);
    for more in 0..=64 {
        let sizes = longer!(ProfilerSizes { params, profiler, profiler_fns }, more);
        let host = load(sizes).unwrap();
        assert!(!host.profile(|| ()).unwrap().is_empty());
        assert_eq!(host.violations(), [], "{more}");
    }
    refuses_shorter!(load, ProfilerSizes {
        params: ours.params, "TF_ProfilerRegistrationParams";
        profiler: ours.profiler, "TP_Profiler ";
        profiler_fns: ours.profiler_fns, "TP_ProfilerFns";
    });
}
