//! What Azure's error codes mean: whether another attempt can help, TensorFlow's code, and what to do next.

use crate::account::Account;
use crate::credential::Credential;
use crate::xml::error_message;
use std::time::{Duration, SystemTime};
use tf_fs_object_store::Class;
use tf_fs_object_store::http::Refusal;
use tf_fs_plugin::prelude::*;

/// Azure refuses signatures if the clocks differ by this or more.
const SKEW: Duration = Duration::from_secs(10 * 60);

/// Adds the meaning of its code to a refusal. `date` is that of the server.
pub(crate) fn explain(
    refusal: &mut Refusal,
    code: Option<String>,
    date: Option<SystemTime>,
    body: &[u8],
    account: &Account,
) {
    refusal.message = error_message(body);
    let status = refusal.status;
    let (class, error, advice) = judge(status, code.as_deref().unwrap_or_default());
    (refusal.class, refusal.error_code) = (class, error);
    refusal.advice = match status {
        401 | 403 => Some(skew(date).unwrap_or_else(|| permission(account, code.as_deref()))),
        404 if matches!(account.credential, Credential::Anonymous) => {
            Some("without credentials a private container looks so; set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or run `az login`".to_owned())
        }
        _ => advice.map(str::to_owned),
    };
    refusal.code = code;
}

/// Returns what a code says beyond its status.
fn judge(status: u16, code: &str) -> (Option<Class>, Option<Code>, Option<&'static str>) {
    use Class::{NotFound, Permanent, Precondition, Transient};
    let (class, error, advice) = match code {
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
        "LeaseIdMissing" | "LeaseAlreadyPresent" | "LeaseIdMismatchWithBlobOperation" => (
            Permanent,
            Code::FailedPrecondition,
            "somebody holds a lease of the blob; break it: `az storage blob lease break`",
        ),
        "BlobArchived" | "BlobBeingRehydrated" => (
            Permanent,
            Code::FailedPrecondition,
            "the blob is in the archive tier; move it to another tier, and wait until that is done",
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
        "AccountIsDisabled" => {
            (Permanent, Code::PermissionDenied, "the account is disabled; see the Azure portal")
        }
        _ if matches!(status, 429 | 503) => {
            return (None, None, Some("the store is overloaded; try again later"));
        }
        _ => return (None, None, None),
    };
    (Some(class), Some(error), Some(advice))
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
    match &account.credential {
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

    #[test]
    fn codes_count_more_than_statuses() {
        assert_eq!(judge(409, "BlobAlreadyExists").0, Some(Class::Precondition));
        assert_eq!(judge(409, "PendingCopyOperation").0, Some(Class::Transient));
        assert_eq!(judge(409, "SnapshotsPresent").1, Some(Code::FailedPrecondition));
        assert_eq!(judge(409, "DirectoryIsNotEmpty").0, Some(Class::Transient));
        assert_eq!(judge(400, "InvalidBlobOrBlock").1, Some(Code::FailedPrecondition));
        assert_eq!(judge(412, "LeaseIdMissing").0, Some(Class::Permanent));
        assert_eq!(judge(400, "NeverHeardOf"), (None, None, None));
    }
}
