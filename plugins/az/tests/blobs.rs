//! `az://` on Azurite: names, credentials, reading, writing, copies, what Azure refuses.

mod folders;

use crate::common::{AZURITE, Store, content, endpoint, plugin, read};
use azurite::{ACCOUNT, Fault, KEY, Proxy};
use tf_fs_plugin::prelude::*;

pub(crate) fn uri(text: &str) -> Uri<'_> {
    Uri::new(text.as_bytes())
}

fn matching(store: &Store, pattern: &str) -> Vec<String> {
    let found = store.az.get_matching_paths(uri(pattern)).unwrap();
    found.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect()
}

#[test]
fn names_are_exact() {
    let store = Store::new("names");
    let keys = [
        "plain",
        "a//b",
        "./x",
        "../x",
        "a/../b",
        "a/./b",
        "%41",
        "a%2Fb",
        "a b",
        " a",
        "a ",
        "é",
        "e\u{301}",
        "😀",
        "a+b",
        "a?b=c&d",
        "a#b",
        "a&amp;<b>\"'",
        "a:b@c",
        "a=b",
        "~._-",
        "[x]*",
        "x/y/z",
        "/lead",
        "...",
    ];
    for key in keys {
        store.write(key, key.as_bytes()).unwrap_or_else(|error| panic!("{key:?}: {error:#}"));
    }
    let mut wanted = keys.map(str::to_owned);
    wanted.sort_unstable();
    let mut found = store.keys();
    found.sort_unstable();
    assert_eq!(found, wanted, "as Microsoft's client sees them");
    for key in keys {
        let bytes = store.read(key).unwrap_or_else(|error| panic!("{key:?}: {error:#}"));
        assert_eq!(bytes, key.as_bytes(), "{key:?}");
        let stat = store.az.stat(uri(&store.uri(key))).unwrap();
        assert_eq!(stat.length, key.len() as u64, "{key:?}");
    }
    for key in keys {
        store
            .az
            .delete_file(uri(&store.uri(key)))
            .unwrap_or_else(|error| panic!("{key:?}: {error:#}"));
    }
    assert!(store.keys().is_empty());
    // The store would treat it as `a/b`.
    let error = store.write("a\\b", b"").unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error:#}");
}

#[test]
fn a_container_has_its_own_settings_and_all_are_shown_except_secrets() {
    let (store, other) = (Store::new("own-settings"), Store::new("not-its-settings"));
    store.write("k", b"content").unwrap();
    for own in [format!("{ACCOUNT}/own-settings"), ACCOUNT.to_owned()] {
        let (key, auth) = (format!("bucket.{own}.account_key"), format!("bucket.{own}.auth"));
        let options = [("auth", "anonymous"), (&*key, KEY), (&*auth, "key")];
        let az = plugin(AZURITE.endpoint(), &options);
        assert_eq!(store.by(az.clone()).read("k").unwrap(), b"content");
        assert_eq!(other.by(az.clone()).write("k", b"").is_ok(), own == ACCOUNT, "{own}");
        let shown = read(&az, "az:///config.json").unwrap();
        let shown = String::from_utf8(shown).unwrap();
        assert!(shown.contains(&format!("\"{own}\"")) && shown.contains("anonymous"), "{shown}");
        assert!(!shown.contains(KEY), "a secret is shown");
    }
}

#[test]
fn all_credentials_open_the_same_blob_and_wrong_ones_are_told_without_a_secret() {
    let store = Store::new("credentials");
    store.write("k", b"bytes").unwrap();
    let sas = AZURITE.script(
        "const o = {startsOn: new Date(Date.now() - 1e6), expiresOn: new Date(Date.now() + 1e7), \
         permissions: sdk.AccountSASPermissions.parse('rwdlc'), services: 'b', resourceTypes: 'sco'}; \
         return sdk.generateAccountSASQueryParameters(o, service.shared).toString()",
    );
    let sas = sas.as_str().unwrap().to_owned();
    let at = endpoint(AZURITE.endpoint());
    let connection = format!(
        "DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={at};"
    );
    for options in [
        &[("sas_token", &*sas)][..],
        &[("sas_token", &*format!("?{sas}"))],
        &[("connection_string", &*connection)],
        &[("connection_string", &*format!("BlobEndpoint={at};SharedAccessSignature={sas}"))],
        &[("account_key", KEY), ("account", ACCOUNT)],
    ] {
        let other = store.by(plugin(AZURITE.endpoint(), options));
        assert_eq!(other.read("k").unwrap(), b"bytes");
        other.write("w", b"more").unwrap();
        other.az.copy_file(uri(&store.uri("w")), uri(&store.uri("c"))).unwrap();
        assert_eq!(other.children("").unwrap(), ["c", "k", "w"]);
    }
    let wrong_key = "c2VzYW1lc2VzYW1l";
    let wrong_sas = sas.replace("sig=", "sig=c2VzYW1l");
    for (options, advice) in [
        (&[("account_key", wrong_key)][..], "check that AZURE_STORAGE_KEY is a key of the account"),
        (&[("sas_token", &*wrong_sas)], "check that AZURE_STORAGE_SAS_TOKEN is for the account"),
    ] {
        let other = store.by(plugin(AZURITE.endpoint(), options));
        for error in [
            other.read("k").unwrap_err(),
            other.write("k", b"x").unwrap_err(),
            other.children("").unwrap_err(),
            other.az.stat(uri(&store.uri("k"))).unwrap_err(),
            other.az.delete_file(uri(&store.uri("k"))).unwrap_err(),
        ] {
            let text = format!("{error:#} {error:?} {:?}", other.az);
            assert_eq!(error.code(), Code::PermissionDenied, "{text}");
            assert!(text.contains("HTTP 403 Auth") && text.contains(advice), "{text}");
            for secret in ["c2VzYW1l", "sig=", KEY] {
                assert!(!text.contains(secret), "{secret} in {text}");
            }
        }
    }
    let error =
        store.by(plugin(AZURITE.endpoint(), &[("auth", "anonymous")])).read("k").unwrap_err();
    assert!(format!("{error:#}").contains("set AZURE_STORAGE_KEY"), "{error:#}");
    AZURITE.script("await service.getContainerClient('credentials').setAccessPolicy('container')");
    let anonymous = store.by(plugin(AZURITE.endpoint(), &[("auth", "anonymous")]));
    assert_eq!(anonymous.read("k").unwrap(), b"bytes");
}

#[test]
fn reads_are_exact_at_every_size_and_of_one_version() {
    let options = [("account_key", KEY), ("read_part_bytes", "65536")];
    let store = Store::with("reading", &options);
    for size in [0, 1, 65_535, 65_536, 65_537, 1_000_003] {
        store.script("f", &format!("await blob.upload(Buffer.from(Array.from({{length: {size}}}, (_, i) => i % 251)), {size})"));
        assert!(store.read("f").unwrap() == content(size), "{size}");
    }
    let file = store.az.new_random_access_file(uri(&store.uri("f"))).unwrap();
    let mut bytes = vec![0; 10];
    let mut buf = ReadBuf::from_slice(&mut bytes);
    file.read_at(500_000, &mut buf).unwrap();
    assert_eq!(buf.filled(), &content(1_000_003)[500_000..500_010]);
    let mut buf = ReadBuf::from_slice(&mut bytes);
    file.read_at(2_000_000, &mut buf).unwrap();
    assert!(buf.filled().is_empty(), "past the end");
    // The same bytes again are another version, as the ETag shows.
    store.script("f", "await blob.upload(Buffer.alloc(1000003), 1000003)");
    let mut bytes = vec![0; 10];
    let error = file.read_at(900_000, &mut ReadBuf::from_slice(&mut bytes)).unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error:#}");
}

#[test]
fn each_request_of_an_open_file_names_its_version() {
    let options = [("account_key", KEY), ("read_part_bytes", "65536")];
    let store = Store::with("versions", &options);
    let body = content(1_000_000);
    store.write("f", &body).unwrap();
    let proxy = Proxy::new(AZURITE.endpoint());
    let through = store.by(plugin(&proxy.endpoint(), &options));
    assert!(through.read("f").unwrap() == body);
    let log = proxy.log();
    assert!(log.len() > 1, "{log:?}");
    assert!(log.iter().skip(1).all(|request| request.contains(" if-match: \"")), "{log:?}");
}

#[test]
fn listings_are_whole_and_directories_are_implied() {
    let store = Store::with("listing", &[("account_key", KEY), ("list_page_names", "50")]);
    store.script(
        "x",
        "const c = service.getContainerClient('listing'); const all = []; \
         for (let i = 0; i < 130; i++) all.push(c.getBlockBlobClient(`many/${String(i).padStart(5, '0')}`).upload('', 0)); \
         await Promise.all(all); for (const k of ['d/e/f', 'd.x', 'top']) await c.getBlockBlobClient(k).upload('x', 1)",
    );
    assert_eq!(store.children("").unwrap(), ["d", "d.x", "many", "top"]);
    let many = store.children("many").unwrap();
    assert_eq!((many.len(), &*many[0], &*many[129]), (130, "00000", "00129"));
    assert_eq!(matching(&store, &store.uri("*/e/?")), [store.uri("d/e/f")]);
    // A name that was written with another spelling is found with it.
    let long = format!("az://{ACCOUNT}.blob.core.windows.net/listing/d/*/*");
    assert_eq!(
        matching(&store, &long),
        [format!("az://{ACCOUNT}.blob.core.windows.net/listing/d/e/f")]
    );
    for scheme in ["abfs", "abfss"] {
        let host = format!("{scheme}://listing@{ACCOUNT}.dfs.core.windows.net");
        assert_eq!(read(&store.az, &format!("{host}/top")).unwrap(), b"x");
        assert_eq!(matching(&store, &format!("{host}/d/*/f")), [format!("{host}/d/e/f")]);
    }
    assert!(store.az.is_directory(uri(&store.uri("d/e"))).unwrap());
    assert!(!store.az.is_directory(uri(&store.uri("d.x"))).unwrap());
    let stat = store.az.stat(uri(&store.uri("top"))).unwrap();
    let written = store.script("top", "return (await blob.getProperties()).lastModified.getTime()");
    let modified =
        std::time::UNIX_EPOCH + std::time::Duration::from_millis(written.as_u64().unwrap());
    assert_eq!(stat.modified, modified);
    let entries = store.az.get_children(uri(&format!("az://{ACCOUNT}"))).unwrap();
    assert!(entries.iter().any(|name| *name == *b"listing"), "the containers of the account");
    store.az.delete_recursively(uri(&store.uri("d"))).unwrap();
    assert_eq!(store.children("").unwrap(), ["d.x", "many", "top"]);
}

#[test]
fn a_write_is_one_request_or_blocks_and_visible_only_whole() {
    let options = [("account_key", KEY), ("write_part_bytes", "65536")];
    let store = Store::with("writing", &options);
    for size in [0, 1, 65_536, 65_537, 1_000_003] {
        let body = content(size);
        store.write("f", &body).unwrap();
        assert!(store.read("f").unwrap() == body, "{size}");
        let blocks = store
            .script("f", "return ((await blob.getBlockList('all')).committedBlocks || []).length");
        let wanted = if size <= 65_536 { 0 } else { size.div_ceil(65_536) };
        assert_eq!(blocks.as_u64(), Some(wanted as u64), "{size}");
    }
    let body = content(300_000);
    let new = store.uri("new");
    let mut file = store.az.new_writable_file(uri(&new)).unwrap();
    file.append(&body).unwrap();
    assert_eq!(store.keys(), ["f"]);
    file.close().unwrap();
    assert!(store.read("new").unwrap() == body);
    // Appending keeps what others set, and what is there.
    store.script("log", "await blob.upload('one ', 4, {blobHTTPHeaders: {blobContentType: 'text/x'}, metadata: {who: 'me'}})");
    let log = store.uri("log");
    let mut file = store.az.new_appendable_file(uri(&log)).unwrap();
    file.append(b"two").unwrap();
    file.close().unwrap();
    assert_eq!(store.read("log").unwrap(), b"one two");
    let kept = store.script(
        "log",
        "const p = await blob.getProperties(); return [p.contentType, p.metadata.who]",
    );
    assert_eq!(kept, serde_json::json!(["text/x", "me"]));
    // Somebody else's is not replaced.
    let mut file = store.az.new_appendable_file(uri(&log)).unwrap();
    file.append(b"three").unwrap();
    store.script("log", "await blob.upload('theirs', 6)");
    assert_eq!(file.close().unwrap_err().code(), Code::FailedPrecondition);
    drop(file);
    assert_eq!(store.read("log").unwrap(), b"theirs");
    let mut file = store.az.new_appendable_file(uri(&store.uri("log2"))).unwrap();
    file.append(b"mine").unwrap();
    store.script("log2", "await blob.upload('theirs', 6)");
    let error = file.close().unwrap_err();
    assert!(matches!(error.code(), Code::FailedPrecondition | Code::AlreadyExists), "{error:#}");
    drop(file);
    assert_eq!(store.read("log2").unwrap(), b"theirs");
}

#[test]
fn copies_and_renames_are_made_by_the_store() {
    let store = Store::new("copies");
    let body = content(300_000);
    store.write("d/a b%é", &body).unwrap();
    store.write("d/e/f", b"f").unwrap();
    store.az.copy_file(uri(&store.uri("d/a b%é")), uri(&store.uri("copy"))).unwrap();
    assert!(store.read("copy").unwrap() == body);
    store.az.rename_file(uri(&store.uri("d")), uri(&store.uri("new"))).unwrap();
    assert_eq!(store.keys(), ["copy", "new/a b%é", "new/e/f"]);
    assert!(store.read("new/a b%é").unwrap() == body);
    for missing in ["nothing", "new/nothing"] {
        let error = store.az.copy_file(uri(&store.uri(missing)), uri(&store.uri("x"))).unwrap_err();
        assert_eq!(error.code(), Code::NotFound, "{error:#}");
    }
}

#[test]
fn azures_refusals_are_reported_with_the_next_step() {
    let store = Store::new("refusals");
    store.write("k", b"bytes").unwrap();
    let fails = |result: Result<()>, code: Code, parts: &[&str]| {
        let error = result.unwrap_err();
        let text = format!("{error:#}");
        assert_eq!(error.code(), code, "{text}");
        for part in parts {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
    };
    store.script("k", "await blob.createSnapshot()");
    let deleted = store.az.delete_file(uri(&store.uri("k")));
    fails(deleted, Code::FailedPrecondition, &["SnapshotsPresent", "delete them first"]);
    store
        .script("l", "await blob.upload('x', 1); await blob.getBlobLeaseClient().acquireLease(60)");
    fails(store.write("l", b"y"), Code::FailedPrecondition, &["LeaseIdMissing", "break it"]);
    store.script(
        "p",
        "await service.getContainerClient('refusals').getPageBlobClient('p').create(512)",
    );
    assert_eq!(store.read("p").unwrap(), [0; 512]);
    let missing = Store { az: store.az.clone(), container: "not-there" };
    let parts = ["ContainerNotFound", "check the container's name"];
    fails(missing.read("k").map(drop), Code::NotFound, &parts);
    fails(missing.write("k", b"x"), Code::NotFound, &parts);
    fails(missing.children("").map(drop), Code::NotFound, &parts);
    fails(store.read("nothing").map(drop), Code::NotFound, &["not found"]);
    fails(store.read("").map(drop), Code::FailedPrecondition, &["is a directory"]);
    let nobody = plugin("http://127.0.0.1:1", &[("account_key", KEY), ("retry_timeout_ms", "100")]);
    fails(
        read(&nobody, &store.uri("k")).map(drop),
        Code::Unavailable,
        &["no response from http://127.0.0.1:1"],
    );
}

#[test]
fn a_copy_that_takes_long_is_waited_for_and_one_that_fails_leaves_nothing() {
    let direct = Store::new("copies-later");
    direct.write("old", b"bytes").unwrap();
    let proxy = Proxy::new(AZURITE.endpoint());
    let options = [("account_key", KEY), ("retry_timeout_ms", "2000")];
    let copy = || {
        let store = direct.by(plugin(&proxy.endpoint(), &options));
        store.az.copy_file(uri(&store.uri("old")), uri(&store.uri("new")))
    };
    proxy.clear();
    copy().unwrap();
    let at = proxy.log().iter().position(|line| line.starts_with("PUT ")).unwrap();
    // The query whether it is done hits a fault: the copy is not begun again, which Azure would refuse.
    direct.az.delete_file(uri(&direct.uri("new"))).unwrap();
    proxy.fault(at, 1, Fault::CopyPending);
    proxy.also(at + 1, Fault::CutBefore);
    proxy.also(at + 2, Fault::CopyPending);
    copy().unwrap();
    let log = proxy.log();
    let count = |method: &str| log.iter().filter(|line| line.starts_with(method)).count();
    // The first HEAD checks whether it is a directory.
    assert_eq!((count("PUT "), count("HEAD ")), (1, 4), "{log:?}");
    assert_eq!(direct.read("new").unwrap(), b"bytes");
    // Azure leaves an empty blob of a copy that it gives up.
    proxy.fault(at, 1, Fault::CopyPending);
    proxy.also(at + 1, Fault::CopyFailed);
    let error = copy().unwrap_err();
    assert_eq!(error.code(), Code::Aborted, "{error:#}");
    assert!(error.message().contains("Azure gave the copy up: failed"), "{error:#}");
    assert_eq!(direct.keys(), ["old"]);
}

#[test]
fn appending_does_not_resend_the_old_bytes() {
    let options = [("account_key", KEY), ("write_part_bytes", "65536")];
    let store = Store::with("appending", &options);
    let proxy = Proxy::new(AZURITE.endpoint());
    let append = |bytes: &[u8]| {
        proxy.clear();
        let other = store.by(plugin(&proxy.endpoint(), &options));
        let mut file = other.az.new_appendable_file(uri(&store.uri("f"))).unwrap();
        file.append(bytes).unwrap();
        file.close().unwrap();
        let log = proxy.log();
        let is_read = |line: &&String| line.starts_with("GET ") && line.contains("/f if-match");
        (log.iter().filter(is_read).count(), log.iter().filter(|l| l.contains("blockid=")).count())
    };
    let mut all = content(300_000);
    let foreign = "const all = Buffer.alloc(300000, (_ => { const b = Buffer.alloc(251); for (let i = 0; i < 251; i++) \
                   b[i] = i; return b })()); ";
    let whole = format!("{foreign} await blob.upload(all, all.length)");
    let short = format!(
        "{foreign} await blob.stageBlock('YWE=', all.subarray(0, 9), 9); \
         await blob.stageBlock('YmI=', all.subarray(9), all.length - 9); await blob.commitBlockList(['YWE=', 'YmI='])"
    );
    // One request of another tool, and blocks with ids of another length: they are read once.
    for script in [whole, short] {
        all.truncate(300_000);
        store.script("f", &script);
        assert!(store.read("f").unwrap() == all);
        assert_eq!(append(b"one"), (5, 5 + 1));
        all.extend(b"one");
        assert!(store.read("f").unwrap() == all);
        for more in [&b"two"[..], &content(100_000)] {
            assert_eq!(append(more), (0, more.len().div_ceil(65_536)));
            all.extend(more);
            assert!(store.read("f").unwrap() == all);
        }
    }
    // A flush of many blocks is visible, and the next one sends what is new.
    let other = store.by(plugin(&proxy.endpoint(), &options));
    let mut file = other.az.new_writable_file(uri(&store.uri("f"))).unwrap();
    file.append(&all).unwrap();
    file.flush().unwrap();
    assert!(store.read("f").unwrap() == all);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    proxy.clear();
    file.append(b"more").unwrap();
    file.flush().unwrap();
    all.extend(b"more");
    assert!(store.read("f").unwrap() == all);
    file.close().unwrap();
    let log = proxy.log();
    assert_eq!(log.iter().filter(|line| line.contains("blockid=")).count(), 1, "{log:?}");
    // Somebody else's version is not continued.
    let mut file = store.az.new_appendable_file(uri(&store.uri("f"))).unwrap();
    store.script("f", &format!("{foreign} await blob.upload(all, all.length)"));
    let error = file.append(&content(100_000)).and_then(|()| file.close()).unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error:#}");
    drop(file);
    assert!(store.read("f").unwrap() == content(300_000));
}

#[test]
fn many_blobs_are_deleted_by_one_request() {
    let sas = "const o = {startsOn: new Date(Date.now() - 1e6), expiresOn: new Date(Date.now() + 1e7), \
               permissions: sdk.AccountSASPermissions.parse('rwdlc'), services: 'b', resourceTypes: 'sco'}; \
               return sdk.generateAccountSASQueryParameters(o, service.shared).toString()";
    let sas = AZURITE.script(sas);
    let store = Store::new("batches");
    let proxy = Proxy::new(AZURITE.endpoint());
    let make = "const c = service.getContainerClient('batches'); const keys = ['a b', 'é', '%41', 'a/../b', 'a#?&b']; \
                for (let i = 0; i < 295; i++) keys.push('n' + i); \
                await Promise.all(keys.map(k => c.getBlockBlobClient('d/' + k).upload('x', 1)))";
    let delete = |options: &[(&str, &str)]| {
        let other = store.by(plugin(&proxy.endpoint(), options));
        let deleted = other.az.delete_recursively(uri(&store.uri("d")));
        let log = proxy.log();
        let count = |part: &str| log.iter().filter(|line| line.contains(part)).count();
        (deleted, count("comp=batch"), count("DELETE "))
    };
    // With the SAS of an account Azurite deletes no batch.
    let by_sas = ("sas_token", sas.as_str().unwrap());
    for (option, wanted) in [(by_sas, 300), (("account_key", KEY), 0)] {
        AZURITE.script(make);
        proxy.clear();
        let (deleted, batches, single) = delete(&[option]);
        deleted.unwrap();
        assert_eq!(single, wanted);
        // 300 blobs are two batches; where the first is refused before the second goes out, it is the last.
        let least = if wanted == 0 { 2 } else { 1 };
        assert!((least..=2).contains(&batches), "{batches}");
        assert!(store.keys().is_empty());
    }
    // Where batches are not supported, each blob has its own request.
    AZURITE.script(make);
    let list = proxy.log().iter().position(|line| line.contains("comp=batch")).unwrap();
    // Only the first one: the second may come after single deletions.
    proxy.fault(list, 1, Fault::NotSupported);
    let (deleted, batches, single) = delete(&[("account_key", KEY)]);
    deleted.unwrap();
    assert!(batches >= 1 && single >= 300 - 256, "{batches} {single}");
    assert!(store.keys().is_empty());
    // The remaining blobs are reported; all others are gone.
    AZURITE.script(make);
    store.script("d/n7", "await blob.createSnapshot()");
    proxy.clear();
    let left = delete(&[("account_key", KEY)]).0.unwrap_err();
    assert_eq!(left.error.code(), Code::FailedPrecondition, "{:#}", left.error);
    assert!(left.error.message().contains("SnapshotsPresent"), "{:#}", left.error);
    assert_eq!(store.keys(), ["d/n7"]);
}
