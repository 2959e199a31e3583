//! Ends of sessions leave nothing behind.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use cellblock_testkit::{Count, LeakOwner, binary, small_image};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::support::{PATIENCE, World, until};

fn kill(process: u32, signal: Signal) -> Result<()> {
    let process = Pid::from_raw(i32::try_from(process)?).context("no process")?;
    Ok(kill_process(process, signal)?)
}

/// Returns the owner of everything below the host of a session that has a sandbox.
fn owner(world: &World, id: &str) -> Result<LeakOwner> {
    assert_eq!(world.exec(id, &["true"])?["exit_code"], 0);
    let mut owner = LeakOwner::of(world.host(id)?);
    let count = owner.count();
    assert!(count.processes > 0 && count.namespaces > 0, "{count:?}");
    Ok(owner)
}

fn assert_nothing_is_left(world: &World, mut owner: LeakOwner) -> Result<()> {
    assert_eq!(world.places()?, Vec::<PathBuf>::new());
    owner
        .until(&Count::default(), PATIENCE)
        .map_err(|left| anyhow::anyhow!("{left}"))
}

#[test]
fn a_session_that_is_stopped_gives_everything_back_and_is_not_there_twice() -> Result<()> {
    let world = World::new()?;
    let id = world.start(&[])?;
    let owner = owner(&world, &id)?;
    assert_eq!(world.said(["session", "stop", &id])?, format!("stopped {id}"));
    assert_nothing_is_left(&world, owner)?;
    let again = world.cli(["session", "stop", &id]).run()?;
    assert_eq!((again.code(), again.stdout.as_str()), (2, ""));
    assert!(
        again
            .stderr
            .starts_with(&format!("error: there is no session `{id}`\nhint: ")),
        "{}",
        again.stderr
    );
    assert_eq!(world.said(["session", "stop", "--all"])?, "no session is running");
    Ok(())
}

#[test]
fn a_session_that_gets_a_signal_gives_everything_back() -> Result<()> {
    let world = World::new()?;
    let id = world.start(&[])?;
    let owner = owner(&world, &id)?;
    kill(world.host(&id)?, Signal::TERM)?;
    until("the session's end", || Ok(world.listed(&id)?.is_none()))?;
    assert_nothing_is_left(&world, owner)
}

#[test]
fn an_unused_session_ends() -> Result<()> {
    let world = World::new()?;
    let id = world.start(&["--idle-timeout", "2"])?;
    let owner = owner(&world, &id)?;
    // Looking at it does not keep it.
    until("the session's end", || Ok(world.listed(&id)?.is_none()))?;
    assert_nothing_is_left(&world, owner)
}

#[test]
fn a_host_that_was_killed_is_noticed_and_swept() -> Result<()> {
    let world = World::new()?;
    fs::write(world.work().join("a.csv"), "a\n1\n")?;
    let id = world.start(&["--dataset", "a=a.csv"])?;
    let owner = owner(&world, &id)?;
    kill(world.host(&id)?, Signal::KILL)?;
    let arguments = json!({ "command": ["true"] });
    let mut finished = world.call(&id, "sandbox_exec", &arguments)?;
    // The kernel may not have closed all that it had.
    until("the lock's release", || {
        let over = finished
            .stderr
            .contains(&format!("session `{id}` is over: its host process is gone"));
        if !over {
            finished = world.call(&id, "sandbox_exec", &arguments)?;
        }
        Ok(over)
    })?;
    assert_eq!((finished.code(), finished.stdout.as_str()), (70, ""));
    assert!(
        finished
            .stderr
            .contains("start another with `cellblock session start`"),
        "{}",
        finished.stderr
    );
    assert_nothing_is_left(&world, owner)?;
    assert_eq!(world.call(&id, "sandbox_exec", &arguments)?.code(), 2);
    // What stood in for its dataset is swept where the next one needs room.
    let next = world.start(&["--dataset", "a=a.csv"])?;
    world.said(["session", "stop", &next])?;
    let left: Vec<_> = fs::read_dir(world.home().join("datasets"))?
        .flatten()
        .map(|entry| entry.file_name())
        .filter(|name| name != ".lock")
        .collect();
    assert!(left.is_empty(), "{left:?}");
    Ok(())
}

#[test]
fn a_host_that_hangs_is_stopped_all_the_same() -> Result<()> {
    let world = World::new()?;
    let id = world.start(&[])?;
    let host = world.host(&id)?;
    let owner = owner(&world, &id)?;
    kill(host, Signal::STOP)?;
    let called = world.call(&id, "sandbox_exec", &json!({ "command": ["true"] }))?;
    assert_eq!((called.code(), called.stdout.as_str()), (70, ""));
    assert!(
        called
            .stderr
            .contains(&format!("session `{id}` has not answered within 10 s")),
        "{}",
        called.stderr
    );
    let stopped = world
        .cli(["session", "stop", &id])
        .limit(Duration::from_mins(3))
        .run()?;
    assert_eq!(
        (stopped.code(), stopped.stdout),
        (0, format!("stopped {id}\n")),
        "{}",
        stopped.stderr
    );
    assert_nothing_is_left(&world, owner)
}

#[test]
fn a_call_that_is_cancelled_ends_its_command_and_not_the_session() -> Result<()> {
    let world = World::new()?;
    let id = world.start(&[])?;
    let running = world.busy(&id)?;
    running.signal(Signal::INT)?;
    let finished = running.finish()?;
    assert_eq!(
        (finished.code(), finished.stdout.as_str()),
        (130, ""),
        "{}",
        finished.stderr
    );
    let sleeping = "import pathlib\n\
        found = [it.read_text() for it in pathlib.Path('/proc').glob('[0-9]*/comm')]\n\
        print(len(found) > 0, 'sleep\\n' in found)";
    let next = world.exec(&id, &["python", "-c", sleeping])?;
    assert_eq!(next["stdout"], "True False\n", "{next:#}");
    Ok(())
}

#[test]
fn a_stop_ends_a_call_that_runs() -> Result<()> {
    let world = World::new()?;
    let id = world.start(&[])?;
    let owner = owner(&world, &id)?;
    let running = world.busy(&id)?;
    assert_eq!(world.said(["session", "stop", &id])?, format!("stopped {id}"));
    let finished = running.finish()?;
    assert_eq!((finished.code(), finished.stdout.as_str()), (70, ""));
    assert!(
        finished
            .stderr
            .contains("error: the session ended before the call did"),
        "{}",
        finished.stderr
    );
    assert_nothing_is_left(&world, owner)
}

#[test]
fn the_files_of_a_session_stay_when_it_ends() -> Result<()> {
    let world = World::new()?;
    let id = world.start(&["--out", "kept"])?;
    let write = "mkdir -p /tmp/output/deep; echo 1 > /tmp/output/deep/a.txt";
    assert_eq!(
        world.exec(&id, &["sh", "-c", write])?["output_files"],
        json!(["deep/a.txt"])
    );
    world.said(["session", "stop", &id])?;
    assert_eq!(fs::read_to_string(world.work().join("kept/deep/a.txt"))?, "1\n");
    Ok(())
}

#[test]
fn a_session_outlives_the_process_group_that_started_it() -> Result<()> {
    let world = World::new()?;
    let script = "\"$cellblock\" session start --image \"$image\"; kill -KILL 0";
    let killed = Command::new("sh")
        .args(["-uc", script])
        .process_group(0)
        .env("CELLBLOCK_HOME", world.home())
        .env("cellblock", binary()?)
        .env("image", small_image()?)
        .output()?;
    assert_eq!(killed.status.code(), None, "the group was killed");
    let id = String::from_utf8(killed.stdout)?;
    assert_eq!(world.exec(id.trim_end(), &["true"])?["exit_code"], 0);
    Ok(())
}
