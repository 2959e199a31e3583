//! Each kind of leak is made on purpose and must be found.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::*;
use crate::require;
use crate::wait::{block_until, block_until_ok};

#[test]
fn an_entry_left_in_a_directory_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let mut owner = LeakOwner::this_process().folder(folder.path());
    assert_eq!(owner.count().entries, 0);
    fs::create_dir(folder.path().join("sandbox-1")).unwrap();
    assert_eq!(owner.count().entries, 1);
}

#[test]
fn only_an_increase_is_a_leak() {
    let before = Count {
        namespaces: 13,
        descriptors: 20,
        ..Count::default()
    };
    let less = Count {
        namespaces: 12,
        ..before.clone()
    };
    assert!(less.is_within(&before));
    let more = Count {
        descriptors: 21,
        ..less
    };
    assert!(!more.is_within(&before));
}

/// Starts a process with a user and a host name namespace of its own, and waits until it has them.
fn unshared() -> std::process::Child {
    let child = Command::new("unshare")
        .args(["--user", "--map-root-user", "--uts", "cat"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let link = format!("/proc/{}/ns/uts", child.id());
    let own = fs::read_link("/proc/self/ns/uts").unwrap();
    block_until("unshare makes a namespace", || {
        fs::read_link(&link).unwrap() != own
    });
    child
}

fn end(mut child: std::process::Child) {
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn namespaces_of_an_owner_are_found_and_those_of_others_do_not_count() {
    require!(UserNamespaces);
    let stranger = Command::new("sleep").arg("1000").spawn().unwrap();
    let mut other = LeakOwner::of(stranger.id());
    let mut this = LeakOwner::this_process();
    let before = this.count().namespaces;
    let child = unshared();
    assert!(this.count().namespaces >= before + 2);
    assert_eq!(other.count().namespaces, 0);
    end(child);
    let mut stranger = stranger;
    stranger.kill().unwrap();
    stranger.wait().unwrap();
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
fn an_owner_finds_an_orphan_that_it_saw_before_its_parent_died() {
    let mut owner = LeakOwner::this_process();
    let mut parent = Command::new("sh")
        .args(["-c", "sleep 1000 & echo; wait"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0];
    std::io::Read::read_exact(parent.stdout.as_mut().unwrap(), &mut line).unwrap();
    // The shell goes on as soon as it has forked: the child has its own name only when it has
    // become its program.
    let both = block_until_ok(|| {
        let both = ancestry::below(parent.id(), &std::collections::BTreeMap::new());
        if matches!(&both[..], [child] if child.name == "sleep") {
            return Ok(both);
        }
        Err(format!("not one child that sleeps: {both:?}"))
    });
    let orphan = &both[0];
    owner.look();
    parent.kill().unwrap();
    parent.wait().unwrap();
    let seen = |owner: &mut LeakOwner| {
        let all = owner
            .until(&Count::default(), Duration::ZERO)
            .unwrap_err()
            .to_string();
        all.contains(&format!("{} {}", orphan.id, orphan.name))
    };
    assert!(seen(&mut owner));
    let id = rustix::process::Pid::from_raw(orphan.id.cast_signed()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
    block_until("it is counted no more", || !seen(&mut owner));
}

#[test]
fn an_owner_does_not_count_foreign_resources() {
    let mut other = Command::new("sleep").arg("1000").spawn().unwrap();
    let mut stranger = LeakOwner::of(other.id());
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    assert_eq!(stranger.count().processes, 0);
    assert!(LeakOwner::this_process().count().processes >= 2);
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
    let mut owner = LeakOwner::this_process();
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
    assert_eq!(LeakOwner::this_process().count().cgroups, 0);
    fs::remove_dir(folder.join("room-0")).unwrap();
    fs::remove_dir(&folder).unwrap();
    assert_eq!(owner.count().cgroups, 0);
}
