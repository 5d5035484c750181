//! The server of a URL.

use crate::units::digits;

/// Returns whether a URL names a host, and if it has a port, a number that can be one. `http::Uri` accepts any text as
/// port, and then has none: requests would go to the default port.
pub fn names_server(url: &http::Uri) -> bool {
    let Some(authority) = url.authority() else { return false };
    let (host, text) = (authority.host(), authority.as_str());
    let port = text.rsplit_once('@').map_or(text, |(_, server)| server).strip_prefix(host);
    // Without digits after the `:` it is the default too.
    let is_port = |port: &str| match port.strip_prefix(':') {
        Some(port) if !port.is_empty() => {
            digits(port).is_some_and(|port| (1..=u64::from(u16::MAX)).contains(&port))
        }
        rest => rest.is_some() || port.is_empty(),
    };
    !host.is_empty() && port.is_some_and(is_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_a_number() {
        let names = |text: &str| names_server(&text.parse().unwrap());
        for text in [
            "https://h",
            "https://h:1/x",
            "http://[::1]:65535",
            "https://u:p@h:80",
            "h:443",
            "https://h:",
        ] {
            assert!(names(text), "{text}");
        }
        for text in [
            "https://h:0",
            "https://h:65536",
            "https://h:+1",
            "https://h:a",
            "https://:80",
            "/path",
            "https://[::1]:x",
        ] {
            assert!(!names(text), "{text}");
        }
    }
}
