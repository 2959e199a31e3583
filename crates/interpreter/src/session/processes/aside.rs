//! Programs of the host's own beside cells, which are run to their end: what a face needs to look
//! after files while a cell runs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cellblock_sandbox::guest::{GuestLink, SandboxCommand};
use tokio::time::{Instant, sleep};

use super::process::OUTPUTS;
use super::{DIRECTORY, INPUT_LIMIT, MAX_INPUT, MAX_OUTPUT, MAX_WAIT, PAUSE, Processes, is_full};
use crate::error::{Error, Result};

/// Number of the last one, for the name of its file.
static LAST: AtomicU64 = AtomicU64::new(0);

/// A program of the host's own. Neither a guard checks it nor a list names it, so its code must not
/// be a caller's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsideProgram {
    /// The program and its arguments; a bare name is searched along `PATH`.
    pub command: Vec<String>,
    /// Bytes of its standard input, which ends after them.
    pub input: Vec<u8>,
    /// Maximum duration.
    pub timeout: Duration,
    /// Maximum number of bytes that it may write to stdout and stderr.
    pub max_output: usize,
}

impl Processes<'_> {
    /// Runs a program of the host's own to its end, and returns what it wrote. It runs while a cell
    /// does, and needs none of the places for processes.
    pub async fn aside(self, program: AsideProgram) -> Result<Vec<u8>> {
        let link = match self.0.table.link()? {
            Some(link) => link,
            None => self.0.attach().await?,
        };
        let env = self.0.table.environment(&BTreeMap::new());
        let in_use = self.0.table.in_use();
        // In a task of its own: what it keeps in the sandbox is dropped also if nobody waits for it any more.
        let running = tokio::spawn(async move {
            let ran = program.run(&link, env).await;
            drop(in_use);
            ran
        });
        running.await.expect("running a program does not panic")
    }
}

impl AsideProgram {
    async fn run(self, link: &GuestLink, env: BTreeMap<String, String>) -> Result<Vec<u8>> {
        let name = self.command.first().cloned().unwrap_or_default();
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let command = SandboxCommand {
            argv: self.command,
            cwd: DIRECTORY.to_owned(),
            env,
            inherit: true,
            timeout: self.timeout,
            input: true,
            keep: Some(format!("{OUTPUTS}/aside-{number}.log")),
            terminal: None,
        };
        let running = link.start(command).await?;
        let number = running.number();
        let work = async {
            feed(link, number, &self.input).await?;
            read(link, number, self.max_output, &name).await
        };
        let done = tokio::time::timeout(self.timeout, work).await;
        let _ = link.forget(number).await;
        done.unwrap_or_else(|_| {
            let limit = self.timeout.as_secs();
            Err(Error::Request(format!(
                "run `{name}`: it took longer than {limit} s"
            )))
        })
    }
}

/// Sends all of the input, as fast as it is read.
async fn feed(link: &GuestLink, number: u64, input: &[u8]) -> Result<()> {
    let mut left = input;
    loop {
        let (part, rest) = left.split_at(left.len().min(MAX_INPUT / 4));
        let deadline = Instant::now() + INPUT_LIMIT;
        loop {
            match link.input(number, part.to_vec(), rest.is_empty()).await {
                Ok(()) => break,
                Err(error) if is_full(&error) && Instant::now() < deadline => sleep(PAUSE).await,
                // It has ended; its output says why.
                Err(error) if error.guest_refusal().is_some() => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        left = rest;
        if left.is_empty() {
            return Ok(());
        }
    }
}

/// Reads its output to the end.
async fn read(link: &GuestLink, number: u64, limit: usize, name: &str) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let offset = all.len() as u64;
        let part = link.output(number, offset, MAX_OUTPUT, MAX_WAIT).await?;
        all.extend(part.bytes);
        if part.offset > offset || all.len() > limit {
            return Err(Error::Request(format!(
                "run `{name}`: it wrote more than {limit} bytes, which is the limit"
            )));
        }
        if part.eof {
            return Ok(all);
        }
    }
}
