//! The Python of a root filesystem: found by its files. Nothing of an image runs while it is imported.

use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use memchr::memmem;

use super::beneath::RootDirectory;
use crate::manifest::minor_version;

/// The oldest version that the kernel supports.
const OLDEST: u32 = 9;
/// Number beyond which no version is looked for.
const NEWEST: u32 = 30;
/// Directories of interpreters that are not on the image's `PATH`.
const USUAL: [&str; 5] = ["usr/local/bin", "usr/bin", "bin", "opt/venv/bin", "opt/conda/bin"];
/// Maximum number of bytes in which a version is looked for.
const MAX_PROGRAM: u64 = 64 << 20;

/// An interpreter that was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Python {
    /// Path below the root, as `PATH` leads to it.
    pub(super) interpreter: String,
    pub(super) version: String,
    /// Path of the standard library, without links.
    pub(super) stdlib: String,
    /// Directories of packages, without links.
    pub(super) sites: Vec<String>,
}

/// Finds the interpreter that a program in the image would find, with this `PATH`.
pub(super) fn find(root: &RootDirectory, path: Option<&str>) -> Result<Python, String> {
    let named = path.unwrap_or_default().split(':').map(|it| it.trim_matches('/'));
    let mut folders: Vec<&str> = Vec::new();
    for folder in named.chain(USUAL) {
        if !folder.is_empty() && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    let versioned: Vec<_> = (OLDEST..NEWEST)
        .rev()
        .map(|minor| format!("python3.{minor}"))
        .collect();
    let mut old = None;
    let general = ["python3", "python"].map(str::to_owned);
    for names in [&general[..], &versioned[..]] {
        for folder in &folders {
            for name in names {
                let candidate = Path::new(folder).join(name);
                match look(root, &candidate) {
                    Some(python) if minor_version(&python.version).is_some_and(|it| it >= OLDEST) => {
                        return Ok(python);
                    }
                    Some(python) => old = old.or(Some(python)),
                    None => {}
                }
            }
        }
    }
    let wanted = format!("cells need CPython 3.{OLDEST} or newer; add one to the image");
    if let Some(Python {
        interpreter, version, ..
    }) = old
    {
        return Err(format!("its `/{interpreter}` is Python {version}, and {wanted}"));
    }
    let folders: Vec<_> = folders.iter().map(|it| format!("/{it}")).collect();
    Err(format!(
        "it has no Python in {}, and {wanted}",
        folders.join(", ").escape_debug()
    ))
}

fn look(root: &RootDirectory, candidate: &Path) -> Option<Python> {
    let program = root.resolve(candidate).ok()?;
    let is_program = root.read(&program).is_ok_and(|file| {
        use std::os::unix::fs::PermissionsExt as _;
        file.metadata()
            .is_ok_and(|it| it.permissions().mode() & 0o111 != 0)
    });
    if !is_program {
        return None;
    }
    // In a virtual environment, the program is a link to that of another prefix, or a copy of it.
    let mut prefixes: Vec<PathBuf> = above(&program).into_iter().collect();
    prefixes.extend(above(candidate).and_then(|own| home(root, &own)));
    let named = file_name(&program).strip_prefix("python").and_then(minor_version);
    let (prefix, minor) = prefixes
        .iter()
        .find_map(|prefix| Some((prefix, standard_library(root, prefix, named)?)))?;
    let stdlib = root.resolve(&prefix.join(format!("lib/python3.{minor}"))).ok()?;
    let mut sites = Vec::new();
    let own = above(candidate).into_iter();
    let directories = own
        .map(|own| own.join(format!("lib/python3.{minor}/site-packages")))
        .chain([
            prefix.join(format!("lib/python3.{minor}/site-packages")),
            prefix.join("lib/python3/dist-packages"),
            PathBuf::from(format!("usr/local/lib/python3.{minor}/dist-packages")),
        ]);
    for directory in directories {
        if let Some(site) = root.resolve(&directory).ok().and_then(text)
            && !sites.contains(&site)
        {
            sites.push(site);
        }
    }
    let library = format!("libpython3.{minor}.so.1.0");
    let multiarch = format!("lib/{}-linux-gnu", std::env::consts::ARCH);
    let mut programs = vec![program.clone(), prefix.join("lib").join(&library)];
    programs.push(prefix.join(multiarch).join(&library));
    let version = programs
        .iter()
        .find_map(|it| version_in(root, it, minor).ok().flatten());
    Some(Python {
        interpreter: text(candidate.to_owned())?,
        version: version.unwrap_or_else(|| format!("3.{minor}")),
        stdlib: text(stdlib)?,
        sites,
    })
}

/// Returns the minor version of the standard library of a prefix: the one that the program is named
/// for, or the only one.
fn standard_library(root: &RootDirectory, prefix: &Path, named: Option<u32>) -> Option<u32> {
    let has = |minor: &u32| {
        root.read(&prefix.join(format!("lib/python3.{minor}/os.py")))
            .is_ok()
    };
    if named.is_some() {
        return named.filter(has);
    }
    let mut found = (0..NEWEST).filter(has);
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// Returns the prefix that a virtual environment is made of.
fn home(root: &RootDirectory, environment: &Path) -> Option<PathBuf> {
    let mut text = String::new();
    let file = root.read(&environment.join("pyvenv.cfg")).ok()?;
    file.take(1 << 16).read_to_string(&mut text).ok()?;
    let home = text.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "home").then(|| value.trim().to_owned())
    })?;
    root.resolve(Path::new(&home)).ok()?.parent().map(Path::to_owned)
}

/// Finds the full version among the texts of a program or library.
fn version_in(root: &RootDirectory, program: &Path, minor: u32) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    root.read(program)?.take(MAX_PROGRAM).read_to_end(&mut bytes)?;
    let start = format!("3.{minor}.");
    let found = memmem::find_iter(&bytes, start.as_bytes()).find_map(|at| {
        // It may be the end of another text, such as `Python-3.9.18`.
        let before = at.checked_sub(1).map_or(0, |at| bytes[at]);
        let text = &bytes[at..bytes.len().min(at + 24)];
        let end = text.iter().position(|byte| *byte == 0)?;
        let version = std::str::from_utf8(&text[..end]).ok()?;
        let release = version.rsplit('.').next()?;
        let is_release = release.starts_with(|it: char| it.is_ascii_digit())
            && release.chars().all(|it| it.is_ascii_alphanumeric() || it == '+');
        (is_release && !before.is_ascii_alphanumeric() && before != b'.').then(|| version.to_owned())
    });
    Ok(found)
}

/// Returns whether a module can be imported from one of these directories.
pub(super) fn has_module(root: &RootDirectory, directories: &[&str], module: &str) -> bool {
    let path = module.replace('.', "/");
    directories.iter().any(|directory| {
        let base = Path::new(directory).join(&path);
        if root.read(&base.join("__init__.py")).is_ok() || root.read(&base.with_extension("py")).is_ok() {
            return true;
        }
        let stem = format!("{}.", file_name(&base));
        let beside = base
            .parent()
            .map(|folder| root.names(folder).unwrap_or_default())
            .unwrap_or_default();
        beside
            .iter()
            .filter_map(|it| it.to_str())
            .any(|it| it.starts_with(&stem) && Path::new(it).extension().is_some_and(|it| it == "so"))
    })
}

/// Returns the folder above that of a program.
fn above(program: &Path) -> Option<PathBuf> {
    program.parent()?.parent().map(Path::to_owned)
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(OsStr::to_str).unwrap_or_default()
}

fn text(path: PathBuf) -> Option<String> {
    path.into_os_string().into_string().ok()
}
