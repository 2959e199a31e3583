//! Each kind of leak is made on purpose and must be found.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use super::*;
use crate::require;

fn no_difference() -> Difference {
    let empty = Vec::new;
    Difference {
        processes: empty(),
        mounts: empty(),
        namespaces: empty(),
        cgroups: empty(),
        folders: empty(),
        descriptors: empty(),
    }
}

#[test]
fn a_descendant_that_still_runs_is_found_and_is_gone_once_reaped() {
    let scope = Scope::this_process();
    let before = Snapshot::take(&scope);
    let mut child = Command::new("sh")
        .args(["-c", "sleep 1000 & wait"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let id = child.id();
    let left = before.difference(&Snapshot::take(&scope));
    assert!(
        left.processes
            .iter()
            .any(|process| process.starts_with(&format!("{id} "))),
        "{left}"
    );

    Command::new("pkill")
        .args(["--parent", &id.to_string()])
        .status()
        .unwrap();
    child.wait().unwrap();
    let left = before.difference(&Snapshot::take(&scope));
    assert!(
        !left
            .processes
            .iter()
            .any(|process| process.starts_with(&format!("{id} "))),
        "{left}"
    );
}

#[test]
fn a_process_named_after_us_is_found_though_no_descendant() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("cellblock-test");
    fs::copy("/bin/sleep", &program).unwrap();
    let mut child = Command::new(&program).arg("1000").spawn().unwrap();
    let found = find::processes(None);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        found.iter().any(|process| process.contains("cellblock-test")),
        "{found:?}"
    );
}

#[test]
fn an_entry_left_in_a_directory_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let scope = Scope::default().folder(folder.path());
    let before = Snapshot::take(&scope);
    fs::create_dir(folder.path().join("sandbox-1")).unwrap();
    let left = before.difference(&Snapshot::take(&scope)).folders;
    assert_eq!(left, [folder.path().join("sandbox-1").display().to_string()]);
}

#[test]
fn a_namespace_of_another_process_is_found() {
    require!(UserNamespaces);
    let before = find::namespaces();
    let mut child = Command::new("unshare")
        .args(["--user", "--map-root-user", "--uts", "cat"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let link = format!("/proc/{}/ns/uts", child.id());
    let own = fs::read_link("/proc/self/ns/uts").unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while fs::read_link(&link).unwrap() == own {
        assert!(Instant::now() < deadline, "unshare made no namespace");
        thread::sleep(Duration::from_millis(5));
    }
    let made = fs::read_link(&link).unwrap().display().to_string();
    let after = find::namespaces();
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(
        !before.contains(&made) && after.contains(&made),
        "{made} in {after:?}"
    );
}

#[test]
fn a_cgroup_named_after_us_is_found() {
    require!(Root);
    require!(CgroupV1);
    let folder = Path::new("/sys/fs/cgroup/pids").join(format!("cellblock-leak-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let found = find::our_cgroups();
    fs::remove_dir(&folder).unwrap();
    assert!(found.contains(&folder.display().to_string()), "{found:?}");
    assert!(!find::our_cgroups().contains(&folder.display().to_string()));
}

#[test]
fn descriptors_are_counted_by_kind_and_only_a_gain_is_a_leak() {
    let count = |counts: &[(&str, usize)]| {
        let descriptors = counts
            .iter()
            .map(|(kind, count)| ((*kind).to_owned(), *count))
            .collect();
        let none = BTreeSet::new;
        Snapshot {
            processes: none(),
            mounts: none(),
            namespaces: none(),
            cgroups: none(),
            folders: none(),
            descriptors,
        }
    };
    let left = count(&[("socket", 2), ("pipe", 4)]).difference(&count(&[("socket", 3), ("pipe", 1)]));
    assert_eq!(
        left,
        Difference {
            descriptors: vec!["socket (2 before, 3 after)".to_owned()],
            ..no_difference()
        }
    );
}

#[test]
fn an_open_file_is_among_the_descriptors_of_this_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("open");
    let _open = File::create(&path).unwrap();
    assert_eq!(
        find::descriptors(std::process::id()).get(&path.display().to_string()),
        Some(&1)
    );
}

#[test]
fn a_report_names_the_kind_of_every_leak() {
    let left = Difference {
        mounts: vec!["7 tmpfs at /x".to_owned()],
        ..no_difference()
    };
    assert_eq!(left.to_string(), "mount left: 7 tmpfs at /x\n");
    assert_eq!(no_difference().to_string(), "nothing is left");
}

#[test]
fn an_owner_finds_an_orphan_that_it_saw_before_its_parent_died() {
    let mut owner = Owner::this_process();
    let mut parent = Command::new("sh")
        .args(["-c", "sleep 1000 & echo; wait"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0];
    std::io::Read::read_exact(parent.stdout.as_mut().unwrap(), &mut line).unwrap();
    // The shell goes on as soon as it has forked: the child has its own name only when it has become its program.
    let deadline = Instant::now() + Duration::from_secs(10);
    let both = loop {
        let both = ancestry::below(parent.id(), &std::collections::BTreeMap::new());
        if matches!(&both[..], [child] if child.name == "sleep") {
            break both;
        }
        assert!(Instant::now() < deadline, "not one child that sleeps: {both:?}");
        thread::sleep(Duration::from_millis(1));
    };
    let orphan = &both[0];
    owner.look();
    parent.kill().unwrap();
    parent.wait().unwrap();
    let seen = |owner: &mut Owner| {
        let all = owner
            .until(&Count::default(), Duration::ZERO)
            .unwrap_err()
            .to_string();
        all.contains(&format!("{} {}", orphan.id, orphan.name))
    };
    assert!(seen(&mut owner));
    let id = rustix::process::Pid::from_raw(orphan.id.cast_signed()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while seen(&mut owner) {
        assert!(Instant::now() < deadline, "it is still counted");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn an_owner_does_not_count_what_others_have() {
    let mut other = Command::new("sleep").arg("1000").spawn().unwrap();
    let mut stranger = Owner::of(other.id());
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    assert_eq!(stranger.count().processes, 0);
    assert!(Owner::this_process().count().processes >= 2);
    for process in [&mut other, &mut child] {
        process.kill().unwrap();
        process.wait().unwrap();
    }
}

#[test]
fn an_owner_counts_the_cgroups_of_a_launcher_below_it_by_name() {
    require!(Root);
    require!(CgroupV1);
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    let mut owner = Owner::this_process();
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let started = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .nth(19)
        .unwrap();
    let folder = Path::new("/sys/fs/cgroup/pids").join(format!("cellblock-{}-{started}", child.id()));
    fs::create_dir_all(folder.join("room-0")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(owner.count().cgroups, 2);
    assert_eq!(Owner::this_process().count().cgroups, 0);
    fs::remove_dir(folder.join("room-0")).unwrap();
    fs::remove_dir(&folder).unwrap();
    assert_eq!(owner.count().cgroups, 0);
}
