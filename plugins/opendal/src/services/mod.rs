//! The services, one module for each protocol.

mod ftp;
mod hf;
#[cfg(feature = "sftp")]
mod sftp;
mod transport;
mod webdav;
mod webhdfs;

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
    if scheme.protocol == "hf" {
        return Ok(Remote {
            service: Box::new(hf::Hf::new(remote, settings)?),
            origin: settings.hf_endpoint.clone(),
            root: remote.to_owned(),
            settings: settings_of_engine,
        });
    }
    let place = Place::of(scheme, remote, settings)?;
    let service: Box<dyn Service> = match scheme.protocol {
        "webdav" => Box::new(webdav::WebDav::new(&place, settings)?),
        #[cfg(feature = "sftp")]
        "sftp" => Box::new(sftp::Sftp::new(&place, settings)),
        "ftp" => Box::new(ftp::Ftp::new(&place, settings)?),
        "webhdfs" => Box::new(webhdfs::WebHdfs::new(&place, settings)?),
        protocol => {
            return Err(Error::new(
                Code::Unimplemented,
                format!("this build has no {protocol}; build it with the feature of this name"),
            ));
        }
    };
    Ok(Remote { service, origin: place.origin(), root: place.root, settings: settings_of_engine })
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
