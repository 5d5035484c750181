//! Fuzz targets for text that users write. `tests/fuzz` lists all targets.

use super::file::parse;
use super::tests::TABLE;
use super::value::{Kind, Value};
use tf_plugin_fuzz::{fuzz, text};

#[test]
fn settings_files() {
    let words = [
        "region = \"r\"\n[bucket.\"b\"]\nthreads = 2\nanonymous = true\n",
        "threads",
        "secret_access_key",
        " = ",
        "\"",
        "'",
        "\n",
        "[bucket.",
        "]",
        "\"planted\"",
        "8MiB",
        "1",
        "true",
        "#",
    ];
    fuzz!(words, |bytes| {
        let file = text(bytes);
        if let Err(error) = parse(&TABLE, &file, "p") {
            assert!(!error.message().is_empty());
        }
    });
}

#[test]
fn values() {
    let words = [
        "/c", ":", "16MiB", "1", "k", "ms", "s", " ", "https://", "host", "@", "?", "#", "TRUE",
        "standard",
    ];
    let kinds = [
        Kind::Flag,
        Kind::Count { min: 1, max: 64 },
        Kind::Bytes { min: 1, max: 1 << 40 },
        Kind::Milliseconds { min: 1, max: 1 << 40 },
        Kind::Text,
        Kind::Secret,
        Kind::OneOf(&["standard", "adaptive"]),
        Kind::Url,
        Kind::UrlOf(&["sftp", "http"]),
        Kind::DiskCache,
    ];
    fuzz!(words, |bytes| {
        let value = text(bytes);
        for kind in kinds {
            match kind.parse(&value) {
                Ok(Value::Number(number)) => {
                    let (Kind::Count { min, max }
                    | Kind::Bytes { min, max }
                    | Kind::Milliseconds { min, max }) = kind
                    else {
                        panic!("a number in place of {kind}")
                    };
                    assert!((min..=max).contains(&number));
                    let again = kind.parse(&number.to_string());
                    assert!(matches!(again, Ok(Value::Number(again)) if again == number));
                }
                Ok(Value::Text(text)) => {
                    let again = kind.parse(&text);
                    assert!(matches!(again, Ok(Value::Text(again)) if again == text));
                }
                _ => {}
            }
        }
    });
}
