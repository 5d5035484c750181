//! The table of a plugin's settings: their names, valid values and purpose.

use super::value::{Kind, Value};
use std::borrow::Cow;
use std::ffi::OsString;
use tf_fs_plugin::prelude::*;

/// Looks up an environment variable.
pub type EnvLookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// All settings of a plugin.
#[derive(Debug)]
pub struct Table {
    /// The scheme, for messages.
    pub scheme: &'static str,
    /// The prefix of the plugin's own environment variables.
    pub prefix: &'static str,
    /// The variable with the path of the settings file.
    pub file_variable: &'static str,
    /// Where all settings can be seen, for messages: `s3:///config.json shows all settings`.
    pub help: &'static str,
    /// Every setting. Two belong to the process: `memory_budget_bytes` and `threads`.
    pub settings: &'static [Setting],
    /// The word for a bucket in the settings file and in options: `bucket` in `[bucket."name"]`.
    pub section: &'static str,
    /// The canonical name of a bucket, from one in a section of the settings file or in an option.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for what cannot be a bucket.
    pub bucket: fn(name: &str) -> Result<Cow<'_, str>>,
    /// The bucket whose section applies where the section of this one sets nothing.
    pub parent: fn(bucket: &str) -> Option<&str>,
    /// Whether a variable is ignored because of another one.
    pub ignores: fn(lookup: EnvLookup<'_>, name: &str) -> bool,
}

/// A setting.
#[derive(Debug)]
pub struct Setting {
    /// Its name in the settings file and TensorFlow's options; in capitals after [`Table::prefix`] in the environment.
    pub key: &'static str,
    /// Further environment variables, after the plugin's own; the first one that is set applies.
    pub variables: &'static [&'static str],
    /// Its valid values.
    pub kind: Kind,
    /// Its default, as a variable would set it. Empty: not set.
    pub default: &'static str,
    /// Whether it belongs to the process or to a bucket.
    pub scope: Scope,
    /// Whether a wrong value of a variable is an error, because the default could send data to another place, or take more
    /// than was allowed. One of a text, a secret, a URL, a file or a directory always is.
    pub is_vital: bool,
    /// What it is for.
    pub description: &'static str,
}

/// The scope of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The process: not in the section of a bucket.
    Process,
    /// A bucket, or all buckets without their own value.
    Bucket,
}

impl Table {
    /// Returns the setting of this key.
    pub(crate) fn find(&self, key: &str) -> Option<&'static Setting> {
        self.settings.iter().find(|setting| setting.key == key)
    }

    /// Returns the plugin's own environment variable. Secrets have none: credentials have other variables.
    pub(crate) fn own_variable(&self, setting: &Setting) -> Option<String> {
        (setting.kind != Kind::Secret)
            .then(|| format!("{}{}", self.prefix, setting.key.to_uppercase()))
    }

    /// Returns all environment variables of a setting; the first one that is set applies.
    pub fn variables(&self, setting: &Setting) -> impl Iterator<Item = String> {
        let others = setting.variables.iter().map(ToString::to_string);
        self.own_variable(setting).into_iter().chain(others)
    }

    /// Returns all settings as a Markdown table, for a document; a test of the plugin compares it.
    pub fn markdown(&self) -> String {
        let mut table = String::from(
            "| Key | Environment variables | Value | Default | For |\n|---|---|---|---|---|\n",
        );
        let has_buckets = self.settings.iter().any(|setting| setting.scope == Scope::Bucket);
        for setting in self.settings {
            let variables: Vec<_> =
                self.variables(setting).map(|variable| format!("`{variable}`")).collect();
            let variables =
                if variables.is_empty() { "–".to_owned() } else { variables.join(", ") };
            let default = match setting.default {
                "" => "not set".to_owned(),
                default => format!("`{default}`"),
            };
            let scope = match setting.scope {
                Scope::Process if has_buckets => " For the whole process only.",
                Scope::Process | Scope::Bucket => "",
            };
            table += &format!(
                "| `{}` | {variables} | {} | {default} | {}{scope} |\n",
                setting.key, setting.kind, setting.description
            );
        }
        table
    }
}

impl Setting {
    /// Creates a setting that can differ between buckets.
    pub const fn new(
        key: &'static str,
        variables: &'static [&'static str],
        kind: Kind,
        default: &'static str,
        description: &'static str,
    ) -> Self {
        let scope = Scope::Bucket;
        Self { key, variables, kind, default, scope, is_vital: false, description }
    }

    /// Makes it a setting of the process.
    #[must_use]
    pub const fn of_process(mut self) -> Self {
        self.scope = Scope::Process;
        self
    }

    /// Makes a [wrong value an error](Self::is_vital).
    #[must_use]
    pub const fn vital(mut self) -> Self {
        self.is_vital = true;
        self
    }

    pub(crate) fn default_value(&self) -> Option<Value> {
        if self.default.is_empty() {
            return None;
        }
        Some(self.kind.parse(self.default).expect("a test of the plugin parses every default"))
    }
}
