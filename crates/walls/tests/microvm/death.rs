//! Ends of machines: what a client sees, and that nothing is left.

use std::fs;
use std::time::Duration;

use cellblock_sandbox::Limits;
use cellblock_sandbox::pool::create;
use cellblock_testkit::wait::{block_until, until};
use cellblock_testkit::{Cli, LeakOwner, require};
use cellblock_walls::microvm;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{block_on, config, execute, home, image, image_in, share_snapshot, shows};

#[test]
fn a_closed_sandbox_and_a_dropped_backend_leave_nothing() {
    require!(Qemu);
    block_on(async {
        let home = tempfile::tempdir().unwrap();
        let image = image_in(home.path()).await;
        share_snapshot(home.path()).await;
        let backend = microvm::start(config(image)).await.unwrap();
        let mut lease = create(&backend, &Limits::default()).await.unwrap();
        assert_eq!(execute(&mut lease.kernel, "6 * 7").await, shows(42));
        let machines = || {
            let places = fs::read_dir(home.path().join("microvm")).unwrap().flatten();
            let inside = places.filter_map(|entry| fs::read_dir(entry.path()).ok());
            inside.flatten().count()
        };
        assert_eq!(machines(), 1);
        lease.sandbox.destroy().await.unwrap();
        until("the machine's directory is gone", || machines() == 0).await;
        drop(backend);
        let left = || fs::read_dir(home.path().join("microvm")).unwrap().count();
        until("the backend's directory is gone", || left() == 0).await;
    });
}

#[test]
fn a_machine_that_is_killed_during_a_cell_is_an_error_that_says_so() {
    require!(Qemu);
    block_on(async {
        let home = tempfile::tempdir().unwrap();
        let image = image_in(home.path()).await;
        share_snapshot(home.path()).await;
        let backend = microvm::start(config(image)).await.unwrap();
        let mut lease = create(&backend, &Limits::default()).await.unwrap();
        crate::support::start(&mut lease.kernel, "import time\ntime.sleep(1000)").await;
        let own = home.path().display().to_string();
        let emulator = fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
            let words = fs::read_to_string(entry.path().join("cmdline")).ok()?;
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            (words.contains("memory-backend-file") && words.contains(&own)).then_some(pid)
        });
        kill_process(Pid::from_raw(emulator.unwrap()).unwrap(), Signal::KILL).unwrap();
        let (end, _) = crate::support::finish(&mut lease.kernel).await;
        assert!(matches!(end, crate::support::End::Lost(_)), "{end:?}");
        let error = lease.sandbox.start_kernel().await.unwrap_err();
        assert!(
            error.to_string().contains("gone") || error.to_string().contains("microvm"),
            "{error}"
        );
    });
}

#[test]
fn nothing_is_left_of_a_host_that_was_killed() {
    require!(Qemu);
    block_on(async { drop(crate::support::lease().await) });
    let code = "import time\nprint('on', flush=True)\ntime.sleep(1000)";
    let places = home().join("microvm");
    let image = block_on(image());
    let run = |code| {
        let walled = [
            "run",
            "--image",
            image.id(),
            "--backend",
            "microvm",
            "--emulation",
        ];
        Cli::new(walled.into_iter().chain(["--code", code])).env("CELLBLOCK_HOME", home())
    };
    let running = run(code).limit(Duration::from_mins(5)).start().unwrap();
    let mut owner = LeakOwner::of(running.id());
    let own = format!("cellblock-{}-", running.id());
    let directories = || {
        let entries = fs::read_dir(&places).into_iter().flatten().flatten();
        entries
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(&own))
            .count()
    };
    block_until("the machine runs", || {
        let processes = owner.processes();
        processes.iter().any(|(_, name)| name.contains("qemu")) && directories() == 2
    });
    std::thread::sleep(Duration::from_secs(2));
    owner.look();
    running.signal(Signal::KILL).unwrap();
    running.finish().unwrap();
    block_until("its processes are gone", || owner.processes().is_empty());
    let next = run("print(6 * 7)").limit(Duration::from_mins(5)).run().unwrap();
    assert_eq!(next.stdout.trim(), "42", "{next:?}");
    assert_eq!(directories(), 0);
    assert_eq!(owner.count().cgroups, 0);
}
