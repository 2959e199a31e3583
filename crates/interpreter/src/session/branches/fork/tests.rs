//! Forks when sandboxes run out.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cellblock_artifact::Store;
use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::{Backend, BoxFuture, Sandbox};
use cellblock_sandbox::jail::protection::Report;
use cellblock_testkit::require;

use super::ForkOptions;
use crate::Interpreter;
use crate::error::Blame;
use crate::execution::Outcome;
use crate::session::SessionOptions;

/// A backend that has only so many sandboxes left.
#[derive(Debug)]
struct ScarceBackend {
    inner: Arc<dyn Backend>,
    left: AtomicUsize,
}

impl Backend for ScarceBackend {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn report(&self) -> Report {
        self.inner.report()
    }

    fn create<'a>(
        &'a self,
        limits: &'a Limits,
    ) -> BoxFuture<'a, cellblock_sandbox::Result<Box<dyn Sandbox>>> {
        let left = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if left.is_ok() {
            return self.inner.create(limits);
        }
        Box::pin(async { Err(cellblock_sandbox::Error::too_late("a sandbox", Duration::ZERO)) })
    }

    fn warmed(&self) -> BoxFuture<'_, cellblock_sandbox::Result<()>> {
        self.inner.warmed()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_fork_remains_when_sandboxes_run_out_in_the_middle() {
    require!(UserNamespaces);
    let artifacts = tempfile::tempdir().unwrap();
    let mut interpreter = Interpreter::builder()
        .home(cellblock_testkit::home().unwrap())
        .store(Store::local(PathBuf::from(artifacts.path())).unwrap())
        .single_session()
        .build()
        .await
        .unwrap();
    let shared = Arc::get_mut(&mut interpreter.shared).unwrap();
    shared.backend = Arc::new(ScarceBackend {
        inner: Arc::clone(&shared.backend),
        left: AtomicUsize::new(3),
    });
    let session = interpreter.session(SessionOptions {
        pooled: false,
        ..SessionOptions::default()
    });
    let code = "x = 41\nopen('/workspace/file', 'w').write('kept')";
    assert_eq!(session.execute(code).await.unwrap().outcome, Outcome::Completed);

    let error = session.fork(ForkOptions::new(3)).await.unwrap_err();
    assert_eq!(error.blame(), Blame::Capacity, "{error}");

    // Both that were made are gone, and the original goes on.
    assert_eq!(interpreter.sandboxes_in_use().len(), 1);
    let next = "x += 1\nassert x == 42 and open('/workspace/file').read() == 'kept'";
    assert_eq!(session.execute(next).await.unwrap().outcome, Outcome::Completed);
    session.checkpoint(None).await.unwrap();
}
