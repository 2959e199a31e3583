//! Packages: resolved to a lock, installed by it, and compiled.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use super::digest::walk;
use super::error::{At, Result};
use super::process;
use super::progress::Sink;
use super::uv::Uv;

/// Resolves requirements to a lock with hashes.
pub(crate) fn lock(uv: &Uv, python: &Path, requirements: &Path, lock: &Path, sink: &Sink) -> Result<()> {
    let mut command = uv.command(&["pip", "compile"]);
    command.args(["--quiet", "--generate-hashes", "--only-binary", ":all:", "--no-header", "--no-annotate"]);
    command.args(["--no-emit-index-url", "--python"]).arg(python).arg("--output-file").arg(lock).arg(requirements);
    uv.run(&mut command, "resolve the packages", sink)
}

/// Installs exactly what a lock names into `target`, from wheels whose hashes fit.
pub(crate) fn install(uv: &Uv, python: &Path, lock: &Path, target: &Path, sink: &Sink) -> Result<()> {
    let mut command = uv.command(&["pip", "install"]);
    command.args(["--require-hashes", "--only-binary", ":all:", "--no-deps", "--link-mode", "copy"]);
    command.arg("--python").arg(python).arg("--target").arg(target).arg("--requirements").arg(lock);
    uv.run(&mut command, "install the packages", sink)?;
    // Scripts name the interpreter by the builder's path, and `python -m` does what they do.
    for name in ["bin", ".lock"] {
        let path = target.join(name);
        if path.is_dir() {
            fs::remove_dir_all(&path).at("remove", &path)?;
        } else if path.exists() {
            fs::remove_file(&path).at("remove", &path)?;
        }
    }
    let mut installer_notes = Vec::new();
    walk(target, &mut |path, _| {
        let file = path.file_name().unwrap_or_default();
        let in_record = path.parent().and_then(Path::extension).is_some_and(|it| it == "dist-info");
        if in_record && (file == "direct_url.json" || file == "uv_cache.json") {
            installer_notes.push(path.to_owned());
        }
        Ok(())
    })?;
    installer_notes.iter().try_for_each(|path| fs::remove_file(path).at("remove", path))
}

/// Lets a Debian interpreter, which looks for `dist-packages`, find the packages.
pub(crate) fn link_for_debian(python: &Path, stdlib: &str) -> Result<()> {
    let link = python.join("lib/python3/dist-packages");
    let Some(parent) = link.parent() else { return Ok(()) };
    fs::create_dir_all(parent).at("create", parent)?;
    let Some(stdlib) = stdlib.strip_prefix("lib/") else { return Ok(()) };
    symlink(format!("../{stdlib}/site-packages"), &link).at("link", &link)
}

/// Compiles everything but tests to bytecode that holds wherever the tree is moved, naming `shown` as its place.
pub(crate) fn compile(python: &Path, tree: &Path, strip: &Path, shown: &str, sink: &Sink) {
    let mut command = Command::new(python);
    command.args(["-I", "-S", "-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash"]);
    command.args(["-x", "/tests?/|/lib2to3/", "-s"]).arg(strip).args(["-p", shown]).arg(tree);
    // What does not compile is compiled when it is imported, or is not meant to be.
    if process::run(command.env("PYTHONHASHSEED", "0"), "compile", |_| ()).is_err() {
        sink.line("some modules were not compiled ahead of their import");
    }
}

/// Makes everything readable for everybody and writable for its owner alone.
pub(crate) fn open_modes(root: &Path) -> Result<()> {
    let mut open = vec![root.to_owned()];
    while let Some(path) = open.pop() {
        let found = fs::symlink_metadata(&path).at("look at", &path)?;
        if found.is_symlink() {
            continue;
        }
        let mode = if found.is_dir() || found.permissions().mode() & 0o111 != 0 { 0o755 } else { 0o644 };
        if found.permissions().mode() & 0o7777 != mode {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).at("set the mode of", &path)?;
        }
        if found.is_dir() {
            for entry in fs::read_dir(&path).at("list", &path)? {
                open.push(entry.at("list", &path)?.path());
            }
        }
    }
    Ok(())
}
