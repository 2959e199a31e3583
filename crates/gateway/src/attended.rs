//! Work that a client waits for.

use tokio_util::sync::CancellationToken;

use crate::problem::Problem;
use crate::state::Gateway;

/// Does something in a task of its own, and returns its result. The token is canceled when the
/// client goes away; work that then has nothing to say returns `None`.
///
/// # Errors
///
/// Returns those of the work, and an error of ours, named by `action`, if it says nothing to a
/// client that still waits.
pub(crate) async fn attended<T, F>(
    gateway: &Gateway,
    action: &'static str,
    work: impl FnOnce(CancellationToken) -> F,
) -> Result<T, Problem>
where
    T: Send + 'static,
    F: Future<Output = Option<Result<T, Problem>>> + Send + 'static,
{
    let gone = CancellationToken::new();
    // Canceled when this future is dropped, as it is when the client is gone.
    let _waits = gone.clone().drop_guard();
    let (sender, answered) = tokio::sync::oneshot::channel();
    let work = work(gone);
    gateway.tasks.spawn(async move {
        if let Some(done) = work.await {
            // Nobody may wait any more.
            let _ = sender.send(done);
        }
    });
    let answered = answered.await;
    answered.unwrap_or_else(|error| Err(Problem::internal(action, &error)))
}
