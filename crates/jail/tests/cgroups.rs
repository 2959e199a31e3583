//! Tests limits of cgroups in the trees of this machine: version 1, or version 2 as root or
//! delegated. No libtest harness: `clone` needs a single-threaded process.

#![expect(clippy::print_stdout, reason = "a test without a harness reports by itself")]
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cellblock_jail::cgroup::{self, Controller, GroupLimits, Trees, Version, enter};
use cellblock_jail::process::{Child, ProcessEnd, spawn};
use cellblock_testkit::wait::block_until;
use cellblock_testkit::{Capability, missing};

/// Mount points of version 2: the first on distributions that still use version 1 (a tree without
/// controllers), the second on others.
const UNIFIED: [&str; 2] = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"];

fn main() {
    let owner = (
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
    );
    let trees = Trees::prepare(&Trees::own_name(), owner);
    println!(
        "version {:?}, controllers {:?}",
        trees.version(),
        trees.controllers()
    );
    let mut passed = 0;
    let mut run = |name: &str, test: &dyn Fn()| {
        println!("test {name}");
        test();
        passed += 1;
    };
    if trees.version().is_none() {
        let lacking = if rustix::process::geteuid().is_root() {
            Capability::CgroupV1
        } else {
            Capability::CgroupV2Delegated
        };
        assert!(
            missing(lacking, module_path!()),
            "groups could be made, and were not"
        );
    } else {
        run("memory_beyond_the_limit_kills_and_is_counted", &|| memory(&trees));
        run("swap_is_not_a_way_around", &|| swap(&trees));
        run("processes_beyond_the_limit_are_refused_and_counted", &|| {
            processes(&trees);
        });
        run("cpu_time_is_throttled_and_counted", &|| cpu(&trees));
        run("rooms_give_way_to_the_keep", &|| give_way(&trees));
        run("what_is_left_is_killed_and_removed", &|| removal(owner));
        run("what_a_crash_left_is_swept_and_what_lives_is_not", &|| {
            sweep(&trees, owner);
        });
    }
    trees.remove_all();
    assert!(trees.paths().all(|path| !path.exists()));
    let unified = UNIFIED
        .iter()
        .map(Path::new)
        .find(|path| path.join("cgroup.controllers").exists());
    match unified {
        Some(unified) if rustix::process::geteuid().is_root() => {
            run("a_child_starts_inside_a_v2_group_and_is_killed_with_it", &|| {
                version_2(unified, owner);
            });
        }
        // The test above has tried this for a user with a delegated subtree.
        _ if trees.version() == Some(Version::V2) => {}
        _ => {
            let _ = missing(Capability::Root, module_path!());
        }
    }
    println!("test result: ok. {passed} passed; 0 failed");
}

fn limits() -> GroupLimits {
    GroupLimits {
        memory_bytes: Some(64 << 20),
        processes: Some(8),
        cpu_millis: Some(100),
        socket_bytes: Some(1 << 20),
    }
}

/// Runs a body inside a new group and returns how it ended, with the usage.
fn inside(
    trees: &Trees,
    name: &str,
    body: impl FnOnce(),
) -> (ProcessEnd, cgroup::Usage, cgroup::RoomCgroups) {
    let group = trees.create(name, &limits()).expect("the group is made");
    let doors = group.doors().expect("its doors open");
    let child = spawn(0, None, || {
        enter(&doors)?;
        body();
        Ok(())
    })
    .expect("a child starts");
    let ending = ProcessEnd::from_status(child.wait().expect("it ends"));
    let usage = group.usage();
    (ending, usage, group)
}

fn memory(trees: &Trees) {
    let (ending, usage, group) = inside(trees, "memory", || {
        let block = vec![1_u8; 256 << 20];
        std::hint::black_box(&block);
    });
    assert_eq!(ending, ProcessEnd::Signaled(9));
    assert_eq!(usage.memory_kills, 1, "{usage:?}");
    assert!(usage.memory_refusals > 0, "{usage:?}");
    assert!(usage.memory_peak_bytes <= 64 << 20, "{usage:?}");
    let (ending, _, small) = inside(trees, "small", || {
        let block = vec![1_u8; 16 << 20];
        std::hint::black_box(&block);
    });
    assert_eq!(ending, ProcessEnd::Exited(0));
    trees.remove(&group).expect("the group is removed");
    trees.remove(&small).expect("the group is removed");
}

fn swap(trees: &Trees) {
    let group = trees.create("swap", &limits()).expect("the group is made");
    let holds = |file: &str, text: &str| {
        let found: Vec<_> = files(trees, "swap", file);
        assert!(
            found.iter().all(|found| found.trim() == text),
            "{file}: {found:?}, not {text}"
        );
        !found.is_empty()
    };
    let v2 = trees.version() == Some(Version::V2);
    if v2 {
        holds("memory.swap.max", "0");
    } else {
        // Without swap accounting, only `memory.swappiness` remains.
        let accounted = holds("memory.memsw.limit_in_bytes", &(64 << 20).to_string());
        assert!(holds("memory.swappiness", "0") || accounted);
    }
    trees.remove(&group).expect("the group is removed");
}

fn processes(trees: &Trees) {
    let (ending, usage, group) = inside(trees, "processes", || {
        let mut started: Vec<Child> = Vec::new();
        while let Ok(child) = spawn(0, None, || {
            std::thread::sleep(Duration::from_secs(1000));
            Ok(())
        }) {
            started.push(child);
            assert!(started.len() < 100, "no limit");
        }
        let count = started.len();
        for child in started {
            child.kill();
            let _ = child.wait();
        }
        rustix::process::umask(rustix::fs::Mode::empty());
        // Eight, including the one that starts them.
        assert_eq!(count, 7);
    });
    assert_eq!(ending, ProcessEnd::Exited(0));
    assert!(usage.process_refusals >= 1, "{usage:?}");
    assert_eq!(usage.processes, 0, "{usage:?}");
    trees.remove(&group).expect("the group is removed");
}

fn cpu(trees: &Trees) {
    let group = trees.create("cpu", &limits()).expect("the group is made");
    let doors = group.doors().expect("its doors open");
    let child = spawn(0, None, || {
        enter(&doors)?;
        loop {
            std::hint::spin_loop();
        }
    })
    .expect("a child starts");
    let throttled = || {
        let stats = files(trees, "cpu", "cpu.stat");
        stats.iter().any(|text| {
            text.lines().any(|line| {
                line.strip_prefix("nr_throttled ")
                    .is_some_and(|count| count != "0")
            })
        })
    };
    let bounds = trees.controllers().contains(&Controller::Cpu);
    block_until("throttled, and its time counted", || {
        (!bounds || throttled()) && group.usage().cpu_ns > 0
    });
    child.kill();
    child.wait().expect("it ends");
    trees.remove(&group).expect("the group is removed");
}

fn removal(owner: (u32, u32)) {
    let trees = Trees::prepare(&format!("{}-removal", Trees::own_name()), owner);
    let group = trees.create("left", &limits()).expect("the group is made");
    let doors = group.doors().expect("its doors open");
    let child = sleeper(&doors);
    block_until("the group has changed", || group.usage().processes == 1);
    trees.remove_all();
    assert_eq!(
        ProcessEnd::from_status(child.wait().expect("it ends")),
        ProcessEnd::Signaled(9)
    );
    block_until("the group has changed", || {
        trees.remove_all();
        trees.paths().all(|path| !path.exists())
    });
}

fn sweep(living: &Trees, owner: (u32, u32)) {
    let crashed = Trees::prepare("cellblock-4194304-1", owner);
    crashed.create("room-0", &limits()).expect("the group is made");
    assert!(crashed.paths().all(Path::exists));
    cgroup::sweep();
    assert!(crashed.paths().all(|path| !path.exists()));
    assert!(living.paths().all(Path::exists));
}

fn version_2(unified: &Path, owner: (u32, u32)) {
    let name = format!("{}-unified", Trees::own_name());
    let trees = Trees::below(unified, &[], &name, owner).expect("a v2 group without controllers is made");
    let group = trees.create("room-0", &limits()).expect("the group is made");
    let child = spawn(0, group.v2(), || {
        loop {
            std::thread::sleep(Duration::from_secs(1000));
        }
    })
    .expect("a child starts in the group");
    let path = unified.join(&name).join("room-0");
    assert_eq!(read(&path.join("cgroup.procs")).trim(), child.pid.to_string());
    assert!(read(&path.join("cgroup.events")).contains("populated 1"));
    // A process can also join on its own, from the leaf that contains the keep.
    let doors = group.doors().expect("its doors open");
    let joined = sleeper(&doors);
    block_until("the group has changed", || {
        read(&path.join("cgroup.procs")).lines().count() == 2
    });
    block_until("the group has changed", || group.usage().cpu_ns > 0);
    trees.remove_all();
    for child in [child, joined] {
        let status = child.wait().expect("it ends");
        assert_eq!(ProcessEnd::from_status(status), ProcessEnd::Signaled(9));
    }
    block_until("the group has changed", || {
        trees.remove_all();
        !unified.join(&name).exists()
    });
}

/// Rooms have groups with a weight, or else processes with a lower priority.
#[expect(clippy::exit, reason = "a cloned child reports by its exit code")]
fn give_way(trees: &Trees) {
    let weighed = trees.controllers().contains(&Controller::Cpu);
    if weighed && trees.version() == Some(Version::V2) {
        assert_eq!(files(trees, "keep", "cpu.weight"), ["10000\n"]);
    }
    let alone = Trees::default();
    for (trees, expected) in [(trees, if weighed { 0 } else { 5 }), (&alone, 5)] {
        let child = spawn(0, None, || {
            trees.give_way(None);
            std::process::exit(rustix::process::getpriority_process(None).unwrap_or(99));
        })
        .expect("a child starts");
        let status = child.wait().expect("it ends");
        assert_eq!(ProcessEnd::from_status(status), ProcessEnd::Exited(expected));
    }
}

fn sleeper(doors: &[std::os::fd::OwnedFd]) -> Child {
    spawn(0, None, || {
        enter(doors)?;
        std::thread::sleep(Duration::from_secs(1000));
        Ok(())
    })
    .expect("a child starts")
}

/// Reads a file of a group in every tree that has it.
fn files(trees: &Trees, group: &str, file: &str) -> Vec<String> {
    let paths: Vec<PathBuf> = trees.paths().map(|path| path.join(group).join(file)).collect();
    paths
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
