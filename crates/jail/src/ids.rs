//! User and group id maps of namespaces.

use std::fs;

use serde::{Deserialize, Serialize};

use crate::error::{During, Result};

/// The user id under which user code runs inside every room.
pub const ROOM_USER: u32 = 1000;

/// How the ids of the keep map to the host's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "map")]
pub enum KeepIds {
    /// An ordinary user: its one id is 0 in the keep.
    Single {
        /// The host's user id.
        uid: u32,
        /// The host's group id.
        gid: u32,
    },
    /// Root: a range of unprivileged host ids, one for the keep and one for each room.
    Range {
        /// First host id.
        base: u32,
        /// How many.
        count: u32,
    },
}

impl KeepIds {
    /// The host's ids of the keep's root.
    pub fn root(self) -> (u32, u32) {
        match self {
            Self::Single { uid, gid } => (uid, gid),
            Self::Range { base, .. } => (base, base),
        }
    }

    /// The keep's id for the room in `slot`: with a range, one that no other room has.
    pub fn room(self, slot: u32) -> u32 {
        match self {
            Self::Single { .. } => 0,
            Self::Range { count, .. } => 1 + slot % (count - 1),
        }
    }

    /// The host's id of the room in `slot`, where it is not the caller's own.
    pub fn host_room(self, slot: u32) -> Option<u32> {
        match self {
            Self::Single { .. } => None,
            Self::Range { base, .. } => Some(base + self.room(slot)),
        }
    }

    /// Writes the map of the keep's process; called by its parent in the host's namespace.
    pub fn write(self, pid: i32) -> Result<()> {
        match self {
            Self::Single { uid, gid } => {
                // The kernel demands this of an unprivileged writer (user_namespaces(7), "gid_map").
                write(pid, "setgroups", "deny")?;
                write(pid, "uid_map", &format!("0 {uid} 1"))?;
                write(pid, "gid_map", &format!("0 {gid} 1"))
            }
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
