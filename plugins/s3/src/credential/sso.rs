//! AWS IAM Identity Center (single sign-on): the token that `aws sso login` keeps, and the keys of a role for it.

use super::services::{endpoint, refused, request};
use super::{Loaded, Outcome, Services, broken, date_time, of_json};
use crate::endpoint::{ESCAPED, suffix};
use crate::profile::{Profiles, expand};
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use percent_encoding::utf8_percent_encode;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::{Error, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};
use tf_fs_object_store::http::{HeaderValue, Method};
use tf_fs_object_store::redact::keep;

/// A token this near to its expiry is renewed.
const RENEW_BEFORE: Duration = Duration::from_secs(5 * 60);

impl Services {
    /// Requests the keys of the role that a profile names.
    pub(super) async fn sso(&self, profiles: &Profiles, name: &str) -> Loaded {
        let session = profiles.of(name, "sso_session");
        let get = |key: &str| match session {
            Some(session) => profiles.section("sso-session", session, key),
            None => profiles.of(name, key),
        };
        let need = |key: &str, value: Option<&str>| {
            let of = session.map(|session| format!(" of sso-session `{session}`"));
            value.map(str::to_owned).ok_or_else(|| {
                Outcome::Broken(format!("{key}{} is not set", of.unwrap_or_default()))
            })
        };
        let account = need("sso_account_id", profiles.of(name, "sso_account_id"))?;
        let role = need("sso_role_name", profiles.of(name, "sso_role_name"))?;
        let region = need("sso_region", get("sso_region"))?;
        let start = need("sso_start_url", get("sso_start_url"))?;
        let token = self.token(profiles, session, &start, &region).await?;
        let url = endpoint(profiles, "SSO", || {
            format!("https://portal.sso.{region}.{}", suffix(&region))
        });
        let encode = |text: &str| utf8_percent_encode(text, ESCAPED).to_string();
        let (account, role) = (encode(&account), encode(&role));
        let url = format!("{url}/federation/credentials?role_name={role}&account_id={account}");
        let mut request = request(Method::GET, &url, Default::default())?;
        let Ok(value) = HeaderValue::from_str(&token) else {
            return broken("the token of `aws sso login` cannot be sent; run it again");
        };
        request.headers_mut().insert("x-amz-sso_bearer_token", value);
        let (status, body) = self.ask_amazon(request).await?;
        if !(200..300).contains(&status) {
            let text = format!("{}; run `aws sso login`", String::from_utf8_lossy(&body));
            return Err(refused("single sign-on", (status, &body), &text));
        }
        let value: Value = serde_json::from_slice(&body).unwrap_or_default();
        let keys = of_json(value["roleCredentials"].to_string().as_bytes());
        keys.or_else(|why| broken(format!("the response of single sign-on has {why}")))
    }

    /// Returns the token that `aws sso login` keeps, renewed if it ends soon.
    async fn token(
        &self,
        profiles: &Profiles,
        session: Option<&str>,
        start: &str,
        region: &str,
    ) -> Result<String, Outcome> {
        let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, session.unwrap_or(start).as_bytes());
        let name: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let path = format!("~/.aws/sso/cache/{name}.json");
        let file = expand(&path).ok_or_else(|| Outcome::Broken("HOME is not set".to_owned()))?;
        let _renewal = self.renewal.lock().await;
        let login = || Outcome::Broken(format!("{path} has no valid token; run `aws sso login`"));
        let text = std::fs::read(&file).map_err(|_| login())?;
        let mut kept: Value = serde_json::from_slice(&text).map_err(|_| login())?;
        for secret in ["accessToken", "refreshToken", "clientSecret"] {
            kept[secret].as_str().map(keep);
        }
        let time = |kept: &Value, field: &str| kept[field].as_str().and_then(date_time);
        let (end, now) = (time(&kept, "expiresAt").ok_or_else(login)?, SystemTime::now());
        let may_renew = session.is_some()
            && time(&kept, "registrationExpiresAt").is_some_and(|end| end > now)
            && ["clientId", "clientSecret", "refreshToken"]
                .iter()
                .all(|field| kept[*field].is_string());
        if end < now + RENEW_BEFORE && may_renew {
            match self.renew(profiles, region, &kept).await {
                Ok(renewed) => {
                    keep_token(&mut kept, &renewed, &file);
                    return kept["accessToken"].as_str().map(str::to_owned).ok_or_else(login);
                }
                Err(outcome) if end <= now => return Err(outcome),
                Err(outcome) => log::debug!("the token is not renewed: {outcome:?}"),
            }
        }
        if end <= now {
            return Err(login());
        }
        kept["accessToken"].as_str().map(str::to_owned).ok_or_else(login)
    }

    async fn renew(
        &self,
        profiles: &Profiles,
        region: &str,
        kept: &Value,
    ) -> Result<Value, Outcome> {
        let url =
            endpoint(profiles, "SSO_OIDC", || format!("https://oidc.{region}.{}", suffix(region)));
        let body = json!({
            "clientId": kept["clientId"],
            "clientSecret": kept["clientSecret"],
            "refreshToken": kept["refreshToken"],
            "grantType": "refresh_token",
        });
        let mut request = request(Method::POST, &format!("{url}/token"), body.to_string().into())?;
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert("content-type", json);
        let (status, body) = self.ask_amazon(request).await?;
        let renewed: Value = serde_json::from_slice(&body).unwrap_or_default();
        match (status, renewed["accessToken"].as_str()) {
            (200..300, Some(_)) => Ok(renewed),
            _ => Err(refused("single sign-on", (status, &body), &String::from_utf8_lossy(&body))),
        }
    }
}

/// Takes over what a renewal has changed, and writes the file for the other AWS tools.
fn keep_token(kept: &mut Value, renewed: &Value, file: &Path) {
    for field in ["accessToken", "refreshToken"] {
        if let Some(text) = renewed[field].as_str() {
            keep(text);
            kept[field] = text.into();
        }
    }
    // A year at most.
    let lasts = renewed["expiresIn"].as_u64().unwrap_or(0).min(365 * 24 * 60 * 60);
    let end = SystemTime::now().checked_add(Duration::from_secs(lasts));
    let end = end.and_then(|end| DateTime::from(end).fmt(Format::DateTime).ok());
    let end = end.ok_or_else(|| Error::other("the token's end is not a date"));
    let written = end.and_then(|end| {
        kept["expiresAt"] = end.into();
        replace(file, &kept.to_string())
    });
    if let Err(error) = written {
        log::warn!("cannot write {}: {error}", file.display());
    }
}

/// Replaces a file at once, so that no reader gets half of it.
fn replace(file: &Path, text: &str) -> Result<(), Error> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let temporary = file.with_extension(format!("{}-{number}.tmp", std::process::id()));
    let written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary);
    let written = written.and_then(|mut open| open.write_all(text.as_bytes()));
    written.and_then(|()| std::fs::rename(&temporary, file)).inspect_err(|_| {
        let _ = std::fs::remove_file(&temporary);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_renewed_token_replaces_the_old_one() {
        let file = std::env::temp_dir().join(format!("tf-s3-sso-{}", std::process::id()));
        let mut kept = json!({"accessToken": "old-token", "clientId": "c", "expiresAt": "x"});
        keep_token(&mut kept, &json!({"accessToken": "new-token", "expiresIn": 3600}), &file);
        let written: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        assert_eq!(
            (&written["accessToken"], &written["clientId"]),
            (&json!("new-token"), &json!("c"))
        );
        let end = written["expiresAt"].as_str().and_then(date_time).unwrap();
        assert!(end > SystemTime::now() + Duration::from_secs(3000));
        keep_token(&mut kept, &json!({"expiresIn": u64::MAX}), &file);
        let written: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        std::fs::remove_file(&file).unwrap();
        assert!(written["expiresAt"].as_str().and_then(date_time).unwrap() > end);
        assert_eq!(mode & 0o777, 0o600);
    }
}
