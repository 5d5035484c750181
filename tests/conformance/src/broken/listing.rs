//! Listings and patterns.

use super::state::{State, lock};
use crate::defect::Defect::*;
use tf_fs_plugin::glob;
use tf_fs_plugin::prelude::*;

impl<F: Filesystem> State<F> {
    /// Returns the content of a directory.
    pub(super) fn get_children(&self, uri: Uri<'_>) -> Result<Entries> {
        match self.defect {
            RootListsNothing if uri.is_root() => return Ok(Entries::new()),
            ListsFiles if self.is_file(uri) => return Ok(Entries::new()),
            ListsMissing if self.is_missing(uri) => return Ok(Entries::new()),
            ListingIsCached => {
                if let Some(found) = lock(&self.listings).get(uri.as_bytes()) {
                    return Ok(found.clone());
                }
            }
            _ => {}
        }
        let entries = self.inner.get_children(uri)?;
        let at = |name: &[u8]| uri.join(name);
        let dir = |name: &[u8]| self.is_dir(Uri::new(&at(name)));
        let listed: Entries = match self.defect {
            ListsItself if entries.is_empty() => [uri.file_name()].into_iter().collect(),
            ListsAtMost100 => entries.iter().take(100).collect(),
            ListsTwice => {
                let files = entries.iter().filter(|name| !dir(name));
                entries.iter().chain(files).collect()
            }
            ListsNoDirectories => entries.iter().filter(|name| !dir(name)).collect(),
            ListsHiddenNot => entries.iter().filter(|name| !name.starts_with(b".")).collect(),
            RefusesTempstate => {
                let shown = |name: &&[u8]| !name.windows(10).any(|part| part == b".tempstate");
                entries.iter().filter(shown).collect()
            }
            ListsOpenNot => {
                let open = lock(&self.open);
                entries.iter().filter(|name| !open.contains(&at(name))).collect()
            }
            ListsAllLevels => {
                let mut all = entries.clone();
                for name in entries.iter().filter(|name| dir(name)) {
                    for below in self.inner.get_children(Uri::new(&at(name)))?.iter() {
                        if !all.iter().any(|other| other == below) {
                            all.push(below);
                        }
                    }
                }
                all
            }
            ListsByPrefix => {
                let mut all = entries.clone();
                for path in self.with_prefix(uri) {
                    if path != uri.as_bytes()
                        && let Ok(more) = self.inner.get_children(Uri::new(&path))
                    {
                        all.extend(more.iter());
                    }
                }
                all
            }
            _ => entries,
        };
        if self.is(ListingIsCached) {
            lock(&self.listings).insert(uri.as_bytes().to_vec(), listed.clone());
        }
        Ok(listed)
    }

    /// What a pattern matches.
    pub(super) fn get_matching_paths(&self, pattern: Uri<'_>) -> Result<Entries> {
        let text = String::from_utf8_lossy(pattern.as_bytes()).into_owned();
        let list = |pattern: &str| self.inner.get_matching_paths(Uri::new(pattern.as_bytes()));
        if text.is_empty() && self.is(GlobEmptyIsAll) {
            return list("mem://box/*");
        }
        let found = match self.defect {
            GlobKnowsNoEscape => list(&text.replace('\\', "\\\\"))?,
            GlobKnowsNoNegation => list(&text.replace("[^", "["))?,
            GlobKnowsNoQuestionMark => list(&text.replace('?', "\\?"))?,
            GlobKnowsNoList => list(&text.replace('[', "\\[").replace("\\\\[", "\\["))?,
            GlobDecodes => list(&text.replace("%20", " "))?,
            GlobByPrefix if !text.is_empty() => list(&format!("{text}*"))?,
            GlobKnowsAscii if !text.is_ascii() => Entries::new(),
            GlobOfOneDirectory => {
                let (dir, last) = text.rsplit_once('/').unwrap_or_default();
                let literal: String = dir
                    .chars()
                    .flat_map(|c| if "*?[\\".contains(c) { vec!['\\', c] } else { vec![c] })
                    .collect();
                list(&if dir.is_empty() { text.clone() } else { format!("{literal}/{last}") })?
            }
            _ => list(&text)?,
        };
        let at = |path: &[u8]| self.is_dir(Uri::new(path));
        Ok(match self.defect {
            GlobGivesNames => {
                found.iter().map(|path| Uri::new(path).file_name().to_vec()).collect()
            }
            GlobSkipsDirs => found.iter().filter(|path| !at(path)).collect(),
            GlobOfNothingFails if found.is_empty() => return Err(Error::not_found(pattern)),
            GlobStarTakesSlash if text.contains('*') => {
                let mut all = found.clone();
                // One level more below what the part before the last wildcard's slash says.
                let (dir, last) = text.rsplit_once('/').unwrap_or_default();
                for path in list(&format!("{dir}/*/*"))?.iter() {
                    let below = path.get(dir.len() + 1..).unwrap_or_default();
                    let flat: Vec<u8> =
                        below.iter().map(|&byte| if byte == b'/' { b'_' } else { byte }).collect();
                    if glob::matches(last.as_bytes(), &flat) {
                        all.push(path);
                    }
                }
                all
            }
            _ => found,
        })
    }
}
