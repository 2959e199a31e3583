//! ipykernel through `jupyter_client`, in an environment that sees the image's packages.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::json;

use crate::cellblock::Subject;

/// The driver, which does in Python what a Jupyter front end does.
const DRIVER: &str = include_str!("../peers/ipykernel_driver.py");

/// A running driver.
#[derive(Debug)]
pub(crate) struct Peer {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

#[derive(Deserialize)]
struct Answer {
    milliseconds: Vec<f64>,
}

impl Peer {
    /// Installs ipykernel if it is not there yet, and starts the driver.
    pub(crate) fn start(subject: &Subject) -> Result<Self> {
        let mut child = Command::new(interpreter(subject)?)
            .args(["-c", DRIVER])
            .env("PYTHONPATH", packages(subject)?)
            .envs(loader(subject))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("start the ipykernel driver")?;
        let requests = child.stdin.take().context("the driver has no stdin")?;
        let answers = BufReader::new(child.stdout.take().context("the driver has no stdout")?);
        Ok(Self {
            child,
            requests,
            answers,
        })
    }

    pub(crate) fn first_result(&mut self, code: &str) -> Result<Duration> {
        let samples = self.ask(&json!({"do": "first", "code": code}))?;
        samples.first().copied().context("the driver measured nothing")
    }

    pub(crate) fn warm(&mut self, cells: usize) -> Result<Vec<Duration>> {
        self.ask(&json!({"do": "warm", "code": "1+1", "cells": cells}))
    }

    fn ask(&mut self, request: &serde_json::Value) -> Result<Vec<Duration>> {
        writeln!(self.requests, "{request}").context("ask the driver")?;
        self.requests.flush()?;
        let mut line = String::new();
        self.answers.read_line(&mut line).context("hear the driver")?;
        ensure!(!line.is_empty(), "the driver ended");
        let answer: Answer = serde_json::from_str(&line).context("read the driver's answer")?;
        Ok(answer
            .milliseconds
            .into_iter()
            .map(|ms| Duration::from_secs_f64(ms / 1000.0))
            .collect())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Installs ipykernel beside the image, once, with whatever pip the machine has.
fn packages(subject: &Subject) -> Result<PathBuf> {
    let dir = Path::new("target/bench-peer").join(&subject.image.id()[..16]);
    let done = dir.join("complete");
    if !done.exists() {
        crate::report::note("installing ipykernel");
        let version = &subject.image.manifest().python;
        let status = Command::new("python3")
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--only-binary",
                ":all:",
                "--python-version",
                version,
            ])
            .arg("--target")
            .arg(&dir)
            .args(["ipykernel", "jupyter_client"])
            .status()
            .context("run `python3 -m pip`")?;
        ensure!(
            status.success(),
            "`python3 -m pip install ipykernel` ended with {status}"
        );
        std::fs::write(done, "")?;
    }
    Ok(dir.canonicalize()?)
}

fn interpreter(subject: &Subject) -> Result<PathBuf> {
    let name = Path::new(subject.image.interpreter())
        .file_name()
        .context("the image names no interpreter")?;
    Ok(subject.image.python().join("bin").join(name))
}

/// Where the image's interpreter finds its own library.
fn loader(subject: &Subject) -> Option<(&'static str, PathBuf)> {
    let path = subject.image.manifest().library_path.as_ref()?;
    Some(("LD_LIBRARY_PATH", subject.image.python().join(path)))
}
