//! Each fault at each request of an operation on directories.

use crate::store::{Server, name, server};
use std::time::Duration;
use tf_fs_object_store::testing::{Session, sweep};
use tf_fs_object_store::{Connect as _, Publication, Writer};
use tf_fs_plugin::prelude::*;

const BEFORE: [&str; 4] = ["d/a", "d/e/f", "d/empty/", "other"];

/// Sweeps an operation. After a failure each file is at one of its two places, if it may have any.
fn swept(
    cannot: &[&'static str],
    operation: impl Fn(&Session<Server>) -> Result<()>,
    after: &[&str],
    places: &[(&str, &str)],
) -> u32 {
    let plugin = server(&[]);
    plugin.contents().cannot = cannot.to_vec();
    let prepare = |_: &Session<Server>| {
        plugin.contents().fill(&BEFORE);
        Ok(())
    };
    let check = |_: &Session<Server>, is_done: bool| {
        let found = plugin.paths();
        let wrong = || Error::data_loss(format!("{found:?}"));
        ensure!(!is_done || found == after, wrong());
        for (before, after) in places {
            ensure!(found.iter().any(|path| path == before || path == after), wrong());
        }
        ensure!(found.iter().any(|path| path == "other"), wrong());
        ensure!(plugin.contents().took_along.is_empty(), wrong());
        Ok(())
    };
    sweep(&plugin.0.client, Duration::from_secs(30), prepare, operation, check).unwrap()
}

#[test]
fn directories_survive_each_fault_at_each_request() {
    let moved = ["n/", "n/a", "n/e/", "n/e/f", "n/empty/", "other"];
    let places = [("d/a", "n/a"), ("d/e/f", "n/e/f")];
    let rename =
        |session: &Session<Server>| session.connection()?.rename_file(&name("d"), &name("n"));
    assert_eq!(swept(&[], rename, &moved, &places), 5);
    assert!(swept(&["rename"], rename, &moved, &places) > 10);
    let delete = |session: &Session<Server>| {
        session.connection()?.delete_recursively(&name("d")).map_err(|left| left.error)
    };
    assert_eq!(swept(&[], delete, &["other"], &[]), 10);
    let make =
        |session: &Session<Server>| session.connection()?.recursively_create_dir(&name("p/q"));
    let made = ["d/", "d/a", "d/e/", "d/e/f", "d/empty/", "other", "p/", "p/q/"];
    assert_eq!(swept(&[], make, &made, &[]), 4);
}

#[test]
fn an_upload_by_a_temporary_name_survives_each_fault_at_each_request() {
    let bytes = vec![7; (1 << 20) + 1];
    let plugin = server(&[]);
    plugin.contents().publication = Some(Publication::Rename);
    plugin.contents().has_upload = true;
    let write = |session: &Session<Server>| {
        let mut writer = Writer::create(session, name("f"))?;
        writer.append(&bytes)?;
        writer.close()
    };
    // An append that is lost fails the file: nothing tells how much of it the store has.
    let retried = |session: &Session<Server>| write(session).or_else(|_| write(session));
    let prepare = |_: &Session<Server>| {
        plugin.contents().fill(&["f"]);
        Ok(())
    };
    let check = |_: &Session<Server>, is_done: bool| {
        let found = plugin.bytes("f");
        let is_old = found.as_deref() == Some(b"f");
        let is_new = found.as_deref() == Some(&bytes[..]);
        ensure!(is_new || is_old && !is_done, Error::data_loss("neither the old nor the new file"));
        Ok(())
    };
    let requests =
        sweep(&plugin.0.client, Duration::from_secs(60), prepare, retried, check).unwrap();
    assert_eq!(requests, 5);
}
