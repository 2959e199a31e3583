//! A table of 100 MB: in as Parquet, and out.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use cellblock_interpreter::Input;
use cellblock_interpreter::output::{Output, Scalar};

use super::{Subject, WHO, completed};
use crate::probe::{Probe, SampleFuture};
use crate::programs::{FRAME_ROWS, SUM};
use crate::samples::Samples;

/// Binds a file as a table and uses it, changes the table, and shows it whole.
pub(crate) struct Frames {
    pub(crate) subject: Arc<Subject>,
    /// The table as Parquet.
    pub(crate) file: PathBuf,
}

impl Frames {
    async fn run(&self, samples: &mut Samples) -> Result<()> {
        let session = self.subject.session(true);
        completed(&session.execute(SUM).await?)?;
        self.subject.settle().await?;
        let started = Instant::now();
        session.bind(Input::file("frame", &self.file)).await?;
        let execution = session.execute("len(frame)").await?;
        let elapsed = started.elapsed();
        completed(&execution)?;
        let rows = Scalar::Integer(FRAME_ROWS.cast_signed());
        ensure!(
            matches!(&execution.outputs[..], [Output::Primitive(length)] if length.value == rows),
            "the table that came in is not the one that was given: {:?}",
            execution.outputs
        );
        samples.time(WHO, "frame_in", elapsed);
        // Other bytes than those that came in, made before the clock runs.
        completed(&session.execute("frame = frame + 1.0").await?)?;
        let started = Instant::now();
        let execution = session.execute("frame").await?;
        let elapsed = started.elapsed();
        completed(&execution)?;
        let whole = matches!(
            &execution.outputs[..],
            [Output::Dataframe(table)] if table.complete && table.rows == FRAME_ROWS && table.table.is_some()
        );
        self.subject.forget(&execution).await?;
        ensure!(whole, "the table was not stored whole");
        samples.time(WHO, "frame_out", elapsed);
        session.close().await?;
        Ok(())
    }
}

impl Probe for Frames {
    fn who(&self) -> &'static str {
        WHO
    }

    fn what(&self) -> &'static str {
        "frame"
    }

    fn sample<'a>(&'a mut self, samples: &'a mut Samples) -> SampleFuture<'a> {
        Box::pin(self.run(samples))
    }
}
