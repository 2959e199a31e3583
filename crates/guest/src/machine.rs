//! The machine's owner: a small process of the host that runs a machine's program and ends with it.
//!
//! ```text
//! host ── socket ── owner (its own user and mount namespaces for an ordinary user)
//!                     └── the program, such as `runsc`, and everything that it starts
//! ```
//!
//! When the host closes the socket or dies, the owner kills the program with all its descendants, runs
//! the commands that clean up, and removes the machine's directory and cgroups. A program executes
//! itself under the name [`NAME`] to become one, with a packet socket as standard input.
//!
//! Neither `runsc` nor QEMU ends reliably with its parent, and state directories, mounts and cgroups
//! have to go even if the host is killed.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use cellblock_jail::cgroup::{self, GroupLimits, RoomCgroups, Trees};
use cellblock_jail::error::{SyscallResult, chain};
use cellblock_jail::ids::KeepIds;
use cellblock_jail::process::{
    Child, child_signals, clear_child_signals, default_signals, execute, reap_one, report, spawn,
};
use cellblock_jail::{Error, Result, fds, mounts, tree};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Signal, set_child_subreaper, set_parent_process_death_signal};
use rustix::thread::UnshareFlags;
use serde::{Deserialize, Serialize};

/// Name (`argv[0]`) under which a host executes itself to become an owner.
pub const NAME: &str = "cellblock-machine";

/// Maximum duration of a command that cleans up.
const CLEANUP_LIMIT: Duration = Duration::from_secs(10);

/// Exit code of an owner whose program ended before the host closed the socket.
pub const PROGRAM_ENDED: i32 = 3;

/// The first packet: the machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MachineOrder {
    /// Command that runs the machine in the foreground. Its outputs are the owner's.
    pub program: Vec<String>,
    /// Commands that run after its end, with failures ignored.
    pub cleanup: Vec<Vec<String>>,
    /// Directory that is removed last, and its parent with the lock beside it once that is empty.
    pub directory: PathBuf,
    /// Whether the owner needs namespaces in which it may mount.
    pub namespaces: bool,
    /// Directories that only the program sees at another place.
    #[serde(default)]
    pub mounts: Vec<MachineMount>,
    /// Limits of all its processes together, where the host permits cgroups.
    pub limits: GroupLimits,
}

/// A directory that a program sees at another place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineMount {
    /// The directory.
    pub source: PathBuf,
    /// The directory over which it is mounted.
    pub target: PathBuf,
    /// Whether the program can write to it.
    pub writable: bool,
}

/// A later packet from the host: a command to run beside the machine's program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SideCommand(pub Vec<String>);

/// The answer: the raw wait status of that command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SideCommandEnd(pub i32);

/// Runs the owner on standard input; returns its exit code.
pub fn run() -> i32 {
    // SAFETY: standard input is open: the host passes the socket there, and nothing else in this
    // process uses it.
    let host = unsafe { OwnedFd::from_raw_fd(0) };
    let machine = match fds::receive::<MachineOrder>(&host) {
        Ok(Some((machine, _))) => machine,
        Ok(None) => return 0,
        Err(error) => return fail(&error),
    };
    let owned = own(&host, &machine);
    if !tree::end_own(&[]) {
        report("processes of a machine did not exit");
    }
    while reap_one().is_some() {}
    for command in &machine.cleanup {
        if let Ok(child) = start(command, &[], None, true) {
            wait_for(&child);
        }
    }
    let _ = std::fs::remove_dir_all(&machine.directory);
    // Of a host that has ended; the directory of one that lives is not empty.
    if let Some(parent) = machine.directory.parent()
        && std::fs::remove_dir(parent).is_ok()
    {
        let _ = std::fs::remove_file(parent.with_extension("lock"));
    }
    match owned {
        Ok(code) => code,
        Err(error) => fail(&error),
    }
}

/// Waits for a command that cleans up, and kills it if it takes too long.
fn wait_for(child: &Child) {
    let deadline = Instant::now() + CLEANUP_LIMIT;
    while Instant::now() < deadline {
        while let Some((pid, _)) = reap_one() {
            if pid == child.pid {
                return;
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill();
    let _ = child.wait();
}

fn fail(error: &Error) -> i32 {
    report(&chain(error));
    70
}

fn own(host: &OwnedFd, machine: &MachineOrder) -> Result<i32> {
    let _ = rustix::process::setsid();
    rustix::thread::set_name(c"cellblock-mach").during("name the process")?;
    set_child_subreaper(Some(rustix::process::getpid())).during("collect orphans")?;
    let trees = Trees::prepare(&Trees::own_name(), (0, 0));
    let group = trees.create("machine", &machine.limits);
    let owned = group.and_then(|group| {
        if machine.namespaces {
            enter_namespaces()?;
        }
        let owned = serve(host, machine, &group);
        tree::end_own(&[]);
        owned
    });
    trees.remove_all();
    owned
}

/// Makes the caller root of a user namespace, with mounts of its own.
fn enter_namespaces() -> Result<()> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    // SAFETY: the namespaces change nothing that safe code relies on; descriptors and memory stay
    // as they are.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNS) }
        .during("make a user namespace, in which a machine is started without root")?;
    KeepIds::Single {
        uid: uid.as_raw(),
        gid: gid.as_raw(),
    }
    .write(std::process::id().cast_signed())
}

/// Runs the program until it has ended or the host closes the socket.
fn serve(host: &OwnedFd, machine: &MachineOrder, group: &RoomCgroups) -> Result<i32> {
    let children = child_signals()?;
    let program = start(&machine.program, &machine.mounts, Some(group), false)?;
    let mut beside: Option<Child> = None;
    loop {
        let mut polled = [
            PollFd::new(host, PollFlags::IN),
            PollFd::new(&children, PollFlags::IN),
        ];
        match poll(&mut polled, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error).during("wait for the machine"),
        }
        let [asked, ended] = polled.map(|fd| !fd.revents().is_empty());
        if ended {
            clear_child_signals(&children);
            let mut over = false;
            while let Some((pid, status)) = reap_one() {
                over |= pid == program.pid;
                if beside.take_if(|child| child.pid == pid).is_some() {
                    fds::send(host, &SideCommandEnd(status), &[])?;
                }
            }
            if over && beside.is_none() {
                return Ok(PROGRAM_ENDED);
            }
        }
        if asked {
            match fds::receive::<SideCommand>(host)? {
                Some((SideCommand(command), _)) => beside = Some(start(&command, &[], None, false)?),
                None => return Ok(0),
            }
        }
    }
}

/// Mounts directories in a mount namespace of the caller's own.
fn show(mounts: &[MachineMount]) -> Result<()> {
    if mounts.is_empty() {
        return Ok(());
    }
    // SAFETY: the namespace changes nothing that safe code relies on; descriptors and memory stay
    // as they are.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }
        .during("make a mount namespace for a machine's program")?;
    mounts::make_private()?;
    for mount in mounts {
        mounts::show(&mount.source, &mount.target, mount.writable)?;
    }
    Ok(())
}

/// Starts a command that ends with this process.
fn start(
    command: &[String],
    mounts: &[MachineMount],
    group: Option<&RoomCgroups>,
    quiet: bool,
) -> Result<Child> {
    let text =
        |text: &String| CString::new(text.as_str()).map_err(|_| Error::Child("a NUL in a command".into()));
    let arguments = command.iter().map(text).collect::<Result<Vec<_>>>()?;
    let Some(program) = arguments.first() else {
        return Err(Error::Child("a command is empty".into()));
    };
    let doors = group.map(RoomCgroups::doors).transpose()?.unwrap_or_default();
    let environment = [c"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned()];
    spawn(0, None, || {
        set_parent_process_death_signal(Some(Signal::KILL)).during("tie the machine to its owner")?;
        let null = rustix::fs::open("/dev/null", OFlags::RDWR, Mode::empty()).during("open /dev/null")?;
        if quiet {
            for at in [1, 2] {
                let copy =
                    rustix::io::fcntl_dupfd_cloexec(null.as_fd(), 3).during("duplicate a descriptor")?;
                fds::place(copy, at)?;
            }
        }
        fds::place(null, 0)?;
        // In the program's own namespace: the owner removes directories in which something is mounted here.
        show(mounts)?;
        let open: Vec<_> = doors.iter().map(AsRawFd::as_raw_fd).collect();
        fds::close_all_but(&open)?;
        cgroup::enter(&doors)?;
        fds::close_all_but(&[])?;
        default_signals();
        let source = execute(program, &arguments, &environment);
        Err(Error::Path {
            action: "start",
            path: program.to_string_lossy().into_owned().into(),
            source,
        })
    })
    .during("start a machine's program")
}
