//! Copies made by the store.

use crate::account::{Account, is_confidential};
use crate::bucket::{Container, meta, refuse_directory};
use crate::{list, write};
use std::sync::Arc;
use std::time::Duration;
use tf_fs_object_store::http::{HttpError, Method};
use tf_fs_object_store::{CopyOptions, ErrorKind, Name, ObjectMeta, StoreError as _, retry};
use tf_fs_plugin::prelude::*;

/// The wait before querying whether a copy is done: within an account it is done at once.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Copies a blob, over another one if that is there.
pub(crate) async fn copy(
    from: &Arc<Container>,
    to: &Arc<Container>,
    options: CopyOptions<'_>,
) -> Result<Option<ObjectMeta>, HttpError> {
    let (source, target) = (&from.account, &to.account);
    check(source, target, options.src).map_err(HttpError::Other)?;
    let (known, key) = (options.known.as_ref(), &options.src.key);
    // The marker of a directory is empty, and Azure would copy it like any blob.
    if !key.ends_with('/') && matches!(options.len, None | Some(0)) {
        refuse_directory(key, &from.properties(key).await?)?;
    }
    let call = to
        .call(Method::PUT, &options.dst.key)
        // It may contain a SAS.
        .with_secret("x-ms-copy-source", &source.url(&from.name, key))?
        .with_optional("x-ms-source-if-match", known.and_then(|known| known.strong_etag()))?;
    let mut response = match target.send(call, &[202]).await {
        Err(failed) if failed.kind() == ErrorKind::NotFound => {
            // The marker may be a blob without the `/`.
            if !list::is_folder(from, key).await? {
                return Err(failed);
            }
            write::put_marker(to, &options.dst.key).await?;
            return Ok(None);
        }
        response => response?,
    };
    let mut wait = FIRST_WAIT;
    let id = response.header("x-ms-copy-id").map(str::to_owned);
    loop {
        match response.header("x-ms-copy-status") {
            Some("success") => {
                let size = response.content_length.filter(|_| wait > FIRST_WAIT);
                let size = size.or(known.and_then(|known| known.size));
                return Ok(Some(meta(&response, size)));
            }
            Some("pending") => {}
            Some(status @ ("failed" | "aborted")) => {
                let why = response.header("x-ms-copy-status-description").unwrap_or_default();
                let error = Error::new(
                    Code::Aborted,
                    format!(
                        "{}: Azure gave the copy up: {status} {}; look at the source, and copy it again",
                        options.dst,
                        why.escape_debug()
                    ),
                );
                // An empty blob is left of it, which must not pass for the copy.
                if let Some(etag) = response.header("etag") {
                    let call = to.call(Method::DELETE, &options.dst.key);
                    let _ = target.send(call.with_header("if-match", etag)?, &[202]).await;
                }
                return Err(HttpError::Other(error));
            }
            status => {
                return Err(HttpError::invalid(&format!(
                    "the status of the copy is `{}`",
                    status.unwrap_or("none").escape_debug()
                )));
            }
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LONGEST_WAIT);
        // Retried separately: the copy goes on, and another request for it would be refused.
        let look = || target.send(to.call(Method::HEAD, &options.dst.key), &[200]);
        response = retry(&**to, "copy", options.dst, look).await.map_err(HttpError::Other)?;
        if response.header("x-ms-copy-id") != id.as_deref() {
            return Err(HttpError::Other(Error::new(
                Code::Aborted,
                format!("{}: somebody else wrote it during the copy; copy it again", options.dst),
            )));
        }
    }
}

/// Checks that the store of `target` can read the source, and that no secret of it is sent in the clear.
fn check(source: &Account, target: &Account, src: &Name) -> Result<()> {
    use crate::credential::Credential::{Anonymous, Sas};
    let credential = source.credential.get();
    ensure!(
        source.identity() == target.identity() || matches!(credential, Sas(_) | Anonymous),
        Error::new(
            Code::Unimplemented,
            format!(
                "{src}: Azure copies from another account only by a SAS of it; set AZURE_STORAGE_SAS_TOKEN, or read and write"
            )
        )
    );
    // The source's SAS is sent to the store of the target.
    ensure!(
        !matches!(credential, Sas(_)) || is_confidential(&target.endpoint),
        Error::invalid_argument(format_args!(
            "{src}: its SAS is not sent to {} without TLS; name an endpoint with https://, or read and write",
            target.endpoint
        ))
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::http;
    use crate::settings::of_variables;

    #[test]
    fn a_source_is_read_by_its_own_sas_and_that_over_tls() {
        const KEY: (&str, &str) = ("AZURE_STORAGE_KEY", "c2VzYW1l");
        const SAS: (&str, &str) = ("AZURE_STORAGE_SAS_TOKEN", "sig=planted");
        let account = |name, endpoint, credential| {
            let settings = of_variables(&[("TF_AZ_BLOB_ENDPOINT", endpoint), credential]).unwrap();
            Account::new(name, &settings, &http(&settings).unwrap(), || Ok(None)).unwrap()
        };
        let src = Name::new("az", "one/c", "k");
        let of = |source: &Account, target: &Account| check(source, target, &src);
        let by_key = account("one", "https://h", KEY);
        let by_sas = account("one", "https://h", SAS);
        assert!(of(&by_key, &account("one", "https://h", KEY)).is_ok());
        let error = of(&by_key, &account("two", "https://i", KEY)).unwrap_err();
        assert_eq!(error.code(), Code::Unimplemented, "{error}");
        assert!(error.message().ends_with("or read and write"), "{error}");
        assert!(of(&by_sas, &account("two", "https://i", KEY)).is_ok());
        assert!(of(&by_sas, &account("two", "http://127.0.0.1:1", KEY)).is_ok());
        let error = of(&by_sas, &account("two", "http://i", KEY)).unwrap_err();
        assert!(error.message().contains("not sent to http://i without TLS"), "{error}");
        assert!(!error.message().contains("planted"), "{error}");
    }
}
