//! Which certificates are trusted.

use crate::config::{BucketSettings, Profile};
use aws_types::os_shim_internal::{Env, Fs};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tf_fs_plugin::prelude::*;

/// Which certificates are trusted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Tls {
    pub(super) file: Option<PathBuf>,
    pub(super) directory: Option<PathBuf>,
    pub(super) verify: bool,
}

impl Tls {
    /// Those of the settings, else of the AWS profile, else the system's.
    pub(super) async fn of(settings: &BucketSettings) -> Self {
        let mut tls = Self {
            file: settings.ca_file.clone(),
            directory: settings.ca_path.clone(),
            verify: settings.verify_tls,
        };
        if tls.is_system() {
            tls.file = bundle_of_profile(settings.profile.as_ref()).await;
        }
        tls
    }

    /// Whether nothing is set, so that the system's certificates count.
    fn is_system(&self) -> bool {
        self.file.is_none() && self.directory.is_none()
    }
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

/// Reads the certificates of the settings.
///
/// # Errors
/// `INVALID_ARGUMENT` naming the file: without it connections would fail, with a text that leads nowhere.
fn roots(tls: &Tls) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    if let Some(file) = &tls.file {
        add(&mut roots, file)?;
    }
    if let Some(directory) = &tls.directory {
        let unreadable = |error| {
            Error::invalid_argument(format_args!(
                "ca_path: cannot read the directory {}: {error}",
                directory.display()
            ))
        };
        for entry in std::fs::read_dir(directory).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            // A directory of certificates often has their revocation lists and keys too.
            if path.is_file() && path.extension().is_none_or(|extension| extension != "key") {
                add(&mut roots, &path)?;
            }
        }
    }
    Ok(roots)
}

fn add(roots: &mut RootCertStore, file: &Path) -> Result<()> {
    let broken = |error: &dyn std::fmt::Display| {
        Error::invalid_argument(format_args!(
            "ca_file (or ca_bundle of the AWS profile): {} cannot be used: {error}; it has to hold certificates in PEM",
            file.display()
        ))
    };
    let pem = std::fs::read(file).map_err(|error| broken(&error))?;
    let mut count = 0;
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| broken(&error))?;
        roots.add(certificate).map_err(|error| broken(&error))?;
        count += 1;
    }
    ensure!(count > 0, broken(&"it holds no certificate"));
    Ok(())
}

/// The TLS settings of all connections.
///
/// # Errors
/// As [`roots`].
pub(super) fn client_config(tls: &Tls) -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::internal("cannot set up TLS").with_source(error))?;
    let mut config = if tls.verify {
        let mut store = roots(tls)?;
        if tls.is_system() {
            let system = rustls_native_certs::load_native_certs();
            for error in system.errors {
                log::warn!("a certificate of the system cannot be read: {error}");
            }
            store.add_parsable_certificates(system.certs);
        }
        builder.with_root_certificates(store).with_no_client_auth()
    } else {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AcceptAny(provider)))
            .with_no_client_auth()
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Accepts whatever certificate a server shows, as `S3_VERIFY_SSL=0` asks for.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signed,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signed,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_certificates_is_named() {
        let file = std::env::temp_dir().join(format!("s3-ca-{}.pem", std::process::id()));
        std::fs::write(&file, "-----BEGIN NOTHING-----").unwrap();
        let tls = Tls { file: Some(file.clone()), directory: None, verify: true };
        let error = client_config(&tls).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().contains(&*file.to_string_lossy()), "{error}");
        std::fs::write(&file, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
            .unwrap();
        assert_eq!(client_config(&tls).unwrap_err().code(), Code::InvalidArgument);
        std::fs::remove_file(&file).unwrap();
        assert!(client_config(&tls).unwrap_err().message().contains("No such file"));
    }
}
