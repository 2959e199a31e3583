//! The trial of a finished tree: it must run on its own and import the modules that the template
//! will import.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;

use super::copy::Copied;
use super::error::{At, ImageError, Result};
use super::process;

/// Code that runs with the staged interpreter, without anything else.
const TRIAL: &str = r"
import json, os, sys
import encodings, json, ssl, sqlite3, ctypes, zlib, lzma, bz2, hashlib
failed = []
for module in sys.argv[1:]:
    try:
        __import__(module)
    except BaseException as error:
        failed.append(f'{module}: {type(error).__name__}: {error}')
with open('/proc/self/maps') as maps:
    mapped = sorted({line.split(None, 5)[5].strip() for line in maps if '.so' in line and '/' in line})
print()
print(json.dumps({'prefix': sys.prefix, 'path': sys.path, 'mapped': mapped, 'failed': failed}))
";

#[derive(Deserialize)]
struct Answer {
    prefix: String,
    path: Vec<String>,
    mapped: Vec<String>,
    failed: Vec<String>,
}

/// Tries the tree. Returns the directory, if any, in which the loader must search for the tree's
/// libraries.
pub(crate) fn check(python: &Path, copied: &Copied, preload: &[String]) -> Result<Option<String>> {
    let broken = |problem: String| ImageError::Broken { problem };
    // The operating system reports where a library is, without links.
    let real = python.canonicalize().at("resolve", python)?;
    let real = real.to_string_lossy();
    for library_path in [None, Some("lib")] {
        let answer = ask(python, copied, preload, library_path)?;
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
                "{} of {} modules to preload cannot be imported; the first is {failure}",
                answer.failed.len(),
                preload.len()
            )));
        }
        let outside = |path: &&String| {
            let system = ["/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"]
                .iter()
                .any(|it| path.starts_with(it));
            !path.starts_with(&*real) && (!system || path.contains("/libpython"))
        };
        match answer.mapped.iter().find(outside) {
            None => return Ok(library_path.map(str::to_owned)),
            Some(path) if library_path.is_some() => {
                return Err(broken(format!("the copied interpreter still uses `{path}`")));
            }
            Some(_) => {}
        }
    }
    unreachable!("the second round returns")
}

fn ask(python: &Path, copied: &Copied, preload: &[String], library_path: Option<&str>) -> Result<Answer> {
    let home = tempfile::tempdir().map_err(|error| ImageError::Broken {
        problem: format!("cannot create a temporary directory for the trial: {error}"),
    })?;
    let mut command = Command::new(python.join(&copied.interpreter));
    command
        .args(["-I", "-B", "-c", TRIAL])
        .args(preload)
        .current_dir("/")
        .env_clear();
    command
        .env("HOME", home.path())
        .env("MPLBACKEND", "Agg")
        .env("PATH", "/usr/bin:/bin");
    if let Some(below) = library_path {
        command.env("LD_LIBRARY_PATH", python.join(below));
    }
    let answer = process::output(&mut command, Duration::from_mins(5));
    let answer = answer
        .and_then(|it| serde_json::from_slice(it.rsplit(|c| *c == b'\n').find(|it| !it.is_empty())?).ok());
    answer.ok_or_else(|| ImageError::Broken {
        problem: "the copied interpreter does not start, or lacks a part of the standard library \
                  (ssl, sqlite3, ctypes, zlib, lzma, bz2)"
            .to_owned(),
    })
}
