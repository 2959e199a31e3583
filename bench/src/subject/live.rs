//! Going back in a live session: checkpoints, rollbacks, tries, and the cell after the death of a kernel.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use cellblock_interpreter::Session;
use cellblock_interpreter::cell::Rescue;
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::run_record::{RunRecord, RunSink};
use cellblock_interpreter::session::SessionOptions;
use parking_lot::Mutex;

use super::{Subject, WHO, completed};
use crate::probe::{Probe, SampleFuture};
use crate::programs::SUM;
use crate::samples::Samples;

/// Content of the session, with the names of the series of a checkpoint and a rollback.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SessionState {
    /// A number.
    Number,
    /// 200 MB of numpy.
    Array,
    /// 1 GB of Python objects.
    Objects,
    /// 1,000 files of 4 KiB.
    Files,
}

impl SessionState {
    const fn series(self) -> [&'static str; 2] {
        match self {
            Self::Number => ["checkpoint_number", "rollback_number"],
            Self::Array => ["checkpoint_array", "rollback_array"],
            Self::Objects => ["checkpoint_objects", "rollback_objects"],
            Self::Files => ["checkpoint_files", "rollback_files"],
        }
    }

    const fn code(self) -> &'static str {
        match self {
            Self::Number => "held = 1",
            Self::Array => "import numpy as np\nheld = np.ones(200_000_000 // 8)",
            Self::Objects => "held = [float(n) for n in range(32_000_000)]",
            Self::Files => {
                "for n in range(1000):\n    with open(f'/workspace/{n}', 'w') as file:\n        _ = \
                 file.write('x' * 4096)"
            }
        }
    }
}

/// Time in which the kernel does what it does when nobody waits.
const PAUSE: Duration = Duration::from_millis(60);

/// Makes checkpoints of a session and goes back to them, some times.
pub(crate) struct Checkpoints {
    pub(crate) subject: Arc<Subject>,
    pub(crate) held: SessionState,
    pub(crate) times: usize,
}

impl Checkpoints {
    async fn run(&self, samples: &mut Samples) -> Result<()> {
        let limits = Limits {
            memory_bytes: 4 << 30,
            ..Limits::default()
        };
        let session = self.subject.session_with(false, Some(limits));
        completed(&session.execute(self.held.code()).await?)?;
        // The first copies every file.
        session.checkpoint(None).await?;
        session.drop_checkpoint("c1").await?;
        session.checkpoint(None).await?;
        let [checkpoint, rollback] = self.held.series();
        for _ in 0..self.times {
            completed(&session.execute(SUM).await?)?;
            tokio::time::sleep(PAUSE).await;
            let before = memory(&session).await?;
            let started = Instant::now();
            let kept = session.checkpoint(None).await?.checkpoint;
            samples.time(WHO, checkpoint, started.elapsed());
            if let (SessionState::Number, Some(before), Some(after)) =
                (self.held, before, memory(&session).await?)
            {
                samples.add(WHO, "checkpoint_memory", after - before);
            }
            completed(&session.execute("changed = 1").await?)?;
            tokio::time::sleep(PAUSE).await;
            let started = Instant::now();
            session.roll_back(kept.id.as_str()).await?;
            samples.time(WHO, rollback, started.elapsed());
            session.drop_checkpoint(kept.id).await?;
        }
        session.close().await?;
        Ok(())
    }
}

impl Probe for Checkpoints {
    fn who(&self) -> &'static str {
        WHO
    }

    fn what(&self) -> &'static str {
        self.held.series()[0]
    }

    fn sample<'a>(&'a mut self, samples: &'a mut Samples) -> SampleFuture<'a> {
        Box::pin(self.run(samples))
    }
}

/// Runs cells plainly and as tries in turns, and lets the kernel die, with both policies of rescue.
pub(crate) struct Tries {
    pub(crate) subject: Arc<Subject>,
    pub(crate) times: usize,
}

impl Tries {
    async fn run(&self, samples: &mut Samples) -> Result<()> {
        let rescued = |rescue| {
            self.subject.interpreter.session(SessionOptions {
                pooled: false,
                rescue,
                ..SessionOptions::default()
            })
        };
        let (session, on) = (rescued(Rescue::Idle), rescued(Rescue::On));
        completed(&session.execute(SUM).await?)?;
        completed(&on.execute(SUM).await?)?;
        for _ in 0..self.times {
            tokio::time::sleep(PAUSE).await;
            let plain = timed(&session).await?;
            tokio::time::sleep(PAUSE).await;
            let started = Instant::now();
            let tried = session.try_run(SUM).await?;
            let took = started.elapsed();
            completed(&tried.execution)?;
            samples.time(WHO, "try_adds", took.saturating_sub(plain));
            let started = Instant::now();
            session.discard_try().await?;
            samples.time(WHO, "try_discard", started.elapsed());
            completed(&session.execute(SUM).await?)?;
            for (session, series) in [(&session, "rescue_next"), (&on, "rescue_next_on")] {
                tokio::time::sleep(PAUSE).await;
                let ended = session.execute("import os\nos._exit(1)").await?;
                ensure!(!ended.kernel_lost(), "the kernel was not rescued");
                samples.time(WHO, series, timed(session).await?);
            }
        }
        session.close().await?;
        on.close().await?;
        Ok(())
    }
}

impl Probe for Tries {
    fn who(&self) -> &'static str {
        WHO
    }

    fn what(&self) -> &'static str {
        "try_adds"
    }

    fn sample<'a>(&'a mut self, samples: &'a mut Samples) -> SampleFuture<'a> {
        Box::pin(self.run(samples))
    }
}

/// Runs cells in two sessions in turns, of which one records its runs.
pub(crate) struct RecordingSubject {
    pub(crate) subject: Arc<Subject>,
    pub(crate) times: usize,
}

/// Keeps the last record.
#[derive(Debug, Default)]
struct LastRun(Mutex<Option<RunRecord>>);

impl RunSink for LastRun {
    fn record(&self, record: RunRecord) {
        *self.0.lock() = Some(record);
    }
}

impl RecordingSubject {
    async fn run(&self, samples: &mut Samples) -> Result<()> {
        let session = |runs| {
            self.subject.interpreter.session(SessionOptions {
                pooled: false,
                runs,
                ..SessionOptions::default()
            })
        };
        let (plain, recorded) = (session(None), session(Some(Arc::new(LastRun::default()))));
        let all = [("record_off", &plain), ("record_on", &recorded)];
        for (_, session) in all {
            completed(&session.execute(TABLE).await?)?;
        }
        for _ in 0..self.times {
            for (series, session) in all {
                let started = Instant::now();
                let execution = session.execute("table").await?;
                samples.time(WHO, series, started.elapsed());
                completed(&execution)?;
            }
        }
        plain.close().await?;
        recorded.close().await?;
        Ok(())
    }
}

/// A table of which a preview of 1,000 rows is shown.
const TABLE: &str =
    "import pandas as pd\ntable = pd.DataFrame({str(n): range(2000) for n in range(10)})\n_ = table.head()";

impl Probe for RecordingSubject {
    fn who(&self) -> &'static str {
        WHO
    }

    fn what(&self) -> &'static str {
        "record_on"
    }

    fn sample<'a>(&'a mut self, samples: &'a mut Samples) -> SampleFuture<'a> {
        Box::pin(self.run(samples))
    }
}

/// Mebibytes that the sandbox of a session uses; none if this machine does not count them.
async fn memory(session: &Session) -> Result<Option<f64>> {
    let bytes = session.usage().await?.and_then(|usage| usage.memory_bytes);
    Ok(bytes.map(mebibytes))
}

#[expect(clippy::cast_precision_loss, reason = "less than 2^53 bytes")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

async fn timed(session: &Session) -> Result<Duration> {
    let started = Instant::now();
    let execution = session.execute(SUM).await?;
    let elapsed = started.elapsed();
    completed(&execution)?;
    Ok(elapsed)
}
