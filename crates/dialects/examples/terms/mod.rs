//! A host of dialects without keys, for the examples.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use cellblock_dialects::{DialectHost, DialectTerms, Doorkeeper, NoEntry};
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::artifact::Store;
use cellblock_interpreter::cell::Guard;
use cellblock_interpreter::hosting::{Owner, Unmetered};
use cellblock_interpreter::limits::NetworkPolicy;

/// Lets everybody in as one owner.
#[derive(Debug)]
struct Everybody;

impl Doorkeeper for Everybody {
    fn owner<'a>(
        &'a self,
        _: Option<&'a str>,
        _: &'a str,
        _: Option<SocketAddr>,
    ) -> Pin<Box<dyn Future<Output = Result<Owner, NoEntry>> + Send + 'a>> {
        Box::pin(async { Ok(Owner::local()) })
    }
}

/// Returns a host whose sessions have at most this network.
pub(crate) async fn host(max_network: NetworkPolicy) -> DialectHost {
    let artifacts = std::env::temp_dir().join("cellblock-dialects");
    let interpreter = Interpreter::builder()
        .store(Store::local(artifacts).expect("the store opens"))
        .build()
        .await
        .expect("the interpreter starts");
    DialectHost::new(DialectTerms {
        interpreter,
        doorkeeper: Arc::new(Everybody),
        meter: Arc::new(Unmetered),
        max_network,
        egress: None,
        guard: Guard::Off,
        setup: Vec::new(),
        max_body: 10 << 20,
        max_upload: 1 << 30,
        max_cell_timeout: Duration::from_mins(10),
        mark: None,
        tasks: tokio_util::task::TaskTracker::new(),
        stopping: tokio_util::sync::CancellationToken::new(),
        ending: tokio_util::sync::CancellationToken::new(),
    })
}

/// Closes every session of a host.
pub(crate) async fn stop(host: &DialectHost) {
    host.stopping.cancel();
    host.ending.cancel();
    host.tasks.close();
    host.tasks.wait().await;
}
