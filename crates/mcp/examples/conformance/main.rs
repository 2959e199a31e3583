//! Cellblock's MCP server with the fixtures that the protocol's conformance suite asks for, over HTTP at the port that is given.
//!
//! `cargo run -p cellblock-mcp --features conformance-fixtures --example conformance -- 8787`; see `tests/clients/mcp/README.md`.

mod fixtures;

use std::error::Error;

use axum::Router;
use cellblock_interpreter::{Config, Interpreter};
use cellblock_mcp::http::{HttpOptions, mount};
use cellblock_mcp::{Engine, Options, Server};
use tokio::net::TcpListener;

use fixtures::Fixtures;

fn main() -> Result<(), Box<dyn Error>> {
    // A copy of this program that is a launcher does not return from here.
    cellblock_interpreter::boot();
    tokio::runtime::Runtime::new()?.block_on(serve())
}

async fn serve() -> Result<(), Box<dyn Error>> {
    let port = std::env::args().nth(1).ok_or("give a port")?.parse::<u16>()?;
    let engine = Engine::starting(|| async {
        let config = Config::default_image().await?;
        Ok(Interpreter::start(config).await?)
    });
    let server = Server::new(engine, Options::default());
    let options = HttpOptions {
        allowed_origins: ["localhost", "127.0.0.1"]
            .map(|host| format!("http://{host}:{port}"))
            .into(),
        ..HttpOptions::default()
    };
    let service = mount(Fixtures::over(server), options);
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    axum::serve(listener, Router::new().route_service("/mcp", service)).await?;
    Ok(())
}
