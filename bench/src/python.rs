//! The image's own interpreter, run on the host: what every peer and floor runs, so that all have
//! the same libraries.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};
use cellblock_image::OpenImage;

use crate::programs::{FRAME_OUT, PRINT_CHART, PRINT_SUM, ROWS_SIZE, rows};

/// Directory for things that peers need and that are made once.
const PLACE: &str = "target/bench-peer";

/// The interpreter, and what its processes are given.
#[derive(Clone, Debug)]
pub(crate) struct Python {
    /// Name of the way to start it, in those of series.
    pub(crate) who: &'static str,
    /// Command before the interpreter; empty without a wall.
    pub(crate) wall: Vec<OsString>,
    program: PathBuf,
    /// The directory that holds it and all of its libraries.
    pub(crate) root: PathBuf,
    /// The environment, all of it.
    environment: Vec<(&'static str, OsString)>,
    /// The image's version of Python.
    pub(crate) version: String,
    /// The modules that the template imports.
    pub(crate) preload: Vec<String>,
    /// A directory of this image's peers.
    pub(crate) place: PathBuf,
}

impl Python {
    pub(crate) fn of(image: &OpenImage) -> Result<Self> {
        let root = image.tree();
        let place = Path::new(PLACE).join(&image.id()[..16]);
        std::fs::create_dir_all(place.join("matplotlib")).context("make a place for peers")?;
        let place = place.canonicalize().context("find the place for peers")?;
        let manifest = image.manifest();
        let mut environment: Vec<(&str, OsString)> = vec![
            ("PATH", "/usr/bin:/bin".into()),
            ("HOME", "/tmp".into()),
            ("LANG", "C.UTF-8".into()),
            ("MPLBACKEND", "Agg".into()),
            ("MPLCONFIGDIR", place.join("matplotlib").into()),
            // The image is not to change by being measured.
            ("PYTHONDONTWRITEBYTECODE", "1".into()),
        ];
        let libraries = manifest.library_path.as_ref().map(|path| root.join(path));
        environment.extend(libraries.map(|path| ("LD_LIBRARY_PATH", path.into())));
        Ok(Self {
            who: "python",
            wall: Vec::new(),
            program: root.join(&manifest.interpreter),
            root,
            environment,
            version: manifest.python.clone(),
            preload: manifest.preload.clone(),
            place,
        })
    }

    /// The same behind a wall, if it works there.
    pub(crate) fn behind(&self, who: &'static str, wall: Vec<OsString>) -> Result<Self> {
        let mut walled = self.clone();
        (walled.who, walled.wall) = (who, wall);
        walled.run(Some(PRINT_SUM), &[], 2)?;
        Ok(walled)
    }

    /// The interpreter with its environment and nothing of ours.
    pub(crate) fn command(&self) -> Command {
        let mut command = self.inside(self.program.as_os_str());
        let environment = self.environment.iter().cloned();
        command.args(["-s", "-P"]).env_clear().envs(environment);
        command
    }

    /// A program inside of the wall.
    fn inside(&self, program: &OsStr) -> Command {
        let mut words = self.wall.iter().map(OsString::as_os_str).chain([program]);
        let mut command = Command::new(words.next().unwrap_or(program));
        command.args(words);
        command
    }

    /// Runs a program to its end, reading all that it prints: at least so many bytes. Without code it is
    /// `true`, without Python.
    pub(crate) fn run(&self, code: Option<&str>, arguments: &[&Path], bytes: usize) -> Result<Output> {
        let mut command = match code {
            Some(_) => self.command(),
            None => self.inside("/usr/bin/true".as_ref()),
        };
        command.args(code.into_iter().flat_map(|code| ["-c", code]));
        let output = command.args(arguments).stdin(Stdio::null()).output();
        let output = output.with_context(|| format!("start {}; is it installed?", self.who))?;
        let (status, printed) = (output.status, output.stdout.len());
        let errors = String::from_utf8_lossy(&output.stderr);
        let errors: String = errors.chars().take(2000).collect();
        ensure!(
            status.success() && printed >= bytes,
            "{} ended with {status} after {printed} bytes: {errors}",
            self.who
        );
        Ok(output)
    }

    /// Makes what is made once: the cache of fonts, which every peer may read.
    pub(crate) fn prepare(&self) -> Result<()> {
        self.run(Some(PRINT_CHART), &[], 0).map(drop)
    }

    /// So many megabytes of rows as a JSON file.
    pub(crate) fn rows_file(&self, megabytes: usize) -> Result<PathBuf> {
        let file = self.place.join(format!("rows-{megabytes}.json"));
        let count = megabytes * 1_000_000 / ROWS_SIZE;
        std::fs::write(&file, rows(count)).context("write rows for a peer")?;
        Ok(file)
    }

    /// The table of 100 MB as a Parquet file.
    pub(crate) fn frame_file(&self) -> Result<PathBuf> {
        let file = self.place.join("frame.parquet");
        if !file.exists() {
            let half = file.with_extension("half");
            self.run(Some(FRAME_OUT), &[&half], 0)?;
            std::fs::rename(half, &file).context("keep the table as Parquet")?;
        }
        Ok(file)
    }
}
