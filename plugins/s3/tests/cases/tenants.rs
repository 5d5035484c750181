//! Tenants of Ceph: `s3://tenant:bucket/key`.

use s3_server::{Fault, What, When};
use tf_plugin_s3_tests::{Store, content, fs, host};

/// The server checks signatures, which are of the path that is sent.
#[test]
fn a_bucket_of_a_tenant_is_a_bucket() {
    let store = Store::new("tenants");
    let own = store.bucket();
    for (tenant, style) in [("tenant", "path"), ("", "auto"), ("t_1", "virtual")] {
        let bucket = format!("{tenant}:{own}");
        let uri = |key: &str| format!("s3://{bucket}/{key}");
        store.create_bucket(&bucket);
        // A section of its own: these settings are not those of the bucket without a tenant.
        store.introduce_bucket(host(), &bucket, &[("addressing_style", style)]).unwrap();
        let key = format!("d/{style} :é");
        let bytes = content(9 << 20, 1);
        fs().write_file(uri(&key), &bytes).unwrap();
        assert!(fs().read_file(uri(&key)).unwrap() == bytes, "{bucket} {style}");
        assert_eq!(fs().stat(uri(&key)).unwrap().length, bytes.len() as u64);
        let name = key.strip_prefix("d/").unwrap();
        assert_eq!(fs().get_children(uri("d")).unwrap(), [name.as_bytes()]);
        let found = fs().get_matching_paths(uri("*/*")).unwrap();
        assert_eq!(found, [uri(&key).into_bytes()]);
        // The server's library takes no tenant in this header.
        let refused = What::status(403, "AccessDenied");
        store.inject(Fault::new(When::All, refused).operation("CopyObject"));
        let _ = fs().copy_file(uri(&key), uri("copy"));
        store.clear_faults();
        let log = store.log();
        let copy = log.iter().rfind(|request| request.operation == "CopyObject").unwrap();
        let source = format!("{bucket}/d/{style}%20%3A%C3%A9");
        assert_eq!(copy.headers["x-amz-copy-source"], source);
        fs().delete_recursively(uri("d")).unwrap();
        assert_eq!((*store).keys(&bucket), [""; 0]);
        fs().write_file(uri("left"), "x").unwrap();
    }
    // Another bucket.
    assert_eq!(fs().get_children(store.uri("")).unwrap(), [b""; 0]);
}
