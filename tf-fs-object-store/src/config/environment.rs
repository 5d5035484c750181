//! Settings from environment variables.

use super::layer::{Entry, Layer, Source, complaint, nearest};
use super::table::{EnvLookup, Table};
use std::ffi::OsString;
use tf_fs_plugin::prelude::*;

/// Returns the value of a variable. An empty or blank one counts as not set.
fn value(lookup: EnvLookup<'_>, name: &str) -> Option<OsString> {
    lookup(name).filter(|value| !value.to_string_lossy().trim().is_empty())
}

/// Reads the settings in the environment, and adds warnings to `warnings`.
///
/// # Errors
/// `INVALID_ARGUMENT` for a wrong value where using the default instead would be dangerous.
pub(super) fn read(
    table: &Table,
    lookup: EnvLookup<'_>,
    warnings: &mut Vec<String>,
) -> Result<Layer> {
    let mut layer = Layer::new();
    for setting in table.settings {
        for name in table.variables(setting) {
            if (table.ignores)(lookup, &name) {
                continue;
            }
            let Some(text) = value(lookup, &name) else { continue };
            let text = text.to_string_lossy();
            match setting.kind.parse(&text) {
                Ok(value) => {
                    let source = Source::Variable(name.into());
                    layer.insert(setting.key, Entry { value, source });
                }
                Err(reason) => {
                    let complaint = complaint(&name, setting, &text, reason);
                    let is_vital = setting.is_vital || setting.kind.is_vital();
                    ensure!(!is_vital, Error::invalid_argument(complaint));
                    let default = match setting.default {
                        "" => "no value",
                        default => default,
                    };
                    warnings.push(format!("{complaint}; using {default} now"));
                }
            }
            break;
        }
    }
    Ok(layer)
}

/// Warns of variables with the plugin's prefix that are not settings.
pub(super) fn unknown(
    table: &Table,
    names: impl Iterator<Item = OsString>,
    warnings: &mut Vec<String>,
) {
    let known = || {
        table
            .settings
            .iter()
            .flat_map(|setting| table.variables(setting))
            .filter(|name| name.starts_with(table.prefix))
            .chain([table.file_variable.to_owned()])
    };
    for name in names {
        let Some(name) = name.to_str().filter(|name| name.starts_with(table.prefix)) else {
            continue;
        };
        if known().any(|known| known == name) {
            continue;
        }
        let advice = match nearest(name, known()) {
            Some(nearest) => format!("did you mean {nearest}?"),
            None => table.help.to_owned(),
        };
        warnings
            .push(format!("{name} is set but is not a setting of {}://; {advice}", table.scheme));
    }
}

/// Returns the path of the settings file.
pub(super) fn file_path(table: &Table, lookup: EnvLookup<'_>) -> Option<OsString> {
    value(lookup, table.file_variable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::TABLE;
    use crate::config::value::{Kind, Value};

    fn read_from(variables: &[(&str, &str)]) -> (Result<Layer>, Vec<String>) {
        let mut warnings = Vec::new();
        let lookup = |name: &str| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into())
        };
        let layer = read(&TABLE, &lookup, &mut warnings);
        (layer, warnings)
    }

    #[test]
    fn our_names_count_before_those_of_aws_and_those_before_tensorflow_ios() {
        let all = [
            ("S3_REGION", "c"),
            ("AWS_DEFAULT_REGION", "b"),
            ("AWS_REGION", "a"),
            ("TF_S3_REGION", "own"),
        ];
        for (count, region) in [(1, "c"), (2, "b"), (3, "a"), (4, "own")] {
            let (layer, warnings) = read_from(&all[..count]);
            assert_eq!(layer.unwrap()["region"].value, Value::Text(region.into()));
            assert!(warnings.is_empty());
        }
    }

    #[test]
    fn every_variable_sets_its_setting() {
        for setting in TABLE.settings {
            let text = match (setting.default, setting.kind) {
                (_, Kind::Url | Kind::UrlOf(_)) => "http://host",
                (_, Kind::File) => "/etc/passwd",
                (_, Kind::Directory) => "/",
                (_, Kind::DiskCache) => "/cache:1GiB",
                (_, Kind::OneOf(words)) => words[0],
                (_, Kind::Flag) => "1",
                ("", _) => "text",
                (default, _) => default,
            };
            for name in TABLE.variables(setting) {
                let (layer, warnings) = read_from(&[(&name, text)]);
                let layer = layer.unwrap();
                assert!(layer.contains_key(setting.key), "{name}");
                assert_eq!(layer[setting.key].source, Source::Variable(name.into()));
                assert!(warnings.is_empty(), "{warnings:?}");
            }
        }
    }

    #[test]
    fn an_empty_variable_is_not_set() {
        let (layer, warnings) = read_from(&[("AWS_REGION", ""), ("S3_REGION", "x")]);
        assert_eq!(layer.unwrap()["region"].value, Value::Text("x".into()));
        assert!(warnings.is_empty());
    }

    #[test]
    fn junk_is_warned_of_and_the_default_stays() {
        for (name, text, key) in [
            ("AWS_MAX_ATTEMPTS", "many", "max_attempts"),
            ("AWS_MAX_ATTEMPTS", "-3", "max_attempts"),
            ("AWS_MAX_ATTEMPTS", "99999999999999999999", "max_attempts"),
            ("S3_MULTI_PART_UPLOAD_CHUNK_SIZE", "1000", "write_part_bytes"),
            ("S3_VERIFY_SSL", "maybe", "verify_tls"),
            ("AWS_RETRY_MODE", "legacy", "retry_mode"),
        ] {
            let (layer, warnings) = read_from(&[(name, text)]);
            assert!(!layer.unwrap().contains_key(key), "{name}");
            let [warning] = &warnings[..] else { panic!("{warnings:?}") };
            for part in [name, text, "write ", " now"] {
                assert!(warning.contains(part), "{warning}");
            }
        }
    }

    #[test]
    fn junk_is_an_error_where_going_on_would_be_dangerous() {
        for (name, text, why) in [
            ("AWS_ENDPOINT_URL", "ftp://x", "its scheme is not"),
            ("AWS_CA_BUNDLE", "/nowhere/ca.pem", "there is no such file"),
            ("S3_CA_PATH", "/nowhere", "there is no such directory"),
        ] {
            let (layer, _) = read_from(&[(name, text)]);
            let error = layer.unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument);
            for part in [name, text, why] {
                assert!(error.message().contains(part), "{error}");
            }
        }
        let (layer, _) = read_from(&[("S3_ENDPOINT", "http://user:planted@host")]);
        let error = layer.unwrap_err().to_string();
        assert!(!error.contains("planted"), "{error}");
    }

    #[test]
    fn ignored_endpoints_are_ignored() {
        let (layer, _) = read_from(&[
            ("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true"),
            ("AWS_ENDPOINT_URL", "http://aws"),
            ("S3_ENDPOINT", "http://own"),
        ]);
        assert_eq!(layer.unwrap()["endpoint_url"].value, Value::Text("http://own".into()));
    }

    #[test]
    fn unknown_names_with_our_prefix_are_warned_of() {
        let mut warnings = Vec::new();
        let names =
            ["TF_S3_READ_PART_BYTE", "TF_S3_COLOUR", "TF_S3_CONFIG", "TF_S3_THREADS", "PATH"];
        unknown(&TABLE, names.iter().map(OsString::from), &mut warnings);
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[0].ends_with("did you mean TF_S3_READ_PART_BYTES?"), "{}", warnings[0]);
        assert!(warnings[1].contains("TF_S3_COLOUR"), "{}", warnings[1]);
    }
}
