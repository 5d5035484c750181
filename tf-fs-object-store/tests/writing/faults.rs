//! Each fault at each request of a write.

use crate::store::{Memory, name, parts, store};
use std::time::Duration;
use tf_fs_object_store::testing::{Session, sweep};
use tf_fs_object_store::{WriteLimits, Writer};
use tf_fs_plugin::prelude::*;

#[test]
fn a_file_is_whole_or_as_it_was_whatever_request_fails() {
    for (limits, len, requests) in [
        (WriteLimits::default(), 1000, 1),
        (WriteLimits::default().with_parts(parts()), 3_500_000, 6),
    ] {
        for old in [None, Some(&b"old"[..])] {
            let plugin = store(limits);
            let prepare = |_: &Session<Memory>| {
                plugin.contents().objects.clear();
                old.into_iter().for_each(|old| plugin.put("f", old));
                Ok(())
            };
            let write = |session: &Session<Memory>| {
                let mut writer = Writer::create(session, name("f"))?;
                for _ in 0..len / 500 {
                    writer.append(&[7; 500])?;
                }
                writer.close()
            };
            let check = |_: &Session<Memory>, is_done: bool| {
                let found = plugin.bytes("f");
                let is_right = match is_done {
                    true => found.as_deref() == Some(&vec![7; len]),
                    false => found.as_deref() == old,
                };
                ensure!(is_right, Error::data_loss(format_args!("{:?}", found.map(|f| f.len()))));
                Ok(())
            };
            let limit = Duration::from_secs(30);
            let made = sweep(&plugin.0.client, limit, prepare, write, check).unwrap();
            assert_eq!(made, requests, "{old:?}");
            assert!(plugin.bytes("f").is_some());
        }
    }
}
