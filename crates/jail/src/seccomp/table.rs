//! The tables: every system call that user code may make, and its users.

use super::arguments::{
    Arguments, DEVICE_BITS, FCNTL, FILE_SYSTEM_REQUESTS, MERGING, NAMESPACES, ONLY_CACHED, PRCTL,
    SOCKET_OPTIONS, SYS_FCHMODAT2, TERMINAL_REQUESTS, UNIX_ONLY, UNIX_TCP_UDP, URGENT,
};

/// One allowed call.
#[derive(Clone, Copy, Debug)]
pub struct SyscallRule {
    /// Number on this machine.
    pub number: i64,
    /// Condition on its arguments.
    pub arguments: Arguments,
    /// Programs that need the call.
    pub used_by: &'static str,
}

const fn allow(number: i64, used_by: &'static str) -> SyscallRule {
    SyscallRule {
        number,
        arguments: Arguments::Any,
        used_by,
    }
}

const fn only(number: i64, arguments: Arguments, used_by: &'static str) -> SyscallRule {
    SyscallRule {
        number,
        arguments,
        used_by,
    }
}

/// Replaces an entry of [`ALLOWED`] in rooms with a loopback.
pub const WITH_LOOPBACK: SyscallRule = only(
    libc::SYS_socket,
    UNIX_TCP_UDP,
    "http.server, asyncio's servers, Dask, Streamlit, multiprocessing's managers",
);

/// Calls that work.
pub const ALLOWED: &[SyscallRule] = &[
    // Files and directories.
    allow(libc::SYS_read, "Python's I/O, numpy.fromfile, pyarrow"),
    allow(libc::SYS_write, "Python's I/O, numpy.fromfile, pyarrow"),
    allow(libc::SYS_readv, "Python's I/O, numpy.fromfile, pyarrow"),
    allow(libc::SYS_writev, "Python's I/O, numpy.fromfile, pyarrow"),
    allow(libc::SYS_pread64, "Python's I/O, numpy.fromfile, pyarrow"),
    allow(libc::SYS_pwrite64, "Python's I/O, numpy.fromfile, pyarrow"),
    allow(libc::SYS_preadv, "Python's I/O, numpy.fromfile, pyarrow"),
    allow(libc::SYS_pwritev, "Python's I/O, numpy.fromfile, pyarrow"),
    allow(libc::SYS_preadv2, "Python's I/O, numpy.fromfile, pyarrow"),
    allow(libc::SYS_pwritev2, "Python's I/O, numpy.fromfile, pyarrow"),
    allow(libc::SYS_openat, "opening files; subprocess closes ranges"),
    allow(libc::SYS_openat2, "opening files; subprocess closes ranges"),
    allow(libc::SYS_close, "opening files; subprocess closes ranges"),
    allow(libc::SYS_close_range, "opening files; subprocess closes ranges"),
    allow(libc::SYS_lseek, "opening files; subprocess closes ranges"),
    allow(libc::SYS_fstat, "os.stat, shutil.disk_usage, os.access"),
    allow(libc::SYS_newfstatat, "os.stat, shutil.disk_usage, os.access"),
    allow(libc::SYS_statx, "os.stat, shutil.disk_usage, os.access"),
    allow(libc::SYS_statfs, "os.stat, shutil.disk_usage, os.access"),
    allow(libc::SYS_fstatfs, "os.stat, shutil.disk_usage, os.access"),
    allow(libc::SYS_faccessat, "os.stat, shutil.disk_usage, os.access"),
    allow(libc::SYS_faccessat2, "os.stat, shutil.disk_usage, os.access"),
    allow(libc::SYS_getdents64, "os.scandir, os.getcwd, contextlib.chdir"),
    allow(libc::SYS_getcwd, "os.scandir, os.getcwd, contextlib.chdir"),
    allow(libc::SYS_chdir, "os.scandir, os.getcwd, contextlib.chdir"),
    allow(libc::SYS_fchdir, "os.scandir, os.getcwd, contextlib.chdir"),
    allow(libc::SYS_mkdirat, "os and pathlib"),
    only(
        libc::SYS_mknodat,
        Arguments::NoBitsOf(2, DEVICE_BITS),
        "os.mkfifo; no devices",
    ),
    allow(libc::SYS_unlinkat, "os and pathlib"),
    allow(libc::SYS_renameat, "os and pathlib"),
    allow(libc::SYS_renameat2, "os and pathlib"),
    allow(libc::SYS_linkat, "os and pathlib"),
    allow(libc::SYS_symlinkat, "os and pathlib"),
    allow(libc::SYS_readlinkat, "os and pathlib"),
    allow(libc::SYS_fchmod, "shutil.copy2, tarfile, zipfile"),
    allow(libc::SYS_fchmodat, "shutil.copy2, tarfile, zipfile"),
    allow(SYS_FCHMODAT2, "shutil.copy2, tarfile, zipfile"),
    allow(libc::SYS_fchown, "shutil.copy2, tarfile, zipfile"),
    allow(libc::SYS_fchownat, "shutil.copy2, tarfile, zipfile"),
    allow(libc::SYS_utimensat, "shutil.copy2, tarfile, zipfile"),
    allow(libc::SYS_umask, "shutil.copy2, tarfile, zipfile"),
    allow(libc::SYS_truncate, "file objects, sqlite3, pyarrow"),
    allow(libc::SYS_ftruncate, "file objects, sqlite3, pyarrow"),
    allow(libc::SYS_fallocate, "file objects, sqlite3, pyarrow"),
    allow(libc::SYS_fsync, "file objects, sqlite3, pyarrow"),
    allow(libc::SYS_fdatasync, "file objects, sqlite3, pyarrow"),
    allow(libc::SYS_sync_file_range, "file objects, sqlite3, pyarrow"),
    allow(libc::SYS_syncfs, "file objects, sqlite3, pyarrow"),
    allow(libc::SYS_getxattr, "shutil.copystat"),
    allow(libc::SYS_lgetxattr, "shutil.copystat"),
    allow(libc::SYS_fgetxattr, "shutil.copystat"),
    allow(libc::SYS_listxattr, "shutil.copystat"),
    allow(libc::SYS_llistxattr, "shutil.copystat"),
    allow(libc::SYS_flistxattr, "shutil.copystat"),
    allow(libc::SYS_setxattr, "shutil.copystat"),
    allow(libc::SYS_lsetxattr, "shutil.copystat"),
    allow(libc::SYS_fsetxattr, "shutil.copystat"),
    allow(libc::SYS_removexattr, "shutil.copystat"),
    allow(libc::SYS_lremovexattr, "shutil.copystat"),
    allow(libc::SYS_fremovexattr, "shutil.copystat"),
    allow(libc::SYS_flock, "locks, descriptors, isatty"),
    only(
        libc::SYS_fcntl,
        Arguments::OneOf(1, FCNTL),
        "locks, descriptors, isatty",
    ),
    allow(libc::SYS_dup, "locks, descriptors, isatty"),
    allow(libc::SYS_dup3, "locks, descriptors, isatty"),
    only(
        libc::SYS_ioctl,
        Arguments::NoneOf(1, TERMINAL_REQUESTS),
        "locks, descriptors, isatty",
    ),
    allow(libc::SYS_sendfile, "shutil's fast copies"),
    allow(libc::SYS_splice, "shutil's fast copies"),
    allow(libc::SYS_tee, "shutil's fast copies"),
    allow(libc::SYS_copy_file_range, "shutil's fast copies"),
    allow(libc::SYS_fadvise64, "shutil's fast copies"),
    allow(libc::SYS_readahead, "shutil's fast copies"),
    allow(
        libc::SYS_memfd_create,
        "pyarrow, multiprocessing.shared_memory users",
    ),
    // Memory.
    allow(libc::SYS_mmap, "allocators, numpy.memmap, JIT compilers"),
    allow(libc::SYS_munmap, "allocators, numpy.memmap, JIT compilers"),
    allow(libc::SYS_mremap, "allocators, numpy.memmap, JIT compilers"),
    allow(libc::SYS_mprotect, "allocators, numpy.memmap, JIT compilers"),
    only(
        libc::SYS_madvise,
        Arguments::NoneOf(2, MERGING),
        "allocators, numpy.memmap, JIT compilers",
    ),
    allow(libc::SYS_brk, "allocators, numpy.memmap, JIT compilers"),
    allow(libc::SYS_msync, "allocators, numpy.memmap, JIT compilers"),
    allow(libc::SYS_mlock, "allocators, numpy.memmap, JIT compilers"),
    allow(libc::SYS_munlock, "allocators, numpy.memmap, JIT compilers"),
    allow(libc::SYS_mlock2, "allocators, numpy.memmap, JIT compilers"),
    allow(libc::SYS_membarrier, "allocators, numpy.memmap, JIT compilers"),
    allow(libc::SYS_pkey_alloc, "V8 inside vl-convert"),
    allow(libc::SYS_pkey_free, "V8 inside vl-convert"),
    allow(libc::SYS_pkey_mprotect, "V8 inside vl-convert"),
    allow(
        libc::SYS_get_mempolicy,
        "numpy and polars allocators ask for NUMA",
    ),
    allow(libc::SYS_mbind, "numpy and polars allocators ask for NUMA"),
    allow(
        libc::SYS_set_mempolicy,
        "numpy and polars allocators ask for NUMA",
    ),
    // Processes and threads.
    only(
        libc::SYS_clone,
        Arguments::NoBitsOf(0, NAMESPACES),
        "subprocess, multiprocessing, threading",
    ),
    allow(libc::SYS_execve, "subprocess, multiprocessing, threading"),
    allow(libc::SYS_execveat, "subprocess, multiprocessing, threading"),
    allow(libc::SYS_exit, "subprocess, multiprocessing, threading"),
    allow(libc::SYS_exit_group, "subprocess, multiprocessing, threading"),
    allow(libc::SYS_wait4, "subprocess, multiprocessing, threading"),
    allow(libc::SYS_waitid, "subprocess, multiprocessing, threading"),
    allow(libc::SYS_set_tid_address, "the C library's threads"),
    allow(libc::SYS_set_robust_list, "the C library's threads"),
    allow(libc::SYS_get_robust_list, "the C library's threads"),
    allow(libc::SYS_rseq, "the C library's threads"),
    allow(libc::SYS_futex, "the C library's threads"),
    allow(libc::SYS_futex_waitv, "the C library's threads"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_arch_prctl, "the C library's threads"),
    allow(libc::SYS_getpid, "subprocess with a session or group"),
    allow(libc::SYS_getppid, "subprocess with a session or group"),
    allow(libc::SYS_gettid, "subprocess with a session or group"),
    allow(libc::SYS_getpgid, "subprocess with a session or group"),
    allow(libc::SYS_setpgid, "subprocess with a session or group"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_getpgrp, "subprocess with a session or group"),
    allow(libc::SYS_getsid, "subprocess with a session or group"),
    allow(libc::SYS_setsid, "subprocess with a session or group"),
    allow(
        libc::SYS_kill,
        "signals to own processes; the pid namespace bounds them",
    ),
    allow(
        libc::SYS_tkill,
        "signals to own processes; the pid namespace bounds them",
    ),
    allow(
        libc::SYS_tgkill,
        "signals to own processes; the pid namespace bounds them",
    ),
    allow(
        libc::SYS_pidfd_open,
        "signals to own processes; the pid namespace bounds them",
    ),
    allow(
        libc::SYS_pidfd_send_signal,
        "signals to own processes; the pid namespace bounds them",
    ),
    allow(
        libc::SYS_rt_sigqueueinfo,
        "signals to own processes; the pid namespace bounds them",
    ),
    allow(
        libc::SYS_rt_tgsigqueueinfo,
        "signals to own processes; the pid namespace bounds them",
    ),
    allow(libc::SYS_rt_sigaction, "signal handling"),
    allow(libc::SYS_rt_sigprocmask, "signal handling"),
    allow(libc::SYS_rt_sigreturn, "signal handling"),
    allow(libc::SYS_rt_sigpending, "signal handling"),
    allow(libc::SYS_rt_sigsuspend, "signal handling"),
    allow(libc::SYS_rt_sigtimedwait, "signal handling"),
    allow(libc::SYS_sigaltstack, "signal handling"),
    allow(libc::SYS_restart_syscall, "signal handling"),
    allow(libc::SYS_signalfd4, "signal handling"),
    allow(libc::SYS_sched_yield, "thread pools of BLAS, polars and V8"),
    allow(libc::SYS_sched_getaffinity, "thread pools of BLAS, polars and V8"),
    allow(libc::SYS_sched_setaffinity, "thread pools of BLAS, polars and V8"),
    allow(libc::SYS_sched_getparam, "thread pools of BLAS, polars and V8"),
    allow(
        libc::SYS_sched_getscheduler,
        "thread pools of BLAS, polars and V8",
    ),
    allow(
        libc::SYS_sched_get_priority_min,
        "thread pools of BLAS, polars and V8",
    ),
    allow(
        libc::SYS_sched_get_priority_max,
        "thread pools of BLAS, polars and V8",
    ),
    allow(
        libc::SYS_sched_setscheduler,
        "thread pools of BLAS, polars and V8",
    ),
    allow(libc::SYS_sched_setparam, "thread pools of BLAS, polars and V8"),
    allow(libc::SYS_sched_getattr, "thread pools of BLAS, polars and V8"),
    allow(
        libc::SYS_sched_rr_get_interval,
        "thread pools of BLAS, polars and V8",
    ),
    allow(libc::SYS_getcpu, "thread pools of BLAS, polars and V8"),
    allow(libc::SYS_getpriority, "thread pools of BLAS, polars and V8"),
    allow(libc::SYS_setpriority, "thread pools of BLAS, polars and V8"),
    allow(libc::SYS_ioprio_get, "thread pools of BLAS, polars and V8"),
    allow(libc::SYS_ioprio_set, "thread pools of BLAS, polars and V8"),
    allow(libc::SYS_getrlimit, "the resource module"),
    allow(libc::SYS_setrlimit, "the resource module"),
    allow(libc::SYS_prlimit64, "the resource module"),
    allow(libc::SYS_getrusage, "the resource module"),
    allow(libc::SYS_times, "the resource module"),
    only(
        libc::SYS_prctl,
        Arguments::OneOf(0, PRCTL),
        "thread names, allocator labels, psutil-like reads",
    ),
    allow(
        libc::SYS_capget,
        "thread names, allocator labels, psutil-like reads",
    ),
    allow(
        libc::SYS_landlock_create_ruleset,
        "programs that confine themselves further",
    ),
    allow(
        libc::SYS_landlock_add_rule,
        "programs that confine themselves further",
    ),
    allow(
        libc::SYS_landlock_restrict_self,
        "programs that confine themselves further",
    ),
    // Ids.
    allow(libc::SYS_getuid, "os.getuid and friends"),
    allow(libc::SYS_geteuid, "os.getuid and friends"),
    allow(libc::SYS_getgid, "os.getuid and friends"),
    allow(libc::SYS_getegid, "os.getuid and friends"),
    allow(libc::SYS_getresuid, "os.getuid and friends"),
    allow(libc::SYS_getresgid, "os.getuid and friends"),
    allow(libc::SYS_getgroups, "os.getuid and friends"),
    allow(
        libc::SYS_setuid,
        "subprocess(user=...), which fails without privilege, as it should",
    ),
    allow(
        libc::SYS_setgid,
        "subprocess(user=...), which fails without privilege, as it should",
    ),
    allow(
        libc::SYS_setreuid,
        "subprocess(user=...), which fails without privilege, as it should",
    ),
    allow(
        libc::SYS_setregid,
        "subprocess(user=...), which fails without privilege, as it should",
    ),
    allow(
        libc::SYS_setresuid,
        "subprocess(user=...), which fails without privilege, as it should",
    ),
    allow(
        libc::SYS_setresgid,
        "subprocess(user=...), which fails without privilege, as it should",
    ),
    allow(
        libc::SYS_setgroups,
        "subprocess(user=...), which fails without privilege, as it should",
    ),
    allow(
        libc::SYS_setfsuid,
        "subprocess(user=...), which fails without privilege, as it should",
    ),
    allow(
        libc::SYS_setfsgid,
        "subprocess(user=...), which fails without privilege, as it should",
    ),
    // Time.
    allow(libc::SYS_clock_gettime, "time, asyncio, signal.setitimer"),
    allow(libc::SYS_clock_getres, "time, asyncio, signal.setitimer"),
    allow(libc::SYS_clock_nanosleep, "time, asyncio, signal.setitimer"),
    allow(libc::SYS_nanosleep, "time, asyncio, signal.setitimer"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_gettimeofday, "time, asyncio, signal.setitimer"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_time, "time, asyncio, signal.setitimer"),
    allow(libc::SYS_timer_create, "time, asyncio, signal.setitimer"),
    allow(libc::SYS_timer_settime, "time, asyncio, signal.setitimer"),
    allow(libc::SYS_timer_gettime, "time, asyncio, signal.setitimer"),
    allow(libc::SYS_timer_getoverrun, "time, asyncio, signal.setitimer"),
    allow(libc::SYS_timer_delete, "time, asyncio, signal.setitimer"),
    allow(libc::SYS_timerfd_create, "time, asyncio, signal.setitimer"),
    allow(libc::SYS_timerfd_settime, "time, asyncio, signal.setitimer"),
    allow(libc::SYS_timerfd_gettime, "time, asyncio, signal.setitimer"),
    allow(libc::SYS_getitimer, "time, asyncio, signal.setitimer"),
    allow(libc::SYS_setitimer, "time, asyncio, signal.setitimer"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_alarm, "time, asyncio, signal.setitimer"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_pause, "signal.pause"),
    // Waiting.
    allow(libc::SYS_ppoll, "select, selectors, asyncio, subprocess"),
    allow(libc::SYS_pselect6, "select, selectors, asyncio, subprocess"),
    allow(libc::SYS_epoll_create1, "select, selectors, asyncio, subprocess"),
    allow(libc::SYS_epoll_ctl, "select, selectors, asyncio, subprocess"),
    allow(libc::SYS_epoll_pwait, "select, selectors, asyncio, subprocess"),
    allow(libc::SYS_epoll_pwait2, "select, selectors, asyncio, subprocess"),
    allow(libc::SYS_eventfd2, "select, selectors, asyncio, subprocess"),
    allow(libc::SYS_pipe2, "select, selectors, asyncio, subprocess"),
    // Local sockets.
    only(
        libc::SYS_socket,
        UNIX_ONLY,
        "asyncio's self-pipe and multiprocessing; no other family",
    ),
    only(
        libc::SYS_socketpair,
        UNIX_ONLY,
        "asyncio's self-pipe and multiprocessing; no other family",
    ),
    allow(libc::SYS_bind, "Unix sockets between own processes"),
    allow(libc::SYS_connect, "Unix sockets between own processes"),
    allow(libc::SYS_listen, "Unix sockets between own processes"),
    allow(libc::SYS_accept, "Unix sockets between own processes"),
    allow(libc::SYS_accept4, "Unix sockets between own processes"),
    allow(libc::SYS_getsockname, "Unix sockets between own processes"),
    allow(libc::SYS_getpeername, "Unix sockets between own processes"),
    allow(libc::SYS_shutdown, "Unix sockets between own processes"),
    only(
        libc::SYS_sendto,
        Arguments::NoBitsOf(3, URGENT),
        "Unix sockets between own processes",
    ),
    allow(libc::SYS_recvfrom, "Unix sockets between own processes"),
    only(
        libc::SYS_sendmsg,
        Arguments::NoBitsOf(2, URGENT),
        "Unix sockets between own processes",
    ),
    allow(libc::SYS_recvmsg, "Unix sockets between own processes"),
    only(
        libc::SYS_sendmmsg,
        Arguments::NoBitsOf(3, URGENT),
        "Unix sockets between own processes",
    ),
    allow(libc::SYS_recvmmsg, "Unix sockets between own processes"),
    allow(libc::SYS_getsockopt, "Unix sockets between own processes"),
    only(
        libc::SYS_setsockopt,
        SOCKET_OPTIONS,
        "sockets between own processes",
    ),
    // System V IPC. POSIX message queues are in a file system that no Landlock rule can name, so
    // they would fail wherever Landlock is active.
    allow(
        libc::SYS_shmget,
        "own IPC namespace; test suites and old libraries",
    ),
    allow(
        libc::SYS_shmat,
        "own IPC namespace; test suites and old libraries",
    ),
    allow(
        libc::SYS_shmdt,
        "own IPC namespace; test suites and old libraries",
    ),
    allow(
        libc::SYS_shmctl,
        "own IPC namespace; test suites and old libraries",
    ),
    allow(
        libc::SYS_semget,
        "own IPC namespace; test suites and old libraries",
    ),
    allow(
        libc::SYS_semop,
        "own IPC namespace; test suites and old libraries",
    ),
    allow(
        libc::SYS_semtimedop,
        "own IPC namespace; test suites and old libraries",
    ),
    allow(
        libc::SYS_semctl,
        "own IPC namespace; test suites and old libraries",
    ),
    allow(
        libc::SYS_msgget,
        "own IPC namespace; test suites and old libraries",
    ),
    allow(
        libc::SYS_msgsnd,
        "own IPC namespace; test suites and old libraries",
    ),
    allow(
        libc::SYS_msgrcv,
        "own IPC namespace; test suites and old libraries",
    ),
    allow(
        libc::SYS_msgctl,
        "own IPC namespace; test suites and old libraries",
    ),
    // The machine.
    allow(libc::SYS_uname, "platform, os.urandom, allocators"),
    allow(libc::SYS_sysinfo, "platform, os.urandom, allocators"),
    allow(libc::SYS_getrandom, "platform, os.urandom, allocators"),
    // Older calls that x86-64 still has.
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_open, "older C code and static binaries"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_stat, "older C code and static binaries"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_lstat, "older C code and static binaries"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_access, "older C code and static binaries"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_pipe, "older C code and static binaries"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_dup2, "older C code and static binaries"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_select, "older C code and static binaries"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_poll, "older C code and static binaries"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_epoll_create, "older C code and static binaries"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_epoll_wait, "older C code and static binaries"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_eventfd, "older C code and static binaries"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_signalfd, "older C code and static binaries"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_mkdir, "older C code and static binaries"),
    #[cfg(target_arch = "x86_64")]
    only(
        libc::SYS_mknod,
        Arguments::NoBitsOf(1, DEVICE_BITS),
        "os.mkfifo; no devices",
    ),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_rmdir, "older C code and static binaries"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_unlink, "older C code and static binaries"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_rename, "older C code and static binaries"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_link, "older C code and static binaries"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_symlink, "older C code and static binaries"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_readlink, "older C code and static binaries"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_chmod, "older C code and static binaries"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_chown, "older C code and static binaries"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_lchown, "older C code and static binaries"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_utime, "older C code and static binaries"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_utimes, "older C code and static binaries"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_futimesat, "older C code and static binaries"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_getdents, "older C code and static binaries"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_creat, "older C code and static binaries"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_fork, "older C code and static binaries"),
    #[cfg(target_arch = "x86_64")]
    allow(libc::SYS_vfork, "older C code and static binaries"),
];

/// Calls that return `ENOSYS`, and the library's replacement.
pub const REPLACED: &[(i64, &str)] = &[
    // Its flags are in memory, where a filter cannot look.
    (libc::SYS_clone3, "glibc falls back to clone"),
    (libc::SYS_io_uring_setup, "runtimes fall back to epoll"),
    (libc::SYS_io_uring_enter, "runtimes fall back to epoll"),
    (libc::SYS_io_uring_register, "runtimes fall back to epoll"),
    (libc::SYS_userfaultfd, "collectors fall back to signals"),
    // Like `cachestat`, it reveals which parts of shared files are in memory.
    (libc::SYS_mincore, "libunwind falls back to msync"),
    // The image and the system's programs are the host's own inodes: watching them reveals what the
    // host and other sandboxes open and run.
    (libc::SYS_inotify_init1, "file watchers fall back to polling"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_inotify_init, "file watchers fall back to polling"),
];

/// Requests that return `ENOSYS` as well, of calls that otherwise work.
pub const REPLACED_REQUESTS: &[(i64, Arguments, &str)] = &[
    (
        libc::SYS_ioctl,
        FILE_SYSTEM_REQUESTS,
        "programs treat them as missing in most file systems",
    ),
    (
        libc::SYS_preadv2,
        ONLY_CACHED,
        "the C library reports it as unsupported, and runtimes read in a thread",
    ),
];
