//! Serves every dialect over one interpreter, without keys: `cargo run -p cellblock-dialects --example serve -- 127.0.0.1:8080`.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use cellblock_artifact::Store;
use cellblock_dialects::{DialectsOptions, Doorkeeper, E2bOptions, Host, HostTerms, NoEntry};
use cellblock_interpreter::Interpreter;
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

#[tokio::main]
async fn main() {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let debug = std::env::args().any(|argument| argument == "--debug");
    let artifacts = std::env::temp_dir().join("cellblock-dialects");
    let interpreter = Interpreter::builder()
        .store(Store::local(artifacts).expect("the store opens"))
        .build()
        .await
        .expect("the interpreter starts");
    let tasks = tokio_util::task::TaskTracker::new();
    let host = Host::new(HostTerms {
        interpreter,
        doorkeeper: Arc::new(Everybody),
        meter: Arc::new(Unmetered),
        max_network: NetworkPolicy::Loopback,
        egress: None,
        guard: Guard::Off,
        setup: Vec::new(),
        max_body: 10 << 20,
        max_upload: 1 << 30,
        max_cell_timeout: Duration::from_mins(10),
        tasks,
        stopping: tokio_util::sync::CancellationToken::new(),
        ending: tokio_util::sync::CancellationToken::new(),
    });
    let options = DialectsOptions {
        e2b: Some(E2bOptions {
            debug,
            ..E2bOptions::default()
        }),
    };
    let served = cellblock_dialects::routes(&host, &options).into_iter();
    let routes = served.fold(Router::new(), |all, it| all.nest(it.path, it.routes));
    let listener = tokio::net::TcpListener::bind(&address).await.expect("the address is free");
    let service = routes.into_make_service_with_connect_info::<SocketAddr>();
    let served = axum::serve(listener, service).with_graceful_shutdown(async {
        tokio::signal::ctrl_c().await.expect("signals can be handled");
    });
    served.await.expect("the server runs");
    host.stopping.cancel();
    host.ending.cancel();
    host.tasks.close();
    host.tasks.wait().await;
}
