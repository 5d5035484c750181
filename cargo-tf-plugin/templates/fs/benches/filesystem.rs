//! Measures reads and appends through TensorFlow's C tables: `cargo bench --bench filesystem`.

use std::hint::black_box;
use std::time::Instant;

use template_plugin::TemplatePluginFs;

use tf_plugin_testing::filesystem::Host;

const FILE: &str = "templateplugin://box/bench";
const SIZE: usize = 64 << 20;

fn main() {
    let host = Host::load::<TemplatePluginFs>().expect("the plugin loads");
    println!("{:<18} {:>12} {:>12}", "", "ns per call", "MB/s");
    for block in [4 << 10, 64 << 10, 1 << 20] {
        let data = vec![7; block];
        let calls = SIZE / block;

        let fs = host.filesystem_for(FILE).expect("the scheme is there");
        let mut writer = fs.new_writable_file(FILE).expect("it opens");
        measure(&format!("append {} KiB", block >> 10), calls, block, |_| {
            writer.append(&data).expect("it is appended");
        });
        writer.close().expect("it closes");

        let reader = fs.new_random_access_file(FILE).expect("it opens");
        measure(&format!("read {} KiB", block >> 10), calls, block, |call| {
            let offset = (call * block) as u64;
            black_box(reader.read(offset, block).expect("it is read"));
        });
    }
}

fn measure(name: &str, calls: usize, bytes: usize, mut body: impl FnMut(usize)) {
    let start = Instant::now();
    for call in 0..calls {
        body(call);
    }
    let seconds = start.elapsed().as_secs_f64() / calls as f64;
    println!("{name:<18} {:>12.0} {:>12.0}", seconds * 1e9, bytes as f64 / seconds / 1e6);
}
