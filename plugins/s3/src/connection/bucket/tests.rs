//! Buckets as their settings and their stores make them.

use super::*;

/// Returns the route to a bucket of this name with these settings.
async fn route(bucket: &str, change: impl FnOnce(&mut BucketSettings)) -> Result<Arc<Route>> {
    let mut settings =
        BucketSettings { region: Some("eu-west-1".into()), ..BucketSettings::default() };
    change(&mut settings);
    Bucket::connect(bucket.into(), Arc::new(settings), &Arc::default()).await?.route()
}

#[tokio::test]
async fn the_bucket_is_in_the_host_or_in_the_path() {
    let endpoint = |url: &str| {
        let url = Some(url.to_owned());
        move |settings: &mut BucketSettings| settings.endpoint_url = url
    };
    let base = async |bucket, url| route(bucket, endpoint(url)).await.unwrap().base.to_string();
    let plain = async |bucket| route(bucket, |_| {}).await.unwrap().base.to_string();
    assert_eq!(plain("data").await, "https://data.s3.eu-west-1.amazonaws.com");
    // No certificate is valid for it, or no host.
    assert_eq!(plain("my.data").await, "https://s3.eu-west-1.amazonaws.com/my.data");
    assert_eq!(plain("Data").await, "https://s3.eu-west-1.amazonaws.com/Data");
    assert_eq!(base("data", "http://127.0.0.1:9000").await, "http://127.0.0.1:9000/data");
    assert_eq!(
        base("data", "https://minio.internal/base").await,
        "https://minio.internal/base/data"
    );
    assert_eq!(
        base("data", "https://s3.eu-west-1.amazonaws.com").await,
        "https://data.s3.eu-west-1.amazonaws.com"
    );
    let forced = route("data", |settings| settings.path_style = Some(true)).await.unwrap();
    assert_eq!(&*forced.base, "https://s3.eu-west-1.amazonaws.com/data");
    let forced = route("data", |settings| {
        settings.endpoint_url = Some("http://localhost:9000".into());
        settings.path_style = Some(false);
    });
    assert_eq!(&*forced.await.unwrap().base, "http://data.localhost:9000");
    assert_eq!(base("data", "http://h/base/").await, "http://h/base/data");
    // A tenant of Ceph cannot be a part of a host's name. The signature is of the path as it is sent.
    for path_style in [None, Some(true), Some(false)] {
        let of_tenant = route("tenant:data", |settings| {
            settings.endpoint_url = Some("http://ceph:7480".into());
            settings.path_style = path_style;
        });
        assert_eq!(&*of_tenant.await.unwrap().base, "http://ceph:7480/tenant%3Adata");
    }
    assert_eq!(base(":data", "http://ceph:7480").await, "http://ceph:7480/%3Adata");
    let special = route("data", |settings| {
        settings.use_fips = Some(true);
        settings.use_dualstack = Some(true);
    });
    assert_eq!(
        &*special.await.unwrap().base,
        "https://data.s3-fips.dualstack.eu-west-1.amazonaws.com"
    );
}

#[tokio::test]
async fn a_route_has_what_a_request_needs() {
    let own = route("data", |settings| settings.endpoint_url = Some("http://h:9000/base".into()));
    let own = own.await.unwrap();
    assert_eq!(
        (own.https, own.host.as_str(), own.port, own.path.as_str()),
        (false, "h", 9000, "/base/data")
    );
    assert_eq!(own.authority(), "h:9000");
    assert_eq!(
        (own.signing_region.as_str(), own.signing_name.as_str(), own.is_plain),
        ("eu-west-1", "s3", true)
    );
    let amazon = route("data", |_| {}).await.unwrap();
    assert_eq!((amazon.https, amazon.port, amazon.path.as_str()), (true, 443, ""));
    assert_eq!(amazon.authority(), "data.s3.eu-west-1.amazonaws.com");
    // An S3 Express bucket has sessions of its own.
    let express = route("data--euw1-az1--x-s3", |_| {}).await.unwrap();
    assert!(!express.is_plain, "{express:?}");
}

#[tokio::test]
async fn a_region_that_a_store_names_counts_from_then_on() {
    let settings = BucketSettings { region: Some("us-east-1".into()), ..BucketSettings::default() };
    let bucket = Bucket::connect("data".into(), Arc::new(settings), &Arc::default()).await.unwrap();
    assert_eq!(bucket.route().unwrap().signing_region, "us-east-1");
    assert!(bucket.may_try_again(301, |_| Some("eu-west-1"), b""));
    let route = bucket.route().unwrap();
    assert_eq!(
        (route.signing_region.as_str(), route.host.as_str()),
        ("eu-west-1", "data.s3.eu-west-1.amazonaws.com")
    );
    assert!(!bucket.may_try_again(301, |_| Some("evil.example.com/"), b""));
    assert!(!bucket.may_try_again(403, |_| None, b"<Error><Code>AccessDenied</Code></Error>"));
    assert_eq!(bucket.route().unwrap().signing_region, "eu-west-1");
}

#[tokio::test]
async fn no_state_of_retries_is_shared_with_a_parent() {
    let bucket = Bucket::connect("data".into(), Arc::default(), &Arc::default()).await.unwrap();
    let partition = bucket.client.config().retry_partition().unwrap();
    assert_ne!(*partition, RetryPartition::new(partition.to_string()));
}

#[tokio::test]
async fn a_bucket_shows_no_secret() {
    let secret = |text: &str| crate::config::Secret::new(text);
    let settings = BucketSettings {
        region: Some("us-east-1".into()),
        keys: Some(crate::config::Keys {
            access_key_id: secret("planted"),
            secret_access_key: secret("planted"),
            session_token: Some(secret("planted")),
        }),
        ..BucketSettings::default()
    };
    let shown = format!("{settings:?}");
    let bucket = Bucket::connect("data".into(), Arc::new(settings), &Arc::default()).await.unwrap();
    bucket.credentials().await.unwrap().expect("keys");
    let shown = format!("{shown} {bucket:?} {:?} {:?}", bucket.credentials, bucket.client);
    assert!(!shown.contains("planted"));
}
