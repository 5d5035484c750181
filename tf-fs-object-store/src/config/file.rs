//! Settings from the settings file.
//!
//! ```toml
//! region = "eu-central-1"
//!
//! [bucket."my.models"]
//! endpoint_url = "http://127.0.0.1:9000"
//! read_part_bytes = "16MiB"
//! ```

use super::layer::{Entry, Layer, Source, complaint, nearest, shown};
use super::table::{Scope, Setting, Table};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tf_fs_plugin::prelude::*;
use toml::{Table as Tables, Value as Toml};

/// The settings of a file or of the options: for all buckets, and for some.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Layers {
    pub(super) general: Layer,
    pub(super) buckets: BTreeMap<String, Layer>,
}

/// Reads the settings file.
///
/// # Errors
/// `INVALID_ARGUMENT` if it cannot be read, or has something in it that is not a setting: somebody wrote it on purpose,
/// and what they meant is not known.
pub(super) fn read(table: &Table, path: &Path) -> Result<Layers> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Error::invalid_argument(format_args!(
            "{}: cannot read the settings file {shown}: {error}; correct the path or unset the variable",
            table.file_variable
        ))
    })?;
    parse(table, &text, &shown.to_string()).context(format_args!("settings file {shown}"))
}

pub(super) fn parse(settings: &Table, text: &str, path: &str) -> Result<Layers> {
    // The parser's own text quotes the line, which may hold a secret.
    let table: Tables = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count() + 1);
        Error::invalid_argument(format_args!("line {line}: {}; correct it", error.message()))
    })?;
    let source = Source::File(Arc::from(path));
    let mut layers = Layers::default();
    let section = settings.section;
    for (key, value) in table {
        if key != section {
            add(settings, &mut layers.general, &key, &key, &value, &source, None)?;
            continue;
        }
        let Toml::Table(buckets) = value else {
            return Err(Error::invalid_argument(format_args!(
                "`{section}` is not a section; write [{section}.\"name\"] and the settings below it"
            )));
        };
        let mut spellings = BTreeMap::new();
        for (bucket, values) in buckets {
            let shown = shown(&bucket);
            let Toml::Table(values) = values else {
                return Err(Error::invalid_argument(format_args!(
                    "`{section}.{shown}` is not a section; write [{section}.\"{shown}\"] and the settings below it"
                )));
            };
            let name = name_of_bucket(settings, &bucket)
                .context(format_args!("[{section}.\"{shown}\"]"))?;
            if let Some(first) = spellings.insert(name.clone(), shown.to_string()) {
                return Err(Error::invalid_argument(format_args!(
                    "[{section}.\"{first}\"] and [{section}.\"{shown}\"] are the same {section}; write one section"
                )));
            }
            let layer = layers.buckets.entry(name).or_default();
            for (key, value) in values {
                let place = format!("{section}.\"{shown}\".{key}");
                add(settings, layer, &place, &key, &value, &source, Some(&bucket))?;
            }
        }
    }
    Ok(layers)
}

/// Returns the canonical name of a bucket, which may have many spellings.
///
/// # Errors
/// `INVALID_ARGUMENT` if `bucket` cannot be the name of one.
pub(super) fn name_of_bucket(table: &Table, bucket: &str) -> Result<String> {
    ensure!(
        !bucket.is_empty(),
        Error::invalid_argument(format_args!(
            "the name is empty; leave `{}` out to set it for all",
            table.section
        ))
    );
    ensure!(
        shown(bucket) == bucket,
        Error::invalid_argument("credentials do not belong into a name; write settings below it")
    );
    Ok((table.bucket)(bucket)?.into_owned())
}

fn add(
    table: &Table,
    layer: &mut Layer,
    place: &str,
    key: &str,
    value: &Toml,
    source: &Source,
    bucket: Option<&str>,
) -> Result<()> {
    let setting = known(table, key, place, bucket.is_some())
        .map_err(|error| error.with_code(Code::InvalidArgument))?;
    let text = match value {
        Toml::String(text) => text.clone(),
        Toml::Integer(number) => number.to_string(),
        Toml::Boolean(flag) => flag.to_string(),
        other => {
            return Err(Error::invalid_argument(format_args!(
                "{place}: a {} is not a value; write {}",
                other.type_str(),
                setting.kind
            )));
        }
    };
    let value = setting
        .kind
        .parse(&text)
        .map_err(|reason| Error::invalid_argument(complaint(&place, setting, &text, reason)))?;
    layer.insert(setting.key, Entry { value, source: source.clone() });
    Ok(())
}

/// Returns the setting of this key.
///
/// # Errors
/// `NOT_FOUND` with the nearest key; `INVALID_ARGUMENT` for a setting of the process in a bucket's section.
pub(super) fn known(
    table: &Table,
    key: &str,
    place: &str,
    for_bucket: bool,
) -> Result<&'static Setting> {
    let Some(setting) = table.find(key) else {
        let keys = table.settings.iter().map(|setting| setting.key.to_owned());
        let advice = nearest(key, keys)
            .map(|nearest| format!("; did you mean {nearest}?"))
            .unwrap_or_else(|| format!("; {}", table.help));
        return Err(Error::new(Code::NotFound, format!("{place}: unknown setting{advice}")));
    };
    ensure!(
        !(for_bucket && setting.scope == Scope::Process),
        Error::invalid_argument(format_args!(
            "{place}: this is a setting of the whole process; set it outside of the {}",
            table.section
        ))
    );
    Ok(setting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::TABLE;
    use crate::config::value::Value;

    #[test]
    fn a_file_sets_general_values_and_those_of_buckets() {
        let layers = parse(
            &TABLE,
            "region = \"r\"\nmax_attempts = 3\nanonymous = true\n\
             [bucket.\"a.b\"]\nregion = \"other\"\nread_part_bytes = \"1MiB\"\n[bucket.c]\n",
            "p",
        )
        .unwrap();
        assert_eq!(layers.general["region"].value, Value::Text("r".into()));
        assert_eq!(layers.general["max_attempts"].value, Value::Number(3));
        assert_eq!(layers.general["anonymous"].value, Value::Flag(true));
        assert_eq!(layers.general["region"].source.to_string(), "settings file p");
        assert_eq!(layers.buckets["a.b"]["region"].value, Value::Text("other".into()));
        assert_eq!(layers.buckets["a.b"]["read_part_bytes"].value, Value::Number(1 << 20));
        assert!(layers.buckets["c"].is_empty());
    }

    #[test]
    fn the_mistake_is_named() {
        for (text, parts) in [
            ("region = ", &["line 1"][..]),
            ("a = 1\nregion", &["line 2"]),
            ("regoin = \"r\"", &["regoin", "did you mean region?"]),
            ("max_attempts = 0", &["max_attempts", "`0`", "from 1 to 100"]),
            ("max_attempts = 1.5", &["max_attempts", "float"]),
            ("bucket = 1", &["[bucket.\"name\"]"]),
            ("bucket.x = 1", &["[bucket.\"x\"]"]),
            ("[bucket.\"\"]\nregion = \"r\"", &["[bucket.\"\"]", "the name is empty"]),
            ("[bucket.x]\nthreads = 1", &["bucket.\"x\".threads", "whole process"]),
            (
                "[bucket.x]\nendpoint_url = \"nota url\"",
                &["bucket.\"x\".endpoint_url", "not a URL"],
            ),
        ] {
            let error = parse(&TABLE, text, "p").unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{text}: {error}");
            for part in parts {
                assert!(error.message().contains(part), "{text}: {error}");
            }
        }
    }

    #[test]
    fn a_bucket_has_one_section_however_it_is_spelled() {
        let table = Table { bucket: |name| Ok(name.to_ascii_lowercase().into()), ..TABLE };
        let text = "[bucket.Data]\nregion = \"r\"\n[bucket.other]\n[bucket.data]\nregion = \"s\"";
        let error = parse(&table, text, "p").unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
        for part in ["[bucket.\"Data\"]", "[bucket.\"data\"]"] {
            assert!(error.message().contains(part), "{error}");
        }
    }

    #[test]
    fn a_plugin_has_its_own_word_for_a_bucket() {
        let table = Table { section: "remote", ..TABLE };
        let layers = parse(&table, "[remote.nas]\nregion = \"r\"", "p").unwrap();
        assert_eq!(layers.buckets["nas"]["region"].value, Value::Text("r".into()));
        for (text, part) in [
            ("[bucket.nas]\nregion = \"r\"", "bucket: unknown setting"),
            ("remote = 1", "[remote.\"name\"]"),
            ("[remote.nas]\nthreads = 1", "remote.\"nas\".threads"),
        ] {
            let error = parse(&table, text, "p").unwrap_err();
            assert!(error.message().contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn errors_show_no_secret() {
        for text in [
            "secret_access_key = \"planted",
            "secret_access_key = planted",
            "secret_access_key = [\"planted\"]",
            "[bucket.\"user:planted@host\"]\nthreads = 1",
            "[bucket.\"user:planted@host\"]\nregion = \"r\"",
            "bucket.\"user:planted@host\" = 1",
            "[bucket.\"account/container?sig=planted\"]\nregion = \"r\"",
        ] {
            let error = parse(&TABLE, text, "p").unwrap_err();
            assert!(!format!("{error:#} {error:?}").contains("planted"), "{error:?}");
        }
    }
}
