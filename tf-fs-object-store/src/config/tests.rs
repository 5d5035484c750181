//! A table for the tests of the modules.

use super::table::{Scope, Setting, Table};
use super::value::Kind;

const fn setting(
    key: &'static str,
    variables: &'static [&'static str],
    kind: Kind,
    default: &'static str,
) -> Setting {
    let scope = match key.as_bytes() {
        b"threads" => Scope::Process,
        _ => Scope::Bucket,
    };
    Setting { key, variables, kind, default, scope, is_vital: false, description: "For tests." }
}

const PART: Kind = Kind::Bytes { min: 1 << 20, max: 1 << 30 };

pub(super) static TABLE: Table = Table {
    scheme: "s3",
    prefix: "TF_S3_",
    file_variable: "TF_S3_CONFIG",
    help: "s3:///config.json shows all settings",
    settings: &[
        setting("region", &["AWS_REGION", "AWS_DEFAULT_REGION", "S3_REGION"], Kind::Text, ""),
        setting("endpoint_url", &["AWS_ENDPOINT_URL", "S3_ENDPOINT"], Kind::Url, ""),
        setting("threads", &[], Kind::Count { min: 1, max: 64 }, "2"),
        setting("max_attempts", &["AWS_MAX_ATTEMPTS"], Kind::Count { min: 1, max: 100 }, "9"),
        setting("read_part_bytes", &[], PART, "8MiB"),
        setting("write_part_bytes", &["S3_MULTI_PART_UPLOAD_CHUNK_SIZE"], PART, "8MiB"),
        setting("anonymous", &[], Kind::Flag, "0"),
        setting("verify_tls", &["S3_VERIFY_SSL"], Kind::Flag, "1"),
        setting("retry_mode", &["AWS_RETRY_MODE"], Kind::OneOf(&["standard", "adaptive"]), ""),
        setting("secret_access_key", &[], Kind::Secret, ""),
        setting("ca_file", &["AWS_CA_BUNDLE"], Kind::File, ""),
        setting("ca_path", &["S3_CA_PATH"], Kind::Directory, ""),
    ],
    section: "bucket",
    bucket: |name| Ok(name.into()),
    parent: |_| None,
    ignores: |lookup, name| {
        name == "AWS_ENDPOINT_URL" && lookup("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS").is_some()
    },
};
