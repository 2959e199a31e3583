//! The interpreter: an image, a backend with its pool, and a store, from which sessions are created.

use std::collections::BTreeSet;
use std::sync::Arc;

use cellblock_artifact::Store;
use cellblock_image::layer::RequirementOptions;
use cellblock_image::{Manifest, RunningBuild};
use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::Backend;
use cellblock_sandbox::jail::protection::Report;
use cellblock_sandbox::limits::NetworkPolicy;
use serde_json::Value;

use crate::builder::InterpreterBuilder;
use crate::connector::{FetchAllowance, GrantTerms};
use crate::error::Result;
use crate::picture::{self, PictureFormat, PictureOutcome};
use crate::run_record::RunImage;
use crate::session::{Session, SessionOptions, check_skills};
use crate::shared::InterpreterState;
use crate::skill::SessionSkill;

/// Makes sessions. Clones share it; dropping the last one ends every sandbox that its sessions do not hold.
#[derive(Clone, Debug)]
pub struct Interpreter {
    pub(crate) shared: Arc<InterpreterState>,
}

impl Interpreter {
    /// Returns a builder of an interpreter on this machine, by default with the default image.
    ///
    /// ```no_run
    /// # async fn example() -> cellblock_interpreter::Result<()> {
    /// use cellblock_interpreter::Interpreter;
    /// use cellblock_interpreter::limits::Limits;
    ///
    /// let interpreter = Interpreter::builder()
    ///     .limits(Limits { memory_bytes: 512 << 20, ..Limits::default() })
    ///     .pool(4)
    ///     .build()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder() -> InterpreterBuilder {
        InterpreterBuilder::default()
    }

    /// Returns an interpreter with the sandboxes of a backend, whatever they start from.
    pub(crate) fn over(shared: InterpreterState) -> Self {
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Returns the state that sessions share.
    pub(crate) fn shared(&self) -> &Arc<InterpreterState> {
        &self.shared
    }

    /// The backend that makes the sandboxes.
    pub fn backend(&self) -> &dyn Backend {
        self.shared.backend.as_ref()
    }

    /// Completes once kernels start without waiting for the image's libraries.
    pub async fn warmed(&self) -> Result<()> {
        Ok(self.shared.backend.warmed().await?)
    }

    /// Modules of the image that could not be imported, with reasons; empty before [`warmed`](Self::warmed).
    pub fn failed_modules(&self) -> Vec<String> {
        self.shared.base.failed_modules()
    }

    /// The state of every protection.
    pub fn report(&self) -> Report {
        self.shared.backend.report()
    }

    /// Returns the number of sandboxes that are ready to be taken.
    pub fn ready_sandboxes(&self) -> usize {
        self.shared.pool.ready()
    }

    /// Keeps the ready sandboxes and makes no more of them in advance.
    pub fn stop_refilling(&self) {
        self.shared.pool.stop_refilling();
    }

    /// Sets the host name of the sandboxes that are made in this process afterward.
    pub async fn name_host(&self, name: &str) -> Result<()> {
        self.shared.base.name_host(name).await
    }

    /// The ids of the sandboxes that sessions have.
    pub fn sandboxes_in_use(&self) -> BTreeSet<String> {
        self.shared.in_use().clone()
    }

    /// Returns the number of sandboxes that sessions have taken so far.
    pub fn sandboxes_taken(&self) -> u64 {
        self.shared.taken()
    }

    /// The limits of sandboxes and cells, where a session has none of its own.
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// Limits the packages that code may require. It has no effect once a session has required some.
    pub fn limit_requirements(&self, options: RequirementOptions) {
        self.shared.limit_requirements(options);
    }

    /// Checks that requirements are valid, and that code may require these packages.
    pub fn check_requirements(&self, requirements: &[String]) -> Result<()> {
        if requirements.is_empty() {
            return Ok(());
        }
        Ok(self.shared.requirements().check(requirements)?)
    }

    /// Checks whether sessions with these limits can have skills, before one is created: their number,
    /// names and size, and whether sandboxes have a place for them.
    pub fn check_skills(&self, limits: Option<&Limits>, skills: &[SessionSkill]) -> Result<()> {
        let limits = limits.unwrap_or(&self.shared.limits);
        check_skills(&self.shared, limits.data_bytes, skills)
    }

    /// The version of Python in sandboxes, such as `3.13.5`.
    pub fn python_version(&self) -> &str {
        &self.shared.base.manifest().python
    }

    /// The widest network that the image allows its sandboxes, if it limits it.
    pub fn max_network(&self) -> Option<NetworkPolicy> {
        self.shared.base.manifest().policy.max_network
    }

    /// The image that sandboxes start from.
    pub fn image(&self) -> RunImage {
        let manifest = self.shared.base.manifest();
        RunImage {
            name: manifest.name.clone(),
            digest: manifest.id.clone(),
            python: manifest.python.clone(),
        }
    }

    /// Returns the images on this machine, the last that was built first; of another Cellblock, the
    /// one that it uses. It reads the disk.
    pub fn images(&self) -> Vec<Manifest> {
        self.shared.base.images()
    }

    /// Returns the builds of images and of requirements that run on this machine, the oldest first;
    /// none of another Cellblock's. It reads the disk.
    pub fn running_builds(&self) -> Vec<RunningBuild> {
        self.shared.base.running_builds()
    }

    /// The store of artifacts.
    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// A new session. Its sandbox is made when it is first needed.
    pub fn session(&self, options: SessionOptions) -> Session {
        Session::start(Arc::clone(&self.shared), options)
    }

    /// Returns the terms that [direct](crate::connector::direct) calls for an owner share with the sessions
    /// of that owner: the allowance, the answers that all of them get, and the store of tables.
    pub fn grant_terms(&self, allowance: Arc<dyn FetchAllowance>) -> GrantTerms {
        GrantTerms {
            store: Some(self.shared.store.clone()),
            allowance: Some(allowance),
            shared: Arc::clone(&self.shared.answers),
            session: None,
        }
    }

    /// Draws a Vega-Lite specification that has its data in it. What the renderer refuses is `Ok`,
    /// with a note.
    pub async fn draw(&self, vega_lite: &Value, format: PictureFormat) -> Result<PictureOutcome> {
        picture::draw(&self.shared, vega_lite, format).await
    }
}
