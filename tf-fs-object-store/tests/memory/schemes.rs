//! One type that serves several schemes, whose stores differ in what they support.

use crate::store::{Bucket, Memory};
use std::sync::Arc;
use tf_fs_object_store::{Client, ObjectFilesystem, StorePlugin};
use tf_fs_plugin::prelude::*;

#[derive(Clone, Debug, Default)]
struct Two {
    one: Memory,
    two: Memory,
}

impl Client for Two {
    type Store = Bucket;

    const SCHEMES: &'static [&'static str] = &["one", "two"];

    fn max_key_len(bucket: &str) -> usize {
        if bucket.starts_with("two://") { 10 } else { 1024 }
    }

    async fn open(&self, bucket: &Arc<str>) -> Result<Bucket> {
        match bucket.split_once("://") {
            Some(("one", _)) => self.one.open(bucket).await,
            Some(("two", _)) => self.two.open(bucket).await,
            _ => Err(Error::invalid_argument(format_args!("{bucket}: no scheme"))),
        }
    }
}

#[derive(Debug, Default)]
struct Plugin(Two);

impl StorePlugin for Plugin {
    type Client = Two;

    fn connect(&self, _: Option<&Two>) -> Result<Two> {
        Ok(self.0.clone())
    }
}

fn uri(text: &str) -> Uri<'_> {
    Uri::new(text.as_bytes())
}

#[test]
fn one_type_serves_several_schemes() {
    let fs = ObjectFilesystem::new_with(Plugin::default());
    let Two { one, two } = &fs.plugin().0;
    one.contents().settings.listing_ttl = std::time::Duration::from_secs(60);
    two.contents().settings.listing_ttl = std::time::Duration::from_secs(60);
    // Each scheme has its own capabilities.
    two.contents().looks_up = true;
    one.put("f", b"1".to_vec());
    two.put("f", b"22".to_vec());
    one.put("d/a", b"".to_vec());
    // Names of one host in two schemes are two names, also in what is remembered.
    for _ in 0..2 {
        assert_eq!(fs.stat(uri("one://h/f")).unwrap().length, 1);
        assert_eq!(fs.stat(uri("two://h/f")).unwrap().length, 2);
        assert!(fs.is_directory(uri("one://h/d")).unwrap());
        assert!(!fs.path_exists(uri("two://h/d")).unwrap());
    }
    let log = |memory: &Memory| std::mem::take(&mut memory.contents().log);
    assert_eq!(log(one), ["list f", "list d"]);
    assert_eq!(log(two), ["look f", "look d"]);
    let found = fs.get_matching_paths(uri("two://h/*")).unwrap();
    assert_eq!(found.iter().map(<[u8]>::to_vec).collect::<Vec<_>>(), [b"two://h/f".to_vec()]);
    // Errors have the scheme that the user wrote.
    let error = |text: &str| fs.stat(uri(text)).unwrap_err().to_string();
    assert!(error("two://h/none").starts_with("two://h/none: "), "{}", error("two://h/none"));
    assert_eq!(
        error("two://h/a-long-name"),
        "two://h/…: the key has 11 bytes, but the store allows 10; shorten it"
    );
    assert!(error("two://h*/f").starts_with("two://: neither wildcards"));
    assert_eq!(fs.stat(uri("one://h/a-long-name")).unwrap_err().code(), Code::NotFound);
    fs.rename_file(uri("one://h/f"), uri("one://h/g")).unwrap();
    assert_eq!(one.keys(), ["d/a", "g"]);
    assert_eq!(two.keys(), ["f"]);
}
