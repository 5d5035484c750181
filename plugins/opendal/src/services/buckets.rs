//! Stores of objects that OpenDAL has a client for.

use crate::bucket::Bucket;
use crate::opendal::OpenDalClient;
use crate::scheme::Scheme;
use crate::settings::Settings;
use opendal_core::OperationContext;
use std::collections::BTreeMap;
use tf_fs_plugin::prelude::*;
use tf_fs_plugin::sync::Mutex;

/// Opens a bucket. It makes no connection yet.
///
/// # Errors
/// `INVALID_ARGUMENT` if the settings cannot be used; `UNIMPLEMENTED` if this build leaves the service out.
pub(crate) fn open_bucket(
    scheme: &'static Scheme,
    bucket: &str,
    settings: &Settings,
) -> Result<Bucket> {
    match scheme.protocol {
        "memory" => Ok(Bucket {
            client: memory(bucket)?,
            endpoint: format!("memory://{bucket}"),
            settings: settings.engine.clone(),
        }),
        #[cfg(feature = "b2")]
        "b2" => b2(scheme, bucket, settings),
        _ => Err(super::left_out(scheme)),
    }
}

/// Opens a bucket of Backblaze B2, by its own API.
#[cfg(feature = "b2")]
fn b2(scheme: &'static Scheme, bucket: &str, settings: &Settings) -> Result<Bucket> {
    use super::transport::Plain;
    use crate::place::Place;
    use opendal_core::raw::Service as _;
    use tf_fs_object_store::config::Secret;

    /// Where the client asks for the account.
    const API: &str = "https://api.backblazeb2.com";
    let place = Place::of_account(scheme, settings)?;
    let (Some(id), Some(key)) = (&settings.user, settings.password.as_ref().map(Secret::expose))
    else {
        return Err(Error::invalid_argument(
            "user and password are not set; set them to the id of an application key and the key, beside url",
        ));
    };
    let endpoint = place.origin();
    ensure!(
        endpoint == API,
        Error::invalid_argument(format_args!("its url is not {API}, which b2:// needs"))
    );
    let bucket_id = settings.bucket_id.as_deref().ok_or_else(|| {
        Error::invalid_argument("bucket_id is not set; `b2 bucket get NAME` shows it")
    })?;
    let builder = opendal_service_b2::B2::default()
        .bucket(bucket)
        .bucket_id(bucket_id)
        .root(&place.root)
        .application_key_id(id)
        .application_key(key);
    let transport = Plain { http: super::http(settings)?, moved: None };
    let client = OpenDalClient::new(builder, crate::opendal::context(transport))?;
    let mut settings = settings.engine.clone();
    // Of one part of an upload.
    let smallest = client.service.capability().write_multi_min_size;
    settings.write_part = settings.write_part.max(smallest.unwrap_or_default());
    Ok(Bucket { client, endpoint, settings })
}

/// Returns the bucket of this name in the memory of the process.
fn memory(name: &str) -> Result<OpenDalClient> {
    static BUCKETS: Mutex<BTreeMap<String, OpenDalClient>> = Mutex::new(BTreeMap::new());
    let mut buckets = BUCKETS.lock()?;
    if let Some(client) = buckets.get(name) {
        return Ok(client.clone());
    }
    let builder = opendal_core::services::Memory::default();
    let client = OpenDalClient::new(builder, OperationContext::new())?;
    buckets.insert(name.to_owned(), client.clone());
    Ok(client)
}
