//! Serves every dialect over one interpreter, without keys: `cargo run -p cellblock-dialects --example serve -- 127.0.0.1:8080`.

use std::net::SocketAddr;

use axum::Router;
use cellblock_dialects::{DialectsOptions, E2bOptions};
use cellblock_interpreter::limits::NetworkPolicy;

mod terms;

#[tokio::main]
async fn main() {
    let address = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let debug = std::env::args().any(|argument| argument == "--debug");
    let host = terms::host(NetworkPolicy::Loopback).await;
    let options = DialectsOptions {
        e2b: Some(E2bOptions {
            debug,
            ..E2bOptions::default()
        }),
    };
    let served = cellblock_dialects::routes(&host, &options).into_iter();
    let routes = served.fold(Router::new(), |all, it| all.nest(it.path, it.routes));
    let listener = tokio::net::TcpListener::bind(&address)
        .await
        .expect("the address is free");
    let service = routes.into_make_service_with_connect_info::<SocketAddr>();
    let served = axum::serve(listener, service).with_graceful_shutdown(async {
        tokio::signal::ctrl_c().await.expect("signals can be handled");
    });
    served.await.expect("the server runs");
    terms::stop(&host).await;
}
