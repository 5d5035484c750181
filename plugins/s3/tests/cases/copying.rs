//! Copies, of one store and of others, and of stores that take their time.

use s3_server::{Fault, Options, What, When};
use tf_fs_plugin::Code;
use tf_plugin_s3_tests::{IMPATIENT, Store, child, fs, host, this_test};

#[test]
fn buckets_of_different_stores() {
    let (here, there) = (Store::new("renaming-here"), Store::new("renaming-there"));
    here.put("file", "x");
    let error = fs().copy_file(here.uri("file"), there.uri("file")).unwrap_err();
    assert_eq!(error.code(), Code::Unimplemented);
    assert!(error.message().contains("read one and write the other"), "{error}");
    assert!(there.keys().is_empty());
}

#[test]
fn stores_that_aws_profiles_name_are_told_apart() {
    if let Some(role) = child::role() {
        let (src, dst) = role.split_once(' ').unwrap();
        for outcome in [host().copy_file(src, dst), host().rename_file(src, dst)] {
            let error = outcome.unwrap_err();
            assert_eq!(error.code(), Code::Unimplemented, "{error:#}");
        }
        return;
    }
    let new = |topic| Store::hidden(topic, Options { threads: 1, ..Options::default() });
    let stores = [new("profile-here"), new("profile-there")];
    let home = tempfile::tempdir().unwrap();
    let (mut profiles, mut buckets) = (String::new(), String::new());
    for (name, store) in ["here", "there"].into_iter().zip(&stores) {
        // Whoever takes them for one store finds another object there, or none.
        for other in &stores {
            other.create_bucket(store.bucket());
        }
        store.put("file", "x");
        profiles += &format!(
            "[profile {name}]\nregion = us-east-1\nendpoint_url = {}\naws_access_key_id = {}\naws_secret_access_key = {}\n",
            store.endpoint(),
            store.access_key(),
            store.secret_key()
        );
        buckets += &format!("[bucket.\"{}\"]\nprofile = \"{name}\"\n", store.bucket());
    }
    let files = ["config", "s3.toml"].map(|name| home.path().join(name));
    std::fs::write(&files[0], profiles).unwrap();
    std::fs::write(&files[1], buckets).unwrap();
    let role = format!("{} {}", stores[0].uri("file"), stores[1].uri("new"));
    let mut command = child::again(this_test!(), &role, &stores[0]);
    command.env("AWS_CONFIG_FILE", &files[0]).env("TF_S3_CONFIG", &files[1]);
    for name in ["AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    for store in &stores {
        assert!(store.log().iter().all(|request| request.operation == "ListObjectsV2"));
        assert_eq!(store.keys(), ["file"]);
    }
}

#[test]
fn a_store_that_responds_when_a_copy_is_made_copies_parts() {
    let store = Store::with("copying-slow", IMPATIENT);
    store.put_sparse(store.bucket(), "large", 300 << 20);
    store.inject(Fault::new(When::All, What::DoneThenStall).operation("CopyObject"));
    // Its length is not known.
    fs().rename_file(store.uri("large"), store.uri("moved")).unwrap();
    assert_eq!(store.keys(), ["moved"]);
    assert_eq!(store.stat(store.bucket(), "moved").unwrap().parts.len(), 5);
    // A shorter one is not worth parts.
    store.put("small", "x");
    let error = fs().rename_file(store.uri("small"), store.uri("moved")).unwrap_err();
    assert_eq!(error.code(), Code::DeadlineExceeded, "{error:#}");
}
