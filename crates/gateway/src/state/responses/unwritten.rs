//! Responses whose end could not be stored: their clients receive a failure, and the end is stored
//! when that is possible again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use crate::records::RecordsError;
use crate::records::responses::{self, ResponseEnd};
use crate::state::Gateway;

/// Interval between two attempts to write it.
const AGAIN: Duration = Duration::from_secs(1);
/// Maximum number of ends that are kept in memory. Of others the records say after a restart that
/// they failed.
const MOST: usize = 256;

/// The ends that are to be written, and whether responses can be.
#[derive(Debug, Default)]
pub(crate) struct UnwrittenEnds {
    ends: Mutex<HashMap<String, ResponseEnd>>,
    broken: AtomicBool,
    /// Whether a task tries again.
    tended: AtomicBool,
}

impl UnwrittenEnds {
    /// Whether responses cannot be written now.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    /// The end of an owner's response that is still to be written.
    pub(crate) fn find(&self, owner: &str, id: &str) -> Option<ResponseEnd> {
        let ends = self.ends();
        ends.get(id).filter(|ended| ended.owner == owner).cloned()
    }

    /// Forgets one that was deleted.
    pub(crate) fn remove(&self, owner: &str, id: &str) {
        let mut ends = self.ends();
        if ends.get(id).is_some_and(|ended| ended.owner == owner) {
            ends.remove(id);
        }
    }

    /// Keeps an end until it can be written.
    fn add(&self, ended: ResponseEnd) {
        let mut ends = self.ends();
        if ends.len() < MOST {
            ends.insert(ended.id.clone(), ended);
        }
    }

    fn ends(&self) -> MutexGuard<'_, HashMap<String, ResponseEnd>> {
        self.ends.lock()
    }
}

/// Keeps an end until it can be written.
pub(crate) fn add(gateway: &Gateway, ended: ResponseEnd) {
    gateway.responses.unwritten.add(ended);
    tend(gateway);
}

/// Notes whether something of a response could be written.
pub(crate) fn note<T>(gateway: &Gateway, written: Result<T, RecordsError>) -> Result<T, RecordsError> {
    let unwritten = &gateway.responses.unwritten;
    match &written {
        Ok(_) => {}
        Err(error) => {
            tracing::error!(error = error as &dyn std::error::Error, "write a response");
            unwritten.broken.store(true, Ordering::Relaxed);
            tend(gateway);
        }
    }
    written
}

/// Tries again until everything is written, unless that is done already.
fn tend(gateway: &Gateway) {
    if gateway.responses.unwritten.tended.swap(true, Ordering::Relaxed) {
        return;
    }
    let gateway = gateway.clone();
    gateway.tasks.clone().spawn(async move {
        loop {
            let stopping = tokio::select! {
                () = tokio::time::sleep(AGAIN) => false,
                () = gateway.ending.cancelled() => true,
            };
            let unwritten = &gateway.responses.unwritten;
            match mend(&gateway).await {
                Ok(()) => {
                    tracing::info!("responses can be written again");
                    unwritten.broken.store(false, Ordering::Relaxed);
                    unwritten.tended.store(false, Ordering::Relaxed);
                    return;
                }
                Err(error) if stopping => {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        "the ends of responses are lost"
                    );
                    return;
                }
                Err(_) => {}
            }
        }
    });
}

/// Writes what is to be written. Where that is nothing, it tries whether something could be.
async fn mend(gateway: &Gateway) -> Result<(), RecordsError> {
    gateway
        .records
        .with(|connection| responses::probe(connection))
        .await?;
    let ends: Vec<ResponseEnd> = gateway.responses.unwritten.ends().values().cloned().collect();
    for ended in ends {
        let (owner, id) = (ended.owner.clone(), ended.id.clone());
        write(gateway, ended).await?;
        gateway.responses.unwritten.remove(&owner, &id);
    }
    Ok(())
}

/// Writes an end. If the conversation that it continued has been deleted, that part is lost and
/// left out.
async fn write(gateway: &Gateway, ended: ResponseEnd) -> Result<(), RecordsError> {
    let alone = ResponseEnd {
        previous: None,
        ..ended.clone()
    };
    let write = move |ended: ResponseEnd| {
        gateway
            .records
            .with(move |connection| responses::end(connection, &ended))
    };
    if write(ended).await?.is_none() {
        write(alone).await?;
    }
    Ok(())
}
