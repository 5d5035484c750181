//! An in-memory filesystem for TensorFlow: what is under `mem://` lives as long as the process.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::Arc;

use tf_fs_plugin::prelude::*;
// Like that of `std`, but unlocked in a forked child.
use tf_fs_plugin::sync::RwLock;

/// Files, and directories as `None`, by their names. Roots such as `mem://box/` always exist.
#[derive(Default)]
pub struct MemFs(RwLock<Nodes>);

type Nodes = BTreeMap<Vec<u8>, Option<File>>;

/// An open file. Readers see appended bytes at once.
#[derive(Clone, Default)]
pub struct File(Arc<RwLock<Vec<u8>>>);

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for MemFs {
    type Reader = File;
    type Writer = File;

    /// Runs when the plugin is registered, usually at `import tensorflow`. Read settings here; connect later.
    fn new(_scheme: &str) -> Result<Self> {
        Ok(Self::default())
    }

    fn new_random_access_file(&self, uri: Uri<'_>) -> Result<File> {
        find_file(&*self.0.read()?, uri)
    }

    fn new_writable_file(&self, uri: Uri<'_>) -> Result<File> {
        put(&mut *self.0.write()?, uri, File::default())
    }

    fn new_appendable_file(&self, uri: Uri<'_>) -> Result<File> {
        let nodes = &mut *self.0.write()?;
        find_file(nodes, uri).or_else(|_| put(nodes, uri, File::default()))
    }

    /// Renames atomically: readers of `dst` find the old or the new file. The SDK's default copies, and shows a part.
    fn rename_file(&self, src: Uri<'_>, dst: Uri<'_>) -> Result<()> {
        let nodes = &mut *self.0.write()?;
        put(nodes, dst, find_file(nodes, src)?)?;
        if src != dst {
            nodes.remove(src.as_bytes());
        }
        Ok(())
    }

    fn create_dir(&self, uri: Uri<'_>) -> Result<()> {
        let nodes = &mut *self.0.write()?;
        ensure!(find(nodes, uri).is_err(), Error::already_exists(uri));
        insert(nodes, uri, None)
    }

    fn delete_file(&self, uri: Uri<'_>) -> Result<()> {
        let nodes = &mut *self.0.write()?;
        find_file(nodes, uri).map(|_file| drop(nodes.remove(uri.as_bytes())))
    }

    fn delete_dir(&self, uri: Uri<'_>) -> Result<()> {
        let nodes = &mut *self.0.write()?;
        ensure!(list(nodes, uri)?.next().is_none(), Error::expected_empty_directory(uri));
        nodes.remove(uri.as_bytes());
        Ok(())
    }

    fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
        match find(&*self.0.read()?, uri)? {
            Some(file) => Ok(FileStatistics::file(file.0.read()?.len() as u64)),
            None => Ok(FileStatistics::directory()),
        }
    }

    fn get_children(&self, uri: Uri<'_>) -> Result<Entries> {
        Ok(list(&*self.0.read()?, uri)?.collect())
    }
}

impl RandomAccessFile for File {
    /// Reads the current content. Several threads call this at once.
    fn read_at(&self, offset: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
        buf.fill_from(&self.0.read()?, offset);
        Ok(())
    }
}

impl WritableFile for File {
    fn append(&mut self, data: &[u8]) -> Result<()> {
        self.0.write()?.extend_from_slice(data);
        Ok(())
    }

    fn tell(&mut self) -> Result<u64> {
        Ok(self.0.read()?.len() as u64)
    }
}

/// Returns the file at `uri`, or `None` for a directory.
fn find(nodes: &Nodes, uri: Uri<'_>) -> Result<Option<File>> {
    // Parents exist before their entries, so the nearest entry above distinguishes a file from nothing.
    let above = || uri.ancestors().find_map(|dir| nodes.get(dir.as_bytes()));
    match nodes.get(uri.as_bytes()) {
        Some(node) => Ok(node.clone()),
        None if uri.is_root() => Ok(None),
        None if matches!(above(), Some(Some(_))) => Err(Error::expected_directory(uri)),
        None => Err(Error::not_found(uri)),
    }
}

fn find_file(nodes: &Nodes, uri: Uri<'_>) -> Result<File> {
    find(nodes, uri)?.ok_or_else(|| Error::expected_file(uri))
}

/// Returns the names in a directory.
fn list<'n>(nodes: &'n Nodes, uri: Uri<'_>) -> Result<impl Iterator<Item = &'n [u8]>> {
    ensure!(find(nodes, uri)?.is_none(), Error::expected_directory(uri));
    let below = nodes.range(uri.join("")..).map_while(move |(name, _)| uri.strip_from(name));
    Ok(below.filter(|rest| !rest.contains(&b'/')))
}

fn insert(nodes: &mut Nodes, uri: Uri<'_>, node: Option<File>) -> Result<()> {
    uri.parent().map_or(Ok(()), |parent| list(nodes, parent).map(drop))?;
    nodes.insert(uri.as_bytes().to_vec(), node);
    Ok(())
}

/// Puts a file at `uri`, replacing an existing one.
fn put(nodes: &mut Nodes, uri: Uri<'_>, file: File) -> Result<File> {
    ensure!(!matches!(find(nodes, uri), Ok(None)), Error::expected_file(uri));
    insert(nodes, uri, Some(file.clone())).map(|()| file)
}
