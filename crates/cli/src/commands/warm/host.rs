//! `cellblock warm host`: the process that `warm start` leaves behind, or `run` with `CELLBLOCK_WARM`.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use cellblock_image::{Home, ImageStore};
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::hosting::{Resident, ResidentSession};
use cellblock_interpreter::limits::{Limits, NetworkPolicy};
use cellblock_interpreter::remote::{ServeTerms, framed};
use tokio::net::UnixStream;

use crate::artifact_store;
use crate::commands::run::without_namespaces;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::sanitize;
use crate::session::host::connection::{failure, tell};
use crate::session::host::{Service, process};
use crate::session::place::SessionPlace;
use crate::session::plan::WarmPlan;
use crate::session::wire::{HostAnswer, HostCommand, WarmState};
use crate::session_error::HostKind;
use crate::session_id::SessionId;
use crate::warm::memory;

/// Serves sandboxes to its end.
pub(crate) fn run(id: &SessionId) -> ExitCode {
    process::run(HostKind::Warm, id, open)
}

/// Sandboxes of one image and policy, and what they were started for.
#[derive(Debug)]
struct WarmHost {
    interpreter: Interpreter,
    plan: WarmPlan,
}

/// Opens what was planned, and waits until kernels start at once; also returns notes for the user.
async fn open(home: Home, place: SessionPlace) -> Result<(WarmHost, Vec<String>)> {
    let plan: WarmPlan = place.plan()?;
    let store = artifact_store::open(&home).await?;
    let interpreter = Interpreter::builder()
        .image(ImageStore::new(home).resolve(&plan.image)?)
        .demands(plan.demands.clone())
        .store(store)
        .build()
        .await?;
    interpreter.warmed().await?;
    let mut notes: Vec<_> = without_namespaces(&interpreter).into_iter().collect();
    notes.extend(interpreter.failed_modules().iter().map(|module| {
        format!(
            "the image's module {} could not be imported",
            sanitize::line(module)
        )
    }));
    Ok((WarmHost { interpreter, plan }, notes))
}

impl ResidentSession for WarmHost {
    fn idle_timeout(&self) -> Duration {
        self.plan.idle
    }

    /// A run's interrupts come over its own connection.
    fn interrupt(&self) {}

    /// Sandboxes end with the connections that hold them, the others with the process.
    async fn close(&self) -> cellblock_interpreter::Result<()> {
        Ok(())
    }
}

impl Service for WarmHost {
    async fn answer(host: Arc<Resident<Self>>, mut stream: UnixStream, ask: HostCommand) -> io::Result<()> {
        match ask {
            HostCommand::Sandbox => {
                // A host that ends as its idle timeout is over closes the connection, and the run
                // goes on by itself.
                let Some(_held) = host.hold() else { return Ok(()) };
                tokio::select! {
                    served = host.interpreter.serve(framed(stream), terms()) => {
                        served.map_err(io::Error::other)
                    }
                    () = host.closed() => Ok(()),
                }
            }
            HostCommand::Describe => {
                let state = Box::new(state(&host));
                tell(&mut stream, &HostAnswer::Warm { state }).await
            }
            _ => {
                let refused = Error::Refused("a warm host only has sandboxes".to_owned());
                tell(&mut stream, &failure(&refused)).await
            }
        }
    }
}

/// A command may ask for as much as it could have by itself.
fn terms() -> ServeTerms {
    ServeTerms {
        most: Some(Limits {
            memory_bytes: u64::MAX,
            processes: u64::MAX,
            open_files: u64::MAX,
            disk_bytes: u64::MAX,
            inodes: u64::MAX,
            shm_bytes: u64::MAX,
            data_bytes: u64::MAX,
            file_bytes: u64::MAX,
            network: NetworkPolicy::Egress,
            ..Limits::default()
        }),
        ..ServeTerms::default()
    }
}

fn state(host: &Resident<WarmHost>) -> WarmState {
    let process = std::process::id();
    WarmState {
        process,
        plan: host.plan.clone(),
        ready: host.interpreter.ready_sandboxes(),
        running: host.holds(),
        idle_seconds: host.idle().as_secs_f64(),
        memory_bytes: memory::proportional(process),
    }
}
