//! Why a request got no response.

use crate::redact::redacted;
use std::error::Error;
use std::io;

/// The text of hyper's tunnel errors for a response 407; they have no type to check.
pub const PROXY_AUTH_REQUIRED: &str = "proxy authorization required";

/// Returns whether a request got no response for a reason that waiting does not fix, such as wrong settings.
pub fn is_lasting(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    for _ in 0..16 {
        let Some(error) = next else { break };
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            use rustls::Error::{InvalidCertificate, InvalidMessage, PeerIncompatible};
            return matches!(tls, InvalidCertificate(_) | InvalidMessage(_) | PeerIncompatible(_));
        }
        next = match error.downcast_ref::<io::Error>() {
            // Its `source` leaves out the error that it wraps.
            Some(error) => error.get_ref().map(|error| error as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    causes(error).contains(PROXY_AUTH_REQUIRED)
}

/// Returns an error's causes in one line, each once, without the [secrets](crate::redact) of this process: a server may
/// have written a part of it.
pub fn causes(error: &dyn Error) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    for _ in 0..16 {
        let Some(error) = next else { break };
        let part = error.to_string();
        if !part.is_empty() && !text.contains(&part) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&part);
        }
        next = error.source();
    }
    redacted(&text).into_owned()
}

/// Returns at most `max` characters of a text that others wrote, on one line, without the [secrets](crate::redact) of
/// this process.
pub fn printable(text: &str, max: usize) -> String {
    redacted(text).chars().take(max).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Returns whether time ran out before a response came.
pub fn is_timeout(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    for _ in 0..16 {
        let Some(error) = next else { break };
        if error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::TimedOut) {
            return true;
        }
        next = error.source();
    }
    false
}
