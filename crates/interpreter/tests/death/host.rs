//! The host itself, killed at every step, alone and together with its launcher. It is this test,
//! started again.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use cellblock_testkit::wait::block_until;
use cellblock_testkit::{Count, LeakOwner};

use crate::steps::CellStep;
use crate::victim::{Victim, kill, lives};
use crate::world::{PATIENCE, World, alone, answer, block_on, image, interpreter};

/// Set in a host: the step that it goes to, and where it keeps things.
const STEP: &str = "CELLBLOCK_TEST_STEP";
const FOLDER: &str = "CELLBLOCK_TEST_FOLDER";
const REACHED: &str = "@reached";

#[test]
fn a_host_that_is_killed_takes_everything_along() {
    if let (Ok(step), Some(folder)) = (std::env::var(STEP), std::env::var_os(FOLDER)) {
        return be_a_host(&step, folder.as_ref());
    }
    let _alone = alone();
    let nothing = Count::default();
    for step in CellStep::ALL {
        for delay in step.delays() {
            let (mut owner, folder) = die_at(step, *delay, false);
            owner
                .until(&nothing, PATIENCE)
                .unwrap_or_else(|left| panic!("{step:?} + {delay} ms: {left}"));
            // What the store staged is removed by its next user; here it is only to be no half artifact.
            drop(folder);
        }
    }
}

#[test]
fn the_next_start_removes_what_a_dead_host_left_behind() {
    let _alone = alone();
    let mut owners = Vec::new();
    for step in [CellStep::Room, CellStep::Fork, CellStep::Streams, CellStep::Idle] {
        owners.push((step, die_at(step, 0, true)));
    }
    block_on(async {
        let world = World::new().await;
        answer(&world.session()).await;
    });
    for (step, (mut owner, _folder)) in owners {
        owner
            .until(&Count::default(), PATIENCE)
            .unwrap_or_else(|left| panic!("{step:?}: {left}"));
    }
}

/// Starts a host, waits until it has reached the step, and kills it.
fn die_at(step: CellStep, delay: u64, with_launcher: bool) -> (LeakOwner, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut host = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "host::a_host_that_is_killed_takes_everything_along",
            "--nocapture",
        ])
        .env(STEP, format!("{step:?}"))
        .env(FOLDER, folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(host.stdout.take().unwrap()).lines();
    let reached = lines.map_while(Result::ok).any(|line| line.ends_with(REACHED));
    assert!(reached, "{step:?}: the host has failed");
    let mut owner = LeakOwner::of(host.id());
    std::thread::sleep(Duration::from_millis(delay));
    owner.look();
    if with_launcher {
        // The host first, or it would start another one.
        let launcher = Victim::Launcher.find(host.id()).unwrap();
        host.kill().unwrap();
        kill(launcher.pid);
        // What is swept is what ended launchers have left.
        block_until("the launcher ends", || !lives(launcher.pid));
    }
    host.kill().unwrap();
    host.wait().unwrap();
    (owner, folder)
}

fn be_a_host(step: &str, folder: &std::path::Path) {
    let step = CellStep::ALL
        .into_iter()
        .find(|it| format!("{it:?}") == step)
        .unwrap();
    block_on(async {
        let interpreter = interpreter(image().await, &folder.join("artifacts")).await;
        let session = interpreter.session(cellblock_interpreter::session::SessionOptions {
            prelude: Vec::new(),
            ..Default::default()
        });
        let _going = step.reach(&session, folder).await;
        let mut out = std::io::stdout();
        writeln!(out, "{REACHED}").unwrap();
        out.flush().unwrap();
        std::future::pending::<()>().await;
    });
}
