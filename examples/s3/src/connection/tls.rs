//! Which certificates are trusted: those of the settings, else of the AWS profile, else the system's.

use crate::config::{BucketSettings, Profile};
use aws_types::os_shim_internal::{Env, Fs};
use rustls::ClientConfig;
use std::path::PathBuf;
use tf_fs_object_store::http::Tls;
use tf_fs_plugin::prelude::*;

/// Which certificates are trusted for a bucket.
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

/// The TLS settings of all connections.
///
/// # Errors
/// `INVALID_ARGUMENT` naming the file: without it connections would fail, with a text that leads nowhere.
pub(super) fn client_config(tls: &Tls) -> Result<ClientConfig> {
    tls.client_config().context("ca_file, ca_path, or ca_bundle of the AWS profile")
}

/// `ca_bundle` of the AWS profile, which the SDK does not read.
async fn bundle_of_profile(profile: Option<&Profile>) -> Option<PathBuf> {
    // Its successor is in a crate for the SDK's inside only.
    #[allow(deprecated)]
    let files = aws_config::profile::profile_file::ProfileFiles::default();
    let selected = profile.map(|profile| profile.name.clone().into());
    // What is wrong with the files is said by those who need them.
    let profiles = aws_config::profile::load(&Fs::real(), &Env::real(), &files, selected).await;
    let path = profiles.ok()?.get("ca_bundle")?.to_owned();
    (!path.is_empty()).then(|| path.into())
}
