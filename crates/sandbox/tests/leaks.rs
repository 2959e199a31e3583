//! Thirty rounds of create, run and destroy leave nothing. A binary of its own: nothing else may make sandboxes meanwhile.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::{Backend, Ending};
use cellblock_sandbox::pool::create;
use cellblock_testkit::{Difference, Scope, Snapshot};

use support::{End, backend, block_on, descendants, execute, shows, until};

#[path = "it/support.rs"]
#[expect(dead_code, reason = "shared with the other test binary, which uses all of it")]
mod support;

const PATIENCE: Duration = Duration::from_secs(10);

/// How much there is of each kind, beside what there was at first.
///
/// Other programs of this machine make processes and cgroups meanwhile: only what is below the launcher counts.
fn count(first: &Snapshot, scope: &Scope, launcher: u32) -> [usize; 5] {
    let mut gained: Difference = first.difference(&Snapshot::take(scope));
    let below: Vec<String> = descendants(launcher)
        .iter()
        .map(|it| it.pid.to_string())
        .collect();
    gained.processes.retain(|line| {
        let pid = line.split(' ').next().unwrap_or_default();
        below.iter().any(|it| it == pid)
    });
    let used: BTreeSet<String> = below
        .iter()
        .filter_map(|pid| std::fs::read_dir(format!("/proc/{pid}/ns")).ok())
        .flat_map(Iterator::flatten)
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .map(|link| link.to_string_lossy().into_owned())
        .collect();
    gained.namespaces.retain(|namespace| used.contains(namespace));
    let ours = format!("cellblock-{launcher}-");
    gained.cgroups.retain(|path| path.contains(&ours));
    [
        gained.processes.len(),
        gained.mounts.len(),
        gained.namespaces.len(),
        gained.cgroups.len(),
        descriptors(scope),
    ]
}

fn descriptors(scope: &Scope) -> usize {
    let process = scope.process.unwrap_or_else(std::process::id);
    std::fs::read_dir(format!("/proc/{process}/fd")).map_or(0, Iterator::count)
}

#[test]
fn thirty_rounds_and_the_end_of_the_backend_leave_nothing() {
    block_on(async {
        // Opens what is kept open for good: the runtime, the image's lock.
        drop(backend().await);
        let this = Scope::this_process();
        until("rested", || descendants(std::process::id()).is_empty()).await;
        let first = Snapshot::take(&this);
        let without_backend = descriptors(&this);

        let backend = backend().await;
        let launcher = backend.launcher_pid().unwrap();
        one_round(&backend, 0).await;
        // The keep, the template, and the guest of a spare room.
        let rested = || descendants(launcher).len() == 3;
        until("rested", rested).await;
        let keep = descendants(launcher)
            .into_iter()
            .find(|it| it.parent == launcher)
            .unwrap();
        let scopes = [
            std::process::id(),
            launcher,
            keep.pid,
            support::template(launcher).pid,
        ]
        .map(|process| Scope {
            process: Some(process),
            ..Scope::default()
        });
        let before = scopes.each_ref().map(|scope| count(&first, scope, launcher));
        for round in 0..30 {
            one_round(&backend, round).await;
        }
        until("rested", rested).await;
        for (scope, before) in scopes.iter().zip(before) {
            is_again(before, || count(&first, scope, launcher)).await;
        }

        drop(backend);
        is_again([0, 0, 0, 0, without_backend], || count(&first, &this, launcher)).await;
        until("gone", || {
            !std::path::Path::new(&format!("/proc/{launcher}")).exists()
        })
        .await;
    });
}

/// A sandbox that ends in one of five ways.
async fn one_round(backend: &dyn Backend, round: u32) {
    let mut lease = create(backend, &Limits::default()).await.unwrap();
    assert_eq!(execute(&mut lease.kernel, "6 * 7").await, shows(42));
    match round % 5 {
        0 => lease.sandbox.destroy().await.unwrap(),
        1 => {
            let code = "import subprocess\nsubprocess.Popen(['sleep', '1000'], start_new_session=True);";
            execute(&mut lease.kernel, code).await;
            lease.sandbox.destroy().await.unwrap();
        }
        2 => {
            let (end, _) = execute(&mut lease.kernel, "import os\nos._exit(1)").await;
            assert_eq!(end, End::Lost(Ending::Exited(1)));
            lease.sandbox.destroy().await.unwrap();
        }
        3 => drop(lease),
        _ => {
            lease.sandbox.kill();
            drop(lease);
        }
    }
}

/// The kernel frees namespaces in the background, so this waits a while for it.
async fn is_again(before: [usize; 5], mut now: impl FnMut() -> [usize; 5]) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = now();
        if left == before {
            return;
        }
        let kinds = "processes, mounts, namespaces, cgroups, descriptors";
        assert!(
            Instant::now() < deadline,
            "{kinds}: {before:?} before, {left:?} after"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
