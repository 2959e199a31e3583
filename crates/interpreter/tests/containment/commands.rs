//! The probes as scripts that the workbench runs: a command is confined as a kernel is.

use cellblock_interpreter::workbench::{ExecArgs, Workbench, WorkbenchOptions};
use cellblock_testkit::require;

use crate::bait::Bait;
use crate::probe::{self, Probe};
use crate::support::{block_on, image, interpreter, python, session};
use crate::verdict::Verdict;

/// Groups whose probes speak of what any process may do. Those of `host` speak the kernel's protocol, and those of `exhaustion` end a cell.
pub(crate) const GROUPS: [&str; 7] = [
    "descriptors",
    "files",
    "information",
    "kernel",
    "network",
    "privileges",
    "processes",
];

/// Probes that a command answers differently, and why that is no harm.
pub(crate) const DIFFERENT: [(&str, &str); 2] = [
    (
        "processes/parent",
        "a command's parent is its warden, a process of the guest's own in the same sandbox",
    ),
    (
        "processes/signal_all",
        "warden and kernel are there, so that the call finds somebody; the workbench's tests see that neither is hit",
    ),
];

#[test]
fn no_probe_reaches_anything_as_a_command() {
    require!(UserNamespaces);
    require!(CgroupV1);
    let complaints = block_on(run());
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

async fn run() -> Vec<String> {
    let bait = Bait::lay(&python(&image().await));
    interpreter().await;
    let mut complaints = Vec::new();
    let mut held = 0;
    for group in GROUPS {
        let session = session(None, &bait.told).await;
        let tools = Workbench::new(session, WorkbenchOptions::default());
        for probe in probe::chosen() {
            let plain = probe.group == group && probe.ends.is_empty() && probe.limits.is_none();
            let different = DIFFERENT.iter().any(|(name, _)| *name == probe.name);
            if !plain || different {
                continue;
            }
            match complaint(&tools, &probe, &bait).await {
                None => held += 1,
                Some(complaint) => complaints.push(format!("{}: {complaint}", probe.name)),
            }
        }
        tools.close().await.unwrap();
    }
    if held <= 60 && std::env::var_os("CELLBLOCK_PROBES").is_none() {
        complaints.push(format!("only {held} probes held"));
    }
    complaints
}

async fn complaint(tools: &Workbench, probe: &Probe, bait: &Bait) -> Option<String> {
    let written = tools
        .write_file(cellblock_interpreter::workbench::WriteArgs::new(
            "/tmp/attempt.py",
            &*probe.code,
        ))
        .await
        .unwrap();
    written.unwrap();
    let command = ["env", "PYTHONPATH=/tmp/shared", "python", "/tmp/attempt.py"];
    let ended = tools.exec(ExecArgs::new(command)).await.unwrap().unwrap();
    if format!("{ended:?}").contains(&bait.secret) {
        return Some("a secret of the host came out".to_owned());
    }
    match Verdict::said(&ended.stdout) {
        Some(Verdict::Held(_)) => None,
        Some(Verdict::Reached(_)) if probe.residue.is_some() => None,
        Some(Verdict::Reached(what)) => Some(format!("reached {what}")),
        _ => Some(format!("it said nothing: {ended:?}")),
    }
}
