//! The device through TensorFlow's C tables, in this process and without TensorFlow.

use template_plugin::{TemplatePluginPlatform, add};

use se_plugin::prelude::*;
use se_plugin::testing::{Host, TestDevice};

fn with_device(body: impl FnOnce(&TestDevice<'_>)) {
    let host = Host::load::<TemplatePluginPlatform>().expect("the plugin loads");
    body(&host.device(0).expect("there is a device"));
    assert_eq!(host.live(), 0, "something was not destroyed");
    assert_eq!(host.violations(), []);
}

#[test]
fn what_goes_to_the_device_comes_back() {
    with_device(|device| {
        let (stream, made) = device.stream();
        made.expect("a stream");
        for len in [1, 255, 256, 10_000_u64] {
            let there: Vec<u8> = (0..len).map(|at| (at * 7) as u8).collect();
            let [a, b] = [(); 2].map(|()| device.allocate(len).expect("memory"));
            stream.copy_to_device(a, &there).expect("enqueued");
            stream.copy_on_device(b, a, len).expect("enqueued");
            let mut back = vec![0; there.len()];
            stream.copy_to_host(&mut back, b).expect("copied");
            assert_eq!(back, there);
            [a, b].into_iter().for_each(|memory| device.deallocate(memory));
        }
        stream.synchronize().expect("nothing has failed");
    });
}

#[test]
fn memory_is_filled() {
    with_device(|device| {
        let (stream, made) = device.stream();
        made.expect("a stream");
        let memory = device.allocate(1000).expect("memory");
        let mut back = [0; 1000];
        stream.fill(memory, Pattern::Byte(9), 1000).expect("enqueued");
        stream.copy_to_host(&mut back, memory).expect("copied");
        assert_eq!(back, [9; 1000]);
        device.deallocate(memory);
    });
}

#[test]
fn a_stream_waits_for_another() {
    with_device(|device| {
        let ((first, _), (second, _)) = (device.stream(), device.stream());
        let memory = device.allocate(4).expect("memory");
        let event = device.event().expect("an event");
        first.copy_to_device(memory, b"done").expect("enqueued");
        first.record(&event);
        second.wait(&event).expect("enqueued");
        let mut back = [0; 4];
        second.copy_to_host(&mut back, memory).expect("copied");
        assert_eq!(&back, b"done");
        device.deallocate(memory);
    });
}

#[test]
fn numbers_are_added() {
    let mut sum = [0.0; 3];
    add(&[1.0, 2.0, 3.0], &[0.5, 0.25, -3.0], &mut sum);
    assert_eq!(sum, [1.5, 2.25, 0.0]);
}
