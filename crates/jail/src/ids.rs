//! User and group id maps of namespaces.

use std::fs;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, SyscallResult};
use crate::protection::Protection;
use crate::subordinate;

/// The user id under which user code runs inside every room.
pub const ROOM_USER: u32 = 1000;

/// Mapping from the keep's ids to the host's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "map")]
pub enum KeepIds {
    /// An ordinary user, whose single id becomes 0 in the keep.
    Single {
        /// The host's user id.
        uid: u32,
        /// The host's group id.
        gid: u32,
    },
    /// An ordinary user with subordinate ids: a range with one id for the keep and one for each
    /// room, followed by the user's own id, which lets the keep use the user's cgroups.
    Subordinate {
        /// The user's id.
        uid: u32,
        /// The user's group id.
        gid: u32,
        /// First subordinate user id.
        uids: u32,
        /// First subordinate group id.
        gids: u32,
        /// Number of ids of each kind.
        count: u32,
    },
    /// Root: a range of unprivileged host ids with one for the keep and one for each room.
    Range {
        /// First host id.
        base: u32,
        /// Number of ids.
        count: u32,
    },
}

impl KeepIds {
    /// Returns the host's ids that own the keep's cgroups.
    pub fn root(self) -> (u32, u32) {
        match self {
            Self::Single { uid, gid } | Self::Subordinate { uid, gid, .. } => (uid, gid),
            Self::Range { base, .. } => (base, base),
        }
    }

    /// Returns whether each room has an id of its own.
    pub fn is_own(self) -> bool {
        !matches!(self, Self::Single { .. })
    }

    /// Returns the number of rooms that can have an id of their own.
    pub fn rooms(self) -> u32 {
        match self {
            Self::Single { .. } => u32::MAX,
            Self::Subordinate { count, .. } | Self::Range { count, .. } => count - 1,
        }
    }

    /// Returns the mapping that remains without user namespaces.
    #[must_use]
    pub fn without_namespaces(self) -> Self {
        match self {
            Self::Subordinate { uid, gid, .. } => Self::Single { uid, gid },
            other => other,
        }
    }

    /// Returns the keep's id for the room in `slot`; with a range, it is unique.
    pub fn room(self, slot: u32) -> u32 {
        match self {
            Self::Single { .. } => 0,
            Self::Subordinate { count, .. } | Self::Range { count, .. } => 1 + slot % (count - 1),
        }
    }

    /// Returns the host's id of a room without namespaces in `slot`, if it differs from the
    /// caller's.
    pub fn host_room(self, slot: u32) -> Option<u32> {
        match self {
            Self::Single { .. } | Self::Subordinate { .. } => None,
            Self::Range { base, .. } => Some(base + self.room(slot)),
        }
    }

    /// Writes the id map of the keep's process; called by its parent in the host's namespaces.
    pub fn write(self, pid: i32) -> Result<()> {
        match self {
            Self::Single { uid, gid } => {
                // The kernel requires this of an unprivileged writer (user_namespaces(7),
                // "gid_map").
                write(pid, "setgroups", "deny")?;
                write(pid, "uid_map", &format!("0 {uid} 1"))?;
                write(pid, "gid_map", &format!("0 {gid} 1"))
            }
            Self::Subordinate {
                uid,
                gid,
                uids,
                gids,
                count,
            } => subordinate::write(pid, (uids, uid), (gids, gid), count).map_err(|reason| Error::Missing {
                protection: Protection::OwnUserId,
                reason,
            }),
            Self::Range { base, count } => {
                write(pid, "uid_map", &format!("0 {base} {count}"))?;
                write(pid, "gid_map", &format!("0 {base} {count}"))
            }
        }
    }
}

/// Maps [`ROOM_USER`] of a room to one id of the keep; called by the keep.
pub fn write_room(pid: i32, keep_id: u32) -> Result<()> {
    let map = format!("{ROOM_USER} {keep_id} 1");
    write(pid, "uid_map", &map)?;
    write(pid, "gid_map", &map)
}

fn write(pid: i32, file: &str, text: &str) -> Result<()> {
    let path = format!("/proc/{pid}/{file}");
    fs::write(&path, text).during_on("write the id map", &path)
}
