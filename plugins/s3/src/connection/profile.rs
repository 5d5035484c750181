//! The AWS configuration files, for what the SDK does not read in them.

use crate::config::Profile;
use aws_config::profile::{ProfileFileLoadError, ProfileSet};
use aws_types::os_shim_internal::{Env, Fs};

/// Loads the files, with this profile or the one of the environment selected.
pub(super) async fn load(selected: Option<&str>) -> Result<ProfileSet, ProfileFileLoadError> {
    // Its successor is in an internal crate of the SDK.
    #[allow(deprecated)]
    let files = aws_config::profile::profile_file::ProfileFiles::default();
    let selected = selected.map(|name| name.to_owned().into());
    aws_config::profile::load(&Fs::real(), &Env::real(), &files, selected).await
}

/// Returns a setting that the profile has for S3 alone, as below `s3 =`.
pub(super) async fn s3(profile: Option<&Profile>, key: &str) -> Option<String> {
    let profiles = load(profile.map(|profile| profile.name.as_str())).await.ok()?;
    nested(profiles.get("s3")?, key).map(str::to_owned)
}

/// Returns a value of the lines below a property.
fn nested<'a>(lines: &'a str, key: &str) -> Option<&'a str> {
    let fields = lines.lines().filter_map(|line| line.split_once('='));
    let value = fields.map(|(name, value)| (name.trim(), value.trim()));
    value.rev().find(|(name, _)| *name == key).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_a_name_counts() {
        let lines = "\n  addressing_style = path\nuse_accelerate = 1\n addressing_style=virtual ";
        assert_eq!(nested(lines, "addressing_style"), Some("virtual"));
        assert_eq!(nested(lines, "style"), None);
        assert_eq!(nested("", "addressing_style"), None);
    }
}
