//! Work that a client waits for: when it goes away, what runs is interrupted, and the session is
//! free again when that has ended.

use cellblock_interpreter::hosting::Exclusive;
use tokio_util::sync::CancellationToken;

use crate::host::DialectHost;
use crate::session::DialectSession;

/// Does something with a session whose turn it is. `None` if the server ended before it was done.
pub(crate) async fn attended<T: Send + Sync + 'static, R: Send + 'static>(
    host: &DialectHost,
    turn: Exclusive<DialectSession<T>>,
    work: impl Future<Output = R> + Send + 'static,
) -> Option<R> {
    let gone = CancellationToken::new();
    // Told when this future is dropped, as it is when the client is gone.
    let _waits = gone.clone().drop_guard();
    let (sender, answered) = tokio::sync::oneshot::channel();
    let ending = host.ending.clone();
    host.tasks.spawn(async move {
        let over = async {
            tokio::select! {
                () = gone.cancelled() => {}
                () = ending.cancelled() => {}
            }
        };
        let done = turn.until(over, work).await;
        drop(turn);
        // Nobody may wait any more.
        let _ = sender.send(done);
    });
    answered.await.ok()
}
