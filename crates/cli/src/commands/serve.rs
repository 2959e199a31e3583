//! `cellblock serve`: the HTTP API.

mod mcp;

use std::fs::{File, TryLockError};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cellblock_artifact::Store;
use cellblock_gateway::provider::demo::Demo;
use cellblock_gateway::records::Records;
use cellblock_gateway::remote::{self, Found, Site};
use cellblock_gateway::server::{self, Gateway};
use cellblock_gateway::tools::{ConfiguredServer, Tools};
use cellblock_gateway::{Elsewhere, Engine, Models};
use cellblock_interpreter::{Config, Interpreter, Remote};
use cellblock_sandbox::image::Home;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::image;
use crate::args::serve::ServeArgs;
use crate::config::{Loaded, OfferPolicy, Sources};
use crate::error::{self, Error, Result};
use crate::exit_code::ExitCode;
use crate::progress::Display;
use crate::render::Screen;

/// What to do where there is nothing to answer with.
const NO_MODEL: &str = "\
serve: there is no model to answer with; run `cellblock serve --demo` to try it without one, `cellblock serve --no-model` for sandboxes alone (REST, MCP), or write a provider into `cellblock.yaml`:

    providers:
      local:
        type: chat
        base_url: http://127.0.0.1:11434/v1
";

/// What is said of the server at `sandbox_url`.
const SANDBOXES: &str = "code runs in the sandboxes of the Cellblock at `sandbox_url`";
const EXECUTES: &str = "code runs at the server at `sandbox_url`, which only executes: variables and files are not kept from call to call, and \
                        there are no containers and no sessions, and nothing is served at `/mcp`";
/// What to do where there are no sandboxes to give.
const SERVES_NOTHING: &str = "serve: the server at `sandbox_url` has no sandboxes, so there are none that `remote.serve` could give to others; \
                              remove one of the two";

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
    let loaded = Sources::of_process(args.config.clone(), args.listen).load()?;
    let models = models(&loaded, args)?;
    let site = loaded.site()?;
    let tools = loaded.mcp()?;
    let mut options = loaded.options();
    options.tools = servers_of_tools(&loaded)?;
    if let Some(seconds) = args.grace {
        options.stop.grace = Duration::from_secs(seconds.into());
    }
    // Before anything that takes long: a port that is taken is told at once.
    let listener = TcpListener::bind(options.listen)
        .await
        .map_err(|source| Error::Listen {
            address: options.listen,
            source,
        })?;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(Error::process("listen for Ctrl-C"))?;
    let mut terminated = signal(SignalKind::terminate()).map_err(Error::process("listen for SIGTERM"))?;
    let start = async {
        let home = Home::find()?;
        let (records, lock) = records(&loaded, &home)?;
        server::check(&options, &records).await?;
        let engine = engine(&loaded, site.as_ref(), &home).await?;
        Ok::<_, Error>((Gateway::new(options, records, models, engine), lock))
    };
    let (gateway, _lock) = tokio::select! {
        started = start => started?,
        _ = interrupted.recv() => return Err(Error::Cancelled),
        _ = terminated.recv() => return Ok(()),
    };
    let address = listener.local_addr().map_err(Error::process("listen"))?;
    tracing::info!(%address, "listening");
    let mounted: Vec<_> = tools
        .into_iter()
        .filter_map(|options| mcp::mount(&gateway, options))
        .collect();
    tell(address, &gateway, site.is_some(), args.demo);
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
    Ok(gateway.serve_with(listener, &mounted).await?)
}

/// The servers whose tools turns may call. None is started or asked yet.
fn servers_of_tools(loaded: &Loaded) -> Result<Tools> {
    let (offered, named) = loaded.tool_servers()?;
    let configured = offered.into_iter().map(|(server, policy)| ConfiguredServer {
        server,
        always: policy == OfferPolicy::Always,
    });
    Ok(Tools {
        configured: configured.collect(),
        named: (!loaded.settings.mcp_requests.allowed_urls.is_empty()).then_some(named),
    })
}

fn models(loaded: &Loaded, args: &ServeArgs) -> Result<Models> {
    let mut models = Models::default();
    if args.no_model {
        return Ok(models);
    }
    if !args.demo && loaded.settings.providers.models.is_empty() {
        return Err(Error::Refused(NO_MODEL.trim_end().to_owned()));
    }
    if args.demo {
        models = models.with("demo", Arc::new(Demo));
    }
    Ok(loaded.models(models)?)
}

/// What is remembered, and the lock that keeps others away from it as long as it is held.
fn records(loaded: &Loaded, home: &Home) -> Result<(Records, File)> {
    let state = loaded.state(home.root());
    std::fs::create_dir_all(&state).map_err(Error::own_file("make the directory of the state", &state))?;
    let path = state.join("lock");
    let lock = File::create(&path).map_err(Error::own_file("open the lock of the state", &path))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(Error::Refused(in_use(&state))),
        Err(TryLockError::Error(error)) => return Err(Error::own_file("lock the state", &path)(error)),
    }
    let records = Records::open(&state.join("records.sqlite")).map_err(Error::Records)?;
    Ok((records, lock))
}

fn in_use(state: &Path) -> String {
    format!(
        "serve: another server has its state in `{}`; end it, or name another directory by the key `state` or by CELLBLOCK_SERVE__STATE",
        state.display()
    )
}

/// What runs code: sandboxes of this machine, or what is at `sandbox_url`.
async fn engine(loaded: &Loaded, site: Option<&Site>, home: &Home) -> Result<Engine> {
    let settings = &loaded.settings;
    let store = Store::local(home.root().join("artifacts")).map_err(|source| Error::Store {
        action: "open the store of artifacts",
        source,
    })?;
    let Some(site) = site else {
        return Ok(here(loaded, home, store).await?.into());
    };
    match remote::connect(site).await? {
        Found::Cellblock(backend) => {
            let interpreter = Interpreter::start_remote(Remote {
                backend: *backend,
                limits: settings.limits.enforced(),
                pool: settings.pool.config(),
                store,
                spool: home.root().join("datasets"),
            });
            Ok(interpreter.into())
        }
        // It cannot give what it does not have.
        Found::Execute(..) if settings.remote.serve => Err(Error::Refused(SERVES_NOTHING.to_owned())),
        Found::Execute(server, _) => Ok(Engine::Execute(Elsewhere {
            server: *server,
            timeout: settings.limits.enforced().cell_time,
            store,
        })),
    }
}

async fn here(loaded: &Loaded, home: &Home, store: Store) -> Result<Interpreter> {
    let settings = &loaded.settings;
    let display = Display::on_stderr();
    let image = image::ready(home, &settings.image, &display).await?;
    display.clear();
    let started = Interpreter::start(Config {
        image,
        preload: None,
        limits: settings.limits.enforced(),
        pool: settings.pool.config(),
        demands: settings.protections.demands(),
        store,
        launcher: None,
    });
    Ok(started.await?)
}

fn tell(address: SocketAddr, gateway: &Gateway, elsewhere: bool, demo: bool) {
    let mut screen = Screen::new();
    screen.show(&format!("listening on http://{address}"));
    match &gateway.engine {
        Engine::Execute(_) => screen.show(EXECUTES),
        Engine::Interpreter(_) if elsewhere => screen.show(SANDBOXES),
        Engine::Interpreter(_) => {}
    }
    if demo {
        let body = r#"{"model": "demo", "input": "Hello", "tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]}"#;
        screen.show(&format!(
            "try: curl http://{address}/v1/responses -H 'content-type: application/json' -d '{body}'"
        ));
    }
}
