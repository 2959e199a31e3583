//! The search for a Python to copy.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;

use super::error::{ImageError, Result};
use super::process;
use super::progress::Sink;
use super::spec::PythonVersion;
use super::uv::Uv;

/// An interpreter that has described itself.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct HostInterpreter {
    /// Path of the program itself, not of shims and virtual environments.
    pub(crate) program: PathBuf,
    /// Version, such as `[3, 13, 0]`.
    pub(crate) version: [u8; 3],
    /// Directory of the installation.
    pub(crate) prefix: PathBuf,
    /// Directory of the standard library.
    pub(crate) stdlib: PathBuf,
    /// Directory of its extension modules.
    pub(crate) extensions: PathBuf,
    usable: bool,
}

/// Query for every candidate. A free-threaded or debug build needs other wheels, so neither is
/// usable.
const QUESTION: &str = r"
import json, os, sys, sysconfig
program = os.path.join(sys.base_prefix, 'bin', 'python%d.%d' % sys.version_info[:2])
if not os.path.exists(program):
    program = os.path.realpath(getattr(sys, '_base_executable', sys.executable))
bases = ('base', 'platbase', 'installed_base')
paths = sysconfig.get_paths(vars={base: sys.base_prefix for base in bases})
print(json.dumps({
    'program': program,
    'version': sys.version_info[:3],
    'prefix': sys.base_prefix,
    'stdlib': paths['stdlib'],
    'extensions': next((p for p in sys.path if os.path.basename(p) == 'lib-dynload'),
                       os.path.join(paths['stdlib'], 'lib-dynload')),
    'usable': sys.implementation.name == 'cpython' and not hasattr(sys, 'gettotalrefcount')
              and not sysconfig.get_config_var('Py_GIL_DISABLED'),
}))
";

impl HostInterpreter {
    /// Queries a candidate; `None` if it does not respond, or is not a `CPython` that can be
    /// copied.
    pub(crate) fn ask(candidate: &Path) -> Option<Self> {
        let mut command = Command::new(candidate);
        command.args(["-I", "-S", "-c", QUESTION]).current_dir("/");
        let answer = process::output(&mut command, Duration::from_secs(20))?;
        let found: Self = serde_json::from_slice(&answer).ok()?;
        found.usable.then_some(found)
    }

    /// Returns its feature version.
    pub(crate) fn feature(&self) -> PythonVersion {
        PythonVersion {
            major: self.version[0],
            minor: self.version[1],
        }
    }

    /// Returns its full version.
    pub(crate) fn full_version(&self) -> String {
        let [major, minor, micro] = self.version;
        format!("{major}.{minor}.{micro}")
    }
}

/// Finds the wanted version, installs it, or uses another and says so in the notes.
pub(crate) fn find(wanted: PythonVersion, uv: &Uv, sink: &Sink) -> Result<(HostInterpreter, Vec<String>)> {
    let mut seen = BTreeSet::new();
    let mut others = Vec::new();
    let mut older = BTreeSet::new();
    let mut consider = |candidate: PathBuf| {
        let found = seen
            .insert(candidate.clone())
            .then(|| HostInterpreter::ask(&candidate))??;
        if found.feature() == wanted {
            return Some(found);
        }
        if found.feature() >= PythonVersion::OLDEST {
            others.push(found);
        } else {
            older.insert(found.full_version());
        }
        None
    };
    let here = on_path(wanted)
        .into_iter()
        .chain(in_uv_store(uv))
        .chain(in_version_folders());
    if let Some(found) = { here }.find_map(&mut consider) {
        return Ok((found, Vec::new()));
    }
    sink.line(format!(
        "no Python {wanted} found on this machine; asking uv to install one"
    ));
    let install = match uv.install_python(wanted, sink) {
        Ok(program) => match consider(program) {
            Some(found) => return Ok((found, Vec::new())),
            None => "the installed one does not run here".to_owned(),
        },
        Err(error) => last_line(&error.to_string()),
    };
    // A version below the wanted one fits a lock better than one above it.
    others.sort_by_key(|it| (it.feature() < wanted, it.version));
    let found = others.pop().ok_or_else(|| ImageError::NoInterpreter {
        wanted: wanted.to_string(),
        searched: format!(
            "PATH, uv's own, and the version folders of pyenv, asdf and mise{}",
            too_old(&older)
        ),
        install: install.clone(),
    })?;
    let note = format!(
        "Python {wanted} was requested but is unavailable ({install}); this is {}",
        found.full_version()
    );
    sink.line(note.clone());
    Ok((found, vec![note]))
}

fn too_old(versions: &BTreeSet<String>) -> String {
    if versions.is_empty() {
        return String::new();
    }
    let versions: Vec<_> = versions.iter().map(String::as_str).collect();
    format!(", where only {} was found, which is too old", versions.join(", "))
}

fn last_line(text: &str) -> String {
    text.lines()
        .rfind(|it| !it.trim().is_empty())
        .unwrap_or_default()
        .trim()
        .to_owned()
}

fn on_path(wanted: PythonVersion) -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let names = [
        format!("python{wanted}"),
        "python3".to_owned(),
        "python".to_owned(),
    ];
    let mut more: Vec<_> = (PythonVersion::OLDEST.minor..=wanted.minor)
        .rev()
        .map(|it| format!("python3.{it}"))
        .collect();
    more.retain(|it| *it != names[0]);
    let dirs: Vec<_> = env::split_paths(&path).filter(|it| it.is_absolute()).collect();
    let all = names
        .iter()
        .chain(&more)
        .flat_map(|name| dirs.iter().map(move |dir| dir.join(name)));
    all.filter(|it| it.is_file()).collect()
}

fn in_uv_store(uv: &Uv) -> Vec<PathBuf> {
    uv.python_store()
        .map(|it| programs_below(&it))
        .unwrap_or_default()
}

fn in_version_folders() -> Vec<PathBuf> {
    let home = env::var_os("HOME")
        .map(PathBuf::from)
        .filter(|it| it.is_absolute());
    let from = |variable: &str, below: &str, default: &str| {
        let named = env::var_os(variable)
            .map(PathBuf::from)
            .filter(|it| it.is_absolute());
        named
            .map(|it| it.join(below))
            .or_else(|| home.as_ref().map(|it| it.join(default)))
    };
    let folders = [
        from("PYENV_ROOT", "versions", ".pyenv/versions"),
        from("ASDF_DATA_DIR", "installs/python", ".asdf/installs/python"),
        from(
            "MISE_DATA_DIR",
            "installs/python",
            ".local/share/mise/installs/python",
        ),
    ];
    folders
        .into_iter()
        .flatten()
        .flat_map(|it| programs_below(&it))
        .collect()
}

/// Returns the interpreters in a folder of versions, newest first as far as names show.
fn programs_below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut versions: Vec<_> = entries.flatten().map(|it| it.path()).collect();
    versions.sort_by_key(|it| std::cmp::Reverse(numbers(&it.to_string_lossy())));
    versions
        .into_iter()
        .map(|it| it.join("bin/python3"))
        .filter(|it| it.is_file())
        .collect()
}

fn numbers(text: &str) -> Vec<u32> {
    text.split(|c: char| !c.is_ascii_digit())
        .filter_map(|it| it.parse().ok())
        .collect()
}
