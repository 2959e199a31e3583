//! The network inside a room: none, or its own loopback, on which the host may offer a proxy.

use std::fmt;
use std::os::fd::{AsRawFd, OwnedFd};
use std::str::FromStr;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use serde::{Deserialize, Serialize};

use crate::error::{Result, SyscallResult};

/// The network that code in a room can use. A greater one allows more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkPolicy {
    /// No socket family except Unix.
    #[default]
    None,
    /// TCP and UDP on the room's own loopback device, which nothing outside the room shares.
    Loopback,
    /// The same, and a proxy of the host that listens on that device.
    Egress,
}

impl NetworkPolicy {
    /// Every policy, the narrowest first.
    pub const ALL: [Self; 3] = [Self::None, Self::Loopback, Self::Egress];

    /// Returns the policy's name in reports and configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Loopback => "loopback",
            Self::Egress => "egress",
        }
    }

    /// Returns whether code has no network.
    pub const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

impl fmt::Display for NetworkPolicy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for NetworkPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|policy| policy.name() == text);
        known
            .ok_or_else(|| format!("`{text}` is not a network policy; choose `none`, `loopback` or `egress`"))
    }
}

/// Starts the loopback device of the calling process's network namespace, which must belong to its
/// user namespace. Linux gives it the addresses `127.0.0.1` and, if the machine has IPv6, `::1`.
pub fn start_loopback() -> Result<()> {
    let socket: OwnedFd = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .during("open a socket to the loopback device")?;
    // SAFETY: the structure consists of integers and bytes, for all of which zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_flags = UP;
    // SAFETY: the descriptor is open, and the request is a whole `ifreq` that outlives the call, as
    // this ioctl requires.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if result < 0 {
        return Err(std::io::Error::last_os_error()).during("start the loopback device");
    }
    Ok(())
}

/// `IFF_UP`, as wide as the field.
const UP: libc::c_short = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_go_by_their_names_and_are_ordered() {
        for policy in NetworkPolicy::ALL {
            assert_eq!(policy.name().parse(), Ok(policy));
            assert_eq!(serde_json::to_value(policy).unwrap(), policy.name());
        }
        assert!(NetworkPolicy::ALL.is_sorted());
        assert_eq!(NetworkPolicy::default(), NetworkPolicy::None);
        assert_eq!(
            "internet".parse::<NetworkPolicy>().unwrap_err(),
            "`internet` is not a network policy; choose `none`, `loopback` or `egress`"
        );
    }
}
