//! Settings through TensorFlow's options.

use super::file::{Layers, known, name_of_bucket};
use super::layer::{Entry, Source, complaint, shown};
use super::table::{Setting, Table};
use super::value::{Kind, Value};
use tf_fs_plugin::prelude::*;

/// Adds options to those set before. An option without a value removes what an earlier one set.
///
/// # Errors
/// `NOT_FOUND` for an unknown key, `INVALID_ARGUMENT` for an invalid value. Then `layers` may hold some of them.
pub(super) fn add(table: &Table, layers: &mut Layers, options: &[FilesystemOption]) -> Result<()> {
    for option in options {
        // `bucket.<name>.<key>`: names may have dots, keys have none.
        let own = option.name.strip_prefix(table.section).and_then(|rest| rest.strip_prefix('.'));
        let (bucket, key) = match own.and_then(|own| own.rsplit_once('.')) {
            Some((bucket, key)) => (Some(bucket), key),
            None => (None, &*option.name),
        };
        let place = format!("option {}", shown(&option.name));
        let setting = known(table, key, &place, bucket.is_some())?;
        let layer = match bucket {
            Some(bucket) => {
                let name = name_of_bucket(table, bucket).context(&place)?;
                layers.buckets.entry(name).or_default()
            }
            None => &mut layers.general,
        };
        match text(&place, setting, &option.values)? {
            Some(text) => {
                let value = setting.kind.parse(&text).map_err(|reason| {
                    Error::invalid_argument(complaint(&place, setting, &text, reason))
                })?;
                layer.insert(setting.key, Entry { value, source: Source::Option });
            }
            None => drop(layer.remove(setting.key)),
        }
    }
    Ok(())
}

fn text(place: &str, setting: &Setting, values: &OptionValues) -> Result<Option<String>> {
    let text = match values {
        OptionValues::Int(values) if values.is_empty() => None,
        OptionValues::Buffer(values) if values.is_empty() => None,
        OptionValues::Int(values) if values.len() == 1 => Some(values[0].to_string()),
        OptionValues::Buffer(values) if values.len() == 1 => {
            let text = std::str::from_utf8(&values[0]).map_err(|_| {
                Error::invalid_argument(format_args!(
                    "{place}: the value is not valid UTF-8; write {}",
                    setting.kind
                ))
            })?;
            Some(text.to_owned())
        }
        _ => {
            return Err(Error::invalid_argument(format_args!(
                "{place}: give one integer or one string; write {}",
                setting.kind
            )));
        }
    };
    Ok(text)
}

/// Returns the setting as an option. Secrets have no value.
pub(super) fn show(name: String, setting: &Setting, value: Option<&Value>) -> FilesystemOption {
    let values = match (value, setting.kind) {
        (Some(Value::Number(number)), _) => {
            OptionValues::Int(vec![i64::try_from(*number).unwrap_or(i64::MAX)])
        }
        (Some(Value::Flag(flag)), _) => OptionValues::Int(vec![i64::from(*flag)]),
        (Some(Value::Text(text)), _) => OptionValues::Buffer(vec![text.clone().into_bytes()]),
        (
            None,
            Kind::Flag | Kind::Count { .. } | Kind::Bytes { .. } | Kind::Milliseconds { .. },
        ) => OptionValues::Int(Vec::new()),
        (Some(Value::Secret(_)) | None, _) => OptionValues::Buffer(Vec::new()),
    };
    FilesystemOption::new(name, values).with_description(setting.description)
}

/// Returns the key of a bucket's own setting.
pub(super) fn bucket_key(table: &Table, bucket: &str, key: &str) -> String {
    format!("{}.{bucket}.{key}", table.section)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::TABLE;

    fn option(name: &str, values: OptionValues) -> FilesystemOption {
        FilesystemOption::new(name, values)
    }

    fn buffer(text: &str) -> OptionValues {
        OptionValues::Buffer(vec![text.into()])
    }

    #[test]
    fn options_set_general_values_and_those_of_buckets() {
        let mut layers = Layers::default();
        add(
            &TABLE,
            &mut layers,
            &[
                option("read_part_bytes", OptionValues::Int(vec![1 << 20])),
                option("bucket.my.models.region", buffer("r")),
                option("bucket.x.read_part_bytes", buffer("2MiB")),
            ],
        )
        .unwrap();
        assert_eq!(layers.general["read_part_bytes"].value, Value::Number(1 << 20));
        assert_eq!(layers.buckets["my.models"]["region"].value, Value::Text("r".into()));
        assert_eq!(layers.buckets["x"]["read_part_bytes"].value, Value::Number(2 << 20));
        add(
            &TABLE,
            &mut layers,
            &[option("bucket.my.models.region", OptionValues::Buffer(vec![]))],
        )
        .unwrap();
        assert!(layers.buckets["my.models"].is_empty());
    }

    #[test]
    fn the_mistake_is_named() {
        for (name, values, code, part) in [
            ("colour", buffer("x"), Code::NotFound, "unknown setting"),
            ("bucket.b.regoin", buffer("x"), Code::NotFound, "did you mean region?"),
            ("bucket.region", buffer("x"), Code::NotFound, "unknown setting"),
            (
                "region",
                OptionValues::Real(vec![1.0]),
                Code::InvalidArgument,
                "one integer or one string",
            ),
            (
                "threads",
                OptionValues::Int(vec![1, 2]),
                Code::InvalidArgument,
                "one integer or one string",
            ),
            ("threads", OptionValues::Int(vec![-1]), Code::InvalidArgument, "from 1 to 64"),
            ("region", OptionValues::Buffer(vec![vec![0xff]]), Code::InvalidArgument, "UTF-8"),
        ] {
            let error = add(&TABLE, &mut Layers::default(), &[option(name, values)]).unwrap_err();
            assert_eq!(error.code(), code, "{name}: {error}");
            assert!(error.message().contains(part), "{error}");
        }
    }

    #[test]
    fn a_plugin_has_its_own_word_for_a_bucket() {
        let table = Table { section: "remote", ..TABLE };
        let mut layers = Layers::default();
        add(&table, &mut layers, &[option("remote.nas.example.region", buffer("r"))]).unwrap();
        assert!(layers.buckets.contains_key("nas.example"));
        assert_eq!(bucket_key(&table, "nas.example", "region"), "remote.nas.example.region");
        let error = add(&table, &mut layers, &[option("bucket.nas.region", buffer("r"))]);
        assert_eq!(error.unwrap_err().code(), Code::NotFound);
    }

    #[test]
    fn secrets_have_no_value() {
        let setting = TABLE.find("secret_access_key").unwrap();
        let secret = setting.kind.parse("planted").unwrap();
        let shown = show("x".into(), setting, Some(&secret));
        assert_eq!(shown.values, OptionValues::Buffer(vec![]));
    }
}
