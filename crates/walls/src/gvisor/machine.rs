//! Starting, checkpointing and restoring machines with `runsc`.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cellblock_guest::machine::MachineOrder;
use cellblock_sandbox::backend::BackendKind;
use cellblock_sandbox::jail::cgroup::GroupLimits;
use tokio::net::UnixStream;

use super::bundle;
use super::runsc::Runsc;
use crate::WallConfig;
use crate::machines::{MachineOrigin, Wall, connected, listen};
use crate::owner::MachineOwner;
use crate::places::{MachinePlace, MachinePlaces};
use crate::snapshot::Facts;

/// Maximum time to write a snapshot, or the state of a machine that goes on.
const SNAPSHOT_LIMIT: Duration = Duration::from_mins(3);
/// Memory of the template and of gVisor itself, and what code can take until the machine notices that it
/// has taken too much. Beyond it the host ends the whole machine.
const OVERHEAD_BYTES: u64 = 1 << 30;

impl Wall for Runsc {
    const KIND: BackendKind = BackendKind::Gvisor;
    const TEMPLATE_LIMIT: Duration = Duration::from_mins(3);

    const SENDS_LAYERS: bool = false;

    const OVERHEAD_BYTES: u64 = OVERHEAD_BYTES;

    type Control = ();

    fn description(&self) -> String {
        format!("gVisor {}, platform systrap", self.version)
    }

    fn facts(&self, facts: Facts) -> io::Result<Facts> {
        Ok(facts.with("runsc", &*self.version))
    }

    fn prepare(&self, places: &MachinePlaces) -> io::Result<()> {
        bundle::write_root(&places.shared())
    }

    async fn start(
        &self,
        config: &WallConfig,
        places: &MachinePlaces,
        place: &MachinePlace,
        _directory: &Path,
    ) -> Result<(MachineOwner, ()), String> {
        prepare(config, places, place)?;
        let words = vec!["run".to_owned(), format!("--bundle={}", place.path.display())];
        Ok((self.own(config, place, words)?, ()))
    }

    async fn save(
        &self,
        (owner, ()): (&MachineOwner, &mut ()),
        place: &MachinePlace,
        directory: &Path,
    ) -> Result<(), String> {
        self.checkpoint(owner, place, directory, false).await
    }

    async fn restore(
        &self,
        config: &WallConfig,
        places: &MachinePlaces,
        place: &MachinePlace,
        origin: MachineOrigin<'_>,
    ) -> Result<(MachineOwner, (), UnixStream), String> {
        let shared = prepare(config, places, place)?;
        let listener = listen(&shared.join(bundle::SOCKET))?;
        let words = vec![
            "restore".to_owned(),
            format!(
                "--image-path={}",
                origin.saved.unwrap_or(origin.snapshot).display()
            ),
            format!("--bundle={}", place.path.display()),
        ];
        let owner = self.own(config, place, words)?;
        let stream = connected(&listener, &owner, config.options.restore_limit()).await?;
        Ok((owner, (), stream))
    }

    async fn save_running(
        &self,
        (owner, ()): (&MachineOwner, &mut ()),
        place: &MachinePlace,
        directory: &Path,
    ) -> Result<(), String> {
        // Until it is written, the machine would be gone with it.
        self.checkpoint(owner, place, directory, true).await
    }

    async fn reconnect(
        &self,
        config: &WallConfig,
        (owner, ()): (&MachineOwner, &mut ()),
        place: &MachinePlace,
    ) -> Result<UnixStream, String> {
        let listener = listen(&place.path.join(SHARED).join(bundle::SOCKET))?;
        connected(&listener, owner, config.options.restore_limit()).await
    }
}

/// Directory of a machine that it shares with its host.
const SHARED: &str = "cb";

/// Directory of `runsc`'s own files in that of a machine.
const STATE: &str = "state";

impl Runsc {
    async fn checkpoint(
        &self,
        owner: &MachineOwner,
        place: &MachinePlace,
        directory: &Path,
        goes_on: bool,
    ) -> Result<(), String> {
        let mut checkpoint = self.words(&place.path.join(STATE));
        checkpoint.extend(["checkpoint".to_owned(), "--compression=none".to_owned()]);
        checkpoint.extend(goes_on.then(|| "--leave-running".to_owned()));
        checkpoint.extend([format!("--image-path={}", directory.display()), place.id.clone()]);
        let written = tokio::time::timeout(SNAPSHOT_LIMIT, owner.run(checkpoint)).await;
        written.map_err(|_| format!("it was not written within {} s", SNAPSHOT_LIMIT.as_secs()))?
    }

    /// Starts the owner of a machine, which runs this command of `runsc`.
    fn own(
        &self,
        config: &WallConfig,
        place: &MachinePlace,
        command: Vec<String>,
    ) -> Result<MachineOwner, String> {
        let state = place.directory(STATE).map_err(|error| error.to_string())?;
        let words = self.words(&state);
        let mut delete = words.clone();
        delete.extend(["delete".to_owned(), "-force".to_owned(), place.id.clone()]);
        let machine = MachineOrder {
            program: [words, command, vec![place.id.clone()]].concat(),
            cleanup: vec![delete],
            directory: place.path.clone(),
            namespaces: !rustix::process::geteuid().is_root(),
            mounts: Vec::new(),
            limits: GroupLimits {
                memory_bytes: Some(config.limits.memory_bytes.saturating_add(OVERHEAD_BYTES)),
                // Inside, tasks are gVisor's own; threads of its kernel come and go.
                processes: None,
                cpu_millis: config.limits.cpu_millis,
                socket_bytes: None,
            },
        };
        MachineOwner::start(&config.executable, &machine)
    }
}

/// Writes the bundle of a machine, and returns the directory that the machine shares with its host.
fn prepare(config: &WallConfig, places: &MachinePlaces, place: &MachinePlace) -> Result<PathBuf, String> {
    let prepared = place.directory(SHARED).and_then(|shared| {
        bundle::write(&place.path, &places.shared(), &shared, config)?;
        Ok(shared)
    });
    prepared.map_err(|error| format!("write the bundle below `{}`: {error}", place.path.display()))
}
