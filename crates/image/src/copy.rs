//! Copying an interpreter to an image.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::elf;
use super::error::{ImageError, IoResultExt, Result};
use super::interpreter::HostInterpreter;
use super::process;
use super::scrub;

/// Path of an image's `python` directory in a sandbox.
pub const PYTHON_IN_SANDBOX: &str = "/opt/python";

/// Parts of a standard library that are not copied: other packages, installers, modules that need a
/// display or a compiler.
const LEFT_OUT: [&str; 11] = [
    "__pycache__",
    "site-packages",
    "dist-packages",
    "EXTERNALLY-MANAGED",
    "ensurepip",
    "idlelib",
    "lib2to3",
    "tkinter",
    "turtle.py",
    "turtledemo",
    "wheeldata",
];

/// Directories whose libraries every sandbox sees.
const SYSTEM: [&str; 4] = ["/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"];

/// Imports every extension of the standard library and prints the files that this maps.
const MAPPED: &str = r"
import importlib, json, os, sys
directory = sys.argv[1]
for name in sorted(os.listdir(directory)) if os.path.isdir(directory) else []:
    module = name.split('.')[0]
    if name.endswith('.so') and not module.startswith(('_test', '_xx', 'xx', '_tkinter', '_ctypes_test')):
        try:
            importlib.import_module(module)
        except Exception:
            pass
with open('/proc/self/maps') as maps:
    mapped = (line for line in maps if '.so' in line and '/' in line)
    print(json.dumps(sorted({line.split(None, 5)[5].strip() for line in mapped})))
";

/// A copied interpreter, relative to the image's `python` directory.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct InterpreterCopy {
    pub(crate) version: String,
    pub(crate) interpreter: String,
    pub(crate) stdlib: String,
    pub(crate) system_libraries: Vec<String>,
}

/// Copies the parts of `from` that programs need to the empty directory `to`.
pub(crate) fn copy(from: &HostInterpreter, to: &Path) -> Result<InterpreterCopy> {
    let feature = from.feature();
    let program = format!("bin/python{feature}");
    let stdlib = from.stdlib.strip_prefix(&from.prefix).map_or_else(
        |_| format!("lib/python{feature}"),
        |it| it.to_string_lossy().into_owned(),
    );
    for directory in ["bin", "lib"].map(|it| to.join(it)) {
        fs::create_dir_all(&directory).at("create", &directory)?;
    }
    copy_file(&from.program, &to.join(&program))?;
    for link in ["bin/python3", "bin/python"].map(|it| to.join(it)) {
        symlink(format!("python{feature}"), &link).at("link", &link)?;
    }
    copy_tree(&from.stdlib, &to.join(&stdlib), 0)?;
    let extensions = to.join(&stdlib).join("lib-dynload");
    if !extensions.is_dir() && from.extensions.is_dir() {
        copy_tree(&from.extensions, &extensions, 0)?;
    }
    let site = to.join(&stdlib).join("site-packages");
    fs::create_dir_all(&site).at("create", &site)?;
    let system_libraries = copy_libraries(from, &to.join("lib"))?;
    scrub::scrub(to, &from.prefix)?;
    Ok(InterpreterCopy {
        version: from.full_version(),
        interpreter: program,
        stdlib,
        system_libraries,
    })
}

/// Copies every library that the interpreter maps from outside the system's directories; returns
/// the names of the others.
fn copy_libraries(from: &HostInterpreter, to: &Path) -> Result<Vec<String>> {
    let mut command = Command::new(&from.program);
    command
        .args(["-I", "-S", "-c", MAPPED])
        .arg(&from.extensions)
        .current_dir("/");
    let mapped: Vec<PathBuf> = process::output(&mut command, Duration::from_mins(1))
        .and_then(|it| serde_json::from_slice(&it).ok())
        .ok_or_else(|| ImageError::Broken {
            problem: format!("cannot read which libraries `{}` needs", from.program.display()),
        })?;
    let mut of_system = BTreeSet::new();
    for path in mapped
        .iter()
        .filter(|it| !it.starts_with(&from.stdlib) && !it.starts_with(&from.extensions))
    {
        let Some(name) = path.file_name().and_then(|it| it.to_str()) else {
            continue;
        };
        let bytes = fs::read(path).at("read", path)?;
        let soname = elf::soname(&bytes).unwrap_or_else(|| name.to_owned());
        let is_system = SYSTEM.iter().any(|it| path.starts_with(it)) && !name.starts_with("libpython");
        if is_system {
            of_system.insert(soname);
            continue;
        }
        copy_file(path, &to.join(name))?;
        let link = to.join(&soname);
        if soname != name && !link.exists() {
            symlink(name, &link).at("link", &link)?;
        }
    }
    Ok(of_system.into_iter().collect())
}

/// Copies the targets of links, so that no link leads out of the copy.
fn copy_tree(from: &Path, to: &Path, depth: usize) -> Result<()> {
    fs::create_dir_all(to).at("create", to)?;
    for entry in fs::read_dir(from).at("list", from)? {
        let entry = entry.at("list", from)?;
        let name = entry.file_name();
        let text = name.to_string_lossy();
        let left_out = LEFT_OUT.iter().any(|it| text == *it)
            || text.starts_with("config-3.")
            || text.starts_with("_tkinter.")
            || entry
                .path()
                .extension()
                .is_some_and(|it| it == "pyc" || it == "a" || it == "whl");
        if left_out {
            continue;
        }
        // A link without a target is also broken in the copy.
        let Ok(found) = fs::metadata(entry.path()) else {
            continue;
        };
        if found.is_dir() && depth < 32 {
            copy_tree(&entry.path(), &to.join(&name), depth + 1)?;
        } else if found.is_file() {
            copy_file(&entry.path(), &to.join(&name))?;
        }
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).at("copy", from).map(drop)
}
