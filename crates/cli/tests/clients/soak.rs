//! Remains of many requests, and the cost of clients that read nothing.

use std::io::Read as _;
use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use cellblock_testkit::{Count, LeakOwner, require};

use crate::process::{folder, passes, python};
use crate::world::World;

/// Maximum time for something that happens in the background.
const PATIENCE: Duration = Duration::from_mins(1);
/// Clients that read nothing.
const DEAF: usize = 8;
/// Maximum memory that they may cost together. What the model says to them is 40 MiB each.
const MOST: u64 = 128 << 20;

/// Runs `soak.py` with so many requests one after the other, and so many at once.
fn soak(world: &World, consecutive: u32, concurrent: u32) {
    let mut command = Command::new(python("python"));
    command
        .args([
            "soak.py".to_owned(),
            consecutive.to_string(),
            concurrent.to_string(),
        ])
        .envs(world.environment())
        .env("PYTHONDONTWRITEBYTECODE", "1");
    passes(&mut command, &folder("python")).unwrap();
}

#[test]
fn a_hundred_runs_one_after_the_other_and_fifty_at_once_leave_no_sandbox() {
    require!(NodeClients);
    require!(PythonClients);
    let world = World::start("").unwrap();
    // The pool is full, and everything that is made once is made.
    soak(&world, 2, 2);
    let mut owner = LeakOwner::of(world.id());
    let before = settled(&mut owner);
    soak(&world, 100, 50);
    let after = settled(&mut owner);
    // A connection to the model or a client may be kept; one for each run would be 150.
    assert!(
        after.descriptors < before.descriptors + 20,
        "{before:?}, then {after:?}"
    );
    let descriptors = before.descriptors;
    assert_eq!(Count { descriptors, ..after }, before);
    world.stop().unwrap();
    // The launcher ends when it sees that the gateway has.
    owner.until(&Count::default(), PATIENCE).unwrap();
}

/// The count once it stays the same: containers end in the background, and the pool fills up.
fn settled(owner: &mut LeakOwner) -> Count {
    let deadline = Instant::now() + PATIENCE;
    let mut last = (owner.count(), Instant::now());
    while last.1.elapsed() < Duration::from_secs(2) {
        assert!(Instant::now() < deadline, "it does not settle");
        thread::sleep(Duration::from_millis(100));
        let now = owner.count();
        if now != last.0 {
            last = (now, Instant::now());
        }
    }
    last.0
}

#[test]
fn clients_that_read_nothing_use_little_memory_and_block_no_other() {
    require!(NodeClients);
    let world = World::start("").unwrap();
    answered(&world);
    let before = memory(world.id());
    let deaf: Vec<TcpStream> = (0..DEAF)
        .map(|_| world.stream("mock-chat", "Flood.").unwrap())
        .collect();
    for _ in 0..20 {
        answered(&world);
    }
    until_still(world.id());
    let grown = memory(world.id()).saturating_sub(before);
    assert!(
        grown < MOST,
        "{DEAF} clients that read nothing hold {grown} bytes"
    );
    answered(&world);
    drop(deaf);
    world.stop().unwrap();
}

/// Somebody else asks, and is answered.
fn answered(world: &World) {
    let mut answer = String::new();
    let mut connection = world.stream("mock-chat", "Say hello.").unwrap();
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    connection.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("event: response.completed\n"), "{answer}");
}

/// Resident memory of a process, in bytes.
fn memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    kib << 10
}

/// Waits until a process does nothing any more: it has taken all that it takes.
fn until_still(process: u32) {
    let used = || {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        // utime and stime, in ticks.
        let ticks = fields
            .split(' ')
            .skip(11)
            .take(2)
            .map(|ticks| ticks.parse::<u64>().unwrap());
        ticks.sum::<u64>()
    };
    let deadline = Instant::now() + PATIENCE;
    let mut last = used();
    loop {
        thread::sleep(Duration::from_secs(1));
        let now = used();
        if now - last <= 1 {
            return;
        }
        assert!(Instant::now() < deadline, "it goes on working");
        last = now;
    }
}
