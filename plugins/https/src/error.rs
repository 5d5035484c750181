//! Next steps for a response whose status is not a success.

use crate::bucket::Origin;
use crate::{name, redirect};
use tf_fs_object_store::http::{ErrorResponse, HttpError, Response};

impl Origin {
    /// Returns the failure of a response whose status is not a success.
    pub(crate) async fn error_of(&self, response: Response) -> HttpError {
        let url = response.url();
        let host = name::origin(url);
        let base = name::url(&self.base, "").unwrap_or_default();
        let has_credentials = self.credentials.has(url, &base);
        let is_named = host == name::origin(&base);
        let is_signed = redirect::is_signed(url);
        response
            .into_error(|refusal, _| {
                refusal.advice = advice(refusal, has_credentials, is_named, is_signed, &host);
            })
            .await
    }
}

/// Returns what a user can do after a refusal.
fn advice(
    refusal: &ErrorResponse,
    has_credentials: bool,
    is_named: bool,
    is_signed: bool,
    host: &str,
) -> Option<String> {
    Some(match (refusal.status, has_credentials) {
        (401, false) if !is_named => format!(
            "a redirect led to {host}, which requires credentials; name its URL itself, or put a token into \
             TF_HTTPS_BEARER_TOKENS or a header into TF_HTTPS_HEADERS for it"
        ),
        (401, false) => format!(
            "it requires credentials; put a token into TF_HTTPS_BEARER_TOKENS (host=token), a header into TF_HTTPS_HEADERS, \
             or a password into ~/.netrc, for {host}"
        ),
        (401, true) => format!("the credentials for {host} are not accepted; correct them"),
        (403, _) if is_signed => {
            "look at the URL: it is signed, and its time may be over".to_owned()
        }
        (403, false) => format!(
            "look at the URL; if it is right, {host} wants credentials (TF_HTTPS_BEARER_TOKENS, TF_HTTPS_HEADERS, ~/.netrc), \
             or another name of the program (TF_HTTPS_USER_AGENT)"
        ),
        (403, true) => {
            format!(
                "the credentials for {host} do not allow this; look at the URL and at their rights"
            )
        }
        (407, _) => "the proxy requires credentials; put them into HTTP_PROXY".to_owned(),
        (300..=399, _) => {
            format!("{host} names no place to follow (Location), or several; look at the URL")
        }
        (429, _) => {
            "the server limits requests; read fewer files at once, or try again later".to_owned()
        }
        (500.., _) => "the server is at fault; try again later".to_owned(),
        _ => return None,
    })
}
