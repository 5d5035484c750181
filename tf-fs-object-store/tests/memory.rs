//! A store in memory on the engine, with the least that a store can do: no copies, one deletion a request.

use bytes::{Buf, BufMut, Bytes};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Display;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tf_fs_object_store::{
    Body, Class, Client, Connect, Connection, Failure, GetOptions, Head, Known, Name, NoPage,
    Object, ObjectStore, Page, Process, Query, Reader, Settings,
};
use tf_fs_plugin::prelude::*;

/// What is in the store, and what was requested.
#[derive(Debug, Default)]
struct Contents {
    /// By key, with a number as the version.
    objects: BTreeMap<String, (Bytes, u64)>,
    log: Vec<String>,
    /// What becomes of the next GETs.
    faults: VecDeque<Option<Fault>>,
    /// Listings say that there is more, and give the same token again.
    circles: bool,
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    Fails(Class),
    BreaksOff,
}

#[derive(Debug)]
struct Bucket {
    settings: Settings,
    contents: Arc<Mutex<Contents>>,
}

#[derive(Clone, Debug)]
struct Memory(Arc<Mutex<Contents>>);

#[derive(Clone)]
struct Plugin(Arc<Connection<Memory>>);

#[derive(Debug)]
struct Failed(Class, String);

#[derive(Debug)]
struct Refused;

struct Bytewise {
    left: Bytes,
    breaks_off: bool,
}

impl Client for Memory {
    type Store = Bucket;

    async fn open(&self, _: &Arc<str>) -> Result<Bucket> {
        let settings = Settings {
            max_attempts: 3,
            retry_backoff: Duration::from_millis(1),
            listing_ttl: Duration::ZERO,
            ..Settings::default()
        };
        Ok(Bucket { settings, contents: Arc::clone(&self.0) })
    }

    fn split(uri: Uri<'_>) -> Result<(&str, &str)> {
        let text = std::str::from_utf8(uri.as_bytes()).expect("the tests write UTF-8");
        let rest = text.strip_prefix("mem://").expect("the tests write mem://");
        Ok(rest.split_once('/').unwrap_or((rest, "")))
    }

    fn name(bucket: &str, key: &str) -> Result<Name> {
        Ok(Name::new("mem", bucket, key))
    }
}

impl ObjectStore for Bucket {
    type Failure = Failed;
    type Body = Bytewise;
    type NoPage = Refused;

    fn settings(&self) -> &Settings {
        &self.settings
    }

    async fn get(&self, options: GetOptions<'_>, attempt: u32) -> Result<(Head, Bytewise), Failed> {
        let mut contents = self.contents.lock().unwrap();
        let GetOptions { key, range, if_match } = options;
        contents.log.push(format!("get {key} from {} attempt {attempt}", range.start));
        let fault = contents.faults.pop_front().flatten();
        if let Some(Fault::Fails(class)) = fault {
            return Err(Failed(class, "injected".into()));
        }
        let Some((bytes, version)) = contents.objects.get(key) else {
            return Err(Failed(Class::NotFound, "no such object".into()));
        };
        let version = version.to_string();
        if if_match.is_some_and(|wanted| wanted != version) {
            return Err(Failed::changed());
        }
        let size = bytes.len() as u64;
        let (start, end) = (range.start.min(size), range.end.min(size));
        let left = bytes.slice(start as usize..end as usize);
        let head = Head { size, etag: Some(version), end, modified: None };
        Ok((head, Bytewise { left, breaks_off: matches!(fault, Some(Fault::BreaksOff)) }))
    }

    async fn list(&self, query: &Query, token: Option<&str>) -> Result<Page, Refused> {
        const NAMES: usize = 3;
        let mut contents = self.contents.lock().unwrap();
        contents.log.push(format!("list {}", query.prefix));
        let after = token.or(query.after.as_deref()).unwrap_or_default();
        let most = query.max_keys.map_or(NAMES, |most| NAMES.min(most as usize));
        let mut page = Page::default();
        let mut last = String::new();
        let keys = contents.objects.iter().filter(|(key, _)| key.starts_with(&query.prefix));
        for (key, (bytes, version)) in keys {
            let slash = key[query.prefix.len()..].find('/').filter(|_| query.by_directory);
            let shown = slash.map_or(&**key, |slash| &key[..=query.prefix.len() + slash]);
            if shown <= after || shown == last {
                continue;
            }
            if page.objects.len() + page.directories.len() == most {
                (page.is_truncated, page.next) = (true, Some(last));
                break;
            }
            shown.clone_into(&mut last);
            if slash.is_some() {
                page.directories.push(shown.to_owned());
            } else {
                let (size, etag) = (bytes.len() as u64, version.to_string());
                let known = Known { size, modified: SystemTime::UNIX_EPOCH, etag };
                page.objects.push(Object { key: key.clone(), known });
            }
        }
        if contents.circles {
            (page.is_truncated, page.next) = (true, Some("again".into()));
        }
        Ok(page)
    }

    async fn put_marker(&self, marker: &Name) -> Result<()> {
        let mut contents = self.contents.lock().unwrap();
        contents.objects.insert(marker.key.clone(), (Bytes::new(), 0));
        Ok(())
    }

    async fn delete(&self, name: &Name) -> Result<()> {
        let mut contents = self.contents.lock().unwrap();
        contents.log.push(format!("delete {}", name.key));
        contents.objects.remove(&name.key);
        Ok(())
    }
}

impl Body for Bytewise {
    type Failure = Failed;

    async fn fill(&mut self, to: &mut (impl BufMut + Send + ?Sized)) -> Result<usize, Failed> {
        if self.breaks_off && self.left.len() <= 1000 {
            return Err(Failed(Class::Transient, "broken off".into()));
        }
        let n = self.left.len().min(to.remaining_mut()).min(10_000);
        let n = if self.breaks_off { n.min(self.left.len() - 1000) } else { n };
        to.put_slice(&self.left[..n]);
        self.left.advance(n);
        Ok(n)
    }
}

impl Failure for Failed {
    fn changed() -> Self {
        Self(Class::Permanent, "changed".into())
    }

    fn stalled(_: String, time: Duration) -> Self {
        Self(Class::Transient, format!("stalled for {time:?}"))
    }

    fn invalid(how: &str) -> Self {
        Self(Class::Doubtful, how.into())
    }

    fn class(&self) -> Class {
        self.0
    }

    fn summary(&self) -> String {
        self.1.clone()
    }

    fn into_error(self, op: &str, what: &dyn Display, attempts: u32) -> Error {
        let code = match self.0 {
            Class::NotFound => Code::NotFound,
            Class::Transient | Class::Doubtful => Code::Unavailable,
            Class::Permanent | Class::Precondition => Code::FailedPrecondition,
        };
        Error::new(code, format!("{what}: {op}: {} ({attempts} attempts)", self.1))
    }
}

impl NoPage for Refused {
    fn head_may_tell(&self) -> bool {
        false
    }

    fn into_error(self, name: &Name) -> Error {
        Error::permission_denied(name)
    }
}

impl Connect for Plugin {
    type Client = Memory;

    fn connection(&self) -> Result<Arc<Connection<Memory>>> {
        Ok(Arc::clone(&self.0))
    }
}

/// A store with these objects, each of which holds its own key.
fn plugin(keys: &[&str]) -> Plugin {
    let process = Process::current("mem", 2, 64 << 20).unwrap();
    let plugin = Plugin(Arc::new(Connection::new(process, Memory(Arc::default()))));
    for key in keys {
        plugin.put(key, key.as_bytes().to_vec());
    }
    plugin
}

fn name(key: &str) -> Name {
    Name::new("mem", "b", key)
}

impl Plugin {
    fn contents(&self) -> std::sync::MutexGuard<'_, Contents> {
        self.0.client.0.lock().unwrap()
    }

    fn put(&self, key: &str, bytes: Vec<u8>) {
        let mut contents = self.contents();
        let version = contents.objects.get(key).map_or(1, |(_, version)| version + 1);
        contents.objects.insert(key.into(), (bytes.into(), version));
    }

    fn requests(&self, kind: &str) -> Vec<String> {
        let contents = self.contents();
        contents.log.iter().filter(|line| line.starts_with(kind)).cloned().collect()
    }

    fn read(&self, key: &str, piece: usize) -> Result<Vec<u8>> {
        let reader = Reader::open(self, name(key))?.ok_or_else(|| Error::not_found(key))?;
        let mut bytes = Vec::new();
        loop {
            let mut piece = vec![0; piece];
            let mut buf = ReadBuf::from_slice(&mut piece);
            reader.read_at(bytes.len() as u64, &mut buf)?;
            bytes.extend_from_slice(buf.filled());
            if bytes.len() as u64 == reader.size() {
                return Ok(bytes);
            }
        }
    }
}

/// Of each position another byte than of its neighbours.
fn content(len: usize) -> Vec<u8> {
    (0..len).map(|position| (position % 251) as u8).collect()
}

#[test]
fn what_is_read_is_what_is_stored_in_few_requests() {
    let body = content(20 << 20);
    for piece in [100 << 10, 3 << 20, 64 << 20] {
        let plugin = plugin(&[]);
        plugin.put("f", body.clone());
        assert!(plugin.read("f", piece).unwrap() == body, "{piece}");
        let gets = plugin.requests("get").len();
        assert!(gets <= 6, "{gets} GETs of 20 MiB in pieces of {piece}");
    }
    let plugin = plugin(&["a//b", "./c"]);
    for key in ["a//b", "./c"] {
        assert_eq!(plugin.read(key, 100).unwrap(), key.as_bytes());
    }
    assert_eq!(plugin.read("missing", 1).unwrap_err().code(), Code::NotFound);
}

#[test]
fn a_response_that_breaks_off_is_resumed_at_its_byte() {
    let (plugin, body) = (plugin(&[]), content(50_000));
    plugin.put("f", body.clone());
    plugin.contents().faults = [Some(Fault::BreaksOff)].into();
    assert!(plugin.read("f", 50_000).unwrap() == body);
    assert_eq!(plugin.requests("get"), ["get f from 0 attempt 1", "get f from 49000 attempt 2"]);
}

#[test]
fn a_failure_is_repeated_by_its_class() {
    for (class, attempts, code) in [
        (Class::Transient, 3, Code::Unavailable),
        (Class::Doubtful, 3, Code::Unavailable),
        (Class::Permanent, 1, Code::FailedPrecondition),
    ] {
        let plugin = plugin(&["f"]);
        plugin.contents().faults = [Some(Fault::Fails(class)); 9].into();
        assert_eq!(plugin.read("f", 1).unwrap_err().code(), code);
        assert_eq!(plugin.requests("get").len(), attempts, "{class:?}");
    }
    let plugin = plugin(&["f"]);
    plugin.contents().faults = [Some(Fault::Fails(Class::Transient)); 2].into();
    assert_eq!(plugin.read("f", 1).unwrap(), b"f");
}

#[test]
fn an_open_file_is_one_version() {
    let (plugin, size) = (plugin(&[]), 30 << 20);
    plugin.put("f", content(size));
    let reader = Reader::open(&plugin, name("f")).unwrap().unwrap();
    plugin.put("f", content(size));
    let mut bytes = vec![0; 10];
    let mut buf = ReadBuf::from_slice(&mut bytes);
    let error = reader.read_at(size as u64 - 10, &mut buf).unwrap_err();
    assert_eq!((error.code(), buf.filled().len()), (Code::FailedPrecondition, 0));
}

#[test]
fn directories_are_what_keys_imply() {
    let plugin = plugin(&["d/a", "d/e/f", "d/e/g", "d.x", "top"]);
    let connection = &plugin.0;
    let children = |key| {
        let entries = connection.get_children(&name(key)).unwrap();
        entries.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect::<Vec<_>>()
    };
    assert_eq!(children(""), ["d", "d.x", "top"]);
    assert_eq!(children("d"), ["a", "e"]);
    assert!(connection.is_directory(&name("d/e")).unwrap());
    assert!(!connection.is_directory(&name("d.x")).unwrap());
    assert_eq!(connection.stat(&name("d/e/f")).unwrap(), {
        FileStatistics::file(5).with_modified(SystemTime::UNIX_EPOCH)
    });
    assert_eq!(connection.stat(&name("d/x")).unwrap_err().code(), Code::NotFound);
    let found = connection.get_matching_paths(Uri::new(b"mem://b/*/e/?")).unwrap();
    let found: Vec<_> = found.iter().map(|path| path.to_vec()).collect();
    assert_eq!(found, [b"mem://b/d/e/f".to_vec(), b"mem://b/d/e/g".to_vec()]);
    connection.create_dir(&name("new")).unwrap();
    assert_eq!(connection.create_dir(&name("new")).unwrap_err().code(), Code::AlreadyExists);
    assert_eq!(connection.delete_dir(&name("d")).unwrap_err().code(), Code::FailedPrecondition);
    connection.delete_dir(&name("new")).unwrap();
}

#[test]
fn a_store_that_deletes_one_at_a_time_deletes_a_tree() {
    let keys: Vec<String> = (0..10).map(|n| format!("d/{}/{n}", n % 3)).collect();
    let plugin = plugin(&keys.iter().map(String::as_str).chain(["d2"]).collect::<Vec<_>>());
    plugin.0.delete_recursively(&name("d")).unwrap();
    assert_eq!(plugin.requests("delete").len(), 10);
    assert_eq!(plugin.contents().objects.keys().collect::<Vec<_>>(), ["d2"]);
}

#[test]
fn what_a_store_cannot_do_is_unimplemented_and_loses_nothing() {
    let plugin = plugin(&["a", "d/b"]);
    for (src, dst) in [("a", "c"), ("d", "e")] {
        let error = plugin.0.rename_file(&name(src), &name(dst)).unwrap_err();
        assert_eq!(error.code(), Code::Unimplemented, "{error:#}");
    }
    assert!(plugin.requests("delete").is_empty());
    assert_eq!(plugin.contents().objects.len(), 2);
    let root = Name::new("mem", "", "");
    assert_eq!(plugin.0.get_children(&root).unwrap_err().code(), Code::Unimplemented);
}

#[test]
fn listings_that_go_round_in_circles_end() {
    let plugin = plugin(&["a", "b"]);
    plugin.contents().circles = true;
    assert_eq!(plugin.0.get_children(&name("")).unwrap_err().code(), Code::DataLoss);
}
