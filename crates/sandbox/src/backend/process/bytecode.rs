//! The kernel's bytecode: compiled on an image's first start, in a sandbox of its own that runs
//! nothing else, and kept for all later starts. It saves time and is never needed: if anything
//! fails, kernels start from the sources.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use cellblock_guest::bytecode;
use cellblock_protocol::Stream;
use tempfile::NamedTempFile;

use super::{ProcessBackend, ProcessConfig};
use crate::backend::Backend as _;
use crate::error::{DuringIo as _, Error, Result};
use crate::guest::{CommandEvent, SandboxCommand};
use crate::limits::Limits;

/// Maximum duration of the compilation, which takes a tenth of a second.
const COMPILE_LIMIT: Duration = Duration::from_secs(20);
/// Maximum size of the bytecode, which has less than a megabyte.
const MAX_SIZE: usize = 16 << 20;
/// Age at which bytecode of another Cellblock is removed, unless that one is used and writes it again.
const OLD: Duration = Duration::from_hours(24 * 14);

/// Fills the configured directory if it lacks the bytecode of this program's kernel.
pub(super) async fn prepare(config: &ProcessConfig) {
    let Some(directory) = &config.bytecode else {
        return;
    };
    let path = directory.join(bytecode::file_name());
    if path.exists() {
        return;
    }
    if let Err(error) = fill(config, directory, &path).await {
        tracing::debug!(
            error = &error as &dyn std::error::Error,
            "kernels start without bytecode"
        );
    }
}

async fn fill(config: &ProcessConfig, directory: &Path, path: &Path) -> Result<()> {
    // First, because nothing is compiled for a directory that cannot be written to.
    fs::create_dir_all(directory).during("create the directory of bytecode")?;
    let mut file = NamedTempFile::new_in(directory).during("create the file of bytecode")?;
    let compiled = compile(config).await?;
    file.write_all(&bytecode::seal(&bytecode::file_name(), &compiled))
        .during("write the bytecode")?;
    file.persist(path)
        .map_err(|error| error.error)
        .during("keep the bytecode")?;
    remove_old(directory, path);
    Ok(())
}

/// Compiles the package in a sandbox, with the image's Python and without the image's packages.
async fn compile(config: &ProcessConfig) -> Result<Vec<u8>> {
    let alone = ProcessConfig {
        bytecode: None,
        preload: Vec::new(),
        frozen: None,
        spare_room: false,
        ..config.clone()
    };
    let backend = ProcessBackend::launch(&alone).await?;
    let sandbox = backend.create(&Limits::default()).await?;
    let command = SandboxCommand {
        argv: [
            &*config.image.command().to_string_lossy(),
            "-I",
            "-S",
            "-c",
            bytecode::COMPILE,
        ]
        .map(str::to_owned)
        .to_vec(),
        cwd: "/workspace".to_owned(),
        env: BTreeMap::new(),
        inherit: true,
        timeout: COMPILE_LIMIT,
        input: false,
        keep: None,
        terminal: None,
    };
    let mut events = sandbox.guest().run(command).await?.events;
    let (mut compiled, mut complaint) = (Vec::new(), Vec::new());
    let mut ended = "the sandbox ended".to_owned();
    while let Some(event) = events.recv().await {
        match event {
            CommandEvent::Output(Stream::Stdout, part) => compiled.extend(part),
            CommandEvent::Output(Stream::Stderr, part) => complaint.extend(part),
            other => ended = format!("{other:?}"),
        }
        if compiled.len() + complaint.len() > MAX_SIZE {
            break;
        }
    }
    sandbox.destroy().await?;
    if bytecode::is_complete(&compiled) {
        return Ok(compiled);
    }
    let complaint = String::from_utf8_lossy(&complaint);
    Err(Error::protocol("compiler", format!("{ended}: {complaint}")))
}

/// Removes what earlier versions and interrupted starts left.
fn remove_old(directory: &Path, current: &Path) {
    let is_old = |path: &Path| {
        let modified = fs::metadata(path).and_then(|it| it.modified());
        modified.is_ok_and(|it| SystemTime::now().duration_since(it).is_ok_and(|age| age > OLD))
    };
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path != current && is_old(&path) {
            let _ = fs::remove_file(path);
        }
    }
}
