//! The workbench's tools in a live session.

use std::fs::File;
use std::io::{Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use cellblock_interpreter::workbench::{
    DatasetSource, EditArgs, ExecArgs, MountKind, Workbench, WorkbenchOptions, WriteArgs,
};

use super::{Subject, WHO};
use crate::probe::{Probe, SampleFuture};
use crate::samples::Samples;

const MB: u64 = 1_000_000;
const GB: u64 = 1_000_000_000;
/// Leaves twenty files.
const FILES: &str =
    "for n in 0 1 2 3 4 5 6 7 8 9 a b c d e f g h i j; do head -c 10000 /dev/urandom > /tmp/output/$n; done";

/// Calls each tool a number of times in one session.
pub(crate) struct WorkbenchTools {
    pub(crate) subject: Arc<Subject>,
    pub(crate) times: usize,
}

impl WorkbenchTools {
    async fn run(&self, samples: &mut Samples) -> Result<()> {
        let session = self.subject.session(true);
        let tools = Workbench::new(session.clone(), WorkbenchOptions::default());
        exec(&tools, ["true"]).await?;
        self.subject.settle().await?;
        for _ in 0..self.times {
            samples.time(WHO, "exec", exec(&tools, ["true"]).await?);
            self.files(&tools, samples).await?;
        }
        let text = "a line of some text, so many times\n".repeat(usize::try_from(MB)? / 35);
        for turn in 0..self.times {
            let (old, new) = (format!("turn {turn}\n"), format!("turn {}\n", turn + 1));
            if turn == 0 {
                let (before, after) = text.split_at(text.len() / 70 * 35);
                written(&tools, &format!("{before}{old}{after}")).await?;
            }
            samples.time(WHO, "write_1mb", written_elsewhere(&tools, &text).await?);
            let started = Instant::now();
            let edited = tools.edit_file(EditArgs::new("/tmp/edited", old, new)).await?;
            samples.time(WHO, "edit_1mb", started.elapsed());
            ensure!(edited.is_ok(), "the edit was refused: {edited:?}");
        }
        self.datasets(&tools, samples).await?;
        session.close().await?;
        Ok(())
    }

    async fn files(&self, tools: &Workbench, samples: &mut Samples) -> Result<()> {
        samples.time(WHO, "files_none", exec(tools, ["sh", "-c", "true"]).await?);
        let started = Instant::now();
        let ended = tools.exec(ExecArgs::new(["sh", "-c", FILES])).await?;
        let elapsed = started.elapsed();
        let ended = ended.map_err(|refusal| anyhow::anyhow!(refusal.error))?;
        ensure!(ended.output_files.len() == 20, "{ended:?}");
        samples.time(WHO, "files_out", elapsed);
        Ok(())
    }

    async fn datasets(&self, tools: &Workbench, samples: &mut Samples) -> Result<()> {
        let folder = self.subject.image.home().root().join("bench-datasets");
        std::fs::create_dir_all(&folder).context("make a folder for datasets")?;
        let (small, large) = (csv(&folder, MB)?, csv(&folder, GB)?);
        for turn in 0..self.times.min(10) {
            let one = add(tools, &format!("small{turn}"), &small).await?;
            let other = add(tools, &format!("large{turn}"), &large).await?;
            samples.time(WHO, "dataset_1mb", one);
            samples.time(WHO, "dataset_1gb", other);
            samples.add(WHO, "dataset_ratio", other.as_secs_f64() / one.as_secs_f64());
        }
        std::fs::remove_dir_all(&folder).context("remove the datasets")
    }
}

async fn exec<const N: usize>(tools: &Workbench, command: [&str; N]) -> Result<Duration> {
    let started = Instant::now();
    let ended = tools.exec(ExecArgs::new(command)).await?;
    let elapsed = started.elapsed();
    ensure!(
        ended.as_ref().is_ok_and(|ended| ended.exit_code == 0),
        "{ended:?}"
    );
    Ok(elapsed)
}

async fn written(tools: &Workbench, content: &str) -> Result<()> {
    let written = tools.write_file(WriteArgs::new("/tmp/edited", content)).await?;
    ensure!(written.is_ok(), "{written:?}");
    Ok(())
}

async fn written_elsewhere(tools: &Workbench, content: &str) -> Result<Duration> {
    let args = WriteArgs::new("/tmp/written", content);
    let started = Instant::now();
    let written = tools.write_file(args).await?;
    let elapsed = started.elapsed();
    ensure!(written.is_ok(), "{written:?}");
    Ok(elapsed)
}

async fn add(tools: &Workbench, name: &str, path: &Path) -> Result<Duration> {
    let source = DatasetSource::File(path.to_owned());
    let started = Instant::now();
    let mounted = tools.add_dataset(name, source).await?;
    let elapsed = started.elapsed();
    ensure!(mounted.how == MountKind::Mounted, "run this as root: {mounted:?}");
    Ok(elapsed)
}

/// A CSV with some MB of rows; what is missing of its size is a hole, which nobody reads.
fn csv(folder: &Path, bytes: u64) -> Result<PathBuf> {
    let path = folder.join(format!("{bytes}.csv"));
    let mut file = File::create(&path).context("make a dataset")?;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))?;
    let mut text = String::from("a,b\n");
    while text.len() as u64 + 16 < bytes.min(4 * MB) {
        text.push_str("1234567,7654321\n");
    }
    file.write_all(text.as_bytes())?;
    if bytes > 4 * MB {
        file.set_len(bytes)?;
    }
    file.rewind()?;
    Ok(path)
}

impl Probe for WorkbenchTools {
    fn who(&self) -> &'static str {
        WHO
    }

    fn what(&self) -> &'static str {
        "workbench"
    }

    fn sample<'a>(&'a mut self, samples: &'a mut Samples) -> SampleFuture<'a> {
        Box::pin(self.run(samples))
    }
}
