//! A child process that answers requests: one JSON object per line in, one per line out.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::samples::ProbeTurn;

/// A child process that ends with this value.
#[derive(Debug)]
pub(crate) struct OwnedChild(pub(crate) Child);

impl Drop for OwnedChild {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running driver.
#[derive(Debug)]
pub(crate) struct Driver {
    _child: OwnedChild,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// A driver that several probes ask.
pub(crate) type SharedDriver = Rc<RefCell<Driver>>;

impl Driver {
    /// Starts it, and waits until it says that it is ready.
    pub(crate) fn start(command: &mut Command) -> Result<SharedDriver> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("start `{}`", command.get_program().display()))?;
        let requests = child.stdin.take().context("the driver has no stdin")?;
        let answers = BufReader::new(child.stdout.take().context("the driver has no stdout")?);
        let mut driver = Self {
            _child: OwnedChild(child),
            requests,
            answers,
        };
        driver.read()?;
        Ok(Rc::new(RefCell::new(driver)))
    }

    /// Requests samples and adds them: the answer has a list of values for each series.
    pub(crate) fn sample(&mut self, turn: &ProbeTurn, request: &Value) -> Result<()> {
        writeln!(self.requests, "{request}").context("ask the driver")?;
        self.requests.flush().context("ask the driver")?;
        let answer = serde_json::from_value(self.read()?).context("read the driver's samples")?;
        let series: BTreeMap<String, Vec<f64>> = answer;
        ensure!(!series.values().any(Vec::is_empty), "the driver measured nothing");
        for (what, values) in &series {
            for value in values {
                turn.add(what, *value);
            }
        }
        Ok(())
    }

    /// Waits for the next line. The answer is below `answer`; text below `error` is an error.
    fn read(&mut self) -> Result<Value> {
        let mut line = String::new();
        self.answers.read_line(&mut line).context("hear the driver")?;
        ensure!(!line.is_empty(), "the driver ended");
        let mut said: Value = serde_json::from_str(&line).context("read the driver's answer")?;
        if let Some(error) = said.get("error") {
            bail!("the driver failed: {error}");
        }
        Ok(said["answer"].take())
    }
}
