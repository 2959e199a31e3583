//! Attacks that last: while each stands, another session, a new one, and a program of the host go on as ever.
//!
//! In every form of the process backend, as what one user's sandboxes share differs: as root, as an
//! ordinary user with and without user ids for the sandboxes, and without namespaces.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use cellblock_interpreter::execution::Event;
use cellblock_interpreter::session::{RunningCell, SessionOptions};
use cellblock_interpreter::{Cell, Session};
use cellblock_testkit::{as_ordinary_user, require, with_subordinate_ids};
use serde_json::{Value, json};

use crate::bait::Bait;
use crate::ordinary::again;
use crate::probe::{self, Probe, folder};
use crate::support::{ALONE, alone, block_on, image, interpreter, python, session, works};
use crate::verdict::{Verdict, judge};

/// Set in a run that another one has started.
const AGAIN: &str = "CELLBLOCK_TEST_NEIGHBORS";
/// Maximum time of something that does not hang.
const PATIENCE: Duration = Duration::from_mins(1);
/// Reads files that every sandbox and the host have in common.
const NEIGHBOR: &str = "
import json, pathlib
library = pathlib.Path(json.__file__).parent.parent
paths = [*sorted(library.rglob('*.py'))[:400], *sorted(library.rglob('*.pyc'))[:400]]
sum(len(path.read_bytes()) for path in paths) > 0";

#[test]
fn others_go_on_while_a_sandbox_of_root_attacks() {
    require!(Root);
    require!(CgroupV1);
    block_on(nothing_stops());
}

#[test]
fn others_go_on_while_a_sandbox_of_an_ordinary_user_attacks() {
    if std::env::var_os(AGAIN).is_some() {
        return block_on(nothing_stops());
    }
    require!(OrdinaryUser);
    again(
        "neighbors::others_go_on_while_a_sandbox_of_an_ordinary_user_attacks",
        &as_ordinary_user,
        &[AGAIN],
    );
}

#[test]
fn others_go_on_while_a_sandbox_with_a_subordinate_user_id_attacks() {
    if std::env::var_os(AGAIN).is_some() {
        return block_on(async {
            assert!(has_own_ids().await);
            nothing_stops().await;
        });
    }
    require!(SubordinateIds);
    again(
        "neighbors::others_go_on_while_a_sandbox_with_a_subordinate_user_id_attacks",
        &with_subordinate_ids,
        &[AGAIN],
    );
}

#[test]
fn others_go_on_while_a_sandbox_without_namespaces_attacks() {
    if std::env::var_os(AGAIN).is_some() {
        return block_on(nothing_stops());
    }
    require!(OrdinaryUser);
    require!(Landlock);
    let name = "neighbors::others_go_on_while_a_sandbox_without_namespaces_attacks";
    again(name, &as_ordinary_user, &[AGAIN, ALONE]);
    again(name, &|program| Command::new(program), &[AGAIN, ALONE]);
}

async fn has_own_ids() -> bool {
    let session = interpreter().await.session(SessionOptions::default());
    let ran = session.execute("6 * 7").await.unwrap();
    let report = serde_json::to_value(&ran.sandbox.protections).unwrap();
    report["own_user_id"]["state"] == "active"
}

/// Runs every attack that this form withstands.
async fn nothing_stops() {
    let own_ids = has_own_ids().await;
    let mut probes = probe::chosen();
    probes.retain(|probe| probe.neighbors.is_some() || (alone() && probe.also.is_some()));
    probes.retain(|probe| own_ids || probe.shared_user.is_none());
    let bait = Bait::lay(&python(&image().await));
    let neighbor = interpreter().await.session(SessionOptions::default());
    assert!(works(&neighbor).await);
    let mut complaints = Vec::new();
    for probe in &probes {
        let wrong = attack(probe, &bait, &neighbor).await;
        complaints.extend(wrong.iter().map(|wrong| format!("{}: {wrong}", probe.name)));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    let _ = writeln!(
        std::io::stderr(),
        "attacks during which others went on: {}",
        probes.len()
    );
}

async fn attack(probe: &Probe, bait: &Bait, neighbor: &Session) -> Vec<String> {
    let mut told: Value = serde_json::from_str(&bait.told).unwrap();
    told["stands"] = json!(probe.neighbors.is_some());
    let attacker = session(probe.limits.clone(), &told.to_string()).await;
    let cell = Cell {
        collect_files: false,
        ..Cell::new(&*probe.code).with_timeout(Duration::from_mins(5))
    };
    let mut running = attacker.start_cell(cell).await.unwrap();
    let mut wrong = Vec::new();
    if probe.neighbors.is_some() {
        if stands(&mut running).await {
            wrong = others(neighbor).await;
        } else {
            wrong.push("it ended before others were looked at".into());
        }
        attacker.interrupt();
    }
    let ended = running.finish().await;
    match judge(probe, &ended) {
        Verdict::Held(_) => {}
        Verdict::Reached(what) => wrong.push(format!("reached {what}")),
        Verdict::Missing(why) => wrong.push(format!("{why}: {ended:?}")),
    }
    attacker.close().await.unwrap();
    wrong
}

/// Waits until the attack says that it stands; false when it ends before.
async fn stands(running: &mut RunningCell) -> bool {
    let mut said = Vec::new();
    while let Some(event) = running.events.recv().await {
        if let Event::Stdout(bytes) = event {
            said.extend(bytes);
            if said.windows(8).any(|part| part == b"\n@stands") {
                return true;
            }
        }
    }
    false
}

/// Does what others do, and answers what did not work.
async fn others(neighbor: &Session) -> Vec<String> {
    let mut wrong = Vec::new();
    let reads = tokio::time::timeout(PATIENCE, neighbor.execute(NEIGHBOR)).await;
    let shown = reads.map(|ran| ran.map(|ran| serde_json::to_value(&ran.outputs).unwrap()));
    if !matches!(&shown, Ok(Ok(shown)) if shown[0]["value"] == true) {
        wrong.push(format!("a neighbor's cell did not go on: {shown:?}"));
    }
    let fresh = interpreter().await.session(SessionOptions::default());
    if !matches!(tokio::time::timeout(PATIENCE, works(&fresh)).await, Ok(true)) {
        wrong.push("a new session did not start".into());
    }
    let mut host = tokio::process::Command::new(python(&image().await));
    host.args(["-I", "-B"])
        .arg(folder().join("host.py"))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    match tokio::time::timeout(PATIENCE, host.output()).await {
        Ok(Ok(output)) if output.stdout == b"fine\n" => {}
        Ok(output) => wrong.push(format!("a program of the host failed: {output:?}")),
        Err(_) => wrong.push("a program of the host did not go on".into()),
    }
    wrong
}
