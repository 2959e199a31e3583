//! Records of the cells that `cellblock run` runs, for `cellblock runs`.

use std::sync::Arc;
use std::time::Duration;

use cellblock_gateway::records::RecordsPlace;
use cellblock_gateway::runs::RecordedRuns;
use cellblock_image::Home;
use cellblock_interpreter::hosting::Owner;
use cellblock_interpreter::run_record::{RunRecord, RunSink};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::config::Sources;
use crate::error::Result;

/// Maximum time for which the end of a run waits for its records to be written.
const PATIENCE: Duration = Duration::from_secs(2);

/// Records on their way. The file is opened while the sandbox starts, so that nobody waits for it.
#[derive(Debug)]
pub(super) struct LocalRuns {
    opening: JoinHandle<Option<RecordedRuns>>,
    taken: Arc<TakenRuns>,
}

#[derive(Debug, Default)]
struct TakenRuns(Mutex<Vec<RunRecord>>);

impl LocalRuns {
    /// Begins to open the records of this machine's user.
    pub(super) fn begin() -> Self {
        Self {
            opening: tokio::spawn(async {
                // A run does not depend on the configuration of a server, so mistakes in it are no
                // failure here.
                let opened = open().await;
                opened.unwrap_or_else(|error| {
                    let error = &error as &dyn std::error::Error;
                    tracing::info!(error, "the run is not recorded");
                    None
                })
            }),
            taken: Arc::default(),
        }
    }

    /// Returns what takes the records of the run's session.
    pub(super) fn sink(&self) -> Arc<dyn RunSink> {
        Arc::<TakenRuns>::clone(&self.taken)
    }

    /// Writes what was taken, unless that takes long.
    pub(super) async fn write(self) {
        if timeout(PATIENCE, self.written()).await.is_err() {
            tracing::info!("the run is not recorded: its records could not be written in time");
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the process ends now, and closing the file would make it wait for the disk"
    )]
    async fn written(self) {
        let Ok(Some(runs)) = self.opening.await else {
            return;
        };
        let Some(sink) = runs.sink(Owner::local().name()) else {
            return;
        };
        let taken = std::mem::take(&mut *self.taken.0.lock());
        for record in taken {
            sink.record(record);
        }
        runs.flush().await;
        // Closing the file would copy its log into it. The next process that opens the file reads
        // the log all the same.
        std::mem::forget(runs);
    }
}

async fn open() -> Result<Option<RecordedRuns>> {
    let (options, place) = {
        let loaded = Sources::of_process(None, None).load()?;
        (loaded.settings.runs, loaded.records(Home::find()?.root())?)
    };
    // Only servers write into a database that they share.
    if options.keep == 0 || !matches!(place, RecordsPlace::File(_)) {
        return Ok(None);
    }
    Ok(Some(RecordedRuns::new(place.open().await?, options)))
}

impl RunSink for TakenRuns {
    fn record(&self, record: RunRecord) {
        self.0.lock().push(record);
    }
}
