//! `cellblock mcp`: tools for the client that started it, over stdin and stdout.

use std::sync::Arc;

use cellblock_image::Home;
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::project::check_name;
use cellblock_interpreter::toolset::{TOOLSETS, ToolsetKind, notebook};
use cellblock_mcp::{LazyInterpreter, Options, Server, StartError, serve_stdio};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::image;
use crate::args::mcp::McpArgs;
use crate::artifact_store;
use crate::error::{self, Error, Result};
use crate::exit_code::ExitCode;
use crate::progress::Display;
use crate::toolset;

/// Serves until the client ends the connection.
pub(crate) async fn run(args: McpArgs) -> ExitCode {
    error::end(serve(args).await)
}

async fn serve(args: McpArgs) -> Result<()> {
    let mut options = options(&args)?;
    // Where there is no backend, the start says so.
    if let Ok(backend) = args.wall.backend().await {
        options.lacks = backend.lacks();
    }
    let stop = stop_at_signals()?;
    let args = Arc::new(args);
    let engine = LazyInterpreter::starting(move || {
        let args = Arc::clone(&args);
        async move { started(&args).await.map_err(told) }
    });
    let server = Server::new(engine, options);
    // Clients wait a few seconds for their first answer, an image may take minutes: it is made
    // ready meanwhile.
    let early = server.clone();
    let ready = tokio::spawn(async move {
        // It was told of where it went wrong.
        let _ = early.engine().start().await;
    });
    let ended = serve_stdio(server, stop).await;
    ready.abort();
    // Before the runtime ends: a start that hears of that would report it as its failure.
    let _ = ready.await;
    ended.map_err(|error| Error::Process {
        action: "serve the client on stdin and stdout",
        source: std::io::Error::other(error),
    })
}

async fn started(args: &McpArgs) -> Result<Interpreter> {
    let backend = args.wall.backend().await?;
    let display = Display::on_stderr();
    let home = Home::find()?;
    let store = artifact_store::open(&home).await?;
    let image = image::ready(&home, &args.image, None, &display).await?;
    display.clear();
    let mut limits = Limits::default();
    if let Some(memory) = args.memory {
        limits.memory_bytes = memory.0;
    }
    let interpreter = Interpreter::builder()
        .image(image)
        .limits(limits)
        .demands(args.policy.demands())
        .backend(backend)
        .walls(args.wall.options())
        .store(store)
        .build();
    Ok(interpreter.await?)
}

/// Reports the whole error on stderr; the client receives less.
fn told(error: Error) -> StartError {
    error::tell(&error);
    error.into()
}

fn options(args: &McpArgs) -> Result<Options> {
    let mut options = Options {
        max_tokens: args.max_tokens as usize,
        idle_timeout: args.idle_timeout,
        on_idle: args.on_idle,
        images: args.images,
        links: args.links,
        max_sessions_per_key: args.max_sessions.into(),
        max_sessions: args.max_sessions.into(),
        project: args.project.clone(),
        network: args.network.network,
        egress: args.network.egress()?,
        ..Options::default()
    };
    if let Some(name) = &args.project {
        check_name(name).map_err(|reason| Error::Refused(format!("`--project`: {reason}")))?;
    }
    if !args.toolsets.is_empty() {
        let chosen = |kind: &ToolsetKind| args.toolsets.contains(kind);
        options.toolsets = TOOLSETS.into_iter().filter(chosen).collect();
    }
    if !options.network.is_none() && options.toolsets.iter().any(|kind| kind.on_results) {
        return Err(Error::Refused(format!(
            "`--network {}` is not for `--toolset derivation`, whose code never has a network; remove one \
             of them",
            options.network
        )));
    }
    if options.toolsets.contains(&notebook::KIND) {
        let of_session = toolset::of_configuration(args.config.clone())?;
        options.connectors = of_session.connectors;
        options.guard = of_session.guard;
        options.setup = of_session.setup;
    } else if args.config.is_some() {
        return Err(Error::Refused(
            "`--config` is for `--toolset notebook`; remove `--config`, or add that toolset".to_owned(),
        ));
    }
    for dataset in &args.datasets {
        let path = std::fs::canonicalize(&dataset.path).map_err(Error::user_file("find", &dataset.path))?;
        std::fs::File::open(&path).map_err(Error::user_file("read", &dataset.path))?;
        options.datasets.insert(dataset.name.clone(), path);
    }
    Ok(options)
}

/// Returns a token that is canceled by a signal to end the process.
fn stop_at_signals() -> Result<CancellationToken> {
    let stop = CancellationToken::new();
    let mut interrupted = signal(SignalKind::interrupt()).map_err(Error::process("listen for Ctrl-C"))?;
    let mut terminated = signal(SignalKind::terminate()).map_err(Error::process("listen for SIGTERM"))?;
    let stopping = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
        stopping.cancel();
    });
    Ok(stop)
}
