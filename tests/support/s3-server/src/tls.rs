//! Certificates created at the start, by the server's own authority.

use std::io;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
    SanType,
};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// Whether a client must accept the certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tls {
    /// Valid for `localhost`, `127.0.0.1`, `{bucket}.localhost` of the buckets that exist from the start, and
    /// `{bucket}.s3.localhost` of all.
    #[default]
    Valid,
    /// It has expired.
    Expired,
    /// It is for another host.
    WrongHost,
}

/// Returns the TLS acceptor, and the authority's certificate that a client must trust, as PEM.
pub(crate) fn acceptor(tls: Tls, buckets: &[String]) -> io::Result<(TlsAcceptor, String)> {
    make(tls, buckets).map_err(io::Error::other)
}

fn make(
    tls: Tls,
    buckets: &[String],
) -> Result<(TlsAcceptor, String), Box<dyn std::error::Error + Send + Sync>> {
    let mut ca = CertificateParams::default();
    ca.distinguished_name.push(DnType::CommonName, "s3-server test authority");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate()?)?;

    let mut leaf = CertificateParams::default();
    leaf.distinguished_name.push(DnType::CommonName, "s3-server");
    leaf.subject_alt_names = match tls {
        Tls::WrongHost => vec![SanType::DnsName("elsewhere.example".try_into()?)],
        Tls::Valid | Tls::Expired => {
            // Clients refuse a wildcard right below a name of one label.
            let mut hosts = vec!["localhost".to_owned(), "*.s3.localhost".to_owned()];
            hosts.extend(buckets.iter().map(|bucket| format!("{bucket}.localhost")));
            let mut names = vec![SanType::IpAddress(std::net::Ipv4Addr::LOCALHOST.into())];
            for host in hosts {
                names.push(SanType::DnsName(host.try_into()?));
            }
            names
        }
    };
    let now = time::OffsetDateTime::now_utc();
    (leaf.not_before, leaf.not_after) = match tls {
        Tls::Expired => (now - time::Duration::days(30), now - time::Duration::days(1)),
        Tls::Valid | Tls::WrongHost => {
            (now - time::Duration::days(1), now + time::Duration::days(30))
        }
    };
    let key = KeyPair::generate()?;
    let leaf = leaf.signed_by(&key, &ca)?;

    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)?;
    Ok((TlsAcceptor::from(Arc::new(config)), ca.pem()))
}
