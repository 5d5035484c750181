//! Whether somebody else can change a directory or a file.

use crate::OtherUsers;
use rustix::fs::{FileType, Stat};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Permission bits of other users: to write, and all.
const WRITE: u32 = 0o022;
const ALL: u32 = 0o077;
const GROUP_WRITE: u32 = 0o020;
const OTHER_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// The users who may change a directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrustedUsers {
    /// The user who trusts the files.
    pub(crate) user: u32,
    /// The owner of `/`. That is root, but in a user namespace without a root it is the number for all users from outside.
    pub(crate) root: u32,
}

impl TrustedUsers {
    /// Returns the user of this process.
    pub(crate) fn this_user() -> io::Result<Self> {
        let root = rustix::fs::stat("/")?.st_uid;
        Ok(Self { user: rustix::process::geteuid().as_raw(), root })
    }

    fn is_trusted(self, owner: u32) -> bool {
        [0, self.root, self.user].contains(&owner)
    }

    /// Checks a directory on the way.
    ///
    /// # Errors
    /// `PermissionDenied` if somebody else can replace what is in it.
    pub(crate) fn check_parent(self, path: &Path, stat: &Stat) -> io::Result<()> {
        self.check_owner(path, stat)?;
        let mode = stat.st_mode;
        let is_group_trusted = stat.st_gid == 0 || stat.st_gid == self.user;
        let writers = OTHER_WRITE | if is_group_trusted { 0 } else { GROUP_WRITE };
        if mode & writers != 0 && mode & STICKY == 0 {
            return Err(denied(format!(
                "`{}` has mode {:o}: other users can replace what is in it; take away their permission to write, make it sticky \
                 (`chmod +t`), or choose another directory",
                path.display(),
                mode & 0o7777
            )));
        }
        Ok(())
    }

    /// Checks the owner of a directory or a link on the way.
    pub(crate) fn check_owner(self, path: &Path, stat: &Stat) -> io::Result<()> {
        if self.is_trusted(stat.st_uid) {
            return Ok(());
        }
        Err(denied(format!(
            "`{}` belongs to user {}, not to root or user {}; choose a directory trusted parents are yours",
            path.display(),
            stat.st_uid,
            self.user
        )))
    }

    /// Checks the directory itself, or a folder in it.
    ///
    /// # Errors
    /// `PermissionDenied` if it is not this user's alone.
    pub(crate) fn check_private(
        self,
        path: &Path,
        stat: &Stat,
        others: OtherUsers,
    ) -> io::Result<()> {
        if stat.st_uid != self.user {
            return Err(denied(format!(
                "`{}` belongs to user {}, not to user {}; choose a directory of yours, or one that does not exist",
                path.display(),
                stat.st_uid,
                self.user
            )));
        }
        let (forbidden, can, wanted) = match others {
            OtherUsers::NoAccess => (ALL, "use", "mode 0700"),
            OtherUsers::Read => (WRITE, "write to", "no more than mode 0755"),
        };
        if stat.st_mode & forbidden != 0 {
            return Err(denied(format!(
                "`{}` has mode {:o}: other users can {can} it; give it {wanted}",
                path.display(),
                stat.st_mode & 0o7777
            )));
        }
        Ok(())
    }

    /// Checks a file.
    ///
    /// # Errors
    /// `InvalidData` if it is not a regular file that only this user can write to.
    pub(crate) fn check_file(self, stat: &Stat) -> io::Result<()> {
        let why = if !FileType::from_raw_mode(stat.st_mode).is_file() {
            "it is not a regular file".to_owned()
        } else if stat.st_uid != self.user {
            format!("it belongs to user {}, not to user {}", stat.st_uid, self.user)
        } else if stat.st_mode & WRITE != 0 {
            format!("it has mode {:o}: other users can write to it", stat.st_mode & 0o7777)
        } else {
            return Ok(());
        };
        Err(io::Error::new(ErrorKind::InvalidData, why))
    }
}

fn denied(why: String) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, why)
}
