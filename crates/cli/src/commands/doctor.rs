//! `cellblock doctor`: what this machine offers, by starting what a run starts.

use std::path::Path;
use std::time::Instant;

use cellblock_artifact::Store as Artifacts;
use cellblock_image::{Home, ImageError, ImageStore, OpenImage};
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::builder::FrozenState;
use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::walls::{self, WallOptions};
use cellblock_sandbox::backend::process::preview_ids;
use cellblock_sandbox::backend::process::{ImageTree, ProcessBackend, ProcessConfig};
use cellblock_sandbox::backend::{Backend, BackendKind};
use cellblock_sandbox::jail::cgroup::{Controller, Trees, Version};
use cellblock_sandbox::jail::error::chain;
use cellblock_sandbox::jail::protection::{Demand, Demands, Protection, ProtectionStatus, Report};
use cellblock_sandbox::jail::{landlock, probe};
use serde::Serialize;

use crate::args::DoctorArgs;
use crate::error::{self, Error, Result};
use crate::exit_code::ExitCode;
use crate::features;
use crate::progress::Display;
use crate::render::{Screen, json};

mod apparmor;
#[cfg(feature = "kubernetes")]
mod cluster;
#[cfg(not(feature = "kubernetes"))]
#[path = "doctor/no_cluster.rs"]
mod cluster;
mod next;
mod report;

use next::Facts;
use report::{BackendReport, Diagnosis, ImageState, Machine, ProtectionReport, Trial};

/// Examines, prints, and says whether every strict protection is active.
pub(crate) async fn run(args: DoctorArgs) -> ExitCode {
    if args.apparmor_profile {
        return match apparmor::own() {
            Ok(profile) => {
                Screen::new().show(&profile);
                ExitCode::Success
            }
            Err(error) => {
                error::tell(&error);
                error.exit_code()
            }
        };
    }
    if args.kubernetes {
        return cluster::run(&args).await;
    }
    let display = Display::on_stderr();
    display.wait_for("starting a sandbox");
    let diagnosis = diagnose(&args.image, &args.policy.demands()).await;
    display.clear();
    show(&diagnosis, Diagnosis::draw, diagnosis.ready, args.json)
}

/// Prints what was found, and says whether it is enough.
fn show<D: Serialize>(
    diagnosis: &D,
    draw: impl FnOnce(&D) -> String,
    ready: bool,
    as_json: bool,
) -> ExitCode {
    if as_json {
        json::print(diagnosis);
    } else {
        Screen::new().show(&draw(diagnosis));
    }
    if ready {
        ExitCode::Success
    } else {
        ExitCode::Policy
    }
}

async fn diagnose(reference: &str, demands: &Demands) -> Diagnosis {
    let home = Home::find();
    let image = home
        .as_ref()
        .ok()
        .map(|home| ImageStore::new(home.clone()).resolve(reference));
    // Before the trial, which starts to make one.
    let frozen = match &image {
        Some(Ok(image)) => Some(frozen_state(image, demands).await),
        _ => None,
    };
    let (trial, started) = match image.as_ref() {
        Some(Ok(image)) => trial_with(image, demands).await,
        _ => trial_without(demands).await,
    };
    let (states, complete) = match started {
        Some(report) => (report, true),
        None => (probed(), false),
    };
    let protections: Vec<_> = Protection::ALL
        .into_iter()
        .map(|it| protection(it, demands, &states, complete))
        .collect();
    let strict = protections.iter().all(ProtectionReport::is_as_demanded);
    let ready = complete && strict && trial.error.is_none();
    let lenient = Demands::without_namespaces();
    let ready_without_namespaces =
        !ready && *demands != lenient && trial_without(&lenient).await.0.error.is_none();
    Diagnosis {
        ready,
        backends: backends().await,
        ready_without_namespaces,
        features: features::built(),
        next: Facts::gather().steps(&protections),
        machine: machine(home.as_ref().ok()),
        home_error: home.as_ref().err().map(ToString::to_string),
        image: ImageState {
            frozen,
            ..image_state(reference, image)
        },
        trial,
        protections,
    }
}

fn image_state(reference: &str, image: Option<Result<OpenImage, ImageError>>) -> ImageState {
    match image {
        Some(Ok(image)) => {
            let manifest = image.manifest();
            ImageState {
                name: reference.to_owned(),
                built: true,
                id: Some(image.id().to_owned()),
                python: Some(manifest.python.clone()),
                packages: Some(manifest.packages.len()),
                problem: None,
                frozen: None,
            }
        }
        Some(Err(error)) => ImageState::missing(reference, error.to_string()),
        None => ImageState::missing(reference, "there is no data directory".to_owned()),
    }
}

/// Describes the frozen template of an image.
async fn frozen_state(image: &OpenImage, demands: &Demands) -> String {
    let builder = Interpreter::builder()
        .image(image.clone())
        .demands(demands.clone());
    match builder.frozen().await {
        Ok(FrozenState::Ready) => "ready: sandboxes start with the libraries imported".to_owned(),
        Ok(FrozenState::Missing) => "not made yet; a start makes it in the background".to_owned(),
        Ok(FrozenState::Damaged(reason)) => format!("made again by the next start: {reason}"),
        Ok(FrozenState::Refused(reason)) => format!("none: {reason}"),
        Err(error) => format!("unknown: {}", chain(&error)),
    }
}

/// Tries each backend and reports what it would run here; the first line of the report is the weakest wall.
async fn backends() -> Vec<BackendReport> {
    let options = WallOptions::default();
    let mut reports = Vec::new();
    for kind in BackendKind::ALL {
        let (works, detail) = match walls::probe(kind, &options).await {
            Ok(found) => (true, found),
            Err(error) => (false, chain(&error)),
        };
        reports.push(BackendReport { kind, works, detail });
    }
    reports
}

/// Starts all that a run starts, and runs a cell.
async fn trial_with(image: &OpenImage, demands: &Demands) -> (Trial, Option<Report>) {
    let began = Instant::now();
    let attempt = async {
        let store =
            Artifacts::local(image.home().root().join("artifacts")).map_err(|source| Error::Store {
                action: "open the store of artifacts",
                source,
            })?;
        let interpreter = Interpreter::builder()
            .image(image.clone())
            .single_session()
            .demands(demands.clone())
            .store(store)
            .build()
            .await?;
        let session = interpreter.session(SessionOptions {
            pooled: false,
            ..SessionOptions::default()
        });
        let execution = session.execute("1 + 1").await?;
        session.close().await?;
        if execution.outcome != Outcome::Completed {
            let note = execution.note.unwrap_or_default();
            return Err(Error::Refused(format!(
                "the cell `1 + 1` ended as {}: {note}",
                execution.outcome.name()
            )));
        }
        Ok(interpreter.report())
    };
    Trial::of(
        "a sandbox with a kernel, and the cell `1 + 1` in it",
        began,
        attempt.await,
    )
}

/// Starts as much as can be without an image: the launcher and a room.
async fn trial_without(demands: &Demands) -> (Trial, Option<Report>) {
    let began = Instant::now();
    let attempt = async {
        let nothing = std::env::temp_dir().join(format!("cellblock-doctor-{}", std::process::id()));
        std::fs::create_dir_all(&nothing).map_err(Error::own_file("make the directory", &nothing))?;
        let started = room(&nothing, demands).await;
        let _ = std::fs::remove_dir(&nothing);
        started
    };
    Trial::of(
        "a sandbox without a kernel, as no image is built",
        began,
        attempt.await,
    )
}

async fn room(nothing: &Path, demands: &Demands) -> Result<Report> {
    let config = ProcessConfig {
        image: ImageTree::python(nothing.to_owned(), "bin/python3"),
        layers: None,
        bytecode: None,
        frozen: None,
        preload: Vec::new(),
        spare_room: false,
        demands: demands.clone(),
        launcher: None,
        walled: false,
        snapshot: false,
    };
    let backend = ProcessBackend::start(&config).await?;
    backend.create(&Limits::default()).await?.destroy().await?;
    Ok(backend.report())
}

/// Returns the known state of the protections when no sandbox can be started.
fn probed() -> Report {
    let lenient = Demands(
        Protection::ALL
            .into_iter()
            .map(|it| (it, Demand::Degradable))
            .collect(),
    );
    with_trees(|trees| probe::report(&lenient, preview_ids(), trees)).unwrap_or_default()
}

fn protection(protection: Protection, demands: &Demands, states: &Report, started: bool) -> ProtectionReport {
    let (state, reason) = match states.0.get(&protection) {
        // Probing does not try namespaces and the like; only a sandbox that stands proves them.
        Some(ProtectionStatus::Active) if !started && demands.of(protection) == Demand::Strict => {
            ("unknown", None)
        }
        Some(ProtectionStatus::Active) => ("active", None),
        Some(ProtectionStatus::Degraded { reason }) => ("missing", Some(reason.clone())),
        Some(ProtectionStatus::Disabled) => ("disabled", None),
        None => ("unknown", None),
    };
    // The trial's error names the one that prevented the others.
    let remedy = ["missing", "disabled"]
        .contains(&state)
        .then(|| protection.remedy());
    ProtectionReport {
        name: protection.to_string(),
        state,
        demand: demands.of(protection),
        reason,
        remedy,
    }
}

fn machine(home: Option<&Home>) -> Machine {
    let system = rustix::system::uname();
    let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    Machine {
        kernel: text(system.release()),
        architecture: text(system.machine()),
        user: rustix::process::geteuid().as_raw(),
        cpus: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        landlock_abi: landlock::abi(),
        cgroups: cgroups(),
        data_dir: home.map(|home| home.root().to_owned()),
        free_bytes: home.and_then(|home| free_bytes(home.root())),
        uv: on_path("uv"),
        python: on_path("python3.13"),
    }
}

fn cgroups() -> String {
    with_trees(|trees| {
        let names: Vec<_> = trees.controllers().into_iter().map(Controller::name).collect();
        match trees.version() {
            Some(Version::V1) => format!("version 1, {} may be used", names.join(", ")),
            Some(Version::V2) => format!("version 2, {} may be used", names.join(", ")),
            None => "none may be made here".to_owned(),
        }
    })
}

/// Makes the groups that a launcher would, and takes them away again.
fn with_trees<T>(look: impl FnOnce(&Trees) -> T) -> T {
    let trees = Trees::prepare(&Trees::own_name(), preview_ids().root());
    let seen = look(&trees);
    trees.remove_all();
    seen
}

fn free_bytes(path: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path).ok()?;
    disk.f_bavail.checked_mul(disk.f_frsize)
}

fn on_path(program: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}
