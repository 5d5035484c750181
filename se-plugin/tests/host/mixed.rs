//! Handles of two hosts or two devices in one call: other Rust types behind the same C handle.

use crate::platform::HostPlatform;
use se_plugin::EventStatus;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tf_plugin_testing::device::{Host, TestDevice};

/// Returns the panic message of a call that must not reach the plugin.
fn refusal(call: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(call)).expect_err("the call was made");
    payload.downcast_ref::<String>().expect("a text").clone()
}

/// Makes each call that takes two handles, with the stream of one device and the other handle of another.
fn mixes<'d>(one: &'d TestDevice<'d>, other: &'d TestDevice<'d>) -> [(&'static str, String); 5] {
    let (stream, made) = one.stream();
    made.unwrap();
    let (foreign, made) = other.stream();
    made.unwrap();
    let (event, timer) = (other.event().unwrap(), other.timer().unwrap());
    [
        ("record_event", refusal(|| stream.record_event(&event))),
        ("start_timer", refusal(|| drop(stream.time(&timer, true)))),
        ("stop_timer", refusal(|| drop(stream.time(&timer, false)))),
        ("wait_for_event", refusal(|| drop(stream.wait_event(&event)))),
        ("create_stream_dependency", refusal(|| drop(stream.wait_stream(&foreign)))),
    ]
}

#[test]
fn handles_of_two_hosts_are_not_mixed() {
    let hosts = [(); 2].map(|()| Host::load::<HostPlatform>().unwrap());
    let [one, other] = hosts.each_ref().map(|host| host.device(0).unwrap());
    for (op, message) in mixes(&one, &other).into_iter().chain(mixes(&other, &one)) {
        assert!(message.starts_with(&format!("`{op}` got handles of two hosts")), "{message}");
    }
    drop([one, other]);
    assert_eq!(hosts.each_ref().map(Host::live), [0, 0]);
}

#[test]
fn null_handles_are_not_mixed_either() {
    let hosts = [(); 2].map(|()| Host::load::<HostPlatform>().unwrap());
    let [one, other] = hosts.each_ref().map(|host| host.device(0).unwrap());
    let message = refusal(|| one.null_stream().record_event(&other.null_event()));
    assert!(message.contains("two hosts"), "{message}");
}

/// Makes a stream wait for another device's, as TensorFlow does when it copies from one to the other. It records
/// events and takes times on one device only.
#[test]
fn streams_of_two_devices_of_a_host_wait_for_each_other() {
    let host = Host::load::<HostPlatform>().unwrap();
    let [one, other] = [(); 2].map(|()| host.device(0).unwrap());
    let [(stream, _), (foreign, _)] = [one.stream(), other.stream()];
    let (event, timer) = (other.event().unwrap(), other.timer().unwrap());
    foreign.record_event(&event);
    stream.wait_event(&event).unwrap();
    stream.wait_stream(&foreign).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(event.status(), EventStatus::Complete);
    for message in [
        refusal(|| stream.record_event(&event)),
        refusal(|| drop(stream.time(&timer, true))),
        refusal(|| drop(stream.time(&timer, false))),
    ] {
        assert!(message.contains("got handles of two devices"), "{message}");
    }
}
