//! The image's own interpreter, run on the host: what every peer and floor runs, so that all have
//! the same libraries.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use cellblock_image::OpenImage;

use crate::programs::{MAKE_FRAME, ROWS_SIZE, rows};

/// Directory for things that peers need and that are made once.
const PLACE: &str = "target/bench-peer";

/// The interpreter, and what its processes are given.
#[derive(Clone, Debug)]
pub(crate) struct Python {
    pub(crate) program: PathBuf,
    /// The directory that holds it and all of its libraries.
    pub(crate) root: PathBuf,
    /// The environment, all of it.
    pub(crate) environment: Vec<(String, String)>,
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
        let mut environment = vec![
            ("PATH".into(), "/usr/bin:/bin".into()),
            ("HOME".into(), "/tmp".into()),
            ("LANG".into(), "C.UTF-8".into()),
            ("MPLBACKEND".into(), "Agg".into()),
            (
                "MPLCONFIGDIR".into(),
                place.join("matplotlib").display().to_string(),
            ),
            // The image is not to change by being measured.
            ("PYTHONDONTWRITEBYTECODE".into(), "1".into()),
        ];
        if let Some(path) = &image.manifest().library_path {
            environment.push(("LD_LIBRARY_PATH".into(), root.join(path).display().to_string()));
        }
        Ok(Self {
            program: root.join(&image.manifest().interpreter),
            root,
            environment,
            version: image.manifest().python.clone(),
            preload: image.manifest().preload.clone(),
            place,
        })
    }

    /// The interpreter with its environment and nothing of ours.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(["-s", "-P"])
            .env_clear()
            .envs(self.environment.iter().cloned());
        command
    }

    /// Runs a program to its end and answers what it printed.
    pub(crate) fn run(&self, code: &str, arguments: &[&Path]) -> Result<String> {
        let output = self
            .command()
            .args(["-c", code])
            .args(arguments)
            .output()
            .context("start the image's Python")?;
        ensure!(
            output.status.success(),
            "the image's Python ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Makes what is made once: the cache of fonts, which every peer may read.
    pub(crate) fn prepare(&self) -> Result<()> {
        self.run(crate::programs::PRINT_CHART, &[]).map(drop)
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
            let code = format!("import sys\n{MAKE_FRAME}frame.to_parquet(sys.argv[1])");
            self.run(&code, &[&half])?;
            std::fs::rename(half, &file).context("keep the table as Parquet")?;
        }
        Ok(file)
    }
}
