//! Which addresses a client may connect to: a redirect of some server should not reach what only this machine does.

use super::HttpError;
use futures_util::future::BoxFuture;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use std::error::Error;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::task::{Context, Poll};
use tower_service::Service;

/// The reach of an address: who can connect to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// Everybody.
    Public,
    /// Machines of the same private network.
    Private,
    /// Processes of this machine.
    Loopback,
    /// Machines of the same link, and what a cloud provides to its own machines, such as their credentials.
    LinkLocal,
}

/// Returns whether a cloud provides metadata or credentials at an address that is not link-local.
fn is_metadata(address: IpAddr) -> bool {
    match address {
        // Alibaba, Oracle, Azure.
        IpAddr::V4(address) => {
            matches!(address.octets(), [100, 100, 100, 200] | [192, 0, 0, 192] | [168, 63, 129, 16])
        }
        // AWS with its containers, Google, Oracle.
        IpAddr::V6(address) => matches!(
            address.segments(),
            [0xfd00, 0xec2, ..]
                | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254]
                | [0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe]
        ),
    }
}

impl Zone {
    /// Returns the zone of an address.
    pub fn of(address: IpAddr) -> Self {
        if is_metadata(address) {
            return Self::LinkLocal;
        }
        match address {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => match embedded(address) {
                // The machine that translates such an address may have another loopback.
                Some(inner) if address.to_ipv4_mapped().is_none() => match Self::of(inner.into()) {
                    Self::Loopback => Self::LinkLocal,
                    zone => zone,
                },
                Some(inner) => Self::of(inner.into()),
                None if address.is_loopback() || address.is_unspecified() => Self::Loopback,
                None if address.is_unicast_link_local() || address.is_multicast() => {
                    Self::LinkLocal
                }
                // NAT64 of a local network, which may lead to any address (RFC 8215).
                None if address.segments()[..3] == [0x64, 0xff9b, 1] => Self::LinkLocal,
                // The second are site-local: deprecated, but routed by some.
                None if address.is_unique_local() || (address.segments()[0] & 0xffc0) == 0xfec0 => {
                    Self::Private
                }
                None => Self::Public,
            },
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        match address.octets() {
            // Linux takes 0.0.0.0 for this machine, and the rest of its block for a network.
            [127, ..] | [0, 0, 0, 0] => Self::Loopback,
            [0, ..] | [169, 254, ..] | [224..=255, ..] => Self::LinkLocal,
            // Private, shared by a carrier's customers, for protocols, for benchmarks.
            [10, ..]
            | [172, 16..=31, ..]
            | [192, 168, ..]
            | [100, 64..=127, ..]
            | [192, 0, 0, _]
            | [198, 18..=19, ..] => Self::Private,
            _ => Self::Public,
        }
    }

    /// Returns the zone of a host that is an address, in brackets or not, or a name of this machine.
    pub fn of_host(host: &str) -> Option<Self> {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        if host == "localhost" || host.ends_with(".localhost") {
            return Some(Self::Loopback);
        }
        host.trim_matches(['[', ']']).parse().ok().map(Self::of)
    }
}

/// Returns the name to look up for this host: those below `localhost` are this machine too (RFC 6761), but not every
/// resolver knows them. A bucket may be in front of it. An address with a dot after it would be looked up in the DNS.
pub(super) fn looked_up(host: &str) -> &str {
    const LOCALHOST: &str = "localhost";
    if Zone::of_host(host).is_none() {
        return host;
    }
    let host = host.trim_end_matches('.');
    let end = host.len().checked_sub(LOCALHOST.len()).and_then(|start| host.get(start..));
    if end.is_some_and(|end| end.eq_ignore_ascii_case(LOCALHOST)) { LOCALHOST } else { host }
}

/// Returns the address of version 4 that one of version 6 leads to: mapped, compatible, NAT64, 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let of = |high: u16, low: u16| Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0 | 0xffff, 0xffff | 0, high, low] => of(high, low),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => of(high, low),
        [0x2002, high, low, ..] => of(high, low),
        _ => None,
    }
}

/// The zones that a client may connect to. The public one is always among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NetworkPolicy(u8);

impl Default for NetworkPolicy {
    /// Returns all zones.
    fn default() -> Self {
        Self(u8::MAX)
    }
}

impl NetworkPolicy {
    /// Creates the reach of a client that may connect to these zones and to the public one.
    pub fn new(zones: &[Zone]) -> Self {
        Self(zones.iter().fold(1, |all, &zone| all | (1 << zone as u8)))
    }

    fn has(self, zone: Zone) -> bool {
        self.0 & (1 << zone as u8) != 0
    }

    /// Checks a host that is an address: nobody looks that up.
    ///
    /// # Errors
    /// If it is out of reach.
    pub(super) fn check(self, host: &str) -> Result<(), AddressNotAllowed> {
        match Zone::of_host(host) {
            Some(zone) if !self.has(zone) => Err(AddressNotAllowed(zone)),
            _ => Ok(()),
        }
    }

    /// Returns those of a host's addresses that are in reach.
    ///
    /// # Errors
    /// If the host has addresses, and none of them is.
    pub(super) fn filter(
        self,
        all: impl Iterator<Item = SocketAddr>,
    ) -> io::Result<Vec<SocketAddr>> {
        let (mut within, mut beyond) = (Vec::new(), None);
        for address in all {
            let zone = Zone::of(address.ip());
            if self.has(zone) {
                within.push(address);
            } else {
                beyond = Some(AddressNotAllowed(zone));
            }
        }
        match beyond {
            Some(error) if within.is_empty() => Err(io::Error::other(error)),
            _ => Ok(within),
        }
    }
}

/// A host whose addresses a client may not connect to.
#[derive(Clone, Copy, Debug)]
pub(super) struct AddressNotAllowed(Zone);

impl fmt::Display for AddressNotAllowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Zone::Public => "its address is public",
            Zone::Private => "its address is of a private network",
            Zone::Loopback => "its address is of this machine",
            Zone::LinkLocal => "its address is of this machine's link or cloud",
        })
    }
}

impl Error for AddressNotAllowed {}

impl HttpError {
    /// Returns why the [reach](NetworkPolicy) of a client prevented a request, if it did.
    pub fn address_not_allowed(&self) -> Option<String> {
        let Self::Transport(_, error) = self else { return None };
        let mut next: Option<&(dyn Error + 'static)> = Some(&**error);
        for _ in 0..16 {
            let error = next?;
            if let Some(error) = error.downcast_ref::<AddressNotAllowed>() {
                return Some(error.to_string());
            }
            next = match error.downcast_ref::<io::Error>() {
                // Its `source` leaves out the error that it wraps.
                Some(error) => error.get_ref().map(|error| error as &(dyn Error + 'static)),
                None => error.source(),
            };
        }
        None
    }
}

/// The system's DNS, within a reach.
#[derive(Clone, Debug)]
pub(super) struct Resolver {
    pub(super) all: GaiResolver,
    pub(super) reach: NetworkPolicy,
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Service::poll_ready(&mut self.all, context)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let name = looked_up(name.as_str()).parse().unwrap_or(name);
        let (addresses, reach) = (self.all.call(name), self.reach);
        Box::pin(async move { Ok(reach.filter(addresses.await?)?.into_iter()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_zones() {
        use Zone::{LinkLocal, Loopback, Private, Public};
        for (address, zone) in [
            ("93.184.216.34", Public),
            ("172.15.0.1", Public),
            ("172.32.0.1", Public),
            ("100.128.0.1", Public),
            ("192.0.2.1", Public),
            ("2606:2800:220:1::1", Public),
            ("10.1.2.3", Private),
            ("172.16.0.1", Private),
            ("172.31.255.255", Private),
            ("192.168.0.1", Private),
            ("100.64.0.1", Private),
            ("198.19.0.1", Private),
            ("fd12::1", Private),
            ("fc00::1", Private),
            ("fec0::1", Private),
            ("127.0.0.1", Loopback),
            ("127.255.255.254", Loopback),
            ("0.0.0.0", Loopback),
            ("0.1.2.3", LinkLocal),
            ("::1", Loopback),
            ("::", Loopback),
            ("169.254.169.254", LinkLocal),
            ("169.254.170.2", LinkLocal),
            ("100.100.100.200", LinkLocal),
            ("168.63.129.16", LinkLocal),
            ("255.255.255.255", LinkLocal),
            ("239.1.1.1", LinkLocal),
            ("fe80::1", LinkLocal),
            ("febf::1", LinkLocal),
            ("ff02::1", LinkLocal),
            ("fd00:ec2::254", LinkLocal),
            ("fd00:ec2::23", LinkLocal),
            ("fd20:ce::254", LinkLocal),
            ("fd00:c1::a9fe:a9fe", LinkLocal),
            ("fd00:ec3::254", Private),
            ("64:ff9b:1::169.254.169.254", LinkLocal),
            ("64:ff9b:1:a9fe:a9:fe00::", LinkLocal),
            // The same in version 6.
            ("::ffff:93.184.216.34", Public),
            ("::ffff:127.0.0.1", Loopback),
            ("::ffff:169.254.169.254", LinkLocal),
            ("::ffff:0:10.0.0.1", Private),
            ("::ffff:100.100.100.200", LinkLocal),
            ("::127.0.0.1", LinkLocal),
            ("::0.0.0.2", LinkLocal),
            ("64:ff9b::169.254.169.254", LinkLocal),
            ("64:ff9b::8.8.8.8", Public),
            ("2002:7f00:1::", LinkLocal),
            ("2002:a9fe:a9fe::1", LinkLocal),
        ] {
            assert_eq!(Zone::of(address.parse().unwrap()), zone, "{address}");
        }
        for (host, zone) in [
            ("localhost", Some(Loopback)),
            ("LOCALHOST.", Some(Loopback)),
            ("a.localhost", Some(Loopback)),
            ("[::1]", Some(Loopback)),
            ("127.0.0.1.", Some(Loopback)),
            ("h.example", None),
            ("localhost.example", None),
        ] {
            assert_eq!(Zone::of_host(host), zone, "{host}");
        }
    }

    #[test]
    fn a_reach_is_its_zones_and_the_public_one() {
        let addresses = ["8.8.8.8:1", "10.0.0.1:1", "127.0.0.1:1", "169.254.169.254:1"];
        let all = || addresses.map(|address| address.parse::<SocketAddr>().unwrap()).into_iter();
        for (zones, within) in [
            (&[][..], &addresses[..1]),
            (&[Zone::Private], &addresses[..2]),
            (&[Zone::Private, Zone::Loopback], &addresses[..3]),
        ] {
            let got = NetworkPolicy::new(zones).filter(all()).unwrap();
            let got: Vec<String> = got.iter().map(ToString::to_string).collect();
            assert_eq!(got, within);
        }
        assert_eq!(NetworkPolicy::default().filter(all()).unwrap().len(), 4);
        let error = NetworkPolicy::new(&[Zone::Private]).filter(all().skip(2)).unwrap_err();
        let failed = HttpError::Transport("http://h".to_owned(), error.into());
        assert!(failed.address_not_allowed().unwrap().contains("link or cloud"));
        assert!(NetworkPolicy::new(&[]).filter(std::iter::empty()).unwrap().is_empty());
        assert!(NetworkPolicy::new(&[]).check("h.example").is_ok());
        assert!(NetworkPolicy::new(&[Zone::Private]).check("[::ffff:127.0.0.1]").is_err());
    }

    #[test]
    fn names_of_this_machine_are_not_looked_up_elsewhere() {
        for (host, name) in [
            ("a.LOCALHOST", "localhost"),
            ("localhost.", "localhost"),
            ("a.localhost.", "localhost"),
            ("127.0.0.1.", "127.0.0.1"),
            ("::1", "::1"),
            ("0.0.0.0", "0.0.0.0"),
            ("h.example.", "h.example."),
            ("evillocalhost", "evillocalhost"),
            ("é", "é"),
        ] {
            assert_eq!(looked_up(host), name);
        }
    }
}
