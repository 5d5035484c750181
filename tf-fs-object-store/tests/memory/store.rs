//! A store in memory, whose requests can be counted, refused, held up and cut off.

#[path = "contents.rs"]
mod contents;
#[path = "plugin.rs"]
mod plugin;

pub(crate) use contents::{Contents, Fault};
use contents::{begin, pass};
pub(crate) use plugin::{Plugin, name, plugin, range};

use bytes::{Buf, BufMut, Bytes};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};
use tf_fs_object_store::{
    Body, BucketPage, Client, CopyOptions, ErrorKind, GetHead, GetOptions, ListOptions, Lookup,
    Name, Object, ObjectMeta, ObjectStore, Page, Range, RenameOptions, RequestError, Settings,
    StoreError,
};
use tf_fs_plugin::prelude::*;

#[derive(Debug)]
pub(crate) struct Bucket {
    settings: Settings,
    contents: Arc<Mutex<Contents>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Memory(Arc<Mutex<Contents>>);

pub(crate) struct Bytewise {
    left: Bytes,
    breaks_off: bool,
    panics: bool,
}

fn settings() -> Settings {
    Settings::default().with(|settings| {
        settings.max_attempts = 3;
        settings.retry_backoff = Duration::from_millis(1);
        settings.listing_ttl = Duration::ZERO;
    })
}

impl Default for Memory {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Contents { settings: settings(), ..Contents::default() })))
    }
}

impl Client for Memory {
    type Store = Bucket;

    const SCHEMES: &'static [&'static str] = &["mem"];

    fn settings(&self) -> Settings {
        self.0.lock().unwrap().settings.clone()
    }

    async fn open(&self, _: &Arc<str>) -> Result<Bucket> {
        Ok(Bucket { settings: Client::settings(self), contents: Arc::clone(&self.0) })
    }

    async fn list_buckets(&self, token: Option<&str>) -> Result<BucketPage, RequestError> {
        begin(&self.0, "buckets", "").await?;
        let empty = self.0.lock().unwrap().empty_pages;
        Ok(match token.map(|token| token.parse::<usize>().unwrap()) {
            None => BucketPage::new(vec!["b".into()], Some("1".into())),
            Some(n) if n <= empty => BucketPage::new(Vec::new(), Some((n + 1).to_string())),
            Some(_) => BucketPage::new(vec!["c".into()], None),
        })
    }
}

impl Bucket {
    async fn begin(&self, kind: &'static str, what: &str) -> Result<Option<Fault>, RequestError> {
        begin(&self.contents, kind, what).await
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap()
    }

    /// Returns what the response to a GET is now.
    fn respond(
        &self,
        key: &str,
        range: Range,
        if_match: Option<&str>,
        fault: Option<Fault>,
    ) -> Result<(GetHead, Bytewise), RequestError> {
        let contents = self.contents();
        let Some((bytes, version)) = contents.objects.get(key) else {
            return Err(RequestError::new(ErrorKind::NotFound, "no such object"));
        };
        let etag = contents.etag(*version);
        assert!(!if_match.is_some_and(|tag| tag.starts_with("W/")), "a weak ETag in a condition");
        if if_match.is_some_and(|wanted| wanted != etag || contents.refuses_conditions) {
            return Err(RequestError::changed());
        }
        let size = bytes.len() as u64;
        let (start, end) = (range.start.min(size), range.end.min(size));
        let end = contents.most.map_or(end, |most| end.min(start + most));
        let left = bytes.slice(start as usize..end as usize);
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(*version);
        let head = GetHead::new(size, end).with_etag(etag).with_modified(modified);
        let [breaks_off, panics] =
            [Fault::BreaksOff, Fault::Panics].map(|kind| fault == Some(kind));
        Ok((head, Bytewise { left, breaks_off, panics }))
    }

    /// Delays a request for a while.
    async fn take_a_while(&self) {
        {
            let mut contents = self.contents();
            let now = contents.in_flight.0 + 1;
            contents.in_flight = (now, contents.in_flight.1.max(now));
        }
        tokio::task::yield_now().await;
        self.contents().in_flight.0 -= 1;
    }
}

impl ObjectStore for Bucket {
    type Error = RequestError;
    type Body = Bytewise;

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn supports_start_after(&self) -> bool {
        true
    }

    fn cache_scope(&self) -> Option<String> {
        Some("the store of a test, the same in all its processes".into())
    }

    async fn get(
        &self,
        options: GetOptions<'_>,
    ) -> Result<(Option<GetHead>, Bytewise), RequestError> {
        let GetOptions { key, range, if_match, .. } = options;
        let attempt = tf_fs_object_store::attempt().number;
        self.contents().ranges.push((range.start, range.end));
        let fault =
            self.begin("get", &format!("{key} from {} attempt {attempt}", range.start)).await?;
        let response = self.respond(key, range, if_match, fault);
        if fault == Some(Fault::WaitsDone) {
            pass(&self.contents).await;
        }
        response.map(|(head, body)| (Some(head), body))
    }

    async fn list(&self, query: &ListOptions, token: Option<&str>) -> Result<Page, RequestError> {
        self.begin("list", &query.prefix).await?;
        let contents = self.contents();
        // `n:key`: after the key, but not before n further pages without a name.
        let (empty, after) = match token {
            Some(token) => token.split_once(':').unwrap(),
            None => ("", query.start_after.as_deref().unwrap_or_default()),
        };
        let again = empty.strip_prefix('r').map_or(0, |again| again.parse().unwrap());
        let empty: usize = match again {
            0 => empty.parse().unwrap_or(contents.empty_pages),
            _ => 0,
        };
        let mut page = Page::default();
        if contents.shifts {
            let passed = token.map_or(0, |token| token[2..].parse().unwrap());
            let keys: Vec<_> =
                contents.objects.keys().filter(|key| key.starts_with(&query.prefix)).collect();
            let end = keys.len().min(passed + contents.page.unwrap_or(3));
            let shown = keys.get(passed..end).unwrap_or_default();
            page.objects =
                shown.iter().map(|key| Object::new(&***key, ObjectMeta::new(1))).collect();
            page.next = (end < keys.len()).then(|| format!("0:{end}"));
            return Ok(page);
        }
        if empty > 0 && contents.strays && !query.prefix.is_empty() {
            page.objects.push(Object::new(format!("~{empty}"), ObjectMeta::new(1)));
        }
        if empty > 0 {
            page.next = Some(format!("{}:{after}", empty - 1));
            return Ok(page);
        }
        let most =
            contents.page.unwrap_or(3).min(query.max_keys.map_or(usize::MAX, |most| most as usize));
        if again > 0 {
            page.common_prefixes.push(after.to_owned());
        }
        if again > 1 {
            page.next = Some(format!("r{}:{after}", again - 1));
            return Ok(page);
        }
        let mut last = String::new();
        let keys = contents.objects.iter().filter(|(key, _)| key.starts_with(&query.prefix));
        let mut keys: Vec<_> = keys.collect();
        if contents.reverse {
            keys.reverse();
        }
        let delimiter = query.delimiter && !contents.flat;
        for (key, (bytes, version)) in keys {
            let slash = key[query.prefix.len()..].find('/').filter(|_| delimiter);
            let shown = slash.map_or(&**key, |slash| &key[..=query.prefix.len() + slash]);
            let is_shown = match (token, contents.reverse) {
                (Some(_), true) => shown >= after,
                (Some(_), false) => shown <= after,
                (None, _) => false,
            };
            let is_before = query.start_after.as_deref().is_some_and(|start| shown <= start);
            if is_shown || is_before || shown == last {
                continue;
            }
            if page.objects.len() + page.common_prefixes.len() == most {
                page.next = Some(match contents.repeats {
                    again if again > 0 && delimiter && last.ends_with('/') => {
                        format!("r{again}:{last}")
                    }
                    _ => format!("{}:{last}", contents.empty_pages),
                });
                break;
            }
            shown.clone_into(&mut last);
            if slash.is_some() {
                page.common_prefixes.push(shown.to_owned());
            } else {
                let mut meta = ObjectMeta::new(bytes.len() as u64)
                    .with_etag(contents.etag(*version))
                    .with_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(*version));
                meta.size = meta.size.filter(|_| !contents.hides_sizes);
                page.objects.push(Object::new(&**key, meta));
            }
        }
        if contents.circles {
            page.next = Some("0:".into());
        }
        if contents.no_tokens && page.next.is_some() {
            page.next = Some(String::new());
        }
        Ok(page)
    }

    fn supports_lookup(&self) -> bool {
        self.contents().looks_up
    }

    async fn lookup(&self, name: &Name) -> Result<Lookup, RequestError> {
        self.begin("look", &name.key).await?;
        let contents = self.contents();
        if let Some((bytes, version)) = contents.objects.get(&name.key) {
            let meta = ObjectMeta::new(bytes.len() as u64).with_etag(contents.etag(*version));
            return Ok(Lookup::File(meta));
        }
        let below = name.prefix();
        let is_directory = contents.objects.keys().any(|key| key.starts_with(&below));
        Ok(if is_directory { Lookup::Directory } else { Lookup::Missing })
    }

    async fn put_marker(&self, marker: &Name) -> Result<(), RequestError> {
        self.begin("put", &marker.key).await?;
        self.contents().objects.insert(marker.key.clone(), (Bytes::new(), 0));
        Ok(())
    }

    async fn delete(&self, name: &Name) -> Result<(), RequestError> {
        self.begin("delete", &name.key).await?;
        self.take_a_while().await;
        let mut contents = self.contents();
        if contents.undeletable.as_ref() == Some(&name.key) {
            return Err(RequestError::new(ErrorKind::Permanent, "a policy keeps it"));
        }
        let is_below = |key: &String| key.len() > name.key.len() && key.starts_with(&name.key);
        if contents.hierarchical && name.key.ends_with('/') && contents.objects.keys().any(is_below)
        {
            return Err(RequestError::new(ErrorKind::Transient, "not empty"));
        }
        contents.objects.remove(&name.key);
        Ok(())
    }

    fn delete_many_limit(&self) -> usize {
        self.contents().delete_limit
    }

    async fn delete_many(
        &self,
        _: &Name,
        keys: &[String],
    ) -> Result<Vec<(String, RequestError)>, RequestError> {
        self.begin("many", &keys.len().to_string()).await?;
        self.take_a_while().await;
        let mut contents = self.contents();
        let done = if contents.throttled > 0 { 1 } else { keys.len() };
        contents.throttled = contents.throttled.saturating_sub(1);
        let (done, left) = keys.split_at(done);
        if contents.is_quiet {
            let untold =
                |key: &String| (key.clone(), RequestError::new(ErrorKind::Unsupported, "quiet"));
            return Ok(keys.iter().map(untold).collect());
        }
        for key in done {
            contents.objects.remove(key);
        }
        let slow =
            |key: &String| (key.clone(), RequestError::new(ErrorKind::Transient, "slow down"));
        Ok(left.iter().map(slow).collect())
    }

    async fn copy(
        from: &Arc<Self>,
        _: &Arc<Self>,
        options: CopyOptions<'_>,
    ) -> Result<Option<ObjectMeta>, RequestError> {
        from.begin("copy", &options.src.key).await?;
        let mut contents = from.contents();
        let missing = || RequestError::new(ErrorKind::NotFound, "no such object");
        let (bytes, version) =
            contents.objects.get(&options.src.key).cloned().ok_or_else(missing)?;
        let etag = Some(contents.etag(version));
        if options.known.is_some_and(|known| known.etag != etag) {
            return Err(RequestError::changed());
        }
        contents.objects.insert(options.dst.key.clone(), (bytes, 1));
        Ok(None)
    }

    fn supports_rename(&self) -> bool {
        self.contents().renames
    }

    async fn rename(
        from: &Arc<Self>,
        _: &Arc<Self>,
        options: RenameOptions<'_>,
    ) -> Result<Option<ObjectMeta>, RequestError> {
        let fault = from.begin("rename", &options.src.key).await?;
        let mut contents = from.contents();
        if !options.replace && contents.objects.contains_key(&options.dst.key) {
            return Err(RequestError::new(ErrorKind::Precondition, "there is one"));
        }
        let missing = || RequestError::new(ErrorKind::NotFound, "no such object");
        let object = contents.objects.remove(&options.src.key).ok_or_else(missing)?;
        contents.objects.insert(options.dst.key.clone(), object);
        match fault {
            Some(Fault::Lost) => Err(RequestError::new(ErrorKind::Transient, "no response")),
            _ => Ok(None),
        }
    }
}

impl Body for Bytewise {
    type Error = RequestError;

    async fn fill(&mut self, to: &mut (impl BufMut + Send)) -> Result<usize, RequestError> {
        assert!(!self.panics, "the store's code has a defect");
        if self.breaks_off && self.left.len() <= 1000 {
            return Err(RequestError::new(ErrorKind::Transient, "broken off"));
        }
        let n = self.left.len().min(to.remaining_mut()).min(10_000);
        let n = if self.breaks_off { n.min(self.left.len() - 1000) } else { n };
        to.put_slice(&self.left[..n]);
        self.left.advance(n);
        Ok(n)
    }
}

impl Memory {
    pub(crate) fn contents(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap()
    }

    pub(crate) fn clear(&self) {
        self.0.lock().unwrap().objects.clear();
    }

    pub(crate) fn put(&self, key: &str, bytes: Vec<u8>) {
        let mut contents = self.0.lock().unwrap();
        let version = contents.objects.get(key).map_or(1, |(_, version)| version + 1);
        contents.objects.insert(key.into(), (bytes.into(), version));
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.0.lock().unwrap().objects.keys().cloned().collect()
    }
}
