//! Deletes several blobs with one request: Azure's Blob Batch, whose body has a request for each, signed as if it were
//! sent alone.

use crate::bucket::Container;
use crate::credential::Credential;
use crate::error::explain;
use crate::request::{Call, new_id};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tf_fs_object_store::http::{Chunks, ErrorResponse, HttpError, Method, number};
use tf_fs_object_store::{ErrorKind, StoreError as _};
use tf_fs_plugin::prelude::*;

/// The most blobs of a batch.
pub(crate) const MOST: usize = 256;
/// The most bytes of the response.
const LARGEST: usize = MOST * (16 << 10);

/// Deletes these blobs, and returns those that are left.
///
/// # Errors
/// [`ErrorKind::Unsupported`] if the account or the credentials permit no batch, or its response does not tell what became of
/// each blob: single deletions may work.
pub(crate) async fn delete(
    container: &Container,
    keys: &[String],
) -> Result<Vec<(String, HttpError)>, HttpError> {
    let account = &container.account;
    let (credential, signed_by) = (account.credential.get(), account.credential.number());
    let token = match &credential {
        Credential::Entra(tokens) => tokens.get().await?,
        _ => None,
    };
    let boundary = format!("batch_{}", new_id()?);
    let mut body = String::new();
    for (number, key) in keys.iter().enumerate() {
        let call = container.call(Method::DELETE, key);
        let (target, headers) = account.prepare(&call, token.as_ref(), false)?;
        let _ = write!(
            body,
            "--{boundary}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\
             Content-ID: {number}\r\n\r\nDELETE {target} HTTP/1.1\r\n"
        );
        for (name, value) in &headers {
            let _ = write!(body, "{name}: {}\r\n", value.to_str().unwrap_or_default());
        }
        body.push_str("Content-Length: 0\r\n\r\n");
    }
    let _ = write!(body, "--{boundary}--\r\n");
    let call = Call::container(Method::POST, &container.name)
        .with_query("comp", "batch")
        .with_header("content-type", &format!("multipart/mixed; boundary={boundary}"))?
        .with_body(Chunks::new([body.into()]));
    let response = account.attempt(&call).await?;
    if response.status != 202 {
        let failed = account.refused(response).await;
        // Azurite fails like this with the SAS of an account, for Microsoft's client too.
        let is_broken =
            matches!(&failed, HttpError::Status(it) if it.status == 500 && it.code.is_none());
        return Err(match failed.kind() {
            ErrorKind::Permanent | ErrorKind::Denied => HttpError::unsupported("batches"),
            _ if is_broken => HttpError::unsupported("batches"),
            _ => failed,
        });
    }
    let text = response.collect(LARGEST).await?;
    let refusals = refusals(&String::from_utf8_lossy(&text), keys.len())?;
    if let (Credential::Entra(tokens), Some(token)) = (&credential, &token)
        && refusals.iter().any(|(_, status, _)| *status == 401)
    {
        tokens.forget(token).await;
    }
    let is_refused = |status| matches!(status, 401 | 403);
    let is_renewed = refusals.iter().any(|(_, status, _)| is_refused(*status))
        && account.credential.renew(signed_by);
    Ok(refusals
        .into_iter()
        .map(|(number, status, code)| {
            let mut refusal = ErrorResponse {
                status,
                endpoint: account.endpoint.clone(),
                ..ErrorResponse::default()
            };
            explain(&mut refusal, code, None, b"", account);
            // The token that signed each request was withdrawn, or there is another key or SAS; the next batch has it.
            if status == 401 && token.is_some() || is_refused(status) && is_renewed {
                refusal.kind = Some(ErrorKind::InvalidResponse);
            }
            (keys[number].clone(), HttpError::Status(Box::new(refusal)))
        })
        .filter(|(_, failed)| failed.kind() != ErrorKind::NotFound)
        .collect())
}

/// Returns number, status and code of each of `count` requests that has not succeeded.
pub(crate) fn refusals(
    text: &str,
    count: usize,
) -> Result<Vec<(usize, u16, Option<String>)>, HttpError> {
    let wrong = |what: &str| HttpError::unsupported(&format!("batches whose response has {what}"));
    let boundary = text.trim_start().lines().next().filter(|line| line.starts_with("--"));
    let boundary = boundary.ok_or_else(|| wrong("no boundary"))?.trim_end();
    let mut statuses = BTreeMap::new();
    for part in text.trim_start().split(boundary).skip(1) {
        let mut lines = part.lines().map(str::trim_end).skip(1);
        let value = |line: &str, wanted: &str| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case(wanted).then(|| value.trim().to_owned())
        };
        let head: Vec<&str> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
        // The text after the last boundary.
        let Some(line) = lines.next() else { continue };
        let id = head.iter().find_map(|line| value(line, "content-id"));
        let id = id.and_then(|id| number(&id)).and_then(|id| usize::try_from(id).ok());
        let id = id.filter(|id| *id < count).ok_or_else(|| wrong("a part without a number"))?;
        let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let status: u16 = status.ok_or_else(|| wrong("a part without a status"))?;
        let code = lines
            .take_while(|line| !line.is_empty())
            .find_map(|line| value(line, "x-ms-error-code"));
        ensure!(statuses.insert(id, (status, code)).is_none(), wrong("two parts with one number"));
    }
    ensure!(statuses.len() == count, wrong("another number of parts than were sent"));
    let all = statuses.into_iter().map(|(id, (status, code))| (id, status, code));
    Ok(all.filter(|(_, status, _)| *status != 202).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(id: &str, status: &str) -> String {
        format!("--b\r\nContent-Type: application/http\r\nContent-ID: {id}\r\n\r\n{status}\r\n\r\n")
    }

    #[test]
    fn each_part_counts_for_its_blob() {
        let text = format!(
            "{}{}{}--b--\r\n",
            part("2", "HTTP/1.1 202 Accepted\r\nx-ms-request-id: x"),
            part("0", "HTTP/1.1 409 Conflict\r\nx-ms-error-code: SnapshotsPresent\r\n\r\n<Error/>"),
            part(
                "1",
                "HTTP/1.1 404 The specified blob does not exist.\r\nx-ms-error-code: BlobNotFound"
            ),
        );
        let wanted = [(0, 409, "SnapshotsPresent"), (1, 404, "BlobNotFound")];
        let wanted = wanted.map(|(id, status, code)| (id, status, Some(code.to_owned())));
        assert_eq!(refusals(&text, 3).unwrap(), wanted);
    }

    #[test]
    fn a_batch_response_without_each_result_is_not_believed() {
        let good = "HTTP/1.1 202 Accepted";
        for (text, count) in [
            (String::new(), 1),
            ("HTTP/1.1 202 Accepted".to_owned(), 1),
            (part("0", good), 2),
            (part("0", good) + &part("0", good), 2),
            (part("5", good), 1),
            (part("x", good), 1),
            (part("0", "OK"), 1),
            // A failure of the batch itself has no number.
            (
                "--b\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 400 X\r\n\r\n--b--"
                    .to_owned(),
                1,
            ),
        ] {
            let failed = refusals(&text, count).unwrap_err();
            assert_eq!(failed.kind(), ErrorKind::Unsupported, "{text}");
        }
    }
}
