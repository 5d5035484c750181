//! Which certificates are trusted: those of the settings, else of the AWS profile, else the system's.

use crate::config::{BucketSettings, Profile};
use aws_types::os_shim_internal::{Env, Fs};
use rustls::ClientConfig;
use std::path::PathBuf;
use tf_fs_object_store::http::Tls;
use tf_fs_plugin::prelude::*;

/// Returns which certificates are trusted for a bucket.
pub(super) async fn of(settings: &BucketSettings) -> Tls {
    let mut tls = Tls {
        file: settings.ca_file.clone(),
        directory: settings.ca_path.clone(),
        verify: settings.verify_tls,
    };
    if tls.is_system() {
        tls.file = bundle_of_profile(settings.profile.as_ref()).await;
    }
    tls
}

/// Returns the TLS settings of all connections.
///
/// # Errors
/// `INVALID_ARGUMENT` with the file: without it connections would fail with a text that does not name the cause.
pub(super) fn client_config(tls: &Tls) -> Result<ClientConfig> {
    tls.client_config().context("ca_file, ca_path, or ca_bundle of the AWS profile")
}

/// Returns `ca_bundle` of the AWS profile, which the SDK does not read.
async fn bundle_of_profile(profile: Option<&Profile>) -> Option<PathBuf> {
    // Its successor is in an internal crate of the SDK.
    #[allow(deprecated)]
    let files = aws_config::profile::profile_file::ProfileFiles::default();
    let selected = profile.map(|profile| profile.name.clone().into());
    // Those who need the files report what is wrong with them.
    let profiles = aws_config::profile::load(&Fs::real(), &Env::real(), &files, selected).await;
    let path = profiles.ok()?.get("ca_bundle")?.to_owned();
    (!path.is_empty()).then(|| path.into())
}
