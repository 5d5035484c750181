//! Settings of a plugin: environment, settings file, TensorFlow's options.
//!
//! A bucket's own setting overrides a general one. Among either, later sources override earlier ones: default, settings
//! file, environment, options.

mod environment;
mod file;
#[cfg(test)]
mod fuzz;
mod layer;
mod options;
mod table;
#[cfg(test)]
mod tests;
mod value;

pub use layer::{Entry, Source};
pub use table::{EnvLookup, Scope, Setting, Table};
pub use value::{Kind, Secret, Value};

use arc_swap::ArcSwapOption;
use file::Layers;
use layer::Layer;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tf_fs_plugin::prelude::*;

/// Settings of a bucket that a plugin makes from [`Values`].
pub trait FromValues: PartialEq + Sized {
    /// The table of settings.
    const TABLE: &'static Table;

    /// Creates the settings from the values that apply to a bucket.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if they contradict each other.
    fn from_values(values: &Values<'_>) -> Result<Self>;
}

/// All settings of a plugin.
#[derive(Clone, Debug)]
pub struct Configured<B> {
    /// Bytes held at a time for reading ahead and for uploads, over all files of the process.
    pub memory_budget: usize,
    /// Worker threads of the process.
    pub threads: usize,
    /// The settings of buckets without a section.
    pub default: Arc<B>,
    /// The settings of the other buckets, by name.
    pub buckets: BTreeMap<String, Arc<B>>,
}

impl<B: FromValues> Default for Configured<B> {
    fn default() -> Self {
        Sources::default().settings(None).expect("the defaults fit together")
    }
}

impl<B: FromValues> Configured<B> {
    /// Reads the settings from these environment variables, and from the file that they name.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` with the variable and its valid values.
    pub fn of_variables(lookup: EnvLookup<'_>) -> Result<Self> {
        Sources::read(B::TABLE, lookup, &mut Vec::new())?.settings(None)
    }
}

impl<B> Configured<B> {
    /// Returns the settings of this bucket.
    pub fn bucket(&self, name: &str) -> &Arc<B> {
        self.buckets.get(name).unwrap_or(&self.default)
    }
}

/// The values that apply to a bucket.
#[derive(Debug)]
pub struct Values<'a> {
    table: &'static Table,
    layers: Vec<&'a Layer>,
    /// Where in `layers` the sections of the bucket and of its parents end.
    sections: Vec<usize>,
}

/// A scope of settings: a bucket's section, that of a parent, or that of all buckets.
#[derive(Clone, Copy, Debug)]
pub struct ConfigScope<'a>(&'a [&'a Layer]);

impl ConfigScope<'_> {
    /// Returns the value that is set here.
    pub fn value(&self, key: &str) -> Option<Value> {
        self.0.iter().find_map(|layer| layer.get(key)).map(|entry| entry.value.clone())
    }
}

impl Values<'_> {
    /// Creates values that are all defaults.
    pub fn defaults(table: &'static Table) -> Self {
        Self { table, layers: Vec::new(), sections: Vec::new() }
    }

    /// Returns the value and its source.
    pub fn entry(&self, key: &'static str) -> Option<Entry> {
        debug_assert!(self.table.find(key).is_some(), "{key} is not in the table");
        self.layers.iter().find_map(|layer| layer.get(key).cloned()).or_else(|| {
            let value = self.table.find(key)?.default_value()?;
            Some(Entry { value, source: Source::Default })
        })
    }

    /// Returns the scopes whose values apply, the nearest first. The last one is that of all buckets.
    pub fn scopes(&self) -> impl Iterator<Item = ConfigScope<'_>> {
        let mut start = 0;
        self.sections.iter().copied().chain([self.layers.len()]).map(move |end| {
            let scope = ConfigScope(&self.layers[start..end]);
            start = end;
            scope
        })
    }

    /// Returns the value.
    pub fn value(&self, key: &'static str) -> Option<Value> {
        self.entry(key).map(|entry| entry.value)
    }

    /// Returns the value of a text, a URL, a path or one of several words.
    pub fn text(&self, key: &'static str) -> Option<String> {
        match self.value(key) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns the value of a secret.
    pub fn secret(&self, key: &'static str) -> Option<Secret> {
        match self.value(key) {
            Some(Value::Secret(secret)) => Some(secret),
            _ => None,
        }
    }

    /// Returns the value of a flag.
    pub fn flag(&self, key: &'static str) -> Option<bool> {
        match self.value(key) {
            Some(Value::Flag(flag)) => Some(flag),
            _ => None,
        }
    }

    /// Returns a number. The table gives every number a default and bounds.
    pub fn number(&self, key: &'static str) -> u64 {
        match self.value(key) {
            Some(Value::Number(number)) => number,
            _ => 0,
        }
    }

    /// Returns a number as a `usize`, or `usize::MAX` if it is larger.
    pub fn size(&self, key: &'static str) -> usize {
        usize::try_from(self.number(key)).unwrap_or(usize::MAX)
    }

    /// Returns a number of milliseconds as a duration.
    pub fn time(&self, key: &'static str) -> Duration {
        Duration::from_millis(self.number(key))
    }

    /// Returns the value of `disk_cache`, if the table has it.
    fn disk_cache(&self) -> Option<crate::DiskCache> {
        self.table.find("disk_cache").and_then(|setting| self.text(setting.key)?.parse().ok())
    }

    /// Returns the engine's settings. Each key is the name of a field, followed by its unit. A setting that is not in
    /// the table has the engine's default.
    pub fn engine(&self) -> crate::Settings {
        let usual = crate::Settings::default();
        let has = |key| self.table.find(key).is_some();
        let size = |key, usual| if has(key) { self.size(key) } else { usual };
        let time = |key, usual| if has(key) { self.time(key) } else { usual };
        let flag = |key, usual| if has(key) { self.flag(key).unwrap_or(false) } else { usual };
        crate::Settings {
            max_attempts: match has("max_attempts") {
                true => self.number("max_attempts").try_into().unwrap_or(u32::MAX),
                false => usual.max_attempts,
            },
            retry_timeout: time("retry_timeout_ms", usual.retry_timeout),
            retry_backoff: time("retry_backoff_ms", usual.retry_backoff),
            stall_timeout: time("stall_timeout_ms", usual.stall_timeout),
            read_part: size("read_part_bytes", usual.read_part),
            read_concurrency: size("read_concurrency", usual.read_concurrency),
            write_part: size("write_part_bytes", usual.write_part),
            write_parts_equal: flag("write_parts_equal", usual.write_parts_equal),
            publish_on_flush: flag("publish_on_flush", usual.publish_on_flush),
            flush_interval: time("flush_interval_ms", usual.flush_interval),
            write_concurrency: size("write_concurrency", usual.write_concurrency),
            listing_ttl: time("listing_ttl_ms", usual.listing_ttl),
            max_listed_names: size("max_listed_names", usual.max_listed_names),
            version_check: match has("version_check")
                && self.text("version_check").as_deref() == Some("size")
            {
                true => crate::VersionCheck::Size,
                false => usual.version_check,
            },
            disk_cache: self.disk_cache(),
        }
    }
}

/// The current settings. They need no lock, which a fork could find held.
#[derive(Debug)]
pub struct Config<B>(ArcSwapOption<Loaded<B>>);

/// The values of the sources, and the settings made from them.
#[derive(Debug)]
struct Loaded<B> {
    sources: Sources,
    settings: Arc<Configured<B>>,
}

impl<B> Default for Config<B> {
    fn default() -> Self {
        Self(ArcSwapOption::empty())
    }
}

/// The values that each source set.
#[derive(Clone, Debug, Default, PartialEq)]
struct Sources {
    file: Layers,
    environment: Layer,
    options: Layers,
}

impl Sources {
    /// Reads the environment and the file.
    fn read(
        table: &'static Table,
        lookup: EnvLookup<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<Self> {
        let environment = environment::read(table, lookup, warnings)?;
        let file = match environment::file_path(table, lookup) {
            Some(path) => file::read(table, Path::new(&path))?,
            None => Layers::default(),
        };
        Ok(Self { file, environment, options: Layers::default() })
    }

    /// Returns the values that apply to this bucket, or without one to all others.
    fn values(&self, table: &'static Table, bucket: Option<&str>) -> Values<'_> {
        let (mut layers, mut sections) = (Vec::with_capacity(7), Vec::new());
        for bucket in std::iter::successors(bucket, |bucket| (table.parent)(bucket)) {
            layers.extend(self.options.buckets.get(bucket));
            layers.extend(self.file.buckets.get(bucket));
            sections.push(layers.len());
        }
        layers.extend([&self.options.general, &self.environment, &self.file.general]);
        Values { table, layers, sections }
    }

    /// Returns the buckets with their own settings.
    fn buckets(&self) -> impl Iterator<Item = &str> {
        let names = self.file.buckets.keys().chain(self.options.buckets.keys());
        names.map(String::as_str).collect::<std::collections::BTreeSet<_>>().into_iter()
    }

    /// Creates the settings. A bucket whose settings stay the same keeps those of `before`, and with them its
    /// connections.
    fn settings<B: FromValues>(&self, before: Option<&Configured<B>>) -> Result<Configured<B>> {
        let general = self.values(B::TABLE, None);
        let keep = |new: B, old: Option<&Arc<B>>| match old {
            Some(old) if **old == new => Arc::clone(old),
            _ => Arc::new(new),
        };
        let buckets = self
            .buckets()
            .map(|bucket| {
                let new = B::from_values(&self.values(B::TABLE, Some(bucket)))
                    .context(format_args!("settings of {} {bucket}", B::TABLE.section))?;
                Ok((bucket.to_owned(), keep(new, before.map(|before| before.bucket(bucket)))))
            })
            .collect::<Result<_>>()?;
        Ok(Configured {
            memory_budget: general.size("memory_budget_bytes"),
            threads: general.size("threads"),
            default: keep(B::from_values(&general)?, before.map(|before| &before.default)),
            buckets,
        })
    }
}

impl<B: FromValues> Config<B> {
    /// Returns the settings; the first call reads the environment.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` with the variable and its valid values.
    pub fn settings(&self) -> Result<Arc<Configured<B>>> {
        match &*self.0.load() {
            Some(loaded) => Ok(Arc::clone(&loaded.settings)),
            None => Ok(Arc::clone(&self.loaded()?.settings)),
        }
    }

    /// Reads the environment and the settings file again, and returns the settings. For a store that refuses credentials
    /// which another program may have renewed.
    ///
    /// # Errors
    /// As [`settings`](Self::settings); then the settings stay as they are.
    pub fn reread(&self) -> Result<Arc<Configured<B>>> {
        let mut current = self.loaded()?;
        loop {
            let read = Sources::read(B::TABLE, &|name| std::env::var_os(name), &mut Vec::new())?;
            let sources = Sources { options: current.sources.options.clone(), ..read };
            if sources == current.sources {
                return Ok(Arc::clone(&current.settings));
            }
            let settings = Arc::new(sources.settings(Some(&current.settings))?);
            let new = Arc::new(Loaded { sources, settings: Arc::clone(&settings) });
            let before = self.0.compare_and_swap(&current, Some(new));
            match &*before {
                Some(before) if !Arc::ptr_eq(before, &current) => current = Arc::clone(before),
                _ => return Ok(settings),
            }
        }
    }

    fn loaded(&self) -> Result<Arc<Loaded<B>>> {
        if let Some(loaded) = self.0.load_full() {
            return Ok(loaded);
        }
        let mut warnings = Vec::new();
        let sources = Sources::read(B::TABLE, &|name| std::env::var_os(name), &mut warnings)?;
        environment::unknown(B::TABLE, std::env::vars_os().map(|(name, _)| name), &mut warnings);
        let settings = Arc::new(sources.settings(None)?);
        let new = Arc::new(Loaded { sources, settings });
        match &*self.0.compare_and_swap(&None::<Arc<Loaded<B>>>, Some(Arc::clone(&new))) {
            // Another thread was first, and warned.
            Some(loaded) => Ok(Arc::clone(loaded)),
            None => {
                for warning in warnings {
                    log::warn!("{warning}");
                }
                Ok(new)
            }
        }
    }

    /// Returns all settings as TensorFlow options.
    ///
    /// # Errors
    /// As [`settings`](Self::settings).
    pub fn options(&self) -> Result<Vec<FilesystemOption>> {
        let loaded = self.loaded()?;
        let general = loaded.sources.values(B::TABLE, None);
        let mut shown: Vec<_> = B::TABLE
            .settings
            .iter()
            .map(|setting| {
                options::show(setting.key.to_owned(), setting, general.value(setting.key).as_ref())
            })
            .collect();
        for bucket in loaded.sources.buckets() {
            for (setting, entry) in loaded.sources.own(B::TABLE, bucket) {
                let key = options::bucket_key(B::TABLE, bucket, setting.key);
                shown.push(options::show(key, setting, Some(&entry.value)));
            }
        }
        Ok(shown)
    }

    /// Sets TensorFlow options: all of them or, with an error, none.
    ///
    /// # Errors
    /// `NOT_FOUND` for an unknown key, `INVALID_ARGUMENT` for an invalid value.
    pub fn set(&self, options: &[FilesystemOption]) -> Result<()> {
        let mut current = self.loaded()?;
        loop {
            let mut sources = current.sources.clone();
            options::add(B::TABLE, &mut sources.options, options)?;
            let settings = Arc::new(sources.settings(Some(&current.settings))?);
            let new = Arc::new(Loaded { sources, settings });
            let before = self.0.compare_and_swap(&current, Some(new));
            match &*before {
                Some(before) if !Arc::ptr_eq(before, &current) => current = Arc::clone(before),
                _ => return Ok(()),
            }
        }
    }

    /// Returns the value and the source of each setting as JSON. Secrets are not shown.
    ///
    /// # Errors
    /// As [`settings`](Self::settings).
    pub fn json(&self) -> Result<String> {
        let loaded = self.loaded()?;
        let sources = &loaded.sources;
        let shown = |entry: Option<Entry>| match entry {
            None => serde_json::json!({ "value": null, "source": "not set" }),
            Some(Entry { value, source }) => {
                let value = match value {
                    Value::Flag(flag) => flag.into(),
                    Value::Number(number) => number.into(),
                    text => serde_json::Value::from(text.to_string()),
                };
                serde_json::json!({ "value": value, "source": source.to_string() })
            }
        };
        let general = sources.values(B::TABLE, None);
        let settings: serde_json::Map<_, _> = B::TABLE
            .settings
            .iter()
            .map(|setting| (setting.key.to_owned(), shown(general.entry(setting.key))))
            .collect();
        let buckets: serde_json::Map<_, _> = sources
            .buckets()
            .map(|bucket| {
                let own: serde_json::Map<_, _> = sources
                    .own(B::TABLE, bucket)
                    .map(|(setting, entry)| (setting.key.to_owned(), shown(Some(entry))))
                    .collect();
                (bucket.to_owned(), own.into())
            })
            .collect();
        let sections = format!("{}s", B::TABLE.section);
        let text = serde_json::json!({ "settings": settings, sections: buckets });
        Ok(format!("{text:#}\n"))
    }
}

impl Sources {
    /// Returns the settings that are set for this bucket itself.
    fn own(
        &self,
        table: &'static Table,
        bucket: &str,
    ) -> impl Iterator<Item = (&'static Setting, Entry)> {
        let layers: Vec<_> = [&self.options, &self.file]
            .into_iter()
            .filter_map(|layers| layers.buckets.get(bucket))
            .collect();
        table.settings.iter().filter_map(move |setting| {
            let entry = layers.iter().find_map(|layer| layer.get(setting.key))?;
            Some((setting, entry.clone()))
        })
    }
}
