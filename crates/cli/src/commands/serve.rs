//! `cellblock serve`: the HTTP API.

mod dialects;
mod mcp;
mod metered;
pub(super) mod plan;
#[cfg(feature = "kubernetes")]
mod pods;
#[cfg(not(feature = "kubernetes"))]
#[path = "serve/no_pods.rs"]
mod pods;

use std::cell::Cell;
use std::fs::{File, TryLockError};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use cellblock_artifact::Store;
use cellblock_dialects::DialectListener;
use cellblock_gateway::options::TlsOptions;
use cellblock_gateway::records::{Records, RecordsPlace};
use cellblock_gateway::remote::{self, FoundServer, Site};
use cellblock_gateway::server::{self, ServeError};
use cellblock_gateway::skills::load_shared;
use cellblock_gateway::{Engine, Gateway, RemoteEngine};
use cellblock_image::Home;
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::connector::limit_answers;
use cellblock_interpreter::remote::Remote;
use cellblock_interpreter::skill::SkillBundle;
use cellblock_interpreter::walls::choose;
use cellblock_sandbox::backend::BackendKind;
use cellblock_sandbox::jail::confine::open_many_files;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::image;
use crate::args::serve::ServeArgs;
use crate::artifact_store;
use crate::config::LoadedConfig;
use crate::error::{self, Error, Result};
use crate::exit_code::ExitCode;
use crate::progress::Display;
use crate::render::Screen;
use crate::warm::attach::HostRequirements;
use crate::warm::backend::WarmBackend;
use crate::warm::setting::WarmSetting;
use plan::Plan;
use pods::StartingServer;

/// Note about the server at `sandbox_url`.
const SANDBOXES: &str = "code runs in the sandboxes of the Cellblock at `sandbox_url`";
const EXECUTES: &str = "code runs at the server at `sandbox_url`, which only executes: variables and \
                        files are not kept from call to call, and there are no containers and no \
                        sessions, and nothing is served at `/mcp`";
/// Hint for servers that only execute, which have no sandboxes to give.
const SERVES_NOTHING: &str = "serve: servers that only execute have no sandboxes, so there are none that \
                              `remote.serve` could give to others; remove one of the two";

/// Serves until a signal stops it.
pub(crate) async fn run(args: ServeArgs) -> ExitCode {
    error::end(Box::pin(serve(&args)).await)
}

async fn serve(args: &ServeArgs) -> Result<()> {
    let Plan {
        loaded,
        mut options,
        models,
        site,
        pods,
        warm,
        mcp,
    } = Plan::of(args)?;
    // Before anything that takes long: a port that is taken is told at once.
    let listener = TcpListener::bind(options.listen)
        .await
        .map_err(|source| Error::Listen {
            address: options.listen,
            source,
        })?;
    let address = listener.local_addr().map_err(Error::process("listen"))?;
    let is_announced = Cell::new(false);
    let announce = || {
        if !is_announced.replace(true) {
            tracing::info!(%address, "listening");
            Screen::new().show(&format!("listening on http://{address}"));
        }
    };
    limit_answers(loaded.settings.fetches);
    raise_open_files();
    let mut interrupted = signal(SignalKind::interrupt()).map_err(Error::process("listen for Ctrl-C"))?;
    let mut terminated = signal(SignalKind::terminate()).map_err(Error::process("listen for SIGTERM"))?;
    let start = async {
        let home = Home::find()?;
        options.uploads.folder = Some(home.root().join("uploads"));
        let (records, lock) = records(&loaded, &home).await?;
        server::check(&options, &records).await?;
        let engine = match &pods {
            Some(pods) => {
                let server = StartingServer {
                    listener: &listener,
                    options: &options,
                    announce: &announce,
                };
                pods::engine(&loaded, pods, &home, &server).await?
            }
            None => engine(&loaded, site.as_ref(), warm, &home).await?,
        };
        if let Engine::Interpreter(interpreter) = &engine {
            interpreter.limit_requirements(options.requirements.clone());
            options.skills.shared = shared_skills(&loaded, interpreter.store()).await?;
        }
        Ok::<_, Error>((Gateway::new(options, records, models, engine), lock))
    };
    let (gateway, _lock) = tokio::select! {
        started = start => started?,
        _ = interrupted.recv() => return Err(Error::Cancelled),
        _ = terminated.recv() => return Ok(()),
    };
    let mut mounted: Vec<_> = mcp
        .into_iter()
        .filter_map(|options| mcp::mount(&gateway, options))
        .collect();
    let authorities = Home::find()?.root().join("authorities");
    let (mounts, listeners) = dialects::mounts(&gateway, &loaded.settings.dialects, authorities)?;
    mounted.extend(mounts);
    let mut serving = gateway.start(listener, &mounted).await?;
    for DialectListener {
        listener,
        routes,
        tls,
    } in listeners
    {
        let tls = tls.map(|files| TlsOptions {
            certificates: files.certificate,
            key: files.key,
        });
        let added = serving.with_listener(listener, routes, tls.as_ref());
        serving = added.map_err(ServeError::from)?;
    }
    announce();
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
    Ok(serving.run().await?)
}

/// Raises the limit of open files: connections, sandboxes and uploads of all keys share it.
fn raise_open_files() {
    if let Err(error) = open_many_files() {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "raise the limit of open files"
        );
    }
}

/// Reads the skills that all keys can use.
async fn shared_skills(loaded: &LoadedConfig, store: &Store) -> Result<Vec<Arc<SkillBundle>>> {
    let folders = loaded.settings.skills.folders.iter();
    let folders: Vec<_> = folders.map(|folder| loaded.path(folder)).collect();
    let shared = load_shared(store, &folders).await;
    shared.map_err(|(path, error)| {
        Error::Refused(format!(
            "serve: the skill `{}` cannot be shared: {error}; correct it, or remove it from `skills.folders`",
            path.display()
        ))
    })
}

/// Opens the records, and takes the lock that keeps others away from a file as long as it is held.
async fn records(loaded: &LoadedConfig, home: &Home) -> Result<(Records, Option<File>)> {
    let place = loaded.records(home.root())?;
    if let RecordsPlace::Postgres(url) = &place {
        tracing::info!(%url, "records are in Postgres");
        return Ok((place.open().await?, None));
    }
    let state = loaded.state(home.root());
    std::fs::create_dir_all(&state).map_err(Error::own_file("make the directory of the state", &state))?;
    let path = state.join("lock");
    let lock = File::create(&path).map_err(Error::own_file("open the lock of the state", &path))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(Error::Refused(in_use(&state))),
        Err(TryLockError::Error(error)) => return Err(Error::own_file("lock the state", &path)(error)),
    }
    Ok((place.open().await?, Some(lock)))
}

fn in_use(state: &Path) -> String {
    format!(
        "serve: another server has its state in `{}`; end it, or name another directory by the key \
         `state` or by CELLBLOCK_SERVE__STATE",
        state.display()
    )
}

/// Returns the engine that runs code: sandboxes of this machine, or what is at `sandbox_url`.
async fn engine(
    loaded: &LoadedConfig,
    site: Option<&Site>,
    warm: WarmSetting,
    home: &Home,
) -> Result<Engine> {
    let settings = &loaded.settings;
    let store = artifact_store::open(home).await?;
    let Some(site) = site else {
        return Ok(here(loaded, warm, home, store).await?.into());
    };
    match remote::connect(site).await? {
        FoundServer::Cellblock(backend) => {
            let interpreter = Interpreter::start_remote(Remote {
                backend: *backend,
                limits: settings.limits.enforced(),
                pool: settings.pool,
                store,
                spool: home.root().join("datasets"),
            });
            Ok(interpreter.into())
        }
        // It cannot give what it does not have.
        FoundServer::Execute(..) if settings.remote.serve => Err(Error::Refused(SERVES_NOTHING.to_owned())),
        FoundServer::Execute(server, _) => Ok(Engine::Execute(RemoteEngine {
            server: *server,
            timeout: settings.limits.enforced().cell_timeout,
            store,
        })),
    }
}

async fn here(loaded: &LoadedConfig, setting: WarmSetting, home: &Home, store: Store) -> Result<Interpreter> {
    let display = Display::on_stderr();
    let started = start_here(loaded, setting, home, store, &display).await;
    display.clear();
    started
}

async fn start_here(
    loaded: &LoadedConfig,
    setting: WarmSetting,
    home: &Home,
    store: Store,
    display: &Display,
) -> Result<Interpreter> {
    let settings = &loaded.settings;
    let image = image::ready(home, &settings.image.0, settings.mirror(), display).await?;
    // For a person; lines of a log have their own form.
    display.wait_for("starting sandboxes");
    tracing::info!(image = %settings.image.0, "starting sandboxes");
    let limits = settings.limits.enforced();
    let demands = settings.protections.demands();
    let walls = settings.walls();
    let backend = choose(settings.backend, settings.minimum_backend, &walls).await?;
    let alone = Interpreter::builder()
        .image(image.clone())
        .limits(limits.clone())
        .pool(settings.pool)
        .demands(demands.clone())
        .backend(backend)
        .walls(walls)
        .store(store.clone());
    if backend != BackendKind::Process {
        return Ok(alone.build().await?);
    }
    let wanted = HostRequirements {
        home,
        image: &image,
        image_name: &settings.image.0,
        demands: &demands,
    };
    match WarmBackend::attach(&wanted, setting, &alone).await {
        Some(backend) => Ok(Interpreter::start_local(
            backend,
            image,
            limits,
            settings.pool.acquire_timeout,
            store,
        )),
        None => Ok(alone.build().await?),
    }
}

fn tell(address: SocketAddr, gateway: &Gateway, elsewhere: bool, demo: bool) {
    let mut screen = Screen::new();
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
