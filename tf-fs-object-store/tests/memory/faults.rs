//! Each fault at each request of an operation.

use crate::store::{Memory, name};
use std::time::Duration;
use tf_fs_object_store::testing::{Session, sweep};
use tf_fs_object_store::{Connect as _, Reader};
use tf_fs_plugin::prelude::*;

const LIMIT: Duration = Duration::from_secs(30);

/// Sweeps a store with these objects, which are there again before each run.
fn swept(
    operation: impl Fn(&Session<Memory>) -> Result<()>,
    before: &[&str],
    after: &[&str],
) -> Result<u32> {
    swept_in(Memory::default(), operation, before, after)
}

fn swept_in(
    memory: Memory,
    operation: impl Fn(&Session<Memory>) -> Result<()>,
    before: &[&str],
    after: &[&str],
) -> Result<u32> {
    let prepare = |_: &Session<Memory>| {
        memory.clear();
        before.iter().for_each(|key| memory.put(key, key.as_bytes().to_vec()));
        Ok(())
    };
    sweep(&memory, LIMIT, prepare, operation, |_, is_done| {
        let keys = memory.keys();
        match is_done {
            true => ensure!(keys == after, Error::internal(format_args!("{keys:?}"))),
            // The source goes last.
            false => ensure!(
                before.iter().all(|key| keys.iter().any(|found| found == key)) || keys == after,
                Error::data_loss(format_args!("{keys:?}"))
            ),
        }
        Ok(())
    })
}

#[test]
fn operations_survive_each_fault_at_each_request() {
    let read = |session: &Session<Memory>| {
        let reader = Reader::open(session, name("d/a"))?;
        let mut bytes = [0; 3];
        reader.read_at(0, &mut ReadBuf::from_slice(&mut bytes))?;
        ensure!(bytes == *b"d/a", Error::data_loss("other bytes"));
        Ok(())
    };
    assert_eq!(swept(read, &["d/a"], &["d/a"]).unwrap(), 1);
    let stat = |session: &Session<Memory>| session.connection()?.stat(&name("d")).map(drop);
    assert_eq!(swept(stat, &["d/a"], &["d/a"]).unwrap(), 1);
    let rename =
        |session: &Session<Memory>| session.connection()?.rename_file(&name("a"), &name("b"));
    assert_eq!(swept(rename, &["a"], &["b"]).unwrap(), 3);
    let memory = Memory::default();
    memory.contents().renames = true;
    assert_eq!(swept_in(memory, rename, &["a", "c"], &["b", "c"]).unwrap(), 2);
    let make = |session: &Session<Memory>| session.connection()?.create_dir(&name("d"));
    assert_eq!(swept(make, &["a"], &["a", "d/"]).unwrap(), 2);
    let delete = |session: &Session<Memory>| session.connection()?.delete_file(&name("a"));
    assert_eq!(swept(delete, &["a", "b"], &["b"]).unwrap(), 2);
}

#[test]
fn a_sweep_notices_what_is_wrong() {
    // Half of the operation is done.
    let half = |session: &Session<Memory>| {
        let connection = session.connection()?;
        connection.delete_file(&name("a"))?;
        connection.delete_file(&name("b"))
    };
    let error = swept(half, &["a", "b"], &[]).unwrap_err();
    assert!(error.to_string().contains("Outage at request 3"), "{error:#}");
    let hidden = |session: &Session<Memory>| {
        let _ = session.connection()?.delete_file(&name("a"));
        Ok(())
    };
    let error = swept(hidden, &["a"], &[]).unwrap_err();
    assert!(error.to_string().contains("Outage at request 1"), "{error:#}");
    let wrong = |session: &Session<Memory>| {
        session.connection()?.delete_file(&name("a")).map_err(|_| Error::not_found("a"))
    };
    let error = swept(wrong, &["a"], &[]).unwrap_err();
    assert!(error.to_string().contains("NotFound"), "{error:#}");
}
