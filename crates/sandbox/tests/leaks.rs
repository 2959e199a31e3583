//! Thirty rounds of create, run and destroy leave nothing. A binary of its own: nothing else may make sandboxes meanwhile.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::{Backend, Ending};
use cellblock_sandbox::pool::create;
use cellblock_testkit::{Difference, Scope, Snapshot};

use support::{End, backend, block_on, descendants, execute, shows};

#[path = "it/support.rs"]
#[expect(dead_code, reason = "shared with the other test binary, which uses all of it")]
mod support;

const PATIENCE: Duration = Duration::from_secs(10);

/// Leaves out what other programs of this machine do meanwhile: what is named is below this process, or below nobody any more.
fn ours(mut difference: Difference, launcher: u32) -> Difference {
    let below: Vec<String> = descendants(std::process::id())
        .iter()
        .map(|it| it.pid.to_string())
        .collect();
    difference.processes.retain(|line| {
        let pid = line.split(' ').next().unwrap_or_default();
        below.iter().any(|it| it == pid)
    });
    difference
        .cgroups
        .retain(|path| path.contains(&format!("cellblock-{launcher}-")));
    difference.namespaces.retain(|namespace| {
        below.iter().any(|pid| {
            let entries = std::fs::read_dir(format!("/proc/{pid}/ns"))
                .into_iter()
                .flatten()
                .flatten();
            entries
                .filter_map(|entry| std::fs::read_link(entry.path()).ok())
                .any(|link| link.to_string_lossy() == *namespace)
        })
    });
    difference
}

#[test]
fn thirty_rounds_and_the_end_of_the_backend_leave_nothing() {
    block_on(async {
        // Opens what is kept open for good: the runtime, the image's lock.
        drop(backend().await);
        let this = Scope::this_process();
        let without_backend = Snapshot::take(&this);

        let backend = backend().await;
        let launcher = backend.launcher_pid().unwrap();
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
        let before = scopes.each_ref().map(Snapshot::take);
        for round in 0..30 {
            one_round(&backend, round).await;
        }
        for (scope, before) in scopes.iter().zip(&before) {
            nothing_is_left(before, scope, launcher).await;
        }

        drop(backend);
        nothing_is_left(&without_backend, &this, launcher).await;
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
async fn nothing_is_left(before: &Snapshot, scope: &Scope, launcher: u32) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = ours(before.difference(&Snapshot::take(scope)), launcher);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "{scope:?}: {left}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
