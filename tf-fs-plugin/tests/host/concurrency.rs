//! Sixteen threads on one host.

use crate::full::{Full, last_transaction};
use tf_plugin_testing::filesystem::Host;

#[test]
fn transactions_from_all_threads() {
    let host = Host::load::<Full>().expect("loaded");
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let host = &host;
            scope.spawn(move || {
                for round in 0..60 {
                    let name = format!("full://h/{thread}-{round}");
                    let started = host.get_or_start_transaction_for_path(&name).expect("started");
                    assert!(host.get_transaction_for_path(&name).expect("found") == started);
                    host.end_transaction(&started).expect("ended");
                    assert_eq!(last_transaction().strong_count(), 0);
                }
            });
        }
    });
    host.check();
}
