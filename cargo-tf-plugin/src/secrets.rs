//! The environment variables that are kept from the code of a plugin that is only examined.

use std::env;
use std::ffi::OsStr;
use std::process::Command;

/// Names that contain one of these anywhere, as in `PGPASSWORD`.
const PARTS: &[&str] =
    &["APIKEY", "CREDENTIAL", "PASSPHRASE", "PASSWD", "PASSWORD", "SECRET", "TOKEN"];

/// Names with one of these between `_`, as in `API_KEY`, but not `KEYBOARD`.
const WORDS: &[&str] = &["AUTH", "COOKIE", "KEY", "KEYS", "PAT"];

/// Returns whether a variable may hold a secret, or the place of one.
fn is_secret(name: &str, value: &OsStr) -> bool {
    let name = name.to_ascii_uppercase();
    name.starts_with("AWS_")
        || PARTS.iter().any(|part| name.contains(part))
        || name.split('_').any(|word| WORDS.contains(&word))
        || name == "MYSQL_PWD"
        || has_password(&value.to_string_lossy())
}

/// Returns whether a value is an address with a user and a password: `https://me:word@host`.
fn has_password(value: &str) -> bool {
    value.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
    })
}

/// Removes variables that may hold secrets from a process's environment, and returns their names.
pub(crate) fn withhold(command: &mut Command) -> Vec<String> {
    let all = env::vars_os();
    let mut names: Vec<String> = all
        .filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            is_secret(&name, &value).then_some(name)
        })
        .collect();
    names.sort();
    for name in &names {
        command.env_remove(name);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn possible_secrets_are_removed_and_loader_variables_stay() {
        let secrets = "AWS_ACCESS_KEY_ID AWS_PROFILE GITHUB_TOKEN CARGO_REGISTRIES_MINE_TOKEN \
            openai_api_key STRIPE_KEYS DB_PASSWORD PGPASSWORD CLIENT_SECRET SECRET \
            GOOGLE_APPLICATION_CREDENTIALS SSH_AUTH_SOCK GITHUB_PAT MYSQL_PWD";
        for name in secrets.split(' ') {
            assert!(is_secret(name, "x".as_ref()), "{name}");
        }
        let others = "PATH HOME PWD LD_LIBRARY_PATH LD_PRELOAD PYTHONPATH VIRTUAL_ENV CUDA_VISIBLE_DEVICES \
            TF_CPP_MIN_LOG_LEVEL TF_FS_PLUGIN_AUTOLOAD KEYBOARD XAUTHORITY";
        for name in others.split(' ') {
            assert!(!is_secret(name, "x".as_ref()), "{name}");
        }
        for (value, secret) in [
            ("https://me:word@proxy.example:8080", true),
            ("postgres://me:word@host/db", true),
            ("https://proxy.example:8080/a@b", false),
            ("https://me@host", false),
            ("/usr/lib:/opt@x", false),
        ] {
            assert_eq!(is_secret("PROXY", value.as_ref()), secret, "{value}");
        }
    }
}
