//! Packages: resolved to a lock, installed from it, and compiled.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use super::build::remove;
use super::digest::walk;
use super::error::{ImageError, IoResultExt, Result};
use super::process;
use super::progress::Sink;
use super::uv::{self, Uv};

/// Returns a command that resolves its further arguments to a lock with hashes.
pub(crate) fn lock_command(uv: &Uv, python: &Path, lock: &Path) -> Result<Command> {
    let mut command = uv.command(&["pip", "compile"])?;
    command.args([
        "--quiet",
        "--generate-hashes",
        "--only-binary",
        ":all:",
        "--no-header",
        "--no-annotate",
    ]);
    command
        .args(["--no-emit-index-url", "--python"])
        .arg(python)
        .arg("--output-file")
        .arg(lock);
    Ok(command)
}

/// Installs exactly the packages of a lock to `target`, from wheels with matching hashes. The files
/// may be links to those of uv's cache: they are replaced, never written to.
pub(crate) fn install(uv: &Uv, python: &Path, lock: &Path, target: &Path, sink: &Sink) -> Result<()> {
    let mut command = uv.command(&["pip", "install"])?;
    command.args(["--require-hashes", "--only-binary", ":all:", "--no-deps"]);
    command
        .args(["--link-mode", uv.link_mode()])
        .arg("--python")
        .arg(python)
        .arg("--target")
        .arg(target)
        .arg("--requirements")
        .arg(lock);
    uv::run(&mut command, "install the packages", sink)?;
    // Scripts contain the builder's path to the interpreter, and `python -m` replaces them.
    for name in ["bin", ".lock"] {
        remove(&target.join(name))?;
    }
    let mut records = Vec::new();
    let mut installer_notes = Vec::new();
    walk(target, &mut |path, _| {
        let in_record = path
            .parent()
            .and_then(Path::extension)
            .is_some_and(|it| it == "dist-info");
        match path.file_name().and_then(|it| it.to_str()) {
            Some("RECORD") if in_record => records.push(path.to_owned()),
            Some("direct_url.json" | "uv_cache.json") if in_record => installer_notes.push(path.to_owned()),
            _ => {}
        }
        Ok(())
    })?;
    installer_notes.iter().try_for_each(|it| remove(it))?;
    records.iter().try_for_each(|it| forget_scripts(it))
}

/// Removes the deleted scripts from an installation record, as their hashes reveal the builder's
/// path.
fn forget_scripts(record: &Path) -> Result<()> {
    let bytes = fs::read(record).at("read", record)?;
    let kept: Vec<_> = bytes
        .split_inclusive(|it| *it == b'\n')
        .filter(|it| !it.starts_with(b"bin/"))
        .collect();
    if kept.iter().map(|it| it.len()).sum::<usize>() == bytes.len() {
        return Ok(());
    }
    remove(record)?;
    fs::write(record, kept.concat()).at("write", record)
}

/// Makes the packages visible to a Debian interpreter, which searches `dist-packages`.
pub(crate) fn link_for_debian(python: &Path, stdlib: &str) -> Result<()> {
    let site = python.join(stdlib).join("site.py");
    if !fs::read_to_string(&site)
        .at("read", &site)?
        .contains("dist-packages")
    {
        return Ok(());
    }
    let link = python.join("lib/python3/dist-packages");
    let Some(parent) = link.parent() else {
        return Ok(());
    };
    fs::create_dir_all(parent).at("create", parent)?;
    let Some(stdlib) = stdlib.strip_prefix("lib/") else {
        return Ok(());
    };
    symlink(format!("../{stdlib}/site-packages"), &link).at("link", &link)
}

/// Folder of an interpreter in which programs look for fonts.
const FONTS: &str = "share/fonts";

/// Links the font files of packages to one folder, in which programs find them by name.
pub(crate) fn link_fonts(python: &Path, stdlib: &str, packages: &[String]) -> Result<()> {
    let folder = python.join(FONTS);
    remove(&folder)?;
    if packages.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(&folder).at("create", &folder)?;
    for package in packages {
        let place = Path::new(stdlib)
            .join("site-packages")
            .join(package.replace('.', "/"));
        let mut fonts = Vec::new();
        if python.join(&place).is_dir() {
            walk(&python.join(&place), &mut |path, _| {
                let is_font = path
                    .extension()
                    .is_some_and(|it| it == "ttf" || it == "otf" || it == "ttc");
                fonts.extend(is_font.then(|| path.to_owned()));
                Ok(())
            })?;
        }
        if fonts.is_empty() {
            return Err(ImageError::Broken {
                problem: format!("the package `{package}` in `fonts` contains no font files"),
            });
        }
        for font in fonts {
            let (Ok(inside), Some(name)) = (font.strip_prefix(python), font.file_name()) else {
                continue;
            };
            let link = folder.join(name);
            symlink(Path::new("../..").join(inside), &link).at("link", &link)?;
        }
    }
    Ok(())
}

/// Code that compiles modules.
const COMPILE: &str = include_str!("compile.py");

/// Returns a command of an interpreter that compiles modules of a tree which is shown at another
/// path in sandboxes.
pub(crate) fn compile_command(python: &Path, mode: &str, tree: &Path, shown: &str) -> Command {
    let mut command = Command::new(python);
    // A fixed hash seed gives the same bytes on every machine; `-I` would ignore it.
    command.env_clear().env("PYTHONHASHSEED", "0").current_dir("/");
    command
        .args(["-s", "-P", "-B", "-c", COMPILE, mode])
        .arg(tree)
        .arg(shown);
    command
}

/// Compiles everything except tests.
pub(crate) fn compile(uv: &Uv, python: &Path, tree: &Path, shown: &str) -> Result<()> {
    let mut command = compile_command(python, "all", tree, shown);
    process::run(command.stdin(uv.stdin()?), "compile", |_| ())
}

/// Removes bytecode except that of these modules.
pub(crate) fn keep_bytecode(tree: &Path, is_kept: impl Fn(&Path) -> bool) -> Result<()> {
    let mut surplus = Vec::new();
    walk(tree, &mut |path, _| {
        if is_bytecode(path) && !is_kept(path) {
            surplus.push(path.to_owned());
        }
        Ok(())
    })?;
    surplus.iter().try_for_each(|it| remove(it))
}

/// Returns whether a file is in a directory of bytecode.
pub(crate) fn is_bytecode(path: &Path) -> bool {
    path.parent().is_some_and(|it| it.ends_with("__pycache__"))
}

/// Makes everything readable for all users and writable only for its owner.
pub(crate) fn open_modes(root: &Path) -> Result<()> {
    let mut open = vec![root.to_owned()];
    while let Some(path) = open.pop() {
        let found = fs::symlink_metadata(&path).at("look at", &path)?;
        if found.is_symlink() {
            continue;
        }
        let mode = if found.is_dir() || found.permissions().mode() & 0o111 != 0 {
            0o755
        } else {
            0o644
        };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn font_files_of_the_named_packages_are_linked_to_one_folder() {
        let python = tempfile::tempdir().unwrap();
        let site = python.path().join("lib/python3.13/site-packages");
        for file in [
            "letters/Letters.ttf",
            "letters/files/More.otf",
            "other/Other.ttf",
            "plain/a.py",
        ] {
            fs::create_dir_all(site.join(file).parent().unwrap()).unwrap();
            fs::write(site.join(file), file).unwrap();
        }
        let link = |packages: &[&str]| {
            let packages: Vec<_> = packages.iter().map(|&it| it.to_owned()).collect();
            link_fonts(python.path(), "lib/python3.13", &packages)
        };
        let folder = python.path().join("share/fonts");
        // The second time replaces what the first has left.
        for _ in 0..2 {
            link(&["letters"]).unwrap();
            let found = |name: &str| fs::read_to_string(folder.join(name)).ok();
            assert_eq!(found("Letters.ttf").as_deref(), Some("letters/Letters.ttf"));
            assert_eq!(found("More.otf").as_deref(), Some("letters/files/More.otf"));
            assert_eq!(found("Other.ttf"), None);
            assert!(fs::read_link(folder.join("More.otf")).unwrap().is_relative());
        }
        for package in ["plain", "missing"] {
            let error = link(&[package]).unwrap_err().to_string();
            let expected = format!("the package `{package}` in `fonts` contains no font files");
            assert!(error.contains(&expected), "{error}");
        }
        link(&[]).unwrap();
        assert!(!folder.exists());
    }
}
