//! Starting children by `clone3`, and ending them.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::error::{Result, SyscallResult, chain};
use crate::walled;

/// A child made by [`spawn`].
#[derive(Debug)]
pub struct Child {
    /// Its pid, in the caller's pid namespace.
    pub pid: i32,
    /// Handle that stays valid when the pid is reused. Only a [walled](crate::walled) machine has
    /// none; there, a pid is used while its parent has not reaped it.
    pub pidfd: Option<OwnedFd>,
}

/// End of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessEnd {
    /// It exited with this code.
    Exited(i32),
    /// This signal killed it.
    Signaled(i32),
    /// The process ended, but its status is unknown.
    Unknown,
}

impl ProcessEnd {
    /// Reads a raw wait status.
    pub fn from_status(status: i32) -> Self {
        if libc::WIFEXITED(status) {
            Self::Exited(libc::WEXITSTATUS(status))
        } else if libc::WIFSIGNALED(status) {
            Self::Signaled(libc::WTERMSIG(status))
        } else {
            Self::Unknown
        }
    }
}

/// Namespaces that are new for a child. The cgroup namespace is missing: its root is the group in
/// which the process creates it, so this comes after the process has joined its group.
pub const NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS;

/// `linux/sched.h`; the libc crate's constant is too narrow for it.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Clones the calling process and runs `body` in the child, which ends when `body` returns: 0 for
/// `Ok`, 70 for `Err`.
///
/// With `cgroup` (a directory of a cgroup v2 tree) the child starts inside that cgroup.
pub fn spawn(
    namespaces: i32,
    cgroup: Option<BorrowedFd<'_>>,
    body: impl FnOnce() -> Result<()>,
) -> io::Result<Child> {
    let mut pidfd: i32 = -1;
    let mut flags = u64::from(namespaces.cast_unsigned());
    if !walled::is_declared() {
        flags |= libc::CLONE_PIDFD as u64;
    }
    if cgroup.is_some() {
        flags |= CLONE_INTO_CGROUP;
    }
    let arguments = libc::clone_args {
        flags,
        pidfd: (&raw mut pidfd) as u64,
        child_tid: 0,
        parent_tid: 0,
        exit_signal: libc::SIGCHLD as u64,
        stack: 0,
        stack_size: 0,
        tls: 0,
        set_tid: 0,
        set_tid_size: 0,
        cgroup: cgroup.map_or(0, |fd| fd.as_raw_fd().cast_unsigned().into()),
    };
    // SAFETY: without CLONE_VM the child works on a copy of this address space, as after fork.
    // `arguments` outlives the call. That the copy is consistent is guaranteed by the launcher
    // roles, which never start a second thread.
    let mut pid = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            &raw const arguments,
            size_of::<libc::clone_args>(),
        )
    };
    // A room's filter blocks clone3 because its flags are in memory, where a filter cannot look.
    // clone does the same, except for cgroups.
    if pid == -1 && cgroup.is_none() && io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS) {
        let flags = flags | libc::SIGCHLD as u64;
        // SAFETY: as above; with a null stack the child continues on its copy of this one, and the
        // pidfd is stored in one of our locals.
        pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0_usize, &raw mut pidfd, 0_usize, 0_usize) };
    }
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            unblock_signals();
            let code = match body() {
                Ok(()) => 0,
                Err(error) => {
                    report(&chain(&error));
                    70
                }
            };
            // SAFETY: _exit runs none of the parent's destructors and atexit handlers, which is why
            // it is used here.
            unsafe { libc::_exit(code) }
        }
        pid => {
            // SAFETY: on success with CLONE_PIDFD the kernel stored a new descriptor there that has no
            // other owner; without it, the number is still negative.
            let pidfd = (pidfd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(pidfd) });
            Ok(Child {
                pid: i32::try_from(pid).expect("a pid fits an i32"),
                pidfd,
            })
        }
    }
}

/// Writes one line to standard error, which the host reads as the launcher's log.
pub fn report(line: &str) {
    let _ = rustix::io::write(rustix::stdio::stderr(), format!("{line}\n").as_bytes());
}

impl Child {
    /// Kills the child, and with it the whole pid namespace if the child is its first process.
    pub fn kill(&self) {
        let signal = rustix::process::Signal::KILL;
        if let Some(pidfd) = &self.pidfd {
            let _ = rustix::process::pidfd_send_signal(pidfd, signal);
        } else if let Some(pid) = rustix::process::Pid::from_raw(self.pid) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    /// Waits until the child has ended and returns its raw wait status.
    pub fn wait(&self) -> Result<i32> {
        let mut status = 0;
        loop {
            // SAFETY: waitpid writes one int, into one of our locals.
            let result = unsafe { libc::waitpid(self.pid, &raw mut status, 0) };
            if result >= 0 {
                return Ok(status);
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error).during("wait for a child");
            }
        }
    }
}

/// Replaces the process image; returns only on failure.
pub fn execute(program: &CStr, arguments: &[CString], environment: &[CString]) -> io::Error {
    let pointers = |list: &[CString]| -> Vec<*const libc::c_char> {
        list.iter()
            .map(|text| text.as_ptr())
            .chain([std::ptr::null()])
            .collect()
    };
    let (arguments, environment) = (pointers(arguments), pointers(environment));
    // SAFETY: both arrays are NULL-terminated and point to strings that live until the call returns
    // or the image is gone.
    unsafe { libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error()
}

/// Resets every signal of the calling process to its default action before it runs another program:
/// Rust's runtime ignores `SIGPIPE`, and ignored signals stay ignored.
pub fn default_signals() {
    for number in 1..=64 {
        // SAFETY: the default action is not a function, and numbers that cannot be set return an
        // error.
        unsafe { libc::signal(number, libc::SIG_DFL) };
    }
}

fn unblock_signals() {
    // SAFETY: the set is initialized by sigemptyset before the kernel reads it.
    unsafe {
        let mut none = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Turns `SIGCHLD` of the calling process into a non-blocking descriptor that becomes readable when
/// a child has ended.
pub fn child_signals() -> Result<OwnedFd> {
    // SAFETY: the set is initialized by sigemptyset before use, and lives through both calls; the
    // descriptor is new and has no other owner.
    unsafe {
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd < 0 {
            return Err(io::Error::last_os_error()).during("watch for children");
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Reaps one child that has ended. Returns its pid and raw wait status.
pub fn reap_one() -> Option<(i32, i32)> {
    let mut status = 0;
    // SAFETY: waitpid writes one int, into one of our locals.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    (pid > 0).then_some((pid, status))
}

/// Clears pending notifications of [`child_signals`]; call this, then [`reap_one`] until it returns
/// `None`.
pub fn clear_child_signals(signals: &OwnedFd) {
    let mut notices = [0_u8; 128 * 8];
    let _ = rustix::io::read(signals, &mut notices);
}
