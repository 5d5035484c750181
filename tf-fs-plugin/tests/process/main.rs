//! Process-wide parts: the logger, and mistakes that end the process.

#[expect(unsafe_code, reason = "a hand-made plugin, and a mistake on purpose")]
mod abi;

use abi::hand_made::{Offer, Plan, register};
use std::sync::Mutex;
use tf_plugin_testing::filesystem::Host;

/// Lets one test run at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Keeps what is logged.
struct Lines(Mutex<Vec<String>>);

static LINES: Lines = Lines(Mutex::new(Vec::new()));

impl log::Log for Lines {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let line = format!("{} {}", record.level(), record.args());
        self.0.lock().expect("no panic here").push(line);
    }

    fn flush(&self) {}
}

#[test]
fn another_api_number_is_only_logged() {
    let _alone = ALONE.lock();
    log::set_logger(&LINES).expect("the only logger of this process");
    log::set_max_level(log::LevelFilter::Info);
    let host = Host::new();
    let mut offer = Offer::good(c"newer");
    offer.metadata.push(|ops| {
        ops.filesystem_ops_api = 7;
        ops.writable_file_ops_api = -1;
    });
    register(&host, &Plan::of([offer])).expect("good");
    let mut without = Offer::without_files(c"without");
    without.metadata.push(|ops| ops.random_access_file_ops_api = 7);
    register(&host, &Plan::of([without])).expect("good");
    assert_eq!(
        *LINES.0.lock().expect("no panic there"),
        [
            "INFO Plugin API (7) for filesystem operations doesn't match expected core API (0). Plugin will be loaded but functionality might be missing.",
            "INFO Plugin API (-1) for writable file operations doesn't match expected core API (0). Plugin will be loaded but functionality might be missing.",
        ]
    );
    assert_eq!(abi::hand_made::live_blocks(), [""; 0]);
    assert_eq!(Host::live_statuses(), 0);
}

/// The variable that requests a mistake, so that a run under AddressSanitizer or valgrind can show
/// that it would be found.
const MISTAKE: &str = "TF_FS_PLUGIN_TEST_MISTAKE";

#[test]
fn a_mistake_on_purpose() {
    let _alone = ALONE.lock();
    let host = Host::new();
    register(&host, &Plan::of([Offer::good(c"hand")])).expect("good");
    match std::env::var(MISTAKE).as_deref() {
        Err(_) => {}
        Ok("leak") => std::mem::forget(host),
        Ok("use-after-free") => abi::use_after_free(),
        Ok(other) => panic!("{MISTAKE} is `leak` or `use-after-free`, not `{other}`"),
    }
}
