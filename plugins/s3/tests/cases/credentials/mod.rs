//! Where credentials are from: every source against a server on loopback, and what is said when there are none.

mod clocks;
mod local;
mod renewal;
mod services;
mod sso;

use s3_server::{Credentials, Options};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use tf_plugin_s3_tests::Store;
use tf_plugin_s3_tests::probe::{Probe, probe};

const NO_KEYS: [(&str, Option<&str>); 2] =
    [("AWS_ACCESS_KEY_ID", None), ("AWS_SECRET_ACCESS_KEY", None)];

/// A directory of the test's own, gone with the test.
struct Home(PathBuf);

impl Home {
    fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("s3-home-{}-{number}", std::process::id()));
        std::fs::create_dir_all(path.join(".aws/sso/cache")).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, content: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A store with one object, of which this process's plugin knows nothing.
fn store() -> Store {
    let store =
        Store::hidden("credentials", Options { fast: true, threads: 1, ..Options::default() });
    store.put("k", "content");
    store
}

/// Reads the object without keys in the environment.
fn read(test: &str, store: &Store, change: &[(&str, Option<&str>)]) -> Probe {
    let mut all = NO_KEYS.to_vec();
    all.extend_from_slice(change);
    probe(test, &store.uri("k"), store, &all)
}

/// Long after this test.
const LATER: &str = "2099-01-01T00:00:00Z";

fn json(store: &Store, token: &str) -> String {
    format!(
        "{{\"Code\":\"Success\",\"Version\":1,\"AccessKeyId\":\"{}\",\"SecretAccessKey\":\"{}\",\"Token\":\"{token}\",\"SessionToken\":\"{token}\",\"Expiration\":\"{LATER}\"}}",
        store.access_key(),
        store.secret_key()
    )
}

/// Makes the store accept its keys only with this token, so that credentials of another source would be refused.
fn want_token(store: &Store, token: &str) {
    let keys = Credentials::new(store.access_key(), store.secret_key()).session_token(token);
    store.set_credentials([keys]);
}
