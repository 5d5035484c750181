//! Measures copies to and from the device through TensorFlow's C tables: `cargo bench --bench device`.

use std::time::Instant;

use template_plugin::TemplatePluginPlatform;

use tf_plugin_testing::device::Host;

const CALLS: usize = 200;

fn main() {
    let host = Host::load::<TemplatePluginPlatform>().expect("the plugin loads");
    let device = host.device(0).expect("there is a device");
    let (stream, made) = device.stream();
    made.expect("a stream");
    println!("{:<18} {:>12} {:>12}", "", "ns per call", "MB/s");
    for bytes in [4 << 10, 64 << 10, 1 << 20] {
        let mut data = vec![7; bytes];
        let memory = device.allocate(bytes as u64).expect("memory");
        measure(&format!("to device {} KiB", bytes >> 10), bytes, || {
            stream.copy_to_device(memory, &data).expect("it is copied");
        });
        measure(&format!("to host {} KiB", bytes >> 10), bytes, || {
            stream.copy_to_host(&mut data, memory).expect("it is copied");
        });
        device.deallocate(memory);
    }
}

fn measure(name: &str, bytes: usize, mut body: impl FnMut()) {
    let start = Instant::now();
    for _ in 0..CALLS {
        body();
    }
    let seconds = start.elapsed().as_secs_f64() / CALLS as f64;
    println!("{name:<18} {:>12.0} {:>12.0}", seconds * 1e9, bytes as f64 / seconds / 1e6);
}
