//! Thirty rounds of create, run and destroy leave nothing behind. A separate binary: nothing else
//! may create sandboxes meanwhile.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::{Backend, ProcessEnd};
use cellblock_sandbox::pool::create;
use cellblock_testkit::wait::until_ok;
use cellblock_testkit::{Count, LeakOwner};

use support::{End, backend, block_on, descendants, execute, shows, until};

#[path = "it/support.rs"]
#[expect(dead_code, reason = "shared with the other test binary, which uses all of it")]
mod support;

#[test]
fn thirty_rounds_and_the_end_of_the_backend_leave_nothing() {
    block_on(async {
        // Opens the files that stay open: those of the runtime, and the image's lock.
        drop(backend().await);
        until("rested", || descendants(std::process::id()).is_empty()).await;
        let mut this = LeakOwner::this_process();
        let without_backend = this.count();

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
        let template = support::template(launcher).pid;
        let mut owners = [std::process::id(), launcher, keep.pid, template].map(LeakOwner::of);
        let before = owners.each_mut().map(LeakOwner::count);
        // The namespaces of the keep and of the spare room.
        assert!(before[0].namespaces >= 12, "{before:?}");
        for round in 0..30 {
            one_round(&backend, round).await;
        }
        until("rested", rested).await;
        for (owner, before) in owners.iter_mut().zip(&before) {
            is_again(owner, before).await;
        }

        this.look();
        drop(backend);
        is_again(&mut this, &without_backend).await;
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
            assert_eq!(end, End::Lost(ProcessEnd::Exited(1)));
            lease.sandbox.destroy().await.unwrap();
        }
        3 => drop(lease),
        _ => {
            lease.sandbox.kill();
            drop(lease);
        }
    }
}

/// The operating system frees namespaces in the background, so this waits for it, and lets the
/// backend's own tasks continue meanwhile.
async fn is_again(owner: &mut LeakOwner, before: &Count) {
    until_ok(async || owner.until(before, Duration::ZERO)).await;
}
