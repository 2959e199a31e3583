//! `cellblock doctor --kubernetes`: what a server needs of its cluster, by doing what the server does.

use std::fmt::Write as _;

use cellblock_kubernetes::{Check, doctor};
use serde::Serialize;

use super::report::heading;
use crate::args::DoctorArgs;
use crate::config::Sources;
use crate::error::{self, Error, Result};
use crate::exit_code::ExitCode;
use crate::progress::Display;
use crate::render::{BAD, GOOD, styled};
use crate::sanitize;

const NO_PODS: &str = "doctor: `--kubernetes` examines the cluster of a server, and its configuration has \
                       no `backend: kubernetes`; name another one with `--config`";

/// Findings about a cluster.
#[derive(Debug, Serialize)]
struct ClusterDiagnosis {
    /// Whether every check passed.
    ready: bool,
    checks: Vec<Check>,
}

pub(super) async fn run(args: &DoctorArgs) -> ExitCode {
    let diagnosis = match diagnose(args).await {
        Ok(diagnosis) => diagnosis,
        Err(error) => {
            error::tell(&error);
            return error.exit_code();
        }
    };
    super::show(&diagnosis, ClusterDiagnosis::draw, diagnosis.ready, args.json)
}

async fn diagnose(args: &DoctorArgs) -> Result<ClusterDiagnosis> {
    let loaded = Sources::of_process(args.config.clone(), None).load()?;
    let Some(pods) = loaded.pods()? else {
        return Err(Error::Refused(NO_PODS.to_owned()));
    };
    let display = Display::on_stderr();
    display.wait_for("claiming a pod");
    let checks = doctor(&pods.options).await;
    display.clear();
    Ok(ClusterDiagnosis {
        ready: checks.iter().all(|check| check.ok),
        checks,
    })
}

impl ClusterDiagnosis {
    fn draw(&self) -> String {
        let mut text = String::new();
        heading(&mut text, "Kubernetes");
        for check in &self.checks {
            let mark = if check.ok {
                styled(GOOD, "ok     ")
            } else {
                styled(BAD, "failed ")
            };
            let _ = writeln!(
                text,
                "  {mark} {:<14} {}",
                check.name,
                sanitize::line(&check.detail)
            );
        }
        text.push('\n');
        text.push_str(&if self.ready {
            styled(GOOD, "ready: a pod was claimed and reached")
        } else {
            styled(BAD, "not ready: see what failed above")
        });
        text
    }
}
