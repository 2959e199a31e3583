//! The probes as scripts of a session that are not cells.

use cellblock_interpreter::Session;

use crate::bait::Bait;
use crate::probe::{self, Probe};
use crate::support::{image, interpreter, python, session};
use crate::verdict::Verdict;

/// Groups whose probes speak of what any process may do. Those of `host` speak the kernel's
/// protocol, and those of `exhaustion` end a cell.
const GROUPS: [&str; 7] = [
    "descriptors",
    "files",
    "information",
    "kernel",
    "network",
    "privileges",
    "processes",
];

/// Probes that a command answers differently, and why that is no harm.
const DIFFERENT: [(&str, &str); 2] = [
    (
        "processes/parent",
        "a command's parent is its warden, a process of the guest's own in the same sandbox",
    ),
    (
        "processes/signal_all",
        "warden and kernel are there, so that the call finds somebody; the workbench's tests see that \
         neither is hit",
    ),
];

/// Path of a script.
pub(crate) const SCRIPT: &str = "/tmp/attempt.py";

/// A way to run scripts in a session.
pub(crate) trait Scripts {
    /// Further probes that these scripts answer differently, and why that is no harm.
    const DIFFERENT: &[(&str, &str)] = &[];

    fn of(session: Session) -> Self;

    /// Writes a script to [`SCRIPT`] and runs it.
    async fn run(&self, code: &str) -> ScriptOutput;

    /// Ends the session.
    async fn end(self);
}

/// Output of a script.
pub(crate) struct ScriptOutput {
    pub(crate) stdout: String,
    /// That and how it ended.
    pub(crate) all: String,
}

/// Runs all probes that fit, in a session for each group, and returns what is wrong.
pub(crate) async fn complaints<S: Scripts>() -> Vec<String> {
    let bait = Bait::lay(&python(&image().await));
    interpreter().await;
    let mut complaints = Vec::new();
    let mut held = 0;
    for group in GROUPS {
        let scripts = S::of(session(None, &bait.told).await);
        for probe in probe::chosen() {
            let plain = probe.group == group && probe.ends.is_empty() && probe.limits.is_none();
            let mut different = DIFFERENT.iter().chain(S::DIFFERENT);
            let different = different.any(|(name, _)| *name == probe.name);
            if !plain || different {
                continue;
            }
            match complaint(&scripts, &probe, &bait).await {
                None => held += 1,
                Some(complaint) => complaints.push(format!("{}: {complaint}", probe.name)),
            }
        }
        scripts.end().await;
    }
    if held <= 60 && std::env::var_os("CELLBLOCK_PROBES").is_none() {
        complaints.push(format!("only {held} probes held"));
    }
    complaints
}

async fn complaint(scripts: &impl Scripts, probe: &Probe, bait: &Bait) -> Option<String> {
    let ran = scripts.run(&probe.code).await;
    if ran.all.contains(&bait.secret) {
        return Some("a secret of the host came out".to_owned());
    }
    match Verdict::said(&ran.stdout) {
        Some(Verdict::Held(_)) => None,
        Some(Verdict::Reached(_)) if probe.residue.is_some() => None,
        Some(Verdict::Reached(what)) => Some(format!("reached {what}")),
        _ => Some(format!("it said nothing: {}", ran.all)),
    }
}
