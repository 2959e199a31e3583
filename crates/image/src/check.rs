//! The trial of a finished tree: it must run on its own and import the modules that the template
//! will import. What this loads is compiled.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::copy::{InterpreterCopy, PYTHON_IN_SANDBOX};
use super::error::{ImageError, IoResultExt, Result};
use super::install::compile_command;
use super::{elf, process, stop};

/// Answer of the interpreter after it has imported everything.
#[derive(Deserialize)]
struct CheckAnswer {
    prefix: String,
    path: Vec<String>,
    mapped: Vec<String>,
    failed: Vec<String>,
    compiled: BTreeSet<PathBuf>,
}

/// A tree that works.
#[derive(Debug)]
pub(crate) struct CheckedTree {
    /// Directory, if any, in which the loader must search for the tree's libraries.
    pub(crate) library_path: Option<String>,
    /// Libraries of the system that were loaded, by soname.
    pub(crate) system_libraries: Vec<String>,
    /// Bytecode of the modules that were loaded.
    pub(crate) compiled: BTreeSet<PathBuf>,
}

/// Tries the tree by importing modules.
pub(crate) fn check(python: &Path, copied: &InterpreterCopy, modules: &[&str]) -> Result<CheckedTree> {
    let broken = |problem: String| ImageError::Broken { problem };
    // The operating system reports where a library is, without links.
    let real = python.canonicalize().at("resolve", python)?;
    let real = real.to_string_lossy();
    for library_path in [None, Some("lib")] {
        let answer = ask(python, copied, modules, library_path)?;
        let root = python.to_string_lossy();
        if answer.prefix != root {
            return Err(broken(format!(
                "the copied interpreter uses `{}` as its home",
                answer.prefix
            )));
        }
        let site = python.join("lib/python3/dist-packages");
        let own = python.join(&copied.stdlib).join("site-packages");
        if !answer
            .path
            .iter()
            .any(|it| *it == own.to_string_lossy() || *it == site.to_string_lossy())
        {
            return Err(broken(
                "the copied interpreter does not search its site-packages".to_owned(),
            ));
        }
        if let Some(failure) = answer.failed.first() {
            return Err(broken(format!(
                "{} of its modules cannot be imported; the first is {failure}",
                answer.failed.len()
            )));
        }
        let outside = |path: &&String| {
            let system = ["/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"]
                .iter()
                .any(|it| path.starts_with(it));
            !path.starts_with(&*real) && (!system || path.contains("/libpython"))
        };
        match answer.mapped.iter().find(outside) {
            None => {
                let of_system = answer
                    .mapped
                    .iter()
                    .map(Path::new)
                    .filter(|it| !it.starts_with(&*real));
                return Ok(CheckedTree {
                    library_path: library_path.map(str::to_owned),
                    system_libraries: of_system.map(soname).collect::<Result<_>>()?,
                    compiled: answer.compiled,
                });
            }
            Some(path) if library_path.is_some() => {
                return Err(broken(format!("the copied interpreter still uses `{path}`")));
            }
            Some(_) => {}
        }
    }
    unreachable!("the second round returns")
}

fn soname(path: &Path) -> Result<String> {
    let bytes = fs::read(path).at("read", path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(elf::soname(&bytes).unwrap_or_else(|| name.into_owned()))
}

fn ask(
    python: &Path,
    copied: &InterpreterCopy,
    modules: &[&str],
    library_path: Option<&str>,
) -> Result<CheckAnswer> {
    let home = tempfile::tempdir().map_err(|error| ImageError::Broken {
        problem: format!("cannot create a temporary directory for the trial: {error}"),
    })?;
    let program = python.join(&copied.interpreter);
    let mut command = compile_command(&program, "imported", python, PYTHON_IN_SANDBOX);
    command
        .args(modules)
        .env("HOME", home.path())
        .env("MPLBACKEND", "Agg")
        .env("PATH", "/usr/bin:/bin");
    if let Some(below) = library_path {
        command.env("LD_LIBRARY_PATH", python.join(below));
    }
    let answer = process::output(&mut command, Duration::from_mins(5));
    stop::check()?;
    let answer = answer
        .and_then(|it| serde_json::from_slice(it.rsplit(|c| *c == b'\n').find(|it| !it.is_empty())?).ok());
    answer.ok_or_else(|| ImageError::Broken {
        problem: "the copied interpreter does not start, or ends while it imports the image's modules"
            .to_owned(),
    })
}
