//! Ctrl-C: the first interrupts the cell, the second ends `cellblock`.

use std::future::Future;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::{Error, Result};

/// Ctrl-C as it is pressed.
#[derive(Debug)]
pub(crate) struct Cancel {
    pressed: Signal,
}

impl Cancel {
    /// From here on Ctrl-C no longer ends the process by itself.
    pub(crate) fn listen() -> Result<Self> {
        let pressed = signal(SignalKind::interrupt()).map_err(Error::process("listen for Ctrl-C"))?;
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
