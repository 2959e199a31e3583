//! ipykernel through `jupyter_client`, in an environment that sees the image's packages.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
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
    /// Makes the environment if it is not there yet, and starts the driver.
    pub(crate) fn start(subject: &Subject) -> Result<Self> {
        let python = environment(subject)?;
        let mut child = Command::new(python)
            .args(["-c", DRIVER])
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

fn environment(subject: &Subject) -> Result<PathBuf> {
    let dir = Path::new("target/bench-peer").join(&subject.image.id()[..16]);
    let python = dir.join("bin/python");
    let done = dir.join("complete");
    if done.exists() {
        return Ok(python);
    }
    let image = subject.image.python().join("bin").join(
        Path::new(subject.image.interpreter())
            .file_name()
            .context("the image names no interpreter")?,
    );
    crate::report::note("making the environment of ipykernel");
    // Quoting the loader's path is not needed: `venv` links to the interpreter and keeps its prefix.
    let steps: [(PathBuf, &[&str]); 2] = [
        (
            image,
            &["-m", "venv", "--system-site-packages", &dir.to_string_lossy()],
        ),
        (
            python.clone(),
            &["-m", "pip", "install", "--quiet", "ipykernel", "jupyter_client"],
        ),
    ];
    for (program, arguments) in steps {
        let status = Command::new(&program)
            .args(arguments)
            .envs(loader(subject))
            .status();
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => bail!(
                "`{} {}` ended with {status}",
                program.display(),
                arguments.join(" ")
            ),
            Err(error) => return Err(error).with_context(|| format!("run `{}`", program.display())),
        }
    }
    std::fs::write(done, "")?;
    Ok(python)
}

/// Where the image's interpreter finds its own library.
fn loader(subject: &Subject) -> Option<(&'static str, PathBuf)> {
    let path = subject.image.manifest().library_path.as_ref()?;
    Some(("LD_LIBRARY_PATH", subject.image.python().join(path)))
}
