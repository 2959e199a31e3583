//! The command line, as a person types it: what it prints, and what is in its folder afterward.

use std::fs;
use std::path::Path;
use std::time::Duration;

use cellblock_testkit::{Cli, CommandOutput};
use tempfile::TempDir;

use crate::shown::{FaceSummary, raised};

/// Folder of the charts and files of a run.
const SAVED: &str = "cellblock-out";
/// A cold run imports the libraries of the image, on a machine that is busy with other tests.
const LIMIT: Duration = Duration::from_mins(3);

fn run(folder: &TempDir, cli: Cli) -> CommandOutput {
    cli.folder(folder.path()).limit(LIMIT).run().unwrap()
}

/// Returns what a run printed and saved.
fn shown(folder: &Path, finished: &CommandOutput) -> FaceSummary {
    let saved = match fs::read_dir(folder.join(SAVED)) {
        Ok(entries) => entries
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect(),
        Err(_) => Vec::new(),
    };
    let (charts, files): (Vec<String>, _) = saved.into_iter().partition(|it| it.starts_with("figure_"));
    let printed = finished.stdout.matches("chart “").count();
    assert_eq!(
        charts.len(),
        printed,
        "a chart is named and not saved, or saved and not named: {charts:?}\n{}",
        finished.stdout
    );
    // A session prints what a model reads, and saves nothing.
    let described = finished.stdout.matches(": figure, ").count();
    let text = format!("{}{}", finished.stdout, finished.stderr);
    FaceSummary {
        charts: printed + described,
        files,
        exception: raised(&text).filter(|_| finished.code() == 1),
        text,
    }
}

pub(crate) fn run_code(code: &str) -> FaceSummary {
    let folder = tempfile::tempdir().unwrap();
    let finished = run(&folder, Cli::new(["run", "-c", code]));
    shown(folder.path(), &finished)
}

pub(crate) fn run_file(code: &str) -> FaceSummary {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("program.py"), code).unwrap();
    let finished = run(&folder, Cli::new(["run", "program.py"]));
    shown(folder.path(), &finished)
}

pub(crate) fn run_stdin(code: &str) -> FaceSummary {
    let folder = tempfile::tempdir().unwrap();
    let finished = run(&folder, Cli::new(["run", "-"]).stdin(code));
    shown(folder.path(), &finished)
}

pub(crate) fn run_session(code: &str) -> FaceSummary {
    let folder = tempfile::tempdir().unwrap();
    let started = run(&folder, Cli::new(["session", "start"]));
    let id = started.stdout.trim();
    let finished = run(&folder, Cli::new(["session", "run", id, "-c", code]));
    let listed = run(
        &folder,
        Cli::new(["session", "run", id, "-c", "import os\nprint(*os.listdir())"]),
    );
    let stopped = run(&folder, Cli::new(["session", "stop", id]));
    assert_eq!(stopped.code(), 0, "{stopped:?}");
    FaceSummary {
        // They stay in the session.
        files: listed.stdout.split_whitespace().map(str::to_owned).collect(),
        ..shown(folder.path(), &finished)
    }
}

/// A warm host with a home of its own, because `warm stop` stops all hosts of a home.
#[derive(Debug)]
pub(crate) struct WarmHost {
    home: TempDir,
}

impl WarmHost {
    pub(crate) fn start() -> Self {
        let home = tempfile::tempdir().unwrap();
        for shared in ["images", "refs", "cache", "layers"] {
            let there = cellblock_testkit::home().unwrap().join(shared);
            fs::create_dir_all(&there).unwrap();
            std::os::unix::fs::symlink(there, home.path().join(shared)).unwrap();
        }
        let host = Self { home };
        let started = host.command(&["warm", "start"]).limit(LIMIT).run().unwrap();
        assert_eq!(started.code(), 0, "{started:?}");
        host
    }

    pub(crate) fn run(&self, code: &str) -> FaceSummary {
        let folder = tempfile::tempdir().unwrap();
        let finished = run(&folder, self.command(&["run", "-c", code]));
        shown(folder.path(), &finished)
    }

    fn command(&self, args: &[&str]) -> Cli {
        Cli::new(args.iter().copied())
            .env("CELLBLOCK_HOME", self.home.path())
            .env("CELLBLOCK_FROZEN", "off")
    }
}

impl Drop for WarmHost {
    fn drop(&mut self) {
        let _reported_by_the_test = self.command(&["warm", "stop"]).run();
    }
}
