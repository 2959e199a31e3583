//! Every probe in a real sandbox: none reaches what it tries, and none harms the host or the
//! sessions after it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cellblock_connector::{HttpConnector, TypeOptions};
use cellblock_interpreter::connector::Connector;
use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::output::Output;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::{Cell, Error, Execution, Session};
use cellblock_testkit::require;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::backend::{backend, is_machine};
use crate::bait::Bait;
use crate::probe::{self, GROUPS, Probe};
use crate::repeating::RepeatingConnector;
use crate::support::{block_on, connected, image, interpreter, python, works};
use crate::verdict::{Verdict, judge};

/// Probes that run at a time.
const WIDTH: usize = 2;
/// Maximum memory of the host for the bytes of one probe.
const HOST_MEMORY: u64 = 192 << 20;
/// The group whose probes run alone, because the host's memory is measured.
const MEASURED: &str = "host";

#[test]
fn no_probe_reaches_anything_from_a_sandbox() {
    require!(UserNamespaces);
    require!(CgroupV1);
    let (unfit, fit): (Vec<_>, Vec<_>) = probe::chosen()
        .into_iter()
        .partition(|probe| probe.unfit(&backend()).is_some());
    for probe in unfit {
        cellblock_testkit::lacking(&backend(), &probe.name, module_path!());
    }
    let complaints = block_on(run(fit));
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Runs probes, prints how many of each group held, and answers what is wrong.
pub(crate) async fn run(probes: Vec<Probe>) -> Vec<String> {
    let python = python(&image().await);
    let bait = Arc::new(Bait::lay(&python));
    interpreter().await;
    let mut held: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut complaints = Vec::new();
    let mut slow = Vec::new();
    let mut count = |probe: &Probe, (wrong, took): (Vec<String>, Duration)| {
        slow.push((took, probe.name.clone()));
        let group = GROUPS.iter().find(|group| **group == probe.group).unwrap();
        let (good, all) = held.entry(group).or_default();
        *all += 1;
        *good += usize::from(wrong.is_empty() && probe.residue(&backend()).is_none());
        for complaint in wrong {
            // At once as well, for whoever watches a run that takes long.
            let complaint = format!("{}: {complaint}", probe.name);
            let _ = writeln!(std::io::stderr(), "{complaint}");
            complaints.push(complaint);
        }
    };
    let (measured, others): (Vec<_>, Vec<_>) = probes.into_iter().partition(|probe| probe.group == MEASURED);
    let mut running: JoinSet<(Probe, (Vec<String>, Duration))> = JoinSet::new();
    for probe in others {
        if running.len() == WIDTH {
            let (probe, ended) = running.join_next().await.unwrap().unwrap();
            count(&probe, ended);
        }
        let bait = Arc::clone(&bait);
        running.spawn(async move {
            let start = Instant::now();
            let wrong = one(&probe, &bait).await;
            (probe, (wrong, start.elapsed()))
        });
    }
    while let Some(joined) = running.join_next().await {
        let (probe, ended) = joined.unwrap();
        count(&probe, ended);
    }
    for probe in measured {
        let start = Instant::now();
        let wrong = measure(&probe, &bait).await;
        count(&probe, (wrong, start.elapsed()));
    }
    let mut summary = String::from("contained probes that held:");
    for (group, (good, all)) in &held {
        let _ = write!(summary, " {group} {good}/{all}");
    }
    slow.sort_unstable();
    summary.push_str("; slowest");
    for (took, name) in slow.iter().rev().take(4) {
        let _ = write!(summary, " {name} {:.1} s", took.as_secs_f64());
    }
    // Not through `print!`, which a passing test swallows.
    let _ = writeln!(std::io::stderr(), "{summary}");
    complaints
}

/// Runs one probe in a session of its own, and answers what is wrong with how it ended.
async fn one(probe: &Probe, bait: &Bait) -> Vec<String> {
    let connectors: Vec<Arc<dyn Connector>> = vec![
        Arc::new(RepeatingConnector::new(&bait.secret)),
        Arc::new(inward(bait)),
    ];
    let session = connected(probe.limits.clone(), &bait.told, connectors).await;
    let cell = Cell {
        collect_files: probe.is_dangerous(),
        ..Cell::new(&*probe.code)
            .from_file(format!("{}.py", probe.name), 1)
            .with_timeout(probe.time)
    };
    let ended = session.execute(cell).await;
    let mut wrong = Vec::new();
    let residue = probe.residue(&backend());
    match judge(probe, &ended) {
        Verdict::Held(_) if residue.is_none() => {}
        Verdict::Held(_) => wrong.push(format!(
            "held: strike `residue` or `{}` from its header",
            backend()
        )),
        Verdict::Reached(_) if residue.is_some() => {}
        Verdict::Reached(what) => wrong.push(format!("reached {what}")),
        // Known to end otherwise there, such as by its timeout.
        Verdict::Missing(_) if residue.is_some() && is_machine() => {}
        Verdict::Missing(why) => wrong.push(format!("{why}: {}", told(&ended))),
    }
    let all = everything(&ended).await;
    if all
        .windows(bait.secret.len())
        .any(|part| part == bait.secret.as_bytes())
    {
        wrong.push("a secret of the host came out".into());
    }
    if let (Ok(execution), Some(names)) = (&ended, &probe.delivers) {
        let mut delivered: Vec<_> = execution.files.iter().map(|file| file.name.clone()).collect();
        delivered.sort_unstable();
        if delivered != *names {
            wrong.push(format!("{delivered:?} were delivered, not {names:?}"));
        }
    }
    if probe.is_dangerous() {
        if !goes_on(&session).await {
            wrong.push("its session does not go on, and does not say why".into());
        }
        if !works(&interpreter().await.session(SessionOptions::default())).await {
            wrong.push("a session after it does not work".into());
        }
    }
    if let Err(error) = session.close().await {
        wrong.push(format!("its session could not be closed: {error}"));
    }
    wrong
}

/// A connector whose host has only addresses of this machine, which the operator did not permit.
/// The bait listens there.
fn inward(bait: &Bait) -> HttpConnector {
    let told: Value = serde_json::from_str(&bait.told).unwrap();
    let options = TypeOptions::read(&json!({
        "base_url": format!("http://localhost:{}/", told["tcp_port"]),
        "headers": {"Authorization": "Bearer {{ secrets.key }}"},
        "functions": {"get": {"get": "/{path}", "parameters": {"path": {"type": "string"}}}},
    }));
    let secrets = BTreeMap::from([("key".to_owned(), bait.secret.clone())]);
    HttpConnector::new("inward", &options.unwrap(), &secrets).unwrap()
}

/// The next cell of the session works, or ends by a limit: files of the probe may leave no memory
/// for another kernel.
async fn goes_on(session: &Session) -> bool {
    let ended = session.execute("6 * 7").await;
    ended.is_ok_and(|ended| matches!(ended.outcome, Outcome::Completed | Outcome::LimitExceeded(_)))
}

/// Runs a probe and looks at the most memory that the host held meanwhile.
async fn measure(probe: &Probe, bait: &Bait) -> Vec<String> {
    // Resets the peak (proc(5), `clear_refs`).
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = memory("VmRSS:");
    let mut wrong = one(probe, bait).await;
    let grown = memory("VmHWM:").saturating_sub(before);
    if grown > HOST_MEMORY {
        wrong.push(format!("the host took {} MiB for it", grown >> 20));
    }
    wrong
}

fn memory(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Returns the text that a person needs to see why a probe did not end as it should.
fn told(ended: &Result<Execution, Error>) -> String {
    match ended {
        Err(error) => format!("{error:?}"),
        Ok(execution) => {
            let last = match execution.outputs.last() {
                Some(Output::Exception(exception)) => &*exception.traceback,
                _ => "",
            };
            let note = execution.note.as_deref().unwrap_or_default();
            let start: String = execution.stdout.text.chars().take(500).collect();
            let stderr: String = execution.stderr.text.chars().take(500).collect();
            format!("{note} {last} stdout {start:?} stderr {stderr:?}")
        }
    }
}

/// All bytes that left the sandbox: texts, outputs, names of files, and the content of every small file.
async fn everything(ended: &Result<Execution, Error>) -> Vec<u8> {
    let execution = match ended {
        Ok(execution) => execution,
        Err(error) => return format!("{error:?}").into_bytes(),
    };
    let mut all = format!("{execution:?}").into_bytes();
    for file in execution.files.iter().filter(|file| file.bytes < 1 << 20) {
        let id = file.sha256.parse().unwrap();
        all.extend(interpreter().await.store().get(id).await.unwrap().iter());
    }
    all
}
