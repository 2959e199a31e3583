//! Answers of a host about the processes of its session.

use std::time::Duration;

use cellblock_interpreter::Session;
use cellblock_interpreter::session::processes::{MAX_OUTPUT, ProcessOrder};

use crate::error::{Error, Result};
use crate::session::wire::{HostAnswer, ProcessAsk};

/// Does it; also returns output.
pub(super) async fn answer(session: &Session, ask: ProcessAsk) -> Result<(Vec<u8>, HostAnswer)> {
    let processes = session.processes();
    let process = match ask {
        ProcessAsk::Start {
            command,
            env,
            directory,
            stdin,
            terminal,
        } => {
            let order = ProcessOrder {
                command,
                env,
                directory,
                stdin,
                terminal,
            };
            processes.start(order).await?
        }
        ProcessAsk::List => {
            let processes = processes.list();
            return Ok((Vec::new(), HostAnswer::Processes { processes }));
        }
        ProcessAsk::Output { id, offset, wait } => {
            let read = processes.output(&id, offset, MAX_OUTPUT, wait).await?;
            let answer = HostAnswer::ProcessOutput {
                next: read.next,
                lost: read.lost,
                eof: read.eof,
            };
            return Ok((read.bytes, answer));
        }
        ProcessAsk::Input { id, bytes, close } => {
            processes.input(&id, &bytes, close).await?;
            processes.wait(&id, Duration::ZERO).await?
        }
        ProcessAsk::Resize { id, size } => {
            processes.resize(&id, size).await?;
            processes.wait(&id, Duration::ZERO).await?
        }
        ProcessAsk::Signal { id, signal } => {
            let signal = signal.parse().map_err(Error::Refused)?;
            processes.signal(&id, signal).await?;
            processes.wait(&id, Duration::ZERO).await?
        }
        ProcessAsk::Wait { id, limit } => processes.wait(&id, limit).await?,
    };
    let processes = vec![process];
    Ok((Vec::new(), HostAnswer::Processes { processes }))
}
