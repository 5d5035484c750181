//! Which certificates are trusted.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CipherSuite, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::error::Error as StdError;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tf_fs_plugin::prelude::*;

/// The cipher suites with AES-128, of TLS 1.3 and 1.2.
const AES_128: [CipherSuite; 3] = [
    CipherSuite::TLS13_AES_128_GCM_SHA256,
    CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
];

/// Which certificates are trusted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tls {
    /// A file of certificates in PEM.
    pub file: Option<PathBuf>,
    /// A directory of such files.
    pub directory: Option<PathBuf>,
    /// Whether certificates are checked at all.
    pub verify: bool,
}

impl Default for Tls {
    /// Returns the settings for the system's certificates.
    fn default() -> Self {
        Self { file: None, directory: None, verify: true }
    }
}

impl Tls {
    /// Returns whether neither file nor directory is set. Then the system's certificates apply: those that OpenSSL
    /// would find, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name.
    pub fn is_system(&self) -> bool {
        self.file.is_none() && self.directory.is_none()
    }

    /// Returns the settings of all connections: TLS 1.2 and 1.3 with `ring`, HTTP/1.1.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` with the file or directory of certificates that cannot be used.
    pub fn client_config(&self) -> Result<ClientConfig> {
        let mut config = client_config(self, rustls::DEFAULT_VERSIONS)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }

    /// Returns the settings of connections of TLS 1.2 that do not speak HTTP. Their sessions can be resumed any number of times,
    /// as servers of FTP require it of the connections for data.
    ///
    /// # Errors
    /// As [`client_config`](Self::client_config).
    pub fn resumable_config(&self) -> Result<ClientConfig> {
        client_config(self, &[&rustls::version::TLS12])
    }
}

/// Reads the certificates of the settings.
///
/// # Errors
/// `INVALID_ARGUMENT` with the file: without it connections would fail with a text that does not name the cause.
fn roots(tls: &Tls) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    if let Some(file) = &tls.file {
        add(&mut roots, file).map_err(|error| unusable(file, &error))?;
        ensure!(!roots.is_empty(), unusable(file, &"it holds no certificate"));
    }
    if let Some(directory) = &tls.directory {
        let unreadable = |error| {
            Error::invalid_argument(format_args!(
                "cannot read the directory of certificates {}: {error}",
                directory.display()
            ))
        };
        let before = roots.len();
        for entry in std::fs::read_dir(directory).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            // A directory of certificates often has their revocation lists, keys and texts too.
            if path.is_file()
                && let Err(error) = add(&mut roots, &path)
            {
                log::warn!(
                    "{}: skipped from its first bad certificate on: {error}",
                    path.display()
                );
            }
        }
        let none = "no file in it holds a certificate in PEM";
        ensure!(
            roots.len() > before,
            Error::invalid_argument(format_args!(
                "the directory of certificates {} cannot be used: {none}",
                directory.display()
            ))
        );
    }
    Ok(roots)
}

#[cold]
fn unusable(file: &Path, error: &dyn Display) -> Error {
    Error::invalid_argument(format_args!(
        "the file of certificates {} cannot be used: {error}; it has to hold certificates in PEM",
        file.display()
    ))
}

/// Adds the certificates that a file holds.
fn add(roots: &mut RootCertStore, file: &Path) -> Result<(), Box<dyn StdError>> {
    let pem = std::fs::read(file)?;
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        roots.add(certificate?)?;
    }
    Ok(())
}

fn client_config(
    tls: &Tls,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> Result<ClientConfig> {
    let mut provider = rustls::crypto::ring::default_provider();
    // Ten rounds a block where AES-256 has fourteen. A store chooses by its own order, or by this one.
    provider.cipher_suites.sort_by_key(|suite| !AES_128.contains(&suite.suite()));
    let provider = Arc::new(provider);
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .map_err(|error| Error::internal("cannot set up TLS").with_source(error))?;
    Ok(if tls.verify {
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
    })
}

/// Accepts any certificate that a server shows.
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
    fn aes_128_is_offered_first_and_no_cipher_is_missing() {
        let config = Tls { verify: false, ..Tls::default() }.client_config().unwrap();
        let offered = &config.crypto_provider().cipher_suites;
        let first: Vec<_> = offered.iter().take(3).map(|suite| suite.suite()).collect();
        assert_eq!(first, AES_128);
        assert_eq!(offered.len(), rustls::crypto::ring::ALL_CIPHER_SUITES.len());
    }

    #[test]
    fn a_file_without_certificates_is_named() {
        let file = std::env::temp_dir().join(format!("tf-ca-{}.pem", std::process::id()));
        std::fs::write(&file, "-----BEGIN NOTHING-----").unwrap();
        let tls = Tls { file: Some(file.clone()), directory: None, verify: true };
        let error = tls.client_config().unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().contains(&*file.to_string_lossy()), "{error}");
        std::fs::write(&file, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
            .unwrap();
        assert_eq!(tls.client_config().unwrap_err().code(), Code::InvalidArgument);
        std::fs::remove_file(&file).unwrap();
        assert!(tls.client_config().unwrap_err().message().contains("No such file"));
    }

    #[test]
    fn a_directory_may_hold_other_files() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            std::fs::write(directory.path().join(name), text).unwrap();
        };
        let pem = |kind| format!("-----BEGIN {kind}-----\nAAAA\n-----END {kind}-----\n");
        write("README", "Certificates of this company.");
        write("a.r0", &pem("X509 CRL"));
        write("a.trusted", &pem("TRUSTED CERTIFICATE"));
        write("broken.pem", &pem("CERTIFICATE"));
        let path = directory.path().to_owned();
        let tls = Tls { file: None, directory: Some(path.clone()), verify: true };
        let error = tls.client_config().unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().contains(&*path.to_string_lossy()), "{error}");
        let ca = rcgen::generate_simple_self_signed(["ca".to_owned()]).unwrap();
        write("ca.pem", &ca.cert.pem());
        assert_eq!(roots(&tls).unwrap().len(), 1);
    }
}
