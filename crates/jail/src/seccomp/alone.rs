//! What is refused on top of the tables where there are no namespaces: calls that reach what other rooms, or the user's other programs,
//! share with this one.

use std::collections::BTreeMap;

use seccompiler::{BpfProgram, SeccompAction, SeccompRule};

use super::arguments::SYS_FCHMODAT2;
use super::{Arguments, program, rules};
use crate::error::Result;

/// Refused whatever user the room runs under.
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
        "outlives its maker and is everybody's",
    ),
    (
        libc::SYS_semget,
        Arguments::Any,
        "outlives its maker and is everybody's",
    ),
    (
        libc::SYS_msgget,
        Arguments::Any,
        "outlives its maker and is everybody's",
    ),
    (
        libc::SYS_shmat,
        Arguments::Any,
        "outlives its maker and is everybody's",
    ),
    (
        libc::SYS_shmctl,
        Arguments::Any,
        "outlives its maker and is everybody's",
    ),
    (
        libc::SYS_semctl,
        Arguments::Any,
        "outlives its maker and is everybody's",
    ),
    (
        libc::SYS_semop,
        Arguments::Any,
        "outlives its maker and is everybody's",
    ),
    (
        libc::SYS_semtimedop,
        Arguments::Any,
        "outlives its maker and is everybody's",
    ),
    (
        libc::SYS_msgctl,
        Arguments::Any,
        "outlives its maker and is everybody's",
    ),
    (
        libc::SYS_msgsnd,
        Arguments::Any,
        "outlives its maker and is everybody's",
    ),
    (
        libc::SYS_msgrcv,
        Arguments::Any,
        "outlives its maker and is everybody's",
    ),
    (
        libc::SYS_clone,
        Arguments::AllBitsOf(0, libc::CLONE_PARENT as u64),
        "would make the room's first process, which no limit holds, collect it",
    ),
    (
        libc::SYS_inotify_add_watch,
        Arguments::Any,
        "Landlock does not look at it",
    ),
    (
        libc::SYS_setxattr,
        Arguments::Any,
        "Landlock does not look at it, and who may write a file may set them",
    ),
    (
        libc::SYS_lsetxattr,
        Arguments::Any,
        "Landlock does not look at it, and who may write a file may set them",
    ),
    (
        libc::SYS_fsetxattr,
        Arguments::Any,
        "Landlock does not look at it, and who may write a file may set them",
    ),
    (
        libc::SYS_removexattr,
        Arguments::Any,
        "Landlock does not look at it, and who may write a file may set them",
    ),
    (
        libc::SYS_lremovexattr,
        Arguments::Any,
        "Landlock does not look at it, and who may write a file may set them",
    ),
    (
        libc::SYS_fremovexattr,
        Arguments::Any,
        "Landlock does not look at it, and who may write a file may set them",
    ),
];

/// Refused too where the room runs under the caller's own user id: Landlock looks at none of these.
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

/// Answered with success and not done where the room runs under the caller's own user id: copying a file ends with these, and nothing but the
/// copy's mode and times is lost.
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

/// Compiles the programs; `own_user` when the room has the caller's user id rather than one of its own.
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
