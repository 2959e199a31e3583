//! Creates a keep and a room and checks the inside. No libtest harness: `clone` needs a
//! single-threaded process.

#![expect(clippy::print_stdout, reason = "a test without a harness reports by itself")]

use std::fs;
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::SocketAddr;

use cellblock_jail::cgroup::{GroupLimits, Trees};
use cellblock_jail::confine::ProcessLimits;
use cellblock_jail::ids::KeepIds;
use cellblock_jail::keep::{self, KeepPlan};
use cellblock_jail::mounts::{DiskLimits, KeepTree};
use cellblock_jail::network::NetworkPolicy;
use cellblock_jail::protection::{Demands, Report};
use cellblock_jail::room::{RoomLimits, Rooms};
use cellblock_jail::seccomp::Filters;
use cellblock_jail::{Result, fds, process};

type RoomFinding = (String, bool);

fn main() {
    let uid = rustix::process::geteuid().as_raw();
    let gid = rustix::process::getegid().as_raw();
    let ids = if uid == 0 {
        KeepIds::Range {
            base: 0x7000_0000,
            count: 65_536,
        }
    } else {
        KeepIds::Single { uid, gid }
    };
    let trees = Trees::prepare(&Trees::own_name(), ids.root());
    let filters = Filters::compile().expect("the filters compile");
    let demands = Demands::default();
    let plan = KeepPlan {
        ids,
        tree: KeepTree {
            root: None,
            binds: Vec::new(),
            files: vec![
                ("/opt/cellblock/hello".into(), b"hello".to_vec()),
                // Visible through the mounts, but named by no Landlock rule.
                ("/aside/file".into(), b"aside".to_vec()),
            ],
        },
    };
    let (ours, theirs) = fds::packet_pair().expect("a socket pair");
    let mut open: Vec<_> = trees.descriptors().collect();
    open.push(std::os::fd::AsRawFd::as_raw_fd(&theirs));
    let keep = keep::start(&plan, &trees, &open, || {
        keep::name_host(&demands, &mut Report::default())?;
        let rooms = Rooms {
            ids,
            trees: &trees,
            filters: &filters,
            demands: &demands,
            is_image: false,
        };
        let started = std::time::Instant::now();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&theirs);
        let room = rooms.create("room-0", 0, &limits(), &[fd], |inside| {
            look_around(theirs.as_fd(), &inside.data)?;
            behind_landlock(theirs.as_fd(), inside.rules.as_ref())
        })?;
        process::report(&format!("room made in {:?}", started.elapsed()));
        process::report(&format!("room ended with status {:#x}", room.init.wait()?));
        rooms.remove_groups(&room)
    })
    .expect("the keep starts");
    drop(theirs);
    let mut findings: Vec<RoomFinding> = Vec::new();
    while let Ok(Some((finding, _))) = fds::receive::<RoomFinding>(&ours) {
        findings.push(finding);
    }
    assert_eq!(keep.wait().expect("the keep is waited for"), 0);
    trees.remove_all();
    let failed: Vec<_> = findings.iter().filter(|(_, holds)| !holds).collect();
    for (claim, holds) in &findings {
        println!("{} {claim}", if *holds { "ok  " } else { "FAIL" });
    }
    assert!(failed.is_empty(), "{failed:?}");
    assert!(
        findings.len() >= 15,
        "only {} claims were checked",
        findings.len()
    );
    println!("test result: ok. {} passed; 0 failed", findings.len());
}

fn limits() -> RoomLimits {
    RoomLimits {
        group: GroupLimits {
            memory_bytes: Some(256 << 20),
            processes: Some(64),
            cpu_millis: None,
            socket_bytes: None,
        },
        disk: DiskLimits {
            bytes: 16 << 20,
            inodes: 100,
            shm_bytes: 1 << 20,
            data_bytes: 1 << 20,
        },
        process: ProcessLimits {
            open_files: 256,
            file_bytes: 64 << 20,
            data: None,
            address_space: None,
            processes: None,
        },
        network: NetworkPolicy::None,
    }
}

/// Runs as the first process of the room.
fn look_around(out: std::os::fd::BorrowedFd<'_>, data: &std::os::fd::OwnedFd) -> Result<()> {
    let claim = |claim: &str, holds: bool| fds::send(out, &(claim.to_owned(), holds), &[]);
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    claim("is the first process", std::process::id() == 1)?;
    claim(
        "is user 1000",
        field("Uid:").split_whitespace().all(|id| id == "1000"),
    )?;
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        claim(
            &format!("{set} is empty"),
            field(set).trim_start_matches('0').is_empty(),
        )?;
    }
    claim("cannot gain privilege", field("NoNewPrivs:") == "1")?;
    claim("is filtered", field("Seccomp:") == "2")?;
    let place = |path: &str| fs::metadata(path).ok().map(|it| (it.dev(), it.ino()));
    let names: Vec<_> = fs::read_dir("/home")
        .into_iter()
        .flatten()
        .flatten()
        .map(|it| it.file_name())
        .collect();
    claim(
        "sees no home but its own, which is the workspace",
        names.iter().all(|name| name == "user")
            && place("/home/user").is_some()
            && place("/home/user") == place("/workspace")
            && fs::read_dir("/root").is_err(),
    )?;
    claim(
        "sees the keep's files",
        fs::read("/opt/cellblock/hello").is_ok_and(|text| text == b"hello"),
    )?;
    claim("cannot write the root", fs::write("/x", "").is_err())?;
    claim("cannot write /usr", fs::write("/usr/lib/x", "").is_err())?;
    claim("writes its workspace", fs::write("/workspace/x", "1").is_ok())?;
    claim("writes /tmp", fs::write("/tmp/x", "1").is_ok())?;
    claim(
        "cannot write inputs by their path",
        fs::write("/tmp/data/x", "1").is_err(),
    )?;
    let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
    claim(
        "writes inputs by its handle",
        rustix::fs::openat(data, "x", flags, rustix::fs::Mode::RUSR).is_ok(),
    )?;
    claim("reads inputs by their path", fs::read("/tmp/data/x").is_ok())?;
    claim(
        "is bounded on disk",
        fs::write("/workspace/big", vec![0; 32 << 20]).is_err(),
    )?;
    claim(
        "cannot open a network socket",
        std::net::UdpSocket::bind("127.0.0.1:0").is_err(),
    )?;
    let node = |name: &str, kind| {
        rustix::fs::mknodat(
            rustix::fs::CWD,
            name,
            kind,
            rustix::fs::Mode::RUSR,
            rustix::fs::makedev(1, 3),
        )
    };
    claim(
        "makes a FIFO",
        node("/tmp/fifo", rustix::fs::FileType::Fifo).is_ok(),
    )?;
    for kind in [
        rustix::fs::FileType::CharacterDevice,
        rustix::fs::FileType::BlockDevice,
    ] {
        claim(
            &format!("cannot make a {kind:?}"),
            node("/tmp/device", kind) == Err(rustix::io::Errno::PERM),
        )?;
    }
    claim("sees one process", processes() == 1)?;
    claim(
        "cannot read the kernel's keys",
        fs::read_to_string("/proc/keys").unwrap_or_default().is_empty(),
    )?;
    claim("cannot mount", rustix::mount::mount_bind("/usr", "/tmp").is_err())?;
    claim(
        "has a name of its own",
        rustix::system::uname().nodename().to_bytes() == b"cellblock",
    )
}

/// Checks what the room's rules add to its mounts and namespaces; a child joins them, as kernels
/// and commands do.
fn behind_landlock(out: std::os::fd::BorrowedFd<'_>, rules: Option<&std::os::fd::OwnedFd>) -> Result<()> {
    let claim = |claim: &str, holds: bool| fds::send(out, &(claim.to_owned(), holds), &[]);
    let Some(rules) = rules else {
        return Ok(());
    };
    claim("sees what only Landlock bars", fs::read("/aside/file").is_ok())?;
    let listener = SocketAddr::from_abstract_name(b"guest")
        .and_then(|name| std::os::unix::net::UnixListener::bind_addr(&name))
        .ok();
    let child = process::spawn(0, None, || {
        cellblock_jail::landlock::join(rules.as_fd())?;
        let refused = |error: std::io::Error| error.kind() == std::io::ErrorKind::PermissionDenied;
        claim(
            "is barred by Landlock from what the mounts show",
            fs::read("/aside/file").is_err_and(refused),
        )?;
        claim(
            "still reads what the rules name",
            fs::read("/opt/cellblock/hello").is_ok(),
        )?;
        claim("still writes what is its own", fs::write("/tmp/y", "1").is_ok())?;
        if cellblock_jail::landlock::abi() < 6 {
            return Ok(());
        }
        let reached = SocketAddr::from_abstract_name(b"guest")
            .and_then(|name| std::os::unix::net::UnixStream::connect_addr(&name));
        claim(
            "cannot reach an abstract socket outside its rules",
            listener.is_some() && reached.is_err_and(refused),
        )?;
        let signalled = rustix::process::test_kill_process(rustix::process::Pid::INIT);
        claim(
            "cannot signal a process outside its rules",
            signalled == Err(rustix::io::Errno::PERM),
        )
    });
    match child {
        Ok(child) => child.wait().map(drop),
        Err(_) => claim("starts a child", false),
    }
}

fn processes() -> usize {
    let numeric = |name: std::ffi::OsString| name.to_str().is_some_and(|name| name.parse::<u32>().is_ok());
    fs::read_dir("/proc").map_or(0, |dir| {
        dir.flatten().filter(|entry| numeric(entry.file_name())).count()
    })
}
