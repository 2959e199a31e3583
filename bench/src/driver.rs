//! A child process that answers requests: one JSON object per line in, one per line out.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// A running driver; it ends with this value.
#[derive(Debug)]
pub(crate) struct Driver {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Driver {
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("start `{}`", command.get_program().display()))?;
        let requests = child.stdin.take().context("the driver has no stdin")?;
        let answers = BufReader::new(child.stdout.take().context("the driver has no stdout")?);
        Ok(Self {
            child,
            requests,
            answers,
        })
    }

    /// Asks for one thing. The answer is what the driver says below `answer`; what it says below
    /// `error` is an error.
    pub(crate) fn ask(&mut self, request: &Value) -> Result<Value> {
        writeln!(self.requests, "{request}").context("ask the driver")?;
        self.requests.flush().context("ask the driver")?;
        self.hear()
    }

    /// Waits for what the driver says next.
    pub(crate) fn hear(&mut self) -> Result<Value> {
        let mut line = String::new();
        self.answers.read_line(&mut line).context("hear the driver")?;
        ensure!(!line.is_empty(), "the driver ended");
        let mut said: Value = serde_json::from_str(&line).context("read the driver's answer")?;
        if let Some(error) = said.get("error") {
            bail!("the driver failed: {error}");
        }
        Ok(said["answer"].take())
    }

    /// Asks for times; the answer is a list of milliseconds.
    pub(crate) fn times(&mut self, request: &Value) -> Result<Vec<Duration>> {
        let answer = self.ask(request)?;
        let times: Vec<f64> = serde_json::from_value(answer).context("read the driver's times")?;
        ensure!(!times.is_empty(), "the driver measured nothing");
        Ok(times
            .into_iter()
            .map(|ms| Duration::from_secs_f64(ms / 1000.0))
            .collect())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
