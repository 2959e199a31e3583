//! The workbench's tools in a live session.

use std::fmt::Debug;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use cellblock_interpreter::workbench::{
    DatasetSource, EditArgs, ExecArgs, ExecResult, MountKind, Workbench, WorkbenchOptions, WriteArgs,
};

use super::{Subject, timed};
use crate::samples::ProbeTurn;

const MB: u64 = 1_000_000;
const GB: u64 = 1_000_000_000;
/// Leaves twenty files.
const FILES: &str =
    "for n in 0 1 2 3 4 5 6 7 8 9 a b c d e f g h i j; do head -c 10000 /dev/urandom > /tmp/output/$n; done";

/// Calls each tool a number of times in one session.
pub(crate) async fn tools(subject: &Subject, turn: &ProbeTurn, times: usize) -> Result<()> {
    let session = subject.session(true);
    let tools = Workbench::new(session.clone(), WorkbenchOptions::default());
    exec(&tools, ["true"]).await?;
    subject.settle().await?;
    for _ in 0..times {
        turn.time("exec", exec(&tools, ["true"]).await?.1);
        turn.time("files_none", exec(&tools, ["sh", "-c", "true"]).await?.1);
        let (ended, elapsed) = exec(&tools, ["sh", "-c", FILES]).await?;
        ensure!(ended.output_files.len() == 20, "{ended:?}");
        turn.time("files_out", elapsed);
    }
    let text = "a line of some text, so many times\n".repeat(usize::try_from(MB)? / 35);
    let (before, after) = text.split_at(text.len() / 70 * 35);
    let edited = format!("{before}turn 0\n{after}");
    accepted(timed(tools.write_file(WriteArgs::new("/tmp/edited", edited))).await?)?;
    for number in 0..times {
        let args = WriteArgs::new("/tmp/written", text.as_str());
        let (_, written) = accepted(timed(tools.write_file(args)).await?)?;
        turn.time("write_1mb", written);
        let (old, new) = (format!("turn {number}\n"), format!("turn {}\n", number + 1));
        let args = EditArgs::new("/tmp/edited", old, new);
        let (_, edited) = accepted(timed(tools.edit_file(args)).await?)?;
        turn.time("edit_1mb", edited);
    }
    datasets(subject, &tools, turn, times.min(10)).await?;
    Ok(session.close().await?)
}

async fn datasets(subject: &Subject, tools: &Workbench, turn: &ProbeTurn, times: usize) -> Result<()> {
    let folder = subject.image.home().root().join("bench-datasets");
    std::fs::create_dir_all(&folder).context("make a folder for datasets")?;
    let (small, large) = (csv(&folder, MB)?, csv(&folder, GB)?);
    for number in 0..times {
        let one = add(tools, &format!("small{number}"), &small).await?;
        let other = add(tools, &format!("large{number}"), &large).await?;
        turn.time("dataset_1mb", one);
        turn.time("dataset_1gb", other);
        turn.add("dataset_ratio", other.as_secs_f64() / one.as_secs_f64());
    }
    std::fs::remove_dir_all(&folder).context("remove the datasets")
}

/// Rejects a call that the tool refused.
fn accepted<T, E: Debug>((result, elapsed): (Result<T, E>, Duration)) -> Result<(T, Duration)> {
    let result = result.map_err(|refusal| anyhow::anyhow!("the call was refused: {refusal:?}"))?;
    Ok((result, elapsed))
}

async fn exec<const N: usize>(tools: &Workbench, command: [&str; N]) -> Result<(ExecResult, Duration)> {
    let (ended, elapsed) = accepted(timed(tools.exec(ExecArgs::new(command))).await?)?;
    ensure!(ended.exit_code == 0, "{ended:?}");
    Ok((ended, elapsed))
}

async fn add(tools: &Workbench, name: &str, path: &Path) -> Result<Duration> {
    let source = DatasetSource::File(path.to_owned());
    let (mount, elapsed) = timed(tools.add_dataset(name, source)).await?;
    ensure!(mount.how == MountKind::Mounted, "run this as root: {mount:?}");
    Ok(elapsed)
}

/// A CSV with some MB of rows; what is missing of its size is a hole, which nobody reads.
fn csv(folder: &Path, bytes: u64) -> Result<PathBuf> {
    let path = folder.join(format!("{bytes}.csv"));
    let mut file = File::create(&path).context("make a dataset")?;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))?;
    let rows = usize::try_from(bytes.min(4 * MB))? / 16 - 1;
    write!(file, "a,b\n{}", "1234567,7654321\n".repeat(rows))?;
    if bytes > 4 * MB {
        file.set_len(bytes)?;
    }
    Ok(path)
}
