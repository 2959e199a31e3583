//! Connections that end unexpectedly.

use std::time::Duration;

use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::{Backend, ProcessEnd};
use cellblock_sandbox::error::{Blame, Effect, Retry};
use cellblock_sandbox::pool::{Pool, PoolConfig};

use serde_json::json;

use crate::hostile_client::Raw;
use crate::support::{backend, block_on, ended, lease, reads, shows, start, until};

#[test]
fn a_lost_connection_ends_the_kernel_and_the_sandbox() {
    block_on(async {
        let pair = backend().await;
        let mut lease = lease(&pair).await;
        start(&mut lease.kernel, "print('on', flush=True)\nwhile True: pass").await;
        assert_eq!(reads(&lease.kernel, |all| all.len() >= 3).await, b"on\n");
        pair.server.cut();
        assert_eq!(ended(&lease.kernel).await, ProcessEnd::Unknown);
        assert!(lease.kernel.frames.next().await.unwrap().is_none());
        let error = lease.sandbox.usage().await.unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("the connection to the other side was lost: "),
            "{error}"
        );
        assert_eq!(
            (error.blame(), error.effect(), error.retry()),
            (Blame::Backend, Effect::Destroys, Retry::Fresh)
        );
        assert_eq!(
            lease.sandbox.guest().disks().await.unwrap_err().to_string(),
            "the guest is gone"
        );
        until("ended", || pair.site.lent.lock().is_empty()).await;
        lease.sandbox.destroy().await.unwrap();
    });
}

#[test]
fn a_silent_client_loses_its_sandbox() {
    block_on(async {
        let pair = backend().await;
        let mut silent = Raw::connect(&pair).await;
        let made = silent.ask(json!({"ask": "create", "limits": {}})).await;
        assert_eq!(made["answer"]["answer"], "sandbox", "{made}");
        assert_eq!(pair.site.lent.lock().len(), 1);
        until("ended", || pair.site.lent.lock().is_empty()).await;
        drop(silent);
    });
}

#[test]
fn an_unreachable_server_is_an_error_after_a_few_attempts() {
    block_on(async {
        let pair = backend().await;
        pair.server.stop();
        pair.server.cut();
        let before = std::time::Instant::now();
        let error = pair.create(&Limits::default()).await.unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("connect to the sandboxes at `ws://127.0.0.1:"),
            "{error}"
        );
        assert_eq!(error.blame(), Blame::Backend);
        // The pauses between the attempts.
        assert!(before.elapsed() >= Duration::from_millis(700));
    });
}

#[test]
fn a_pool_replaces_remote_sandboxes_that_lost_their_connection() {
    block_on(async {
        let pair = std::sync::Arc::new(backend().await);
        let config = PoolConfig {
            ready: 2,
            ..PoolConfig::default()
        };
        let shared: std::sync::Arc<dyn Backend> = std::sync::Arc::<crate::support::Pair>::clone(&pair);
        let pool = Pool::start(shared, Limits::default(), config);
        until("filled", || pool.ready() == 2).await;
        pair.server.cut();
        until("noticed", || pair.site.lent.lock().is_empty()).await;
        // The client hears of it while it makes another sandbox.
        let _other = lease(&pair).await;
        let mut lease = pool.acquire(&Limits::default()).await.unwrap();
        assert_eq!(
            crate::support::execute(&mut lease.kernel, "6 * 7").await,
            shows(42)
        );
    });
}
