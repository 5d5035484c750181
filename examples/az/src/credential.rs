//! How requests are authorized.

mod entra;

pub(crate) use entra::Tokens;

use crate::settings::Secret;
use crate::sign::SharedKey;
use std::sync::Arc;

/// How requests to an account are authorized.
#[derive(Clone, Debug)]
pub(crate) enum Credential {
    /// With the account's key.
    Key(SharedKey),
    /// With a signature in the URL that somebody made.
    Sas(Secret),
    /// With tokens of Microsoft Entra.
    Entra(Arc<Tokens>),
    /// Not at all.
    Anonymous,
}
