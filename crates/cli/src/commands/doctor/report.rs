//! Findings of a doctor, and their text.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use cellblock_sandbox::backend::BackendKind;
use cellblock_sandbox::jail::protection::{Demand, Report};
use serde::Serialize;

use super::next::NextStep;
use crate::error::{Error, Result};
use crate::render::table::counted;
use crate::render::{BAD, FAINT, GOOD, NOTE, STRONG, json, styled};
use crate::sanitize;
use cellblock_settings::Size;

/// All of it.
#[derive(Debug, Serialize)]
pub(super) struct Diagnosis {
    /// Whether a sandbox started and every strict protection is active.
    pub(super) ready: bool,
    /// Whether a sandbox would start with `--without-namespaces`, if it does not start with the policy.
    pub(super) ready_without_namespaces: bool,
    /// Features of Cargo that this build has, of those that a build may lack.
    pub(super) features: Vec<&'static str>,
    pub(super) machine: Machine,
    /// Reason that there is no data directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) home_error: Option<String>,
    pub(super) image: ImageState,
    pub(super) trial: Trial,
    pub(super) protections: Vec<ProtectionReport>,
    /// The backends, from the weakest wall to the strongest.
    pub(super) backends: Vec<BackendReport>,
    /// Steps that would add protections here.
    pub(super) next: Vec<NextStep>,
}

/// A backend on this machine.
#[derive(Debug, Serialize)]
pub(super) struct BackendReport {
    #[serde(rename = "name")]
    pub(super) kind: BackendKind,
    /// Whether it works here.
    pub(super) works: bool,
    /// Version that it runs, or the part that is missing.
    pub(super) detail: String,
}

/// The machine.
#[derive(Debug, Serialize)]
pub(super) struct Machine {
    pub(super) kernel: String,
    pub(super) architecture: String,
    pub(super) user: u32,
    pub(super) cpus: usize,
    /// 0 where Landlock is lacking.
    pub(super) landlock_abi: u32,
    pub(super) cgroups: String,
    pub(super) data_dir: Option<PathBuf>,
    pub(super) free_bytes: Option<u64>,
    /// The uv on PATH.
    pub(super) uv: Option<PathBuf>,
    /// The Python 3.13 on PATH.
    pub(super) python: Option<PathBuf>,
}

/// The image that was asked for.
#[derive(Debug, Serialize)]
pub(super) struct ImageState {
    pub(super) name: String,
    pub(super) built: bool,
    pub(super) id: Option<String>,
    pub(super) python: Option<String>,
    pub(super) packages: Option<usize>,
    pub(super) problem: Option<String>,
    /// State of the frozen template, from which sandboxes start without importing libraries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) frozen: Option<String>,
}

impl ImageState {
    pub(super) fn missing(name: &str, problem: String) -> Self {
        Self {
            name: name.to_owned(),
            built: false,
            id: None,
            python: None,
            packages: None,
            problem: Some(problem),
            frozen: None,
        }
    }
}

/// The start of a sandbox.
#[derive(Debug, Serialize)]
pub(super) struct Trial {
    /// Name of the thing that was started.
    pub(super) what: &'static str,
    /// Duration in seconds.
    pub(super) seconds: f64,
    /// Error of a failed trial, outermost cause first.
    pub(super) error: Option<Vec<String>>,
}

impl Trial {
    pub(super) fn of(
        what: &'static str,
        began: Instant,
        attempt: Result<Report, Error>,
    ) -> (Self, Option<Report>) {
        let seconds = (began.elapsed().as_secs_f64() * 1000.0).round() / 1000.0;
        match attempt {
            Ok(report) => (
                Self {
                    what,
                    seconds,
                    error: None,
                },
                Some(report),
            ),
            Err(error) => (
                Self {
                    what,
                    seconds,
                    error: Some(error.chain()),
                },
                None,
            ),
        }
    }
}

/// One protection.
#[derive(Debug, Serialize)]
pub(super) struct ProtectionReport {
    pub(super) name: String,
    /// `active`, `missing`, `disabled`, or `unknown` where only a sandbox that starts could tell.
    pub(super) state: &'static str,
    pub(super) demand: Demand,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remedy: Option<&'static str>,
}

impl ProtectionReport {
    pub(super) fn is_as_demanded(&self) -> bool {
        self.demand != Demand::Strict || self.state == "active"
    }

    fn mark(&self) -> String {
        match (self.state, self.demand) {
            ("active", _) => styled(GOOD, "active  "),
            ("unknown", _) => styled(NOTE, "unknown "),
            (_, Demand::Strict) => styled(BAD, "missing "),
            ("disabled", _) => styled(NOTE, "disabled"),
            _ => styled(NOTE, "degraded"),
        }
    }
}

impl Diagnosis {
    /// The diagnosis for a person.
    pub(super) fn draw(&self) -> String {
        let mut text = String::new();
        self.draw_machine(&mut text);
        self.draw_image(&mut text);
        self.draw_protections(&mut text);
        self.draw_backends(&mut text);
        self.draw_next(&mut text);
        let verdict = if self.ready {
            styled(GOOD, "ready: every strict protection is active")
        } else if self.ready_without_namespaces {
            styled(
                NOTE,
                "ready with `--without-namespaces`; not ready without that option",
            )
        } else {
            styled(BAD, "not ready: see what is missing above")
        };
        text.push_str(&verdict);
        text
    }

    fn draw_machine(&self, text: &mut String) {
        let machine = &self.machine;
        let found = |path: &Option<PathBuf>, otherwise: &str| {
            path.as_ref()
                .map_or_else(|| otherwise.to_owned(), |path| json::path(path))
        };
        let data = match (&machine.data_dir, machine.free_bytes) {
            (Some(path), Some(free)) => format!("{}, {} free", json::path(path), Size(free)),
            (Some(path), None) => json::path(path),
            (None, _) => sanitize::line(self.home_error.as_deref().unwrap_or("none")),
        };
        let landlock = match machine.landlock_abi {
            0 => "none".to_owned(),
            abi => format!("ABI {abi}"),
        };
        let features = if self.features.is_empty() {
            "none; a build with `--features full` has all".to_owned()
        } else {
            self.features.join(", ")
        };
        heading(text, "Machine");
        field(
            text,
            "kernel",
            &format!("Linux {} on {}", machine.kernel, machine.architecture),
        );
        field(text, "cpus", &machine.cpus.to_string());
        field(text, "user", &machine.user.to_string());
        field(text, "landlock", &landlock);
        field(text, "cgroups", &machine.cgroups);
        field(text, "features", &features);
        field(text, "data", &data);
        field(
            text,
            "uv",
            &found(&machine.uv, "not on PATH; it is fetched when an image is built"),
        );
        field(
            text,
            "python",
            &found(
                &machine.python,
                "no 3.13 on PATH; one is found or installed when an image is built",
            ),
        );
    }

    fn draw_image(&self, text: &mut String) {
        let image = &self.image;
        heading(text, "Image");
        let state = match (&image.id, &image.python, image.packages, &image.problem) {
            (Some(id), Some(python), Some(packages), _) => {
                format!(
                    "{}, Python {}, {}",
                    id.get(..12).unwrap_or(id),
                    sanitize::line(python),
                    counted(packages, "package")
                )
            }
            (.., Some(problem)) => sanitize::line(problem),
            _ => "not built".to_owned(),
        };
        field(text, &sanitize::line(&image.name), &state);
        let trial = match &self.trial.error {
            None => format!("started {} in {} s", self.trial.what, self.trial.seconds),
            Some(error) => format!(
                "{} {}",
                styled(BAD, "failed"),
                sanitize::text(&error.join("\n    caused by: "))
            ),
        };
        field(text, "trial", &trial);
        if let Some(frozen) = &image.frozen {
            field(text, "frozen", &sanitize::line(frozen));
        }
    }

    fn draw_next(&self, text: &mut String) {
        if self.next.is_empty() {
            return;
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
        heading(text, "Next");
        for step in &self.next {
            let _ = writeln!(text, "  {}:", step.purpose);
            let _ = writeln!(text, "    {}", step.command);
        }
        text.push('\n');
    }

    fn draw_backends(&self, text: &mut String) {
        heading(text, "Backends");
        for backend in &self.backends {
            let mark = if backend.works {
                styled(GOOD, "works   ")
            } else {
                styled(NOTE, "missing ")
            };
            let _ = writeln!(text, "  {mark} {}", backend.kind);
            let detail = sanitize::line(&backend.detail);
            let _ = writeln!(text, "{:11}{}", "", styled(FAINT, &detail));
        }
        text.push('\n');
    }

    fn draw_protections(&self, text: &mut String) {
        heading(text, "Protections");
        for protection in &self.protections {
            let strict = if protection.demand == Demand::Strict {
                "strict"
            } else {
                ""
            };
            let line = format!("  {} {:<18} {strict}", protection.mark(), protection.name);
            let _ = writeln!(text, "{}", line.trim_end());
            if let Some(reason) = &protection.reason {
                let _ = writeln!(text, "{:11}{}", "", styled(FAINT, &sanitize::line(reason)));
            }
            if let Some(remedy) = protection.remedy {
                let _ = writeln!(
                    text,
                    "{:11}{}",
                    "",
                    styled(FAINT, &format!("to have it: {remedy}"))
                );
            }
        }
        text.push('\n');
    }
}

pub(super) fn heading(text: &mut String, name: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    let _ = writeln!(text, "{}", styled(STRONG, name));
}

fn field(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "  {} {value}", styled(FAINT, &format!("{name:<9}")));
}
