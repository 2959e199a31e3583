//! An interpreter over the default image, and cells of its sessions that are timed.

use std::time::Instant;

use anyhow::{Result, ensure};
use cellblock_artifact::Store;
use cellblock_image::{DEFAULT_IMAGE, ImageStore, Sink};
use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::{Interpreter, Session};

/// Starts an interpreter with its template, and sandboxes that are kept ready.
pub(crate) async fn interpreter(pool: usize) -> Result<Interpreter> {
    let images = ImageStore::find()?;
    let image = images.open(DEFAULT_IMAGE, Sink::silent()).await?;
    let store = Store::local(images.home().root().join("bench-artifacts"))?;
    let interpreter = Interpreter::builder()
        .image(image)
        .pool(pool)
        .store(store)
        .build()
        .await?;
    interpreter.warmed().await?;
    Ok(interpreter)
}

/// Runs a cell, which has to complete. Returns milliseconds.
pub(crate) async fn timed(session: &Session, code: &str) -> Result<f64> {
    let started = Instant::now();
    let execution = session.execute(code).await?;
    let elapsed = started.elapsed();
    ensure!(
        execution.outcome == Outcome::Completed,
        "the cell ended as {}",
        execution.outcome.name()
    );
    Ok(elapsed.as_secs_f64() * 1000.0)
}

/// Returns the median, or 0 if there is no sample. Sorts the samples.
pub(crate) fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(0.0)
}
