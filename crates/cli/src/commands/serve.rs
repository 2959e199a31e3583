//! `cellblock serve`: the HTTP API.

use std::sync::Arc;
use std::time::Duration;

use cellblock_artifact::Store;
use cellblock_gateway::provider::demo::Demo;
use cellblock_gateway::records::{self, Records};
use cellblock_gateway::server::{self, Gateway, StopOptions};
use cellblock_gateway::{Models, Options};
use cellblock_interpreter::{Config, Interpreter, Limits};
use cellblock_sandbox::image::Home;
use cellblock_sandbox::jail::protection::Demands;
use cellblock_sandbox::pool::PoolConfig;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::image;
use crate::args::serve::ServeArgs;
use crate::error::{self, Error, Result};
use crate::exit_code::ExitCode;
use crate::progress::Display;

/// Serves until it is told to stop.
pub(crate) async fn run(args: ServeArgs) -> ExitCode {
    match serve(&args).await {
        Ok(()) => ExitCode::Success,
        Err(error) => {
            error::tell(&error);
            error.exit_code()
        }
    }
}

async fn serve(args: &ServeArgs) -> Result<()> {
    let display = Display::on_stderr();
    let home = Home::find()?;
    let records = Records::open(&records::path_below(home.root()))?;
    let options = Options {
        listen: args.listen,
        stop: StopOptions {
            grace: Duration::from_secs(args.grace.into()),
        },
        ..Options::default()
    };
    server::check(&options, &records).await?;
    let store = Store::local(home.root().join("artifacts")).map_err(|source| Error::Store {
        action: "open the store of artifacts",
        source,
    })?;
    let image = image::ready(&home, "default", &display).await?;
    display.clear();
    let interpreter = Interpreter::start(Config {
        image,
        preload: None,
        limits: Limits::default(),
        pool: PoolConfig::default(),
        demands: Demands::default(),
        store,
        launcher: None,
    })
    .await?;
    let mut models = Models::default();
    if args.demo {
        models = models.with("demo", Arc::new(Demo));
    }
    let listener = TcpListener::bind(options.listen)
        .await
        .map_err(Error::process("listen"))?;
    let address = listener.local_addr().map_err(Error::process("listen"))?;
    tracing::info!(%address, "listening");
    let gateway = Gateway::new(options, records, models, interpreter);
    let mut interrupted = signal(SignalKind::interrupt()).map_err(Error::process("listen for Ctrl-C"))?;
    let mut terminated = signal(SignalKind::terminate()).map_err(Error::process("listen for SIGTERM"))?;
    let stopping = gateway.clone();
    tokio::spawn(async move {
        // The second signal ends at once.
        loop {
            tokio::select! {
                _ = interrupted.recv() => {}
                _ = terminated.recv() => {}
            }
            stopping.stop();
        }
    });
    Ok(gateway.serve(listener).await?)
}
