//! Buckets as their settings and their stores make them.

use super::*;

async fn bucket(settings: BucketSettings) -> Bucket {
    Bucket::open("data".into(), Arc::new(settings), &Shared::default()).await.unwrap()
}

#[tokio::test]
async fn a_region_that_a_store_names_counts_from_then_on() {
    let settings = BucketSettings { region: Some("us-east-1".into()), ..BucketSettings::default() };
    let bucket = bucket(settings).await;
    assert_eq!(bucket.resolve_endpoint().unwrap().signing_region, "us-east-1");
    assert!(bucket.may_try_again(301, |_| Some("eu-west-1"), b""));
    let endpoint = bucket.resolve_endpoint().unwrap();
    assert_eq!(
        (endpoint.signing_region.as_str(), endpoint.authority.as_str()),
        ("eu-west-1", "data.s3.eu-west-1.amazonaws.com")
    );
    assert!(!bucket.may_try_again(301, |_| Some("evil.example.com/"), b""));
    assert!(!bucket.may_try_again(403, |_| None, b"<Error><Code>AccessDenied</Code></Error>"));
    assert_eq!(bucket.resolve_endpoint().unwrap().signing_region, "eu-west-1");
}

#[tokio::test]
async fn a_bucket_shows_no_secret() {
    let secret = |text: &str| crate::settings::Secret::new(text);
    let settings = BucketSettings {
        region: Some("us-east-1".into()),
        keys: Some(crate::settings::Keys {
            access_key_id: secret("planted"),
            secret_access_key: secret("planted"),
            session_token: Some(secret("planted")),
        }),
        ..BucketSettings::default()
    };
    let shown = format!("{settings:?}");
    let bucket = bucket(settings).await;
    bucket.credentials().await.unwrap().expect("keys");
    let shown = format!("{shown} {bucket:?} {:?}", bucket.credentials);
    assert!(!shown.contains("planted"));
}
