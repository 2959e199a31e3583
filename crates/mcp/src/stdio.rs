//! A server over stdin and stdout, for clients that start it themselves.

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use tokio_util::sync::CancellationToken;

use crate::server::Server;

/// Reason that a connection over stdio ended otherwise than in order.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StdioError {
    /// The client did not begin as the protocol wants it.
    #[error("begin to talk to the client on stdin: it did not begin as the Model Context Protocol says")]
    Begin(#[source] Box<ServerInitializeError>),
    /// The connection's task failed.
    #[error("talk to the client")]
    Task(#[source] tokio::task::JoinError),
}

/// Answers the client on stdin and stdout until it closes the connection or the token is canceled.
/// Then all sessions are ended.
pub async fn serve_stdio(server: Server, stop: CancellationToken) -> Result<(), StdioError> {
    let ended = connected(server.clone(), stop).await;
    server.close().await;
    ended
}

async fn connected(server: Server, stop: CancellationToken) -> Result<(), StdioError> {
    let running = match server.serve_with_ct(rmcp::transport::stdio(), stop).await {
        Ok(running) => running,
        // It went away before it said anything.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => return Ok(()),
        Err(error) => return Err(StdioError::Begin(Box::new(error))),
    };
    running.waiting().await.map(drop).map_err(StdioError::Task)
}
