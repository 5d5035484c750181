//! The services, one module for each protocol.

mod buckets;
mod ftp;
mod hf;
#[cfg(any(feature = "github", feature = "ipfs"))]
mod reading;
#[cfg(feature = "sftp")]
mod sftp;
mod transport;
mod webdav;
mod webhdfs;

pub(crate) use buckets::open_bucket;

use crate::place::Place;
use crate::scheme::Scheme;
use crate::service::Service;
use crate::settings::Settings;
use crate::store::Remote;
use tf_fs_object_store::http::{Http, HttpSettings, Proxy, Tls};
use tf_fs_plugin::prelude::*;

/// Opens a remote. It makes no connection yet.
///
/// # Errors
/// `INVALID_ARGUMENT` if the settings cannot be used; `UNIMPLEMENTED` if this build leaves the protocol out.
pub(crate) fn open(scheme: &'static Scheme, remote: &str, settings: &Settings) -> Result<Remote> {
    let settings_of_engine = settings.engine.clone();
    // Those whose remotes are not places on a server.
    let named: Option<(Box<dyn Service>, _)> = match scheme.protocol {
        "hf" => Some((Box::new(hf::Hf::new(remote, settings)?), &settings.hf_endpoint)),
        #[cfg(feature = "github")]
        "github" => {
            let service = reading::Reading::github(remote, settings)?;
            Some((Box::new(service), &settings.github_endpoint))
        }
        #[cfg(feature = "ipfs")]
        "ipfs" => {
            let service = reading::Reading::ipfs(remote, settings)?;
            Some((Box::new(service), &settings.ipfs_gateway))
        }
        #[cfg(not(feature = "github"))]
        "github" => return Err(left_out(scheme)),
        #[cfg(not(feature = "ipfs"))]
        "ipfs" => return Err(left_out(scheme)),
        _ => None,
    };
    if let Some((service, origin)) = named {
        let (origin, root) = (origin.clone(), remote.to_owned());
        return Ok(Remote { service, origin, root, settings: settings_of_engine });
    }
    let place = Place::of(scheme, remote, settings)?;
    let service: Box<dyn Service> = match scheme.protocol {
        "webdav" => Box::new(webdav::WebDav::new(&place, settings)?),
        #[cfg(feature = "sftp")]
        "sftp" => Box::new(sftp::Sftp::new(&place, settings)),
        "ftp" => Box::new(ftp::Ftp::new(&place, settings)?),
        "webhdfs" => Box::new(webhdfs::WebHdfs::new(&place, settings)?),
        _ => return Err(left_out(scheme)),
    };
    Ok(Remote { service, origin: place.origin(), root: place.root, settings: settings_of_engine })
}

/// Returns the error of a protocol that this build leaves out.
fn left_out(scheme: &Scheme) -> Error {
    let name = scheme.protocol;
    Error::new(
        Code::Unimplemented,
        format!("this build has no {name}; build it with the feature of this name"),
    )
}

/// Returns which certificates are trusted.
fn tls(settings: &Settings) -> Tls {
    Tls { file: settings.ca_file.clone(), ..Tls::default() }
}

/// Returns a client of HTTP.
fn http(settings: &Settings) -> Result<Http> {
    Http::new(HttpSettings {
        tls: tls(settings),
        proxy: Proxy::Environment,
        connect_timeout: settings.connect_timeout,
        stall_timeout: settings.engine.stall_timeout,
        user_agent: concat!("tensorflow-opendal/", env!("CARGO_PKG_VERSION")),
    })
}
