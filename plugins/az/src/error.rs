//! What Azure's error codes mean: whether another attempt can help, TensorFlow's code, and what to do next.

use crate::account::Account;
use crate::credential::Credential;
use std::time::{Duration, SystemTime};
use tf_fs_object_store::ErrorKind;
use tf_fs_object_store::http::ErrorResponse;
use tf_fs_object_store::http::xml::error_message;
use tf_fs_plugin::prelude::*;

/// Azure refuses signatures if the clocks differ by this or more.
const SKEW: Duration = Duration::from_secs(10 * 60);

/// Adds the meaning of its code to a refusal. `date` is that of the server.
pub(crate) fn explain(
    refusal: &mut ErrorResponse,
    code: Option<String>,
    date: Option<SystemTime>,
    body: &[u8],
    account: &Account,
) {
    refusal.message = error_message(body);
    let status = refusal.status;
    let (kind, error, advice) = judge(status, code.as_deref().unwrap_or_default());
    (refusal.kind, refusal.error_code) = (kind, error);
    refusal.advice = match status {
        401 | 403 if advice.is_none() => {
            let mut advice =
                skew(date).unwrap_or_else(|| permission(account, code.as_deref()));
            if code.as_deref() == Some("AuthorizationFailure") {
                advice.push_str("; check that the account's firewall admits this network");
            }
            Some(advice)
        }
        404 if matches!(account.credential.get(), Credential::Anonymous) => {
            Some("without credentials a private container looks so; set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or run `az login`".to_owned())
        }
        _ => advice.map(str::to_owned),
    };
    refusal.code = code;
}

/// Returns what a code says beyond its status.
fn judge(status: u16, code: &str) -> (Option<ErrorKind>, Option<Code>, Option<&'static str>) {
    use ErrorKind::{Denied, NotFound, Permanent, Precondition, Transient};
    let (kind, error, advice) = match code {
        "ContainerNotFound" => (
            NotFound,
            Code::NotFound,
            "check the container's name, or make it: `az storage container create`",
        ),
        "BlobAlreadyExists" => (
            Precondition,
            Code::AlreadyExists,
            "somebody else wrote the blob; open it again, or write to another name",
        ),
        "ConditionNotMet" | "TargetConditionNotMet" | "SourceConditionNotMet" => (
            Precondition,
            Code::FailedPrecondition,
            "somebody else wrote or deleted the blob; open it again",
        ),
        "InvalidBlockList" => (
            Permanent,
            Code::Aborted,
            "another writer of this blob has made the store drop the blocks; write it again, by one writer",
        ),
        "SnapshotsPresent" => (
            Permanent,
            Code::FailedPrecondition,
            "the blob has snapshots, which would be lost; delete them first: `az storage blob delete --delete-snapshots only`",
        ),
        lease if lease.starts_with("Lease") => (
            Permanent,
            Code::FailedPrecondition,
            "somebody holds a lease of the blob; break it: `az storage blob lease break`",
        ),
        "BlobArchived" | "BlobBeingRehydrated" => (
            Permanent,
            Code::FailedPrecondition,
            "the blob is in the archive tier; move it to another tier, and wait until that is done",
        ),
        "BlobUsesCustomerSpecifiedEncryption" => (
            Permanent,
            Code::FailedPrecondition,
            "the blob is encrypted with a key of a customer (CPK), which this plugin does not send",
        ),
        vault if vault.starts_with("KeyVault") => (
            Permanent,
            Code::FailedPrecondition,
            "the account is encrypted with a key of a vault that it cannot use; look at the key vault",
        ),
        "BlobImmutableDueToPolicy" => (
            Permanent,
            Code::FailedPrecondition,
            "a policy of the container keeps the blob as it is; write to another name",
        ),
        "InvalidBlobType" => (
            Permanent,
            Code::FailedPrecondition,
            "the blob is a page or append blob; only block blobs can be written",
        ),
        "InvalidBlobOrBlock" => (
            Permanent,
            Code::FailedPrecondition,
            "another tool has sent blocks of this blob and not committed them; write an empty file of this name, which drops them, then write again",
        ),
        // For a directory in an account with a hierarchical namespace, while its contents are being deleted.
        "DirectoryIsNotEmpty" => {
            (Transient, Code::FailedPrecondition, "somebody else writes into it; delete it again")
        }
        "PublicAccessNotPermitted" => (
            Permanent,
            Code::PermissionDenied,
            "the account lets nobody in without credentials; set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or run `az login`",
        ),
        "PendingCopyOperation" | "ContainerBeingDeleted" => {
            (Transient, Code::Unavailable, "try again later")
        }
        "Md5Mismatch" => (Transient, Code::DataLoss, "check what is between here and the store"),
        "AccountIsDisabled" | "ContainerDisabled" => (
            Permanent,
            Code::PermissionDenied,
            "the account or the container is disabled; see the Azure portal",
        ),
        "KeyBasedAuthenticationNotPermitted" => (
            Permanent,
            Code::PermissionDenied,
            "the account permits no keys and no SAS made with one; set TF_AZ_AUTH=entra, and run `az login`",
        ),
        "AuthorizationProtocolMismatch" => (
            Permanent,
            Code::PermissionDenied,
            "the SAS permits https only; name an endpoint with https://",
        ),
        "AuthorizationSourceIPMismatch" => (
            Permanent,
            Code::PermissionDenied,
            "the SAS is for other addresses (`sip`); make another",
        ),
        "UnauthorizedBlobOverwrite" => (
            Permanent,
            Code::PermissionDenied,
            "the SAS permits new blobs only; make another that permits writing (`sp=w`)",
        ),
        "InsufficientAccountPermissions" => {
            (Denied, Code::PermissionDenied, "the account can only be read; write to another")
        }
        "InvalidAuthenticationInfo" => (
            Denied,
            Code::Unauthenticated,
            "the credentials are not what Azure expects; copy them again, or sign in again",
        ),
        "CannotVerifyCopySource" if status != 404 => (
            Permanent,
            Code::PermissionDenied,
            "Azure cannot read the source of the copy; check that its credentials permit reading it, also from Azure's network",
        ),
        "InvalidResourceName" | "InvalidUri" | "RequestUrlFailedToParse" | "OutOfRangeInput" => {
            (Permanent, Code::InvalidArgument, "Azure does not accept the name; choose another")
        }
        "RequestBodyTooLarge" | "BlockCountExceedsLimit" | "BlockListTooLong" => (
            Permanent,
            Code::InvalidArgument,
            "the blob has too many blocks, or one is too large; change TF_AZ_WRITE_PART_BYTES",
        ),
        "PathAlreadyExists" | "ResourceTypeMismatch" | "PathConflict" => (
            Permanent,
            Code::FailedPrecondition,
            "there is a directory of this name, or a file in place of a directory; choose another name",
        ),
        "SystemInUse" | "OperationTimedOut" => (Transient, Code::Unavailable, "try again later"),
        _ if status == 413 => {
            return (
                None,
                None,
                Some(
                    "the store or a proxy does not take a request of this size; lower TF_AZ_WRITE_PART_BYTES",
                ),
            );
        }
        _ if matches!(status, 429 | 503) => {
            return (None, None, Some("the store is overloaded; try again later"));
        }
        _ => return (None, None, None),
    };
    (Some(kind), Some(error), Some(advice))
}

/// Returns what is wrong with the clock of this machine.
fn skew(date: Option<SystemTime>) -> Option<String> {
    let (now, date) = (SystemTime::now(), date?);
    let (difference, how) = match now.duration_since(date) {
        Ok(ahead) => (ahead, "ahead of"),
        Err(behind) => (behind.duration(), "behind"),
    };
    (difference >= SKEW).then(|| {
        format!(
            "the clock of this machine is {} minutes {how} the store's; set it",
            difference.as_secs() / 60
        )
    })
}

fn permission(account: &Account, code: Option<&str>) -> String {
    let name = &account.name;
    match account.credential.get() {
        Credential::Key(_) => format!(
            "check that AZURE_STORAGE_KEY is a key of the account {name}, and that the account permits keys and this network"
        ),
        Credential::Sas(_) => format!(
            "check that AZURE_STORAGE_SAS_TOKEN is for the account {name}, not expired, and permits this (`sp`, `srt`); make another"
        ),
        Credential::Entra(_) if code == Some("AuthorizationPermissionMismatch") => {
            "assign the role Storage Blob Data Contributor, or Reader, to this identity".to_owned()
        }
        Credential::Entra(tokens) => format!(
            "{} is not accepted; check the tenant, and assign the role Storage Blob Data Contributor, or Reader",
            tokens.describe()
        ),
        Credential::Anonymous => {
            "set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or run `az login`".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credential::CurrentCredential;
    use tf_fs_object_store::StoreError as _;
    use tf_fs_object_store::http::HttpError;

    #[test]
    fn a_clock_that_is_wrong_is_told() {
        let later = |seconds| Some(SystemTime::now() + Duration::from_secs(seconds));
        assert_eq!(skew(None), None);
        assert_eq!(skew(later(500)), None);
        let text = skew(later(3630)).unwrap();
        assert_eq!(text, "the clock of this machine is 60 minutes behind the store's; set it");
        let earlier = SystemTime::now() - Duration::from_secs(7200);
        assert!(skew(Some(earlier)).unwrap().contains("120 minutes ahead of"));
    }

    /// Returns an account with such a credential.
    fn account(credential: Credential) -> Account {
        let settings = crate::settings::of_variables(&[("TF_AZ_AUTH", "anonymous")]).unwrap();
        let http = crate::client::http(&settings).unwrap();
        let account = Account::new("acc", &settings, &http, || Ok(None)).unwrap();
        Account { credential: CurrentCredential::new(credential), ..account }
    }

    /// What Azure's documents list.
    #[test]
    #[rustfmt::skip]
    fn each_code_has_a_class_a_meaning_and_a_next_step() {
        use ErrorKind::{Denied, NotFound, Permanent, Precondition, Transient, Unsupported};
        let sas = account(Credential::Sas(crate::settings::Secret::new("sig=planted")));
        for (status, code, kind, tensorflow, part) in [
            (400, "InvalidAuthenticationInfo", Denied, Code::Unauthenticated, "sign in again"),
            (400, "InvalidBlobOrBlock", Permanent, Code::FailedPrecondition, "write an empty file"),
            (400, "InvalidBlockList", Permanent, Code::Aborted, "one writer"),
            (400, "InvalidResourceName", Permanent, Code::InvalidArgument, "name"),
            (400, "Md5Mismatch", Transient, Code::DataLoss, "between here and the store"),
            (400, "NeverHeardOf", Permanent, Code::InvalidArgument, ""),
            (401, "NoAuthenticationInformation", Denied, Code::Unauthenticated, "AZURE_STORAGE_SAS_TOKEN"),
            (403, "AuthenticationFailed", Denied, Code::PermissionDenied, "AZURE_STORAGE_SAS_TOKEN"),
            (403, "AuthorizationFailure", Denied, Code::PermissionDenied, "firewall"),
            (403, "AuthorizationPermissionMismatch", Denied, Code::PermissionDenied, "`sp`"),
            (403, "AuthorizationResourceTypeMismatch", Denied, Code::PermissionDenied, "`srt`"),
            (403, "AuthorizationProtocolMismatch", Permanent, Code::PermissionDenied, "https"),
            (403, "AuthorizationSourceIPMismatch", Permanent, Code::PermissionDenied, "`sip`"),
            (403, "UnauthorizedBlobOverwrite", Permanent, Code::PermissionDenied, "new blobs only"),
            (403, "KeyBasedAuthenticationNotPermitted", Permanent, Code::PermissionDenied, "TF_AZ_AUTH=entra"),
            (403, "InsufficientAccountPermissions", Denied, Code::PermissionDenied, "can only be read"),
            (403, "AccountIsDisabled", Permanent, Code::PermissionDenied, "disabled"),
            (403, "CannotVerifyCopySource", Permanent, Code::PermissionDenied, "source of the copy"),
            (403, "KeyVaultEncryptionKeyNotFound", Permanent, Code::FailedPrecondition, "key vault"),
            (404, "BlobNotFound", NotFound, Code::NotFound, ""),
            (404, "ContainerNotFound", NotFound, Code::NotFound, "az storage container create"),
            (404, "CannotVerifyCopySource", NotFound, Code::NotFound, ""),
            (405, "UnsupportedHttpVerb", Unsupported, Code::Unimplemented, ""),
            (409, "BlobAlreadyExists", Precondition, Code::AlreadyExists, "somebody else"),
            (409, "BlobArchived", Permanent, Code::FailedPrecondition, "archive tier"),
            (409, "BlobBeingRehydrated", Permanent, Code::FailedPrecondition, "wait"),
            (409, "BlobImmutableDueToPolicy", Permanent, Code::FailedPrecondition, "policy"),
            (409, "BlobUsesCustomerSpecifiedEncryption", Permanent, Code::FailedPrecondition, "CPK"),
            (409, "ContainerBeingDeleted", Transient, Code::Unavailable, "try again"),
            (409, "ContainerDisabled", Permanent, Code::PermissionDenied, "disabled"),
            (409, "DirectoryIsNotEmpty", Transient, Code::FailedPrecondition, "somebody else"),
            (409, "InvalidBlobType", Permanent, Code::FailedPrecondition, "block blobs"),
            (409, "LeaseAlreadyPresent", Permanent, Code::FailedPrecondition, "lease"),
            (409, "LeaseIsBreakingAndCannotBeChanged", Permanent, Code::FailedPrecondition, "lease"),
            (409, "PathAlreadyExists", Permanent, Code::FailedPrecondition, "directory"),
            (409, "PendingCopyOperation", Transient, Code::Unavailable, "try again"),
            (409, "PublicAccessNotPermitted", Permanent, Code::PermissionDenied, "az login"),
            (409, "SnapshotsPresent", Permanent, Code::FailedPrecondition, "snapshots"),
            (409, "NeverHeardOf", Permanent, Code::Aborted, ""),
            (412, "ConditionNotMet", Precondition, Code::FailedPrecondition, "open it again"),
            (412, "LeaseIdMissing", Permanent, Code::FailedPrecondition, "lease"),
            (412, "LeaseLost", Permanent, Code::FailedPrecondition, "lease"),
            (413, "RequestBodyTooLarge", Permanent, Code::InvalidArgument, "TF_AZ_WRITE_PART_BYTES"),
            (413, "", Permanent, Code::InvalidArgument, "TF_AZ_WRITE_PART_BYTES"),
            (416, "InvalidRange", Permanent, Code::OutOfRange, ""),
            (500, "InternalError", Transient, Code::Unavailable, ""),
            (500, "OperationTimedOut", Transient, Code::Unavailable, "try again"),
            (501, "NotImplemented", Unsupported, Code::Unimplemented, ""),
            (503, "ServerBusy", Transient, Code::Unavailable, "overloaded"),
        ] {
            let mut refusal = ErrorResponse { status, ..ErrorResponse::default() };
            explain(&mut refusal, Some(code.to_owned()), None, b"", &sas);
            let failed = HttpError::Status(Box::new(refusal));
            assert_eq!(failed.kind(), kind, "{status} {code}");
            let error = failed.into_error("read", &"az://acc/c/k", 1);
            assert_eq!(error.code(), tensorflow, "{status} {code}: {error}");
            assert!(error.message().contains(part), "{status} {code}: {error}");
        }
    }
}
