//! Conditions of the tables on a call's arguments.

/// Condition on the arguments of a call.
#[derive(Clone, Copy, Debug)]
pub enum Arguments {
    /// No condition.
    Any,
    /// The argument at an index equals one of these.
    OneOf(u8, &'static [u64]),
    /// The argument at an index has none of these bits.
    NoBitsOf(u8, u64),
    /// The argument at an index has all of these bits.
    AllBitsOf(u8, u64),
    /// The argument at an index equals none of these.
    NoneOf(u8, &'static [u64]),
    /// All conditions of one of these cases hold.
    Cases(&'static [&'static [ArgumentCondition]]),
}

/// Condition of a case.
#[derive(Clone, Copy, Debug)]
pub enum ArgumentCondition {
    /// The argument at an index equals this.
    Equal(u8, u64),
    /// The argument at an index does not equal this.
    Not(u8, u64),
    /// The argument at an index, with this mask applied, equals this.
    Masked(u8, u64, u64),
}

/// Every namespace flag that `clone` takes.
pub(super) const NAMESPACES: u64 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u64;

/// Refused requests for terminals: two that insert input into the terminal of another process, one
/// that diverts the console, and one that loads a line discipline, each of which is a driver of its own.
pub(super) const TERMINAL_REQUESTS: &[u64] =
    &[libc::TIOCSTI, libc::TIOCLINUX, libc::TIOCCONS, libc::TIOCSETD];

const REQUEST_TYPE: u64 = 0xff00;
const fn of_type(letter: u8) -> ArgumentCondition {
    ArgumentCondition::Masked(1, REQUEST_TYPE, (letter as u64) << 8)
}

// `linux/fs.h`; the libc crate lacks them.
const FIBMAP: u64 = 1;
const FS_IOC_GETFLAGS: u64 = 0x8008_6601;
const FS_IOC_FSGETXATTR: u64 = 0x801c_581f;
const FICLONE: u64 = 0x4004_9409;
const FICLONERANGE: u64 = 0x4020_940d;

/// Refused requests for files: those of file systems, except reading a file's own flags and sharing
/// its blocks with a copy. Landlock does not check them, and write access to the inode suffices for
/// most, even through a descriptor that is open for reading: a sandbox with its user's own ID could
/// change flags and versions of the image's files, or make them immutable for good. Others reveal
/// where files are on the disk (`FIEMAP`) and which disk that is (`GETFSUUID`, `GETFSSYSFSPATH`).
pub(super) const FILE_SYSTEM_REQUESTS: Arguments = Arguments::Cases(&[
    &[ArgumentCondition::Equal(1, FIBMAP)],
    // All file systems, ext4, and encryption and verity of files.
    &[of_type(b'f'), ArgumentCondition::Not(1, FS_IOC_GETFLAGS)],
    // All file systems, and XFS.
    &[of_type(b'X'), ArgumentCondition::Not(1, FS_IOC_FSGETXATTR)],
    &[of_type(b'v')],
    &[of_type(0x15)],
    // btrfs, f2fs and bcachefs.
    &[
        of_type(0x94),
        ArgumentCondition::Not(1, FICLONE),
        ArgumentCondition::Not(1, FICLONERANGE),
    ],
    &[of_type(0xf5)],
    &[of_type(0xbc)],
]);

/// Refused advice about memory: pages that Linux merges with equal ones of other processes reveal
/// by their timing what those have.
pub(super) const MERGING: &[u64] = &[libc::MADV_MERGEABLE as u64];

/// Flag of `preadv2` that reveals whether a file is in memory, and so what others have read.
pub(super) const ONLY_CACHED: Arguments = Arguments::AllBitsOf(5, libc::RWF_NOWAIT as u64);

/// Flag of urgent data, which programs hardly use and whose code for Unix sockets has had holes.
pub(super) const URGENT: u64 = libc::MSG_OOB as u64;

/// Bits of a file type that character and block devices, directories and sockets have, and FIFOs
/// and regular files lack.
pub(super) const DEVICE_BITS: u64 = (libc::S_IFCHR | libc::S_IFDIR) as u64;

pub(super) const UNIX_ONLY: Arguments = Arguments::OneOf(0, &[libc::AF_UNIX as u64]);
pub(super) const NOT_UNIX: Arguments = Arguments::NoneOf(0, &[libc::AF_UNIX as u64]);

/// Bits of `socket`'s type that are flags, and those that are not.
const TYPE: u64 = (!(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK)).cast_unsigned() as u64;
const V4: ArgumentCondition = ArgumentCondition::Equal(0, libc::AF_INET as u64);
const V6: ArgumentCondition = ArgumentCondition::Equal(0, libc::AF_INET6 as u64);
const STREAM: ArgumentCondition = ArgumentCondition::Masked(1, TYPE, libc::SOCK_STREAM as u64);
const DATAGRAM: ArgumentCondition = ArgumentCondition::Masked(1, TYPE, libc::SOCK_DGRAM as u64);
const BY_TYPE: ArgumentCondition = ArgumentCondition::Equal(2, 0);
const TCP: ArgumentCondition = ArgumentCondition::Equal(2, libc::IPPROTO_TCP as u64);
const UDP: ArgumentCondition = ArgumentCondition::Equal(2, libc::IPPROTO_UDP as u64);

/// Sockets of a room with a loopback: Unix, TCP and UDP. Protocols are named because others, such as
/// multipath TCP, SCTP and pings, have the same families and types.
pub(super) const UNIX_TCP_UDP: Arguments = Arguments::Cases(&[
    &[ArgumentCondition::Equal(0, libc::AF_UNIX as u64)],
    &[V4, STREAM, BY_TYPE],
    &[V4, STREAM, TCP],
    &[V4, DATAGRAM, BY_TYPE],
    &[V4, DATAGRAM, UDP],
    &[V6, STREAM, BY_TYPE],
    &[V6, STREAM, TCP],
    &[V6, DATAGRAM, BY_TYPE],
    &[V6, DATAGRAM, UDP],
]);

/// Permitted commands of `fcntl`, the frequent ones first. Leases and delegations (`F_SETLEASE`,
/// `F_SETDELEG`) are missing because they make other processes wait that open the file, and
/// `F_NOTIFY` because it reveals what others open. The image's files are shared with others.
pub(super) const FCNTL: &[u64] = &[
    libc::F_GETFL as u64,
    libc::F_SETFL as u64,
    libc::F_GETFD as u64,
    libc::F_SETFD as u64,
    libc::F_DUPFD_CLOEXEC as u64,
    libc::F_DUPFD as u64,
    libc::F_SETLK as u64,
    libc::F_SETLKW as u64,
    libc::F_GETLK as u64,
    libc::F_OFD_SETLK as u64,
    libc::F_OFD_SETLKW as u64,
    libc::F_OFD_GETLK as u64,
    libc::F_SETPIPE_SZ as u64,
    libc::F_GETPIPE_SZ as u64,
    libc::F_ADD_SEALS as u64,
    libc::F_GET_SEALS as u64,
    libc::F_SETOWN as u64,
    libc::F_GETOWN as u64,
    F_SETSIG,
    F_GETSIG,
    F_SETOWN_EX,
    F_GETOWN_EX,
    F_DUPFD_QUERY,
    F_GET_RW_HINT,
    F_SET_RW_HINT,
    F_GET_FILE_RW_HINT,
    F_SET_FILE_RW_HINT,
];

// `asm-generic/fcntl.h` and `linux/fcntl.h`; the libc crate lacks them for some machines.
const F_SETSIG: u64 = 10;
const F_GETSIG: u64 = 11;
const F_SETOWN_EX: u64 = 15;
const F_GETOWN_EX: u64 = 16;
const F_DUPFD_QUERY: u64 = 1027;
const F_GET_RW_HINT: u64 = 1035;
const F_SET_RW_HINT: u64 = 1036;
const F_GET_FILE_RW_HINT: u64 = 1037;
const F_SET_FILE_RW_HINT: u64 = 1038;

const fn option(level: i32, option: i32) -> [ArgumentCondition; 2] {
    [
        ArgumentCondition::Equal(1, level.cast_unsigned() as u64),
        ArgumentCondition::Equal(2, option.cast_unsigned() as u64),
    ]
}

const SOCKET_LEVEL: ArgumentCondition = ArgumentCondition::Equal(1, libc::SOL_SOCKET as u64);
const fn no(option: i32) -> ArgumentCondition {
    ArgumentCondition::Not(2, option.cast_unsigned() as u64)
}

/// Permitted socket options. Of the general ones, those are missing that attach a program: each uses
/// memory for compiled filters that the whole machine shares; when it is exhausted, no process can
/// install a filter, and no sandbox starts. `SO_ZEROCOPY` is missing because it pins memory that
/// Linux counts per user. Of TCP, IP and IPv6, common servers and clients use these; others change
/// the protocol of a connection (`TCP_ULP`), encapsulate, or need rights that no sandbox has.
pub(super) const SOCKET_OPTIONS: Arguments = Arguments::Cases(&[
    &[
        SOCKET_LEVEL,
        no(libc::SO_ATTACH_FILTER),
        no(libc::SO_ATTACH_BPF),
        no(libc::SO_ATTACH_REUSEPORT_CBPF),
        no(libc::SO_ATTACH_REUSEPORT_EBPF),
        no(libc::SO_ZEROCOPY),
    ],
    &option(libc::IPPROTO_TCP, libc::TCP_NODELAY),
    &option(libc::IPPROTO_TCP, libc::TCP_MAXSEG),
    &option(libc::IPPROTO_TCP, libc::TCP_CORK),
    &option(libc::IPPROTO_TCP, libc::TCP_KEEPIDLE),
    &option(libc::IPPROTO_TCP, libc::TCP_KEEPINTVL),
    &option(libc::IPPROTO_TCP, libc::TCP_KEEPCNT),
    &option(libc::IPPROTO_TCP, libc::TCP_SYNCNT),
    &option(libc::IPPROTO_TCP, libc::TCP_LINGER2),
    &option(libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT),
    &option(libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP),
    &option(libc::IPPROTO_TCP, libc::TCP_QUICKACK),
    &option(libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT),
    &option(libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT),
    &option(libc::IPPROTO_IP, libc::IP_TOS),
    &option(libc::IPPROTO_IP, libc::IP_TTL),
    &option(libc::IPPROTO_IP, libc::IP_PKTINFO),
    &option(libc::IPPROTO_IP, libc::IP_MTU_DISCOVER),
    &option(libc::IPPROTO_IP, libc::IP_RECVERR),
    &option(libc::IPPROTO_IP, libc::IP_RECVTOS),
    &option(libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT),
    &option(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY),
    &option(libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS),
    &option(libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER),
    &option(libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
    &option(libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
    &option(libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS),
    &option(libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
]);

// `linux/prctl.h` and `asm-generic/unistd.h`, which all machines follow for calls as new as this.
// The libc crate has them only for some.
const PR_GET_SPECULATION_CTRL: u64 = 52;
pub(super) const SYS_FCHMODAT2: i64 = 452;

/// Permitted operations of `prctl`: names, signals, own limits; none that changes memory maps or
/// gains privileges.
pub(super) const PRCTL: &[u64] = &[
    libc::PR_SET_NAME as u64,
    libc::PR_GET_NAME as u64,
    libc::PR_SET_PDEATHSIG as u64,
    libc::PR_GET_PDEATHSIG as u64,
    libc::PR_GET_DUMPABLE as u64,
    libc::PR_SET_DUMPABLE as u64,
    libc::PR_GET_SECCOMP as u64,
    libc::PR_GET_NO_NEW_PRIVS as u64,
    libc::PR_SET_NO_NEW_PRIVS as u64,
    libc::PR_CAPBSET_READ as u64,
    libc::PR_GET_KEEPCAPS as u64,
    libc::PR_GET_SECUREBITS as u64,
    libc::PR_GET_TIMERSLACK as u64,
    libc::PR_SET_TIMERSLACK as u64,
    libc::PR_GET_THP_DISABLE as u64,
    libc::PR_SET_THP_DISABLE as u64,
    libc::PR_SET_CHILD_SUBREAPER as u64,
    libc::PR_GET_CHILD_SUBREAPER as u64,
    PR_GET_SPECULATION_CTRL,
    libc::PR_SET_VMA as u64,
];
