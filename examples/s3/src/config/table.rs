//! The table of all settings: their names, what they may be, and what they are for.

use tf_fs_object_store::config::{Kind, Scope, Setting, Table};

/// All settings.
pub(super) static TABLE: Table = Table {
    scheme: "s3",
    prefix: "TF_S3_",
    file_variable: "TF_S3_CONFIG",
    settings: SETTINGS,
    // Someone who switched these off for all of AWS's tools does not mean us to use them.
    ignores: |lookup, name| {
        name.starts_with("AWS_ENDPOINT_URL")
            && lookup("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")
                .is_some_and(|value| value.eq_ignore_ascii_case("true"))
    },
};

/// How a store wants conditions.
const FORM_OF_CONDITIONS: Kind = Kind::OneOf(&["auto", "quoted", "unquoted", "none"]);

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Every setting.
const SETTINGS: &[Setting] = &[
    Setting {
        key: "memory_budget_bytes",
        variables: &[],
        kind: Kind::Bytes { min: 16 * MIB, max: 1 << 40 },
        default: "256MiB",
        scope: Scope::Process,
        description: "Memory for read-ahead and uploads, shared by all open files of the process.",
    },
    Setting {
        key: "threads",
        variables: &[],
        kind: Kind::Count { min: 1, max: 64 },
        default: "2",
        scope: Scope::Process,
        description: "Worker threads of the process. Read at the first use; a later change has no effect.",
    },
    Setting {
        key: "endpoint_url",
        variables: &["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "S3_ENDPOINT"],
        kind: Kind::Url,
        default: "",
        scope: Scope::Bucket,
        description: "The store's URL, such as `http://127.0.0.1:9000`. Without `http://` or `https://`, \
                      `use_https` decides. Not set: `endpoint_url` of the AWS profile, else Amazon S3.",
    },
    Setting {
        key: "use_https",
        variables: &["S3_USE_HTTPS"],
        kind: Kind::Flag,
        default: "1",
        scope: Scope::Bucket,
        description: "Use `https://` if `endpoint_url` has no scheme.",
    },
    Setting {
        key: "region",
        variables: &["AWS_REGION", "AWS_DEFAULT_REGION", "S3_REGION"],
        kind: Kind::Text,
        default: "",
        scope: Scope::Bucket,
        description: "The region of the first request to the bucket; the store's response corrects it. Not \
                      set: `region` of the AWS profile, the EC2 instance's region, else `us-east-1`.",
    },
    Setting {
        key: "addressing_style",
        variables: &[],
        kind: Kind::OneOf(&["auto", "path", "virtual"]),
        default: "auto",
        scope: Scope::Bucket,
        description: "`path` puts the bucket's name into the path of the URL, `virtual` into its host. `auto`: \
                      into the host for Amazon's endpoints if the name fits there, else into the path.",
    },
    Setting {
        key: "use_fips",
        variables: &["AWS_USE_FIPS_ENDPOINT"],
        kind: Kind::Flag,
        default: "",
        scope: Scope::Bucket,
        description: "Use Amazon's FIPS endpoints. Not set: as in the AWS profile.",
    },
    Setting {
        key: "use_dualstack",
        variables: &["AWS_USE_DUALSTACK_ENDPOINT"],
        kind: Kind::Flag,
        default: "",
        scope: Scope::Bucket,
        description: "Use Amazon's dual-stack (IPv4 and IPv6) endpoints. Not set: as in the AWS profile.",
    },
    Setting {
        key: "profile",
        variables: &["AWS_PROFILE", "AWS_DEFAULT_PROFILE"],
        kind: Kind::Text,
        default: "",
        scope: Scope::Bucket,
        description: "The profile in `~/.aws/config` and `~/.aws/credentials`. A profile that is set for a \
                      bucket, in the settings file or as an option is used even if the environment has \
                      credentials.",
    },
    Setting {
        key: "access_key_id",
        variables: &[],
        kind: Kind::Secret,
        default: "",
        scope: Scope::Bucket,
        description: "Credentials to use instead of the credential chain, together with `secret_access_key`.",
    },
    Setting {
        key: "secret_access_key",
        variables: &[],
        kind: Kind::Secret,
        default: "",
        scope: Scope::Bucket,
        description: "See `access_key_id`.",
    },
    Setting {
        key: "session_token",
        variables: &[],
        kind: Kind::Secret,
        default: "",
        scope: Scope::Bucket,
        description: "See `access_key_id`; only with temporary credentials.",
    },
    Setting {
        key: "anonymous",
        variables: &["AWS_NO_SIGN_REQUEST"],
        kind: Kind::Flag,
        default: "0",
        scope: Scope::Bucket,
        description: "Requests without credentials and signature, for public buckets.",
    },
    Setting {
        key: "requester_pays",
        variables: &[],
        kind: Kind::Flag,
        default: "0",
        scope: Scope::Bucket,
        description: "Agree to pay for requests; requester-pays buckets require it.",
    },
    Setting {
        key: "server_side_encryption",
        variables: &[],
        kind: Kind::OneOf(&["AES256", "aws:kms", "aws:kms:dsse"]),
        default: "",
        scope: Scope::Bucket,
        description: "How the store encrypts written objects. Not set: the bucket's default.",
    },
    Setting {
        key: "sse_kms_key_id",
        variables: &[],
        kind: Kind::Text,
        default: "",
        scope: Scope::Bucket,
        description: "The KMS key for `aws:kms` and `aws:kms:dsse`.",
    },
    Setting {
        key: "storage_class",
        variables: &[],
        kind: Kind::Text,
        default: "",
        scope: Scope::Bucket,
        description: "The storage class of written objects, such as `STANDARD_IA`. Not set: the store's \
                      default.",
    },
    Setting {
        key: "acl",
        variables: &[],
        kind: Kind::Text,
        default: "",
        scope: Scope::Bucket,
        description: "A canned ACL for written objects, such as `bucket-owner-full-control`. Not set: none is \
                      sent.",
    },
    Setting {
        key: "content_type",
        variables: &[],
        kind: Kind::Text,
        default: "",
        scope: Scope::Bucket,
        description: "The media type of written objects. Not set: the store's default. An append keeps the \
                      object's type.",
    },
    Setting {
        key: "checksums",
        variables: &["AWS_REQUEST_CHECKSUM_CALCULATION"],
        kind: Kind::OneOf(&["when_supported", "when_required"]),
        default: "when_supported",
        scope: Scope::Bucket,
        description: "`when_supported`: uploads have a checksum, which the store verifies. `when_required`: \
                      for stores that reject checksums.",
    },
    Setting {
        key: "put_conditions",
        variables: &[],
        kind: FORM_OF_CONDITIONS,
        default: "auto",
        scope: Scope::Bucket,
        description: "Conditions (`If-Match`) of PutObject, which protect concurrent writes of others. `auto`: \
                      learned from the store's responses. `quoted`, `unquoted`: the store checks conditions, \
                      with the ETag in this form. `none`: it does not; HeadObject is sent before and after \
                      instead.",
    },
    Setting {
        key: "complete_conditions",
        variables: &[],
        kind: FORM_OF_CONDITIONS,
        default: "auto",
        scope: Scope::Bucket,
        description: "The same for CompleteMultipartUpload.",
    },
    Setting {
        key: "copy_conditions",
        variables: &[],
        kind: FORM_OF_CONDITIONS,
        default: "auto",
        scope: Scope::Bucket,
        description: "The same for the source of a copy (`x-amz-copy-source-if-match`).",
    },
    Setting {
        key: "part_checksums",
        variables: &[],
        kind: Kind::OneOf(&["auto", "send", "omit"]),
        default: "auto",
        scope: Scope::Bucket,
        description: "Send the checksums of the parts in CompleteMultipartUpload. `auto`: unless the store \
                      rejects them.",
    },
    Setting {
        key: "max_attempts",
        variables: &["AWS_MAX_ATTEMPTS"],
        kind: Kind::Count { min: 1, max: 1_000_000 },
        default: "1000000",
        scope: Scope::Bucket,
        description: "The maximum number of attempts of a request. Unless it is small, `retry_timeout_ms` ends \
                      the attempts earlier.",
    },
    Setting {
        key: "retry_timeout_ms",
        variables: &[],
        kind: Kind::Milliseconds { min: 0, max: 3_600_000 },
        default: "60000",
        scope: Scope::Bucket,
        description: "How long a failing request is retried: the time of failed attempts and of the waits \
                      between them. Each attempt counts as `stall_timeout_ms` at most. The last attempt starts \
                      within this time. 0: one attempt.",
    },
    Setting {
        key: "retry_mode",
        variables: &["AWS_RETRY_MODE"],
        kind: Kind::OneOf(&["standard", "adaptive"]),
        default: "standard",
        scope: Scope::Bucket,
        description: "`adaptive` also slows down before the store requests it.",
    },
    Setting {
        key: "retry_backoff_ms",
        variables: &[],
        kind: Kind::Milliseconds { min: 1, max: 60_000 },
        default: "100",
        scope: Scope::Bucket,
        description: "The maximum wait before the second attempt; it doubles with each further attempt. The \
                      wait itself is random. `Retry-After` of the store takes precedence.",
    },
    Setting {
        key: "connect_timeout_ms",
        variables: &["S3_CONNECT_TIMEOUT_MSEC"],
        kind: Kind::Milliseconds { min: 1, max: 3_600_000 },
        default: "5000",
        scope: Scope::Bucket,
        description: "The time limit for opening a connection, TLS included.",
    },
    Setting {
        key: "stall_timeout_ms",
        variables: &["S3_REQUEST_TIMEOUT_MSEC"],
        kind: Kind::Milliseconds { min: 1, max: 3_600_000 },
        default: "20000",
        scope: Scope::Bucket,
        description: "The time without progress after which a request fails. A long transfer that makes \
                      progress is never cut off.",
    },
    Setting {
        key: "read_part_bytes",
        variables: &["S3_MULTI_PART_DOWNLOAD_CHUNK_SIZE"],
        kind: Kind::Bytes { min: 64 << 10, max: GIB },
        default: "8MiB",
        scope: Scope::Bucket,
        description: "Bytes of one ranged GET of the read-ahead.",
    },
    Setting {
        key: "read_concurrency",
        variables: &["S3_EXECUTOR_POOL_SIZE"],
        kind: Kind::Count { min: 1, max: 1_000 },
        default: "32",
        scope: Scope::Bucket,
        description: "The maximum number of concurrent ranged GETs for one file.",
    },
    Setting {
        key: "write_part_bytes",
        variables: &["S3_MULTI_PART_UPLOAD_CHUNK_SIZE"],
        kind: Kind::Bytes { min: 5 * MIB, max: 5 * GIB },
        default: "8MiB",
        scope: Scope::Bucket,
        description: "The size of a part of an upload. Files of this size or more are uploaded in parts. For \
                      huge files the parts grow automatically.",
    },
    Setting {
        key: "write_parts_equal",
        variables: &[],
        kind: Kind::Flag,
        default: "0",
        scope: Scope::Bucket,
        description: "1: all parts of an upload have the same size, as Cloudflare R2 requires. A file then has \
                      at most 10,000 times `write_part_bytes`.",
    },
    Setting {
        key: "publish_on_flush",
        variables: &[],
        kind: Kind::Flag,
        default: "1",
        scope: Scope::Bucket,
        description: "0: `flush` and `sync` publish nothing; only `close` does.",
    },
    Setting {
        key: "flush_interval_ms",
        variables: &[],
        kind: Kind::Milliseconds { min: 0, max: 86_400_000 },
        default: "0",
        scope: Scope::Bucket,
        description: "The minimum time between two publishing flushes of a file; flushes in between do \
                      nothing. `close` always publishes everything.",
    },
    Setting {
        key: "write_concurrency",
        variables: &["S3_EXECUTOR_POOL_SIZE"],
        kind: Kind::Count { min: 1, max: 1_000 },
        default: "16",
        scope: Scope::Bucket,
        description: "The maximum number of concurrent part uploads for one file.",
    },
    Setting {
        key: "listing_ttl_ms",
        variables: &[],
        kind: Kind::Milliseconds { min: 0, max: 3_600_000 },
        default: "1000",
        scope: Scope::Bucket,
        description: "How long the store's responses about names are cached: listings, single names, opened \
                      files and own writes. 0: no cache. Changes by this process are visible immediately.",
    },
    Setting {
        key: "disk_cache",
        variables: &[],
        kind: Kind::DiskCache,
        default: "",
        scope: Scope::Bucket,
        description: "Keep what is read in this directory on a local disk, up to this size, for the next time. \
                      All processes of a user may share it. Each time a file is opened, one request asks for \
                      its version.",
    },
    Setting {
        key: "max_listed_names",
        variables: &[],
        kind: Kind::Count { min: 1, max: 1 << 40 },
        default: "10000000",
        scope: Scope::Bucket,
        description: "The maximum number of names that one listing, one pattern or the rename of one directory \
                      keeps in memory; more fail with `RESOURCE_EXHAUSTED`. Deleting a directory keeps none.",
    },
    Setting {
        key: "ca_file",
        variables: &["AWS_CA_BUNDLE", "S3_CA_FILE"],
        kind: Kind::File,
        default: "",
        scope: Scope::Bucket,
        description: "Certificates (PEM) to trust instead of the system's, for the store and for the services \
                      that provide credentials. Not set: `ca_bundle` of the AWS profile.",
    },
    Setting {
        key: "ca_path",
        variables: &["S3_CA_PATH"],
        kind: Kind::Directory,
        default: "",
        scope: Scope::Bucket,
        description: "A directory of certificates (PEM) to trust instead of the system's, in addition to those \
                      of `ca_file`.",
    },
    Setting {
        key: "verify_tls",
        variables: &["S3_VERIFY_SSL"],
        kind: Kind::Flag,
        default: "1",
        scope: Scope::Bucket,
        description: "0 accepts any certificate, so anybody on the network path can read and change the data. \
                      Prefer `ca_file`.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn keys_are_unique_and_values_can_be_set() {
        let mut keys = BTreeSet::new();
        for setting in SETTINGS {
            assert!(keys.insert(setting.key), "{} is there twice", setting.key);
            assert!(
                !setting.key.contains('.'),
                "{}: dots separate `bucket.<name>.<key>`",
                setting.key
            );
            if !setting.default.is_empty() {
                setting.kind.parse(setting.default).unwrap();
            }
            assert!(setting.description.ends_with('.'), "{}", setting.key);
            for variable in TABLE.variables(setting) {
                assert!(!(TABLE.ignores)(&|_| None, &variable), "{variable} is ignored");
            }
        }
    }

    /// The table of `CONFIGURATION.md`.
    fn markdown() -> String {
        let mut table = String::from(
            "| Key | Environment variables | Value | Default | For |\n|---|---|---|---|---|\n",
        );
        for setting in SETTINGS {
            let variables: Vec<_> =
                TABLE.variables(setting).map(|variable| format!("`{variable}`")).collect();
            let variables =
                if variables.is_empty() { "–".to_owned() } else { variables.join(", ") };
            let default = match setting.default {
                "" => "not set".to_owned(),
                default => format!("`{default}`"),
            };
            let scope = match setting.scope {
                Scope::Process => " For the whole process only.",
                Scope::Bucket => "",
            };
            table += &format!(
                "| `{}` | {variables} | {} | {default} | {}{scope} |\n",
                setting.key, setting.kind, setting.description
            );
        }
        table
    }

    #[test]
    fn the_document_has_this_table() {
        let document = include_str!("../../CONFIGURATION.md");
        let (_, rest) =
            document.split_once("<!-- settings -->\n").expect("the mark before the table");
        let (table, _) =
            rest.split_once("<!-- end of settings -->").expect("the mark after the table");
        assert_eq!(table, markdown(), "put this into CONFIGURATION.md:\n{}", markdown());
    }
}
