//! Nothing is left after a sandbox's end, nor after its host was killed.

use std::fs;
use std::time::Duration;

use cellblock_sandbox::Limits;
use cellblock_sandbox::pool::create;
use cellblock_testkit::wait::{block_until, until};
use cellblock_testkit::{Cli, LeakOwner, require};
use cellblock_walls::gvisor;
use rustix::process::Signal;

use crate::support::{block_on, config, execute, image_in, shows};

#[test]
fn a_closed_sandbox_and_a_dropped_backend_leave_nothing() {
    require!(Runsc);
    block_on(async {
        let home = tempfile::tempdir().unwrap();
        let backend = gvisor::start(config(image_in(home.path()).await)).await.unwrap();
        // The first connection's machine is for the first sandbox.
        let mut lease = create(&backend, &Limits::default()).await.unwrap();
        assert_eq!(execute(&mut lease.kernel, "6 * 7").await, shows(42));
        let machines = || {
            let places = fs::read_dir(home.path().join("gvisor")).unwrap().flatten();
            let inside = places
                .filter_map(|entry| fs::read_dir(entry.path()).ok())
                .flatten()
                .flatten();
            inside.filter(|entry| entry.file_name() != "shared").count()
        };
        assert_eq!(machines(), 1);
        lease.sandbox.destroy().await.unwrap();
        until("the machine's directory is gone", || machines() == 0).await;
        let dropped = create(&backend, &Limits::default()).await.unwrap();
        drop(dropped);
        until("the machine's directory is gone", || machines() == 0).await;
        drop(backend);
        let left = || {
            fs::read_dir(home.path().join("gvisor"))
                .unwrap()
                .flatten()
                .count()
        };
        // That this `runsc` has been tried is remembered.
        until("the backend's directory is gone", || left() == 1).await;
    });
}

#[test]
fn nothing_is_left_of_a_host_that_was_killed() {
    require!(Runsc);
    let code = "import time\nprint('on', flush=True)\ntime.sleep(1000)";
    let gvisor = cellblock_testkit::home().unwrap().join("gvisor");
    let running = Cli::new(["run", "--backend", "gvisor", "--code", code])
        .limit(Duration::from_mins(3))
        .start()
        .unwrap();
    let mut owner = LeakOwner::of(running.id());
    let own = format!("cellblock-{}-", running.id());
    let directories = || {
        let entries = fs::read_dir(&gvisor).into_iter().flatten().flatten();
        entries
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(&own))
            .count()
    };
    block_until("the cell runs", || {
        let processes = owner.processes();
        processes
            .iter()
            .filter(|(_, name)| name.contains("sandbox") || name.contains("exe"))
            .count()
            >= 2
            && directories() == 2
    });
    std::thread::sleep(Duration::from_secs(2));
    owner.look();
    running.signal(Signal::KILL).unwrap();
    running.finish().unwrap();
    block_until("its processes are gone", || owner.processes().is_empty());
    let next = Cli::new(["run", "--backend", "gvisor", "--code", "print(6 * 7)"])
        .run()
        .unwrap();
    assert_eq!(next.stdout.trim(), "42");
    assert!(!next.stderr.contains("without namespaces"), "{}", next.stderr);
    assert_eq!(directories(), 0);
    assert_eq!(owner.count().cgroups, 0);
}
