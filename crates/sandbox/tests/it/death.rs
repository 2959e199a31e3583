//! Deaths outside of cells: of the template, of the keep, of the launcher.

use std::sync::Arc;
use std::time::Duration;

use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::{Backend, ProcessEnd};
use cellblock_sandbox::error::{Blame, Effect, Retry};
use cellblock_sandbox::pool::{Pool, PoolConfig, create};

use crate::support::{backend, block_on, descendants, ended, execute, kill, limits, shows, template, until};

/// Minimum lifetime after which a dead template is restarted immediately.
const TEMPLATE_MIN_LIFE: Duration = Duration::from_secs(2);

const GONE: &str = "the launcher exited and ended all its sandboxes; the next sandbox gets a new launcher";

#[test]
fn kernels_outlive_their_template_and_the_pool_uses_the_next_one() {
    block_on(async {
        let backend = backend().await;
        let launcher = backend.launcher_pid().unwrap();
        let pool = Pool::start(
            Arc::new(backend.clone()),
            Limits::default(),
            PoolConfig::default(),
        );
        let mut lease = pool.acquire(&Limits::default()).await.unwrap();
        assert_eq!(execute(&mut lease.kernel, "x = 42").await.1, []);
        until("filled", || pool.ready() == 2).await;
        // The pool has no sandbox with these limits: forked on demand, at the very moment when
        // there is no template.
        let other = limits(|limits| limits.outputs = 1);
        for _ in 0..3 {
            tokio::time::sleep(TEMPLATE_MIN_LIFE).await;
            let old = template(launcher).pid;
            kill(old);
            let mut fresh = pool.acquire(&other).await.unwrap();
            assert_eq!(execute(&mut fresh.kernel, "6 * 7").await, shows(42));
            for _ in 0..3 {
                let mut fresh = pool.acquire(&Limits::default()).await.unwrap();
                assert_eq!(execute(&mut fresh.kernel, "6 * 7").await, shows(42));
            }
            assert_ne!(template(launcher).pid, old);
        }
        assert_eq!(execute(&mut lease.kernel, "x").await, shows(42));
        let (end, _) = execute(&mut lease.kernel, "import os\nos._exit(7)").await;
        assert_eq!(end, crate::support::End::Lost(ProcessEnd::Exited(7)));
    });
}

#[test]
fn a_dead_launcher_is_replaced_for_the_next_sandbox() {
    block_on(async {
        let backend = backend().await;
        let launcher = backend.launcher_pid().unwrap();
        let lease = create(&backend, &Limits::default()).await.unwrap();
        let below = descendants(launcher);
        kill(launcher);
        assert_eq!(ended(&lease.kernel).await, ProcessEnd::Unknown);
        let error = lease.sandbox.usage().await.unwrap_err();
        assert_eq!(error.to_string(), GONE);
        assert_eq!(
            (error.blame(), error.retry(), error.effect()),
            (Blame::Backend, Retry::Fresh, Effect::Destroys)
        );
        assert_eq!(lease.sandbox.start_kernel().await.unwrap_err().to_string(), GONE);
        assert_eq!(
            lease.sandbox.guest().disks().await.unwrap_err().to_string(),
            "the guest is gone"
        );
        let mut next = create(&backend, &Limits::default()).await.unwrap();
        assert_eq!(execute(&mut next.kernel, "6 * 7").await, shows(42));
        assert_ne!(backend.launcher_pid().unwrap(), launcher);
        until("gone", || {
            below.iter().all(|it| {
                std::fs::read_to_string(format!("/proc/{}/comm", it.pid))
                    .map_or(true, |name| name.trim() != it.name)
            })
        })
        .await;
    });
}

#[test]
fn a_dead_keep_ends_its_launcher() {
    block_on(async {
        let backend = backend().await;
        let launcher = backend.launcher_pid().unwrap();
        let lease = create(&backend, &Limits::default()).await.unwrap();
        let keep = descendants(launcher)
            .into_iter()
            .find(|it| it.parent == launcher)
            .unwrap();
        assert_eq!(keep.name, "cellblock-keep");
        kill(keep.pid);
        assert_eq!(ended(&lease.kernel).await, ProcessEnd::Unknown);
        assert_eq!(lease.sandbox.usage().await.unwrap_err().to_string(), GONE);
        let mut next = create(&backend, &Limits::default()).await.unwrap();
        assert_eq!(execute(&mut next.kernel, "6 * 7").await, shows(42));
        until("gone", || {
            !std::path::Path::new(&format!("/proc/{launcher}")).exists()
        })
        .await;
    });
}

#[test]
fn waiting_for_a_template_fails_when_the_launcher_dies() {
    block_on(async {
        let config = cellblock_sandbox::backend::process::ProcessConfig {
            preload: vec!["pandas".to_owned(), "scipy.stats".to_owned()],
            ..crate::support::config().await
        };
        let backend = cellblock_sandbox::backend::process::ProcessBackend::start(&config)
            .await
            .unwrap();
        let (warmed, ()) = tokio::join!(backend.warmed(), async {
            tokio::task::yield_now().await;
            kill(backend.launcher_pid().unwrap());
        });
        assert_eq!(warmed.unwrap_err().to_string(), GONE);
    });
}
