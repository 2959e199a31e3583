//! Ctrl-C: the first interrupts the cell, the second ends `cellblock`.

use std::future::Future;

use cellblock_connector::process::end_programs;
use cellblock_image::stop_builds;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::BUILD_END;
use crate::error::{Error, Result};

/// Exit code that a shell reports for a process that SIGTERM ended.
const TERMINATED: i32 = 128 + 15;

/// Ctrl-C as it is pressed.
#[derive(Debug)]
pub(crate) struct Cancel {
    pressed: Signal,
}

impl Cancel {
    /// From here on Ctrl-C no longer ends the process by itself.
    pub(crate) fn listen() -> Result<Self> {
        let pressed = signal(SignalKind::interrupt()).map_err(Error::process("listen for Ctrl-C"))?;
        let mut terminated = signal(SignalKind::terminate()).map_err(Error::process("listen for SIGTERM"))?;
        tokio::spawn(async move {
            // SIGTERM ends the process as always. Before that, programs of the host are ended,
            // because they would continue alone.
            if terminated.recv().await.is_some() {
                end_programs();
                stop_builds(BUILD_END);
                std::process::exit(TERMINATED);
            }
        });
        Ok(Self { pressed })
    }

    /// Completes when Ctrl-C is pressed.
    pub(crate) async fn pressed(&mut self) {
        if self.pressed.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Does something that cannot be interrupted, only given up.
    pub(crate) async fn unless<T, E: Into<Error>>(
        &mut self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T> {
        tokio::select! {
            done = work => done.map_err(Into::into),
            () = self.pressed() => Err(Error::Cancelled),
        }
    }
}
