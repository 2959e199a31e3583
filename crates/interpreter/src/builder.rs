//! Building an interpreter from an image, limits, a pool and a store.

use std::path::PathBuf;
use std::sync::Arc;

use cellblock_artifact::Store;
use cellblock_image::{DEFAULT_IMAGE, Home, ImageStore, OpenImage, Sink};
use cellblock_sandbox::Limits;
pub use cellblock_sandbox::backend::process::FrozenState;
use cellblock_sandbox::backend::process::{FrozenConfig, ImageTree, ProcessBackend, ProcessConfig};
pub use cellblock_sandbox::backend::{BackendChoice, BackendKind, Lack};
use cellblock_sandbox::jail::protection::Demands;
use cellblock_sandbox::pool::PoolConfig;

use crate::base::LocalBase;
use crate::error::{Error, Result};
use crate::interpreter::Interpreter;
use crate::shared::InterpreterState;

/// Paths of the image's Python, as in other sandboxes, and of its root filesystem in a machine of gVisor.
const WALLED_PYTHON: &str = "/opt/python";
const WALLED_ROOT: &str = "/opt/root";
/// First minor version of Python 3 that can leave the directory of a script out of its search path.
const SAFE_PATH: u32 = 11;

/// Builds an [`Interpreter`]. Everything has a default; see [`Interpreter::builder`].
#[derive(Clone, Debug, Default)]
#[must_use = "call `build` to start the interpreter"]
pub struct InterpreterBuilder {
    home: Option<PathBuf>,
    image: Option<OpenImage>,
    preload: Option<Vec<String>>,
    limits: Limits,
    pool: PoolConfig,
    single: bool,
    demands: Demands,
    store: Option<Store>,
    launcher: Option<PathBuf>,
    backend: BackendKind,
    walled: bool,
    snapshot: bool,
    #[cfg(feature = "walls")]
    walls: cellblock_walls::WallOptions,
}

impl InterpreterBuilder {
    /// Sets the directory that holds images and artifacts. By default, `$CELLBLOCK_HOME` or a
    /// directory below the user's home.
    pub fn home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    /// Sets the image that sandboxes start from. By default, the default image, which is built if
    /// the home does not have it yet (this takes minutes and needs a network).
    pub fn image(mut self, image: OpenImage) -> Self {
        self.image = Some(image);
        self
    }

    /// Sets the modules that the template imports, instead of those that the image lists. With an
    /// empty list the first cell starts at once and imports what it needs, which suits a program
    /// that runs a single session.
    pub fn preload(mut self, modules: impl Into<Option<Vec<String>>>) -> Self {
        self.preload = modules.into();
        self
    }

    /// Sets the limits of sandboxes and cells. A session can have its own.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how many sandboxes are kept ready: a number or a [`PoolConfig`].
    pub fn pool(mut self, pool: impl Into<PoolConfig>) -> Self {
        self.pool = pool.into();
        self
    }

    /// Prepares for a single session: the template imports none of the image's libraries, and
    /// nothing is kept ready for another session. More sessions can be created; each waits for its
    /// own sandbox.
    pub fn single_session(self) -> Self {
        Self {
            single: true,
            ..self.pool(0).preload(Vec::new())
        }
    }

    /// Sets what is demanded of each protection: whether sandboxes may start without it.
    pub fn demands(mut self, demands: Demands) -> Self {
        self.demands = demands;
        self
    }

    /// Sets the store of artifacts. By default, `artifacts` in the image's home.
    pub fn store(mut self, store: Store) -> Self {
        self.store = Some(store);
        self
    }

    /// Sets the executable that becomes the launcher of sandboxes: `cellblock`, or any other
    /// program that this crate is linked into. By default, the running program is executed again,
    /// which works unless it loaded this crate as a shared library.
    pub fn launcher(mut self, executable: impl Into<PathBuf>) -> Self {
        self.launcher = Some(executable.into());
        self
    }

    /// Sets the backend that makes the sandboxes. By default, processes of this machine.
    pub const fn backend(mut self, backend: BackendKind) -> Self {
        self.backend = backend;
        self
    }

    /// Declares that this machine is one of gVisor's, made for a single sandbox: the wall around it
    /// replaces the protections that its kernel lacks. Only `cellblock inside` does so;
    /// [`build`](Self::build) fails anywhere else.
    pub const fn walled(mut self, walled: bool) -> Self {
        self.walled = walled;
        self
    }

    /// Declares that a snapshot of this machine is taken once a sandbox is ready, and that each of
    /// its copies serves one sandbox.
    pub const fn snapshot(mut self) -> Self {
        self.snapshot = true;
        self
    }

    /// Sets how the machines of gVisor and microVMs are made.
    #[cfg(feature = "walls")]
    pub fn walls(mut self, walls: cellblock_walls::WallOptions) -> Self {
        self.walls = walls;
        self
    }

    /// Returns the state of the image's frozen template, from which the process backend starts without
    /// importing libraries.
    pub async fn frozen(self) -> Result<FrozenState> {
        Ok(ProcessBackend::frozen(&self.process(&self.opened().await?)))
    }

    /// Makes the image's frozen template if there is none. Otherwise, the first start makes it in the
    /// background.
    pub async fn freeze(self) -> Result<FrozenState> {
        let image = self.opened().await?;
        Ok(ProcessBackend::freeze(&self.process(&image)).await?)
    }

    async fn opened(&self) -> Result<OpenImage> {
        if let Some(image) = &self.image {
            return Ok(image.clone());
        }
        let images = match &self.home {
            Some(home) => ImageStore::new(Home::at(home)?),
            None => ImageStore::find()?,
        };
        Ok(images.open(DEFAULT_IMAGE, Sink::silent()).await?)
    }

    /// Describes the process backend.
    fn process(&self, image: &OpenImage) -> ProcessConfig {
        // A list of the caller's own would replace that of every other program.
        let is_usual = self.single || self.preload.is_none();
        let modules = image.manifest().template_modules();
        ProcessConfig {
            image: tree(image, self.walled),
            layers: Some(image.home().layers()),
            bytecode: Some(image.bytecode()),
            frozen: (is_usual && !self.walled && !self.snapshot).then(|| FrozenConfig {
                directory: image.frozen(),
                modules: modules.clone(),
            }),
            preload: self.preload.clone().unwrap_or(modules),
            spare_room: !self.single && !self.snapshot,
            demands: self.demands.clone(),
            launcher: self.launcher.clone(),
            walled: self.walled,
            snapshot: self.snapshot,
        }
    }

    /// Starts the backend, the image's template and the pool. Sessions can be created at once;
    /// their first cell waits for the template.
    pub async fn build(self) -> Result<Interpreter> {
        let image = self.opened().await?;
        let config = self.process(&image);
        let home = image.home();
        let store = self
            .store
            .map_or_else(|| Store::local(home.root().join("artifacts")), Ok)?;
        // Bound into the keep now; layers that are installed later appear in it.
        std::fs::create_dir_all(home.layers()).map_err(Error::Spool)?;
        if self.backend != BackendKind::Process {
            #[cfg(not(feature = "walls"))]
            return Err(cellblock_sandbox::Error::missing_protection(format!(
                "this program was built without the backend `{}`; build it with the feature `walls`",
                self.backend
            ))
            .into());
            #[cfg(feature = "walls")]
            {
                let config = cellblock_walls::WallConfig {
                    executable: match self.launcher {
                        Some(executable) => executable,
                        None => std::env::current_exe().map_err(Error::Spool)?,
                    },
                    image: image.clone(),
                    limits: self.limits.clone(),
                    demands: self.demands,
                    options: self.walls,
                };
                let starting = Box::pin(cellblock_walls::start(self.backend, config));
                let backend = Arc::new(starting.await?);
                let base = Box::new(LocalBase { image, process: None });
                let shared = InterpreterState::new(backend, base, self.limits, self.pool, store);
                return Ok(Interpreter::over(shared));
            }
        }
        let process = ProcessBackend::start(&config).await?;
        let backend = Arc::new(process.clone());
        let base = Box::new(LocalBase {
            image,
            process: Some(process),
        });
        let shared = InterpreterState::new(backend, base, self.limits, self.pool, store);
        Ok(Interpreter::over(shared))
    }
}

/// Describes an image's files for a backend of this machine, which is one of gVisor's if `walled`.
fn tree(image: &OpenImage, walled: bool) -> ImageTree {
    let manifest = image.manifest();
    // A path of the machine, which messages may name.
    let walled = walled.then(|| {
        PathBuf::from(if image.is_root() {
            WALLED_ROOT
        } else {
            WALLED_PYTHON
        })
    });
    ImageTree {
        directory: walled.unwrap_or_else(|| image.tree()),
        is_root: image.is_root(),
        interpreter: manifest.interpreter.clone(),
        library_path: manifest.library_path.clone(),
        has_safe_path: manifest.python_minor().is_some_and(|minor| minor >= SAFE_PATH),
        environment: manifest
            .root
            .as_ref()
            .map(|root| root.environment.clone())
            .unwrap_or_default(),
    }
}
