//! Services with files in directories that OpenDAL has a client for, to read.

use super::http;
use super::transport::Plain;
use crate::opendal::{OpenDalClient, context};
use crate::service::{Body, Done, Entry, Service};
use crate::settings::Settings;
use opendal_core::Builder;
use tf_fs_object_store::http::HttpError;
use tf_fs_object_store::{GetHead, GetOptions, StoreError as _, WriteLimits};
use tf_fs_plugin::prelude::*;

/// What the client for GitHub begins its URLs with.
#[cfg(feature = "github")]
const GITHUB: &str = "https://api.github.com";

/// A service for reading.
#[derive(Debug)]
pub(super) struct Reading {
    client: OpenDalClient,
    /// Whether the responses with bytes name the same version as those about a file.
    tells_versions: bool,
    advice: &'static str,
}

impl Reading {
    fn new(
        builder: impl Builder,
        transport: Plain,
        tells_versions: bool,
        advice: &'static str,
    ) -> Result<Self> {
        Ok(Self {
            client: OpenDalClient::new(builder, context(transport))?,
            tells_versions,
            advice,
        })
    }

    /// Creates the repository `OWNER/NAME` of GitHub, at its default branch.
    #[cfg(feature = "github")]
    pub(super) fn github(remote: &str, settings: &Settings) -> Result<Self> {
        let (owner, name) = remote.split_once('/').unwrap_or_default();
        let mut builder = opendal_service_github::Github::default().owner(owner).repo(name);
        if let Some(token) = &settings.github_token {
            builder = builder.token(token.expose());
        }
        let moved = Some((GITHUB, settings.github_endpoint.clone()));
        let transport = Plain { http: http(settings)?, moved };
        Self::new(builder, transport, false, "github:// is for reading; change files by `git push`")
    }

    /// Creates the directory of IPFS with this address, as a gateway shows it.
    #[cfg(feature = "ipfs")]
    pub(super) fn ipfs(remote: &str, settings: &Settings) -> Result<Self> {
        let builder = opendal_service_ipfs::Ipfs::default()
            .endpoint(settings.ipfs_gateway.trim_end_matches('/'))
            .root(&format!("/ipfs/{remote}/"));
        let transport = Plain { http: http(settings)?, moved: None };
        Self::new(builder, transport, true, "ipfs:// is for reading; add files by `ipfs add`")
    }
}

impl Service for Reading {
    fn tells_versions(&self) -> bool {
        self.tells_versions
    }

    fn write_limits(&self) -> Option<WriteLimits> {
        None
    }

    fn refuses(&self) -> HttpError {
        HttpError::unsupported(self.advice)
    }

    fn read<'a>(&'a self, options: GetOptions<'a>) -> Done<'a, (Option<GetHead>, Body)> {
        Box::pin(async move {
            let (head, body) = self.client.read(options).await?;
            Ok((head.filter(|_| self.tells_versions), body))
        })
    }

    fn stat<'a>(&'a self, path: &'a str) -> Done<'a, Option<Entry>> {
        Box::pin(async move { self.client.entry(path).await.map(Some) })
    }

    fn list<'a>(&'a self, path: &'a str) -> Done<'a, Vec<(String, Entry)>> {
        Box::pin(self.client.names(path))
    }
}
