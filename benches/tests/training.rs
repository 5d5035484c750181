//! The bench of training, with small sizes: the plugin on lavapipe learns as TensorFlow's CPU does.

use std::env::{self, consts};

use tf_plugin_benches::training::{
    Contestant, Contestants, MODELS, Measured, Precision, Sizes, gains_of_mixed_precision, table,
};

#[test]
fn the_plugin_trains_beside_the_cpu() {
    let test = env::current_exe().expect("the test has a path");
    let library = format!("{}gpu{}", consts::DLL_PREFIX, consts::DLL_SUFFIX);
    let contestants = Contestants {
        plugin: test.with_file_name(library),
        torch: None,
        jax: None,
        tf32: false,
        environment: lavapipe::driver(),
    };
    let mut workers = [Contestant::Plugin, Contestant::Cpu]
        .map(|it| (it, contestants.start(it).expect("it starts")));
    assert!(workers[0].1.version.contains("the plugin's /physical_device:GPU:0"));
    assert!(workers[1].1.version.ends_with("the CPU"));
    let model = MODELS.iter().find(|model| model.name == "Transformer").expect("it is listed");
    let sizes = Sizes { batch: 2, size: 16, steps: 1, rounds: 1 };
    let measured = Precision::ALL.map(|precision| {
        let row = Measured::take(&mut workers, model, precision, sizes).expect("both train");
        let [plugin, cpu] = row.losses[..] else { panic!("two losses: {row:?}") };
        assert!((plugin - cpu).abs() < 0.01 * cpu, "{row:?}");
        row
    });
    let text = table(&measured, false).expect("a table").to_string();
    for cell in ["| Transformer", "mixed_float16", "TensorFlow's CPU", "this plugin"] {
        assert!(text.contains(cell), "{cell}: {text}");
    }
    assert_eq!(gains_of_mixed_precision(&measured).len(), 1);
}
