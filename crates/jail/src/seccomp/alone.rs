//! Calls that are blocked in addition to the tables when there are no namespaces: they reach
//! resources that are shared with other rooms or with the user's other programs.

use std::collections::BTreeMap;

use seccompiler::{BpfProgram, SeccompAction, SeccompRule};

use super::arguments::SYS_FCHMODAT2;
use super::{Arguments, program, rules};
use crate::error::Result;

/// Blocked for every user that a room can run as.
const SHARED: &[(i64, Arguments, &str)] = &[
    (
        libc::SYS_socket,
        Arguments::Any,
        "would reach the machine's Unix sockets",
    ),
    (
        libc::SYS_connect,
        Arguments::Any,
        "would reach the machine's Unix sockets",
    ),
    // Stream and packet pairs are connected for good; a datagram pair can send to any path.
    (
        libc::SYS_socketpair,
        Arguments::OneOf(1, DATAGRAM_PAIRS),
        "could be pointed at the machine's Unix sockets",
    ),
    (
        libc::SYS_shmget,
        Arguments::Any,
        "outlives its creator and is visible to every process",
    ),
    (
        libc::SYS_semget,
        Arguments::Any,
        "outlives its creator and is visible to every process",
    ),
    (
        libc::SYS_msgget,
        Arguments::Any,
        "outlives its creator and is visible to every process",
    ),
    (
        libc::SYS_shmat,
        Arguments::Any,
        "outlives its creator and is visible to every process",
    ),
    (
        libc::SYS_shmctl,
        Arguments::Any,
        "outlives its creator and is visible to every process",
    ),
    (
        libc::SYS_semctl,
        Arguments::Any,
        "outlives its creator and is visible to every process",
    ),
    (
        libc::SYS_semop,
        Arguments::Any,
        "outlives its creator and is visible to every process",
    ),
    (
        libc::SYS_semtimedop,
        Arguments::Any,
        "outlives its creator and is visible to every process",
    ),
    (
        libc::SYS_msgctl,
        Arguments::Any,
        "outlives its creator and is visible to every process",
    ),
    (
        libc::SYS_msgsnd,
        Arguments::Any,
        "outlives its creator and is visible to every process",
    ),
    (
        libc::SYS_msgrcv,
        Arguments::Any,
        "outlives its creator and is visible to every process",
    ),
    (
        libc::SYS_clone,
        Arguments::AllBitsOf(0, libc::CLONE_PARENT as u64),
        "would move the work to the room's first process, which has no limits",
    ),
    (
        libc::SYS_inotify_add_watch,
        Arguments::Any,
        "Landlock does not check it",
    ),
    (
        libc::SYS_setxattr,
        Arguments::Any,
        "Landlock does not check it, and write access to the file suffices",
    ),
    (
        libc::SYS_lsetxattr,
        Arguments::Any,
        "Landlock does not check it, and write access to the file suffices",
    ),
    (
        libc::SYS_fsetxattr,
        Arguments::Any,
        "Landlock does not check it, and write access to the file suffices",
    ),
    (
        libc::SYS_removexattr,
        Arguments::Any,
        "Landlock does not check it, and write access to the file suffices",
    ),
    (
        libc::SYS_lremovexattr,
        Arguments::Any,
        "Landlock does not check it, and write access to the file suffices",
    ),
    (
        libc::SYS_fremovexattr,
        Arguments::Any,
        "Landlock does not check it, and write access to the file suffices",
    ),
];

/// Also blocked if the room runs under the caller's own user id: Landlock checks none of these.
const OWN_USER: &[(i64, Arguments, &str)] = &[
    (libc::SYS_fchown, Arguments::Any, "would change the user's files"),
    (
        libc::SYS_fchownat,
        Arguments::Any,
        "would change the user's files",
    ),
    (libc::SYS_prlimit64, OTHERS, "would limit the user's processes"),
    (
        libc::SYS_sched_setaffinity,
        OTHERS,
        "would slow the user's processes",
    ),
    (
        libc::SYS_sched_setscheduler,
        OTHERS,
        "would slow the user's processes",
    ),
    (
        libc::SYS_sched_setparam,
        OTHERS,
        "would slow the user's processes",
    ),
    (
        libc::SYS_setpriority,
        Arguments::NoneOf(1, &[0]),
        "would slow the user's processes",
    ),
    (
        libc::SYS_ioprio_set,
        Arguments::NoneOf(1, &[0]),
        "would slow the user's processes",
    ),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chown, Arguments::Any, "would change the user's files"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_lchown, Arguments::Any, "would change the user's files"),
];

/// Skipped but reported as successful if the room runs under the caller's own user id: programs end
/// a file copy with these calls, and only the copy's mode and times are lost.
const PRETENDED: &[i64] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    SYS_FCHMODAT2,
    libc::SYS_utimensat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
];

const OTHERS: Arguments = Arguments::NoneOf(0, &[0]);

const CLOEXEC: u64 = libc::SOCK_CLOEXEC as u64;
const NONBLOCK: u64 = libc::SOCK_NONBLOCK as u64;
const DATAGRAM: u64 = libc::SOCK_DGRAM as u64;
const RAW: u64 = libc::SOCK_RAW as u64;
/// A raw Unix socket is a datagram socket (`unix(7)`).
const DATAGRAM_PAIRS: &[u64] = &[
    DATAGRAM,
    DATAGRAM | CLOEXEC,
    DATAGRAM | NONBLOCK,
    DATAGRAM | CLOEXEC | NONBLOCK,
    RAW,
    RAW | CLOEXEC,
    RAW | NONBLOCK,
    RAW | CLOEXEC | NONBLOCK,
];

/// Compiles the programs; `own_user` if the room has the caller's user id rather than its own.
pub(super) fn compile(own_user: bool) -> Result<Vec<BpfProgram>> {
    let eperm = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    let entries = SHARED.iter().chain(if own_user { OWN_USER } else { &[] });
    for (number, arguments, _) in entries {
        refused.insert(*number, rules(*arguments)?);
    }
    let mut programs = vec![program(refused, SeccompAction::Allow, eperm)?];
    if own_user {
        let pretended = PRETENDED.iter().map(|number| (*number, Vec::new())).collect();
        programs.push(program(pretended, SeccompAction::Allow, SeccompAction::Errno(0))?);
    }
    Ok(programs)
}
