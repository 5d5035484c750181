//! The table of all settings: their names, valid values and purpose.

use tf_fs_object_store::config::{Kind, Setting, Table};

/// All settings.
pub(super) static TABLE: Table = Table {
    scheme: "s3",
    prefix: "TF_S3_",
    file_variable: "TF_S3_CONFIG",
    help: "s3:///config.json shows all settings",
    settings: SETTINGS,
    section: "bucket",
    bucket: |name| Ok(name.into()),
    parent: |_| None,
    // Users who switched these off for all AWS tools do not want them here either.
    ignores: |lookup, name| {
        name.starts_with("AWS_ENDPOINT_URL")
            && lookup("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")
                .is_some_and(|value| value.eq_ignore_ascii_case("true"))
    },
};

/// The form in which a store accepts conditions.
const FORM_OF_CONDITIONS: Kind = Kind::OneOf(&["auto", "quoted", "unquoted", "none"]);

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Every setting.
#[rustfmt::skip]
const SETTINGS: &[Setting] = &[
    Setting::new("memory_budget_bytes", &[], Kind::Bytes { min: 16 * MIB, max: 1 << 40 }, "256MiB",
        "Memory for read-ahead and uploads, shared by all open files of the process.").of_process(),
    Setting::new("threads", &[], Kind::Count { min: 1, max: 64 }, "2",
        "Worker threads of the process. Read at the first use; a later change has no effect.").of_process(),
    Setting::new("endpoint_url", &["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "S3_ENDPOINT"], Kind::Url, "",
        "The store's URL, such as `http://127.0.0.1:9000`. Without `http://` or `https://`, `use_https` decides. Not \
         set: `endpoint_url` of the AWS profile, else Amazon S3."),
    Setting::new("use_https", &["S3_USE_HTTPS"], Kind::Flag, "1", "Use `https://` if `endpoint_url` has no scheme."),
    Setting::new("region", &["AWS_REGION", "AWS_DEFAULT_REGION", "S3_REGION"], Kind::Text, "",
        "The region of the first request to the bucket; the store's response corrects it. Not set: `region` of the \
         AWS profile, the EC2 instance's region, else `us-east-1`."),
    Setting::new("addressing_style", &[], Kind::OneOf(&["auto", "path", "virtual"]), "auto",
        "`path` puts the bucket's name into the path of the URL, `virtual` into its host. `auto`: as `addressing_style` of \
         `s3` in the AWS profile, else into the host for Amazon's endpoints if the name fits there, else into the path."),
    Setting::new("use_fips", &["AWS_USE_FIPS_ENDPOINT"], Kind::Flag, "",
        "Use Amazon's FIPS endpoints. Not set: as in the AWS profile."),
    Setting::new("use_dualstack", &["AWS_USE_DUALSTACK_ENDPOINT"], Kind::Flag, "",
        "Use Amazon's dual-stack (IPv4 and IPv6) endpoints. Not set: as in the AWS profile."),
    Setting::new("profile", &["AWS_PROFILE", "AWS_DEFAULT_PROFILE"], Kind::Text, "",
        "The profile in `~/.aws/config` and `~/.aws/credentials`. A profile that is set for a bucket, in the settings \
         file or as an option is used even if the environment has credentials."),
    Setting::new("access_key_id", &[], Kind::Secret, "",
        "Credentials to use instead of the credential chain, together with `secret_access_key`."),
    Setting::new("secret_access_key", &[], Kind::Secret, "", "See `access_key_id`."),
    Setting::new("session_token", &[], Kind::Secret, "", "See `access_key_id`; only with temporary credentials."),
    Setting::new("anonymous", &["AWS_NO_SIGN_REQUEST"], Kind::Flag, "0",
        "Requests without credentials and signature, for public buckets."),
    Setting::new("requester_pays", &[], Kind::Flag, "0", "Agree to pay for requests; requester-pays buckets require it."),
    Setting::new("server_side_encryption", &[], Kind::OneOf(&["AES256", "aws:kms", "aws:kms:dsse"]), "",
        "How the store encrypts written objects. Not set: the bucket's default."),
    Setting::new("sse_kms_key_id", &[], Kind::Text, "", "The KMS key for `aws:kms` and `aws:kms:dsse`."),
    Setting::new("storage_class", &[], Kind::Text, "",
        "The storage class of written objects, such as `STANDARD_IA`. Not set: the store's default."),
    Setting::new("acl", &[], Kind::Text, "",
        "A canned ACL for written objects, such as `bucket-owner-full-control`. Not set: none is sent."),
    Setting::new("content_type", &[], Kind::Text, "",
        "The media type of written objects. Not set: the store's default. An append keeps the object's type."),
    Setting::new("checksums", &["AWS_REQUEST_CHECKSUM_CALCULATION"], Kind::OneOf(&["when_supported", "when_required"]), "",
        "`when_supported`: uploads have a checksum, which the store verifies. `when_required`: for stores that reject \
         checksums. Not set: `request_checksum_calculation` of the AWS profile, else `when_supported`."),
    Setting::new("put_conditions", &[], FORM_OF_CONDITIONS, "auto",
        "Conditions (`If-Match`) of PutObject, which protect concurrent writes of others. `auto`: learned from the \
         store's responses. `quoted`, `unquoted`: the store checks conditions, with the ETag in this form. `none`: it \
         does not; HeadObject is sent before and after instead."),
    Setting::new("complete_conditions", &[], FORM_OF_CONDITIONS, "auto", "The same for CompleteMultipartUpload."),
    Setting::new("copy_conditions", &[], FORM_OF_CONDITIONS, "auto",
        "The same for the source of a copy (`x-amz-copy-source-if-match`)."),
    Setting::new("part_checksums", &[], Kind::OneOf(&["auto", "send", "omit"]), "auto",
        "Send the checksums of the parts in CompleteMultipartUpload. `auto`: unless the store rejects them."),
    Setting::new("max_attempts", &["AWS_MAX_ATTEMPTS"], Kind::Count { min: 1, max: 1_000_000 }, "1000000",
        "The maximum number of attempts of a request. Unless it is small, `retry_timeout_ms` ends the attempts \
         earlier."),
    Setting::new("retry_timeout_ms", &[], Kind::Milliseconds { min: 0, max: 3_600_000 }, "60000",
        "How long a failing request is retried: the time of failed attempts and of the waits between them. Each \
         attempt counts as `stall_timeout_ms` at most. The last attempt starts within this time. 0: one attempt."),
    Setting::new("retry_mode", &["AWS_RETRY_MODE"], Kind::OneOf(&["standard", "adaptive"]), "standard",
        "`adaptive` also slows down after error codes of overload that Amazon S3 uses. Reads are not slowed down."),
    Setting::new("retry_backoff_ms", &[], Kind::Milliseconds { min: 1, max: 60_000 }, "100",
        "The maximum wait before the second attempt; it doubles with each further attempt. The wait itself is random. \
         `Retry-After` of the store takes precedence."),
    Setting::new("connect_timeout_ms", &["S3_CONNECT_TIMEOUT_MSEC"], Kind::Milliseconds { min: 1, max: 3_600_000 }, "5000",
        "The time limit for opening a connection, TLS included."),
    Setting::new("stall_timeout_ms", &["S3_REQUEST_TIMEOUT_MSEC"], Kind::Milliseconds { min: 1, max: 3_600_000 }, "20000",
        "The time without progress after which a request fails. A long transfer that makes progress is never cut off."),
    Setting::new("read_part_bytes", &["S3_MULTI_PART_DOWNLOAD_CHUNK_SIZE"], Kind::Bytes { min: 64 << 10, max: GIB }, "8MiB",
        "Bytes of one ranged GET of the read-ahead."),
    Setting::new("read_concurrency", &["S3_EXECUTOR_POOL_SIZE"], Kind::Count { min: 1, max: 1_000 }, "32",
        "The maximum number of concurrent ranged GETs for one file."),
    Setting::new("write_part_bytes", &["S3_MULTI_PART_UPLOAD_CHUNK_SIZE"], Kind::Bytes { min: 5 * MIB, max: 5 * GIB }, "8MiB",
        "The size of a part of an upload. Files of this size or more are uploaded in parts. For huge files the parts \
         grow automatically."),
    Setting::new("write_parts_equal", &[], Kind::Flag, "0",
        "1: all parts of an upload have the same size, as Cloudflare R2 requires. A file then has at most 10,000 \
         times `write_part_bytes`. One that is larger than a part becomes visible when it is closed and not at a flush, \
         and what is appended to is downloaded first."),
    Setting::new("publish_on_flush", &[], Kind::Flag, "1", "0: `flush` and `sync` publish nothing; only `close` does."),
    Setting::new("flush_interval_ms", &[], Kind::Milliseconds { min: 0, max: 86_400_000 }, "0",
        "The minimum time between two publishing flushes of a file; flushes in between do nothing. `close` always \
         publishes everything."),
    Setting::new("write_concurrency", &["S3_EXECUTOR_POOL_SIZE"], Kind::Count { min: 1, max: 1_000 }, "16",
        "The maximum number of concurrent part uploads for one file."),
    Setting::new("listing_ttl_ms", &[], Kind::Milliseconds { min: 0, max: 3_600_000 }, "1000",
        "How long the store's responses about names are cached: listings, single names, opened files and own writes. \
         0: no cache. Changes by this process are visible immediately."),
    Setting::new("disk_cache", &[], Kind::DiskCache, "",
        "Cache the bytes that are read in this directory on a local disk, up to this size. All processes of a \
         user may share it. Each time a file is opened, one request asks for its version."),
    Setting::new("max_listed_names", &[], Kind::Count { min: 1, max: 1 << 40 }, "10000000",
        "The maximum number of names that one listing, one pattern or the rename of one directory keeps in memory; \
         more fail with `RESOURCE_EXHAUSTED`. Deleting a directory keeps none."),
    Setting::new("ca_file", &["AWS_CA_BUNDLE", "S3_CA_FILE"], Kind::File, "",
        "Certificates (PEM) to trust instead of the system's, for the store and for the services that provide \
         credentials. Not set: `ca_bundle` of the AWS profile."),
    Setting::new("ca_path", &["S3_CA_PATH"], Kind::Directory, "",
        "A directory of certificates (PEM) to trust instead of the system's, in addition to those of `ca_file`."),
    Setting::new("verify_tls", &["S3_VERIFY_SSL"], Kind::Flag, "1",
        "0 accepts any certificate, so anybody on the network path can read and change the data. Prefer `ca_file`."),
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

    #[test]
    fn the_document_has_this_table() {
        let document = include_str!("../../CONFIGURATION.md");
        let (_, rest) =
            document.split_once("<!-- settings -->\n").expect("the mark before the table");
        let (table, _) =
            rest.split_once("<!-- end of settings -->").expect("the mark after the table");
        let ours = TABLE.markdown();
        assert_eq!(table, ours, "put this into CONFIGURATION.md:\n{ours}");
    }
}
