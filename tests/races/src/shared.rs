//! Models of what devices and streams share.

use crate::health::Health;
use crate::{explore, spawn_with};
use loom::thread;
use tf_plugin_core::Error;

/// Two streams of a device fail at the same time: each reports its own failure, the device the first forever.
pub fn streams_that_fail() {
    explore(|| {
        let device = Health::default();
        let streams = [1, 2].map(|number| {
            let (stream, device) = (device.of_stream(), device.clone());
            thread::spawn(move || {
                let text = format!("failure {number}");
                stream.note("copy", &Error::unavailable(text.clone()));
                let own = stream.check().unwrap_err();
                assert!(own.message().contains(&text), "{own}");
                device.check().unwrap_err().message().to_owned()
            })
        });
        let reported = streams.map(|stream| stream.join().unwrap());
        assert_eq!(reported[0], reported[1]);
        assert_eq!(device.check().unwrap_err().message(), reported[0]);
    });
}

/// A thread that sees a failure also sees everything that happened before it was noted.
pub fn a_failure_that_is_seen() {
    explore(|| {
        let health = Health::default();
        let noting = spawn_with(health.clone(), |health| {
            health.note("copy", &Error::unavailable("gone"));
        });
        if let Err(error) = health.check() {
            assert!(error.message().contains("gone"));
            assert!(health.check().is_err(), "a failure does not go away");
        }
        noting.join().unwrap();
        assert!(health.check().is_err());
    });
}
