//! The AWS configuration files: `~/.aws/config` and `~/.aws/credentials`.
//!
//! <https://docs.aws.amazon.com/sdkref/latest/guide/file-format.html>

use crate::settings::Profile;
use std::collections::HashMap;
use std::path::PathBuf;

type Section = HashMap<String, String>;

/// The profiles and other sections of both files.
#[derive(Debug, Default)]
pub(crate) struct Profiles {
    selected: String,
    /// By name. What is in the credentials file replaces what is in the configuration file.
    profiles: HashMap<String, Section>,
    /// Sections such as `[sso-session name]`, by kind and name.
    others: HashMap<(String, String), Section>,
}

impl Profiles {
    /// Reads the files. A file that is missing counts as empty.
    ///
    /// # Errors
    /// The line that does not have the format.
    pub(crate) fn load(selected: Option<&Profile>) -> Result<Self, String> {
        let selected = selected.map_or("default", |profile| &profile.name).to_owned();
        let mut all = Self { selected, ..Self::default() };
        for (variable, usual, is_config) in [
            ("AWS_CONFIG_FILE", "~/.aws/config", true),
            ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials", false),
        ] {
            let name = variable_or(variable, usual);
            let Some(text) = expand(&name).and_then(|path| std::fs::read(path).ok()) else {
                continue;
            };
            all.add(&text, is_config)
                .map_err(|(line, why)| format!("cannot parse {name}, line {line}: {why}"))?;
        }
        Ok(all)
    }

    /// Adds the sections of a file. A comment or an unused value may be in another encoding than UTF-8.
    fn add(&mut self, text: &[u8], is_config: bool) -> Result<(), (usize, &'static str)> {
        let mut sections = parse(&String::from_utf8_lossy(text))?;
        if sections.contains_key("profile default") {
            sections.remove("default");
        }
        for (header, section) in sections {
            let (kind, name) = match header.split_once([' ', '\t']) {
                Some((kind, name)) if is_config => (kind, name.trim()),
                None if !is_config || header == "default" => ("profile", header.as_str()),
                // The AWS tools ignore such sections too.
                _ => continue,
            };
            let known = match kind {
                "profile" => self.profiles.entry(name.to_owned()).or_default(),
                kind => self.others.entry((kind.to_owned(), name.to_owned())).or_default(),
            };
            known.extend(section);
        }
        Ok(())
    }

    /// Returns a property of the selected profile.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.of(&self.selected, key)
    }

    /// Returns a property of a profile; `None` if it is empty.
    pub(crate) fn of(&self, profile: &str, key: &str) -> Option<&str> {
        self.profiles.get(profile)?.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(crate) fn has(&self, profile: &str) -> bool {
        self.profiles.contains_key(profile)
    }

    /// Returns a property of another section.
    pub(crate) fn section(&self, kind: &str, name: &str, key: &str) -> Option<&str> {
        let section = self.others.get(&(kind.to_owned(), name.to_owned()))?;
        section.get(key).map(String::as_str)
    }

    /// Returns a property of the selected profile for S3 alone, as below `s3 =`.
    pub(crate) fn s3(&self, key: &str) -> Option<&str> {
        nested(self.get("s3")?, key)
    }

    /// Returns the region of the selected profile, else that of its source profiles.
    pub(crate) fn region(&self) -> Option<&str> {
        let mut profile = self.selected.as_str();
        for _ in 0..self.profiles.len() {
            if let Some(region) = self.of(profile, "region") {
                return Some(region);
            }
            profile = self.of(profile, "source_profile")?;
        }
        None
    }

    /// Returns the endpoint of a service, such as `s3`.
    pub(crate) fn endpoint(&self, service: &str) -> Option<&str> {
        let is_set = |value: &str| value.eq_ignore_ascii_case("true");
        let variable = variable("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
        if variable.as_deref().or(self.get("ignore_configured_endpoint_urls")).is_some_and(is_set) {
            return None;
        }
        let services = self.get("services");
        let of_service = services.and_then(|services| self.section("services", services, service));
        let of_service = of_service.and_then(|lines| nested(lines, "endpoint_url"));
        of_service.or_else(|| self.get("endpoint_url"))
    }
}

/// Returns the value of a variable, unless it is blank.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

pub(crate) fn variable_or(name: &str, usual: &str) -> String {
    variable(name).unwrap_or_else(|| usual.to_owned())
}

/// Returns the path with the home directory in place of `~`.
pub(crate) fn expand(path: &str) -> Option<PathBuf> {
    match path.strip_prefix("~/") {
        Some(rest) => Some(PathBuf::from(variable("HOME")?).join(rest)),
        None => Some(path.into()),
    }
}

/// Returns the properties of each section. The lines below a property are a part of its value.
fn parse(text: &str) -> Result<HashMap<String, Section>, (usize, &'static str)> {
    let mut sections = HashMap::<String, Section>::new();
    let (mut header, mut key) = (None::<String>, None::<String>);
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let wrong = |why| Err((number, why));
        if line.starts_with('[') {
            let name = line.split(['#', ';']).next().unwrap_or_default().trim();
            let Some(name) = name[1..].strip_suffix(']') else {
                return wrong("a section has no `]`");
            };
            sections.entry(name.trim().to_owned()).or_default();
            (header, key) = (Some(name.trim().to_owned()), None);
            continue;
        }
        let Some(section) = header.as_ref().and_then(|header| sections.get_mut(header)) else {
            return wrong("there is no section before the first property");
        };
        if line.starts_with([' ', '\t']) {
            let Some(value) = key.as_ref().and_then(|key| section.get_mut(key)) else {
                return wrong("the line is indented, but is not below a property");
            };
            value.push('\n');
            value.push_str(line.trim());
            continue;
        }
        let Some((name, value)) = line.split_once('=') else {
            return wrong("a property has no `=`");
        };
        let name = name.trim().to_ascii_lowercase();
        section.insert(name.clone(), without_comment(value).trim().to_owned());
        key = Some(name);
    }
    Ok(sections)
}

/// Returns a value without the comment after it.
fn without_comment(value: &str) -> &str {
    let begins = |&(at, _): &(usize, &str)| value[..at].ends_with([' ', '\t']);
    let comment = value.match_indices(['#', ';']).find(begins);
    comment.map_or(value, |(at, _)| &value[..at])
}

/// Returns a value of the lines below a property.
fn nested<'a>(lines: &'a str, key: &str) -> Option<&'a str> {
    let fields = lines.lines().filter_map(|line| line.split_once('='));
    let value = fields.map(|(name, value)| (name.trim(), without_comment(value).trim()));
    value.rev().find(|(name, _)| *name == key).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(config: &str, credentials: &str) -> Profiles {
        let mut all = Profiles { selected: "default".to_owned(), ..Profiles::default() };
        all.add(config.as_bytes(), true).unwrap();
        all.add(credentials.as_bytes(), false).unwrap();
        all
    }

    #[test]
    fn the_last_line_of_a_name_counts() {
        let lines = "\n  addressing_style = path\nuse_accelerate = 1\n addressing_style=virtual ";
        assert_eq!(nested(lines, "addressing_style"), Some("virtual"));
        assert_eq!(nested(lines, "style"), None);
        assert_eq!(nested("", "addressing_style"), None);
    }

    #[test]
    fn both_files_are_one() {
        let config = "# all\n[default]\nRegion = eu-west-1 # here\nkey=a#b\ns3 =\n  addressing_style = path\n\
                      [profile p]\nsource_profile = default\n[sso-session corp]\nsso_region = r\n[other]\nregion = x\n\
                      [services here]\ns3 =\n  endpoint_url = http://h\n";
        let mut all = of(config, "[default]\nkey = c\n[p]\nempty =\n[profile q]\nregion = x\n");
        assert_eq!((all.get("region"), all.get("key")), (Some("eu-west-1"), Some("c")));
        assert_eq!(all.s3("addressing_style"), Some("path"));
        assert_eq!(all.section("sso-session", "corp", "sso_region"), Some("r"));
        assert_eq!((all.of("p", "empty"), all.has("q"), all.has("other")), (None, false, false));
        all.selected = "p".to_owned();
        assert_eq!((all.region(), all.endpoint("s3")), (Some("eu-west-1"), None));
        let two = "[profile default]\nregion = a\n[default]\nregion = b\nservices = here\n";
        assert_eq!(of(two, "").region(), Some("a"));
    }

    #[test]
    fn a_comment_may_be_in_another_encoding() {
        let mut all = Profiles::default();
        all.add(b"# f\xfcr alle\n[default]\nregion = r\n", true).unwrap();
        assert_eq!(all.of("default", "region"), Some("r"));
    }

    #[test]
    fn a_line_that_is_wrong_is_named() {
        for (text, line) in
            [("a = b", 1), ("[p]\na", 2), ("[p]\n\n a = b", 3), ("# x\n[p", 2), ("[p]\na=b\n[q", 3)]
        {
            let error = Profiles::default().add(text.as_bytes(), true).unwrap_err();
            assert_eq!(error.0, line, "{text}: {}", error.1);
        }
    }
}
