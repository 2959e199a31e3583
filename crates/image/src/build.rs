//! Building an image in stages. Each completed stage is kept if a later one fails.
//!
//! ```text
//!      ┌─> interpreter copied ─┐    ┌─> compiled, tried ─┐
//! lock ┤                       ├────┤                    ├─> audited, addressed ─> renamed into place
//!      └─> packages installed ─┘    └─> hashed ──────────┘
//!               (both kept once they are on the disk, meanwhile the image is compiled)
//! ```

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;

use cellblock_settings::clock;

use super::audit::{audit, installed};
use super::check::{self, CheckedTree};
use super::copy::{self, InterpreterCopy, PYTHON_IN_SANDBOX};
use super::error::{ImageError, IoResultExt, Result};
use super::home::Home;
use super::lock::Lock;
use super::manifest::{LAYOUT, Manifest, Package, converter_modules};
use super::progress::Sink;
use super::spec::ImageSpec;
use super::stop::{self, BuildGuard};
use super::uv::{self, Uv};
use super::{digest, install, interpreter};

/// Facts that are known once the interpreter is copied.
#[derive(serde::Serialize, serde::Deserialize)]
struct Base {
    copied: InterpreterCopy,
    notes: Vec<String>,
}

/// Builds an image below the home and returns its id. The lock must be that of `key`. If `fresh`,
/// nothing of earlier builds is used.
pub(super) fn build(
    home: &Home,
    spec: &ImageSpec,
    key: &str,
    fresh: bool,
    lock: &Lock,
    sink: &Sink,
) -> Result<String> {
    let room = BuildDirectory {
        path: home.staging(key),
    };
    let running = BuildGuard::start()?;
    let built = build_in(&room, home, spec, fresh, lock, sink);
    if built.is_err() {
        // Not for a full disk: stages that would save a later build some work are removed.
        let _ = room.tidy();
    }
    drop(running);
    built
}

fn build_in(
    room: &BuildDirectory,
    home: &Home,
    spec: &ImageSpec,
    fresh: bool,
    lock: &Lock,
    sink: &Sink,
) -> Result<String> {
    home.check_programs_run()?;
    if fresh {
        remove(&room.path)?;
    }
    fs::create_dir_all(&room.path).at("create", &room.path)?;
    let mut uv = Uv::find_or_fetch(home, lock, sink)?;
    if fresh {
        uv = uv.with_empty_cache(room.path.join("cache"));
    }
    sink.line(format!(
        "building the image `{}` from {}{}",
        spec.name,
        uv::index_name(),
        spec.cost().map_or_else(String::new, |it| format!(": {it}"))
    ));
    let base = gather(room, spec, &uv, sink)?;
    stop::check()?;
    let manifest = finish(room, spec, base, &uv, sink)?;
    let place = home.images().join(&manifest.id);
    put_in_place(&room.path, &place)?;
    Ok(manifest.id)
}

/// The directory in which an image is being built.
struct BuildDirectory {
    path: PathBuf,
}

impl BuildDirectory {
    fn image(&self) -> PathBuf {
        self.path.join("image")
    }

    fn python(&self) -> PathBuf {
        self.path.join("image/python")
    }

    /// Returns where packages are installed until the interpreter is copied.
    fn packages(&self) -> PathBuf {
        self.path.join("packages")
    }

    fn lock(&self) -> PathBuf {
        self.path.join("image/requirements.lock")
    }

    /// Returns the mark of a stage, which is written when the stage is complete.
    fn mark(&self, stage: &str) -> PathBuf {
        self.path.join(format!("{stage}.done"))
    }

    fn done<T: serde::de::DeserializeOwned>(&self, stage: &str) -> Option<T> {
        serde_json::from_slice(&fs::read(self.mark(stage)).ok()?).ok()
    }

    fn set_done(&self, stage: &str, result: &impl serde::Serialize) -> Result<()> {
        let mark = self.mark(stage);
        fs::write(&mark, serde_json::json!(result).to_string()).at("write", &mark)
    }

    /// Keeps the interpreter and the packages for later builds, once they are on the disk.
    fn keep(&self, base: &Base) -> Result<()> {
        if self.done::<()>("packages").is_some() {
            return Ok(());
        }
        flush(&self.path)?;
        self.set_done("interpreter", base)?;
        self.set_done("packages", &())
    }

    fn forget(&self, stage: &str) -> Result<()> {
        remove(&self.mark(stage))
    }
}

/// Copies the interpreter and installs the packages, side by side: one reads the disk, the other the network.
fn gather(room: &BuildDirectory, spec: &ImageSpec, uv: &Uv, sink: &Sink) -> Result<Base> {
    let kept = room
        .done::<Base>("interpreter")
        .filter(|it| room.python().join(&it.copied.interpreter).is_file());
    let base = if let Some(base) = kept {
        let version = &base.copied.version;
        sink.line(format!(
            "using the copy of Python {version} from an earlier build"
        ));
        install_packages(
            room,
            spec,
            &room.python().join(&base.copied.interpreter),
            uv,
            sink,
        )?;
        base
    } else {
        sink.stage(format!("copying Python {}", spec.python));
        room.forget("packages")?;
        room.forget("interpreter")?;
        remove(&room.image())?;
        let (found, notes) = interpreter::find(spec.python, uv, sink)?;
        fs::create_dir_all(room.python()).at("create", &room.python())?;
        let copied = thread::scope(|scope| {
            let copying = thread::Builder::new()
                .spawn_scoped(scope, || copy::copy(&found, &room.python()))
                .at("start a thread for", &room.path)?;
            let installed = install_packages(room, spec, &found.program, uv, sink);
            let copied = copying.join().map_err(|_| ImageError::Cancelled)?;
            copied.and_then(|copied| installed.map(|()| copied))
        })?;
        Base { copied, notes }
    };
    put_packages_in_place(room, &base.copied)?;
    Ok(base)
}

/// Installs the packages beside the image, for the interpreter `program`.
fn install_packages(
    room: &BuildDirectory,
    spec: &ImageSpec,
    program: &Path,
    uv: &Uv,
    sink: &Sink,
) -> Result<()> {
    if room.done::<()>("packages").is_some() {
        sink.line("using the packages from an earlier build");
        return Ok(());
    }
    let packages = room.packages();
    remove(&packages)?;
    fs::create_dir_all(&packages).at("create", &packages)?;
    let lock = room.lock();
    if let Some(text) = &spec.lock {
        fs::write(&lock, text).at("write", &lock)?;
    } else {
        sink.stage("resolving packages");
        let requirements = room.path.join("requirements.in");
        fs::write(&requirements, &spec.requirements).at("write", &requirements)?;
        let mut command = install::lock_command(uv, program, &lock)?;
        uv::run(command.arg(&requirements), "resolve the packages", sink)?;
    }
    sink.stage("installing packages");
    if fs::read_to_string(&lock)
        .at("read", &lock)?
        .lines()
        .any(|it| it.contains("=="))
    {
        install::install(uv, program, &lock, &packages, sink)?;
    }
    Ok(())
}

fn put_packages_in_place(room: &BuildDirectory, copied: &InterpreterCopy) -> Result<()> {
    if room.done::<()>("packages").is_some() {
        return Ok(());
    }
    let python = room.python();
    let site = python.join(&copied.stdlib).join("site-packages");
    remove(&site)?;
    fs::rename(room.packages(), &site).at("move into place", &site)?;
    remove(&python.join("lib/python3"))?;
    install::link_for_debian(&python, &copied.stdlib)?;
    // Packages and uv's questions to the interpreter may have brought some.
    install::keep_bytecode(&python, |_| false)
}

fn finish(room: &BuildDirectory, spec: &ImageSpec, base: Base, uv: &Uv, sink: &Sink) -> Result<Manifest> {
    let python = room.python();
    let site = python.join(&base.copied.stdlib).join("site-packages");
    install::link_fonts(&python, &base.copied.stdlib, &spec.fonts)?;
    sink.stage("compiling and trying the image");
    let (checked, others) = thread::scope(|scope| {
        // Most of the image stays as it is while its modules are compiled.
        let hashing = thread::Builder::new()
            .spawn_scoped(scope, || digest::entries(&python, |it| !install::is_bytecode(it)))
            .at("start a thread for", &room.path)?;
        let keeping = thread::Builder::new()
            .spawn_scoped(scope, || room.keep(&base))
            .at("start a thread for", &room.path)?;
        let checked = compile_and_check(&python, spec, &base.copied, uv);
        let others = hashing.join().map_err(|_| ImageError::Cancelled)?;
        let kept = keeping.join().map_err(|_| ImageError::Cancelled)?;
        // Only now, because they may have been kept last.
        let checked = checked.inspect_err(|_| room.distrust())?;
        kept?;
        Ok::<_, ImageError>((checked, others?))
    })?;
    sink.stage("auditing");
    let report = audit(&python, &[&site, &python.join(&base.copied.stdlib)], &spec.policy)?.enforce()?;
    let packages: Vec<Package> = installed(&site)?.into_iter().map(|it| it.0).collect();
    sink.stage("addressing");
    let bytecode = digest::entries(&python, install::is_bytecode)?;
    let tree = digest::Tree::of_entries([others, bytecode].concat());
    let mut system_libraries = [base.copied.system_libraries, checked.system_libraries].concat();
    system_libraries.sort();
    system_libraries.dedup();
    let mut manifest = Manifest {
        layout: LAYOUT,
        id: String::new(),
        name: spec.name.clone(),
        python: base.copied.version,
        interpreter: base.copied.interpreter,
        stdlib: base.copied.stdlib,
        library_path: checked.library_path,
        system_libraries,
        packages,
        preload: spec.preload.clone(),
        outputs: spec.outputs.clone(),
        root: None,
        policy: spec.policy.clone(),
        created: clock::unix_seconds(),
        size: tree.size,
        files: tree.files,
        machine: std::env::consts::ARCH.to_owned(),
        notes: base.notes,
        audit: report,
    };
    manifest.id = manifest.address(&tree.id);
    for (name, text) in [
        ("manifest.json", serde_json::json!(manifest).to_string()),
        ("lock", String::new()),
    ] {
        let path = room.image().join(name);
        fs::write(&path, text).at("write", &path)?;
    }
    install::open_modes(&room.image())?;
    flush(&room.path)?;
    Ok(manifest)
}

/// Leaves exactly the bytecode that the specification asks for.
fn compile_and_check(
    python: &Path,
    spec: &ImageSpec,
    copied: &InterpreterCopy,
    uv: &Uv,
) -> Result<CheckedTree> {
    if spec.compile.is_none() {
        install::compile(uv, &python.join(&copied.interpreter), python, PYTHON_IN_SANDBOX)?;
    }
    let listed = spec.preload.iter().chain(spec.compile.iter().flatten());
    let modules: Vec<_> = listed
        .map(String::as_str)
        .chain(converter_modules(&spec.outputs))
        .collect();
    let checked = check::check(python, copied, &modules)?;
    install::keep_bytecode(python, |path| match spec.compile {
        None => path.extension().is_some_and(|it| it == "pyc"),
        Some(_) => checked.compiled.contains(path),
    })?;
    Ok(checked)
}

impl BuildDirectory {
    /// Removes incomplete stages: their next attempt starts from scratch.
    fn tidy(&self) -> Result<()> {
        let Some(base) = self.done::<Base>("interpreter") else {
            return remove(&self.path);
        };
        if self.done::<()>("packages").is_none() {
            remove(&self.packages())?;
            remove(&self.python().join(base.copied.stdlib).join("site-packages"))?;
        }
        Ok(())
    }

    /// Removes results that do not work, so that the next build does not reuse them.
    fn distrust(&self) {
        for stage in ["packages", "interpreter"] {
            let _ = self.forget(stage);
        }
    }
}

/// Moves the finished image of a staging directory to its address, and replaces a damaged one.
pub(crate) fn put_in_place(staging: &Path, place: &Path) -> Result<()> {
    if let Some(images) = place.parent() {
        fs::create_dir_all(images).at("create", images)?;
    }
    // It may be in use: a process that has it mounted keeps it until it ends.
    let old = staging.join("replaced");
    remove(&old)?;
    match fs::rename(place, &old) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        moved => moved.at("move away", place)?,
    }
    match fs::rename(staging.join("image"), place) {
        // Another home that shares the folder of images has put an image with the same address, so
        // with the same files, there.
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {}
        moved => moved.at("move into place", place)?,
    }
    if let Some(images) = place.parent() {
        File::open(images)
            .and_then(|it| it.sync_all())
            .at("flush", images)?;
    }
    remove(staging)
}

/// Waits until everything written to this filesystem is on the disk; a build has too many files to
/// flush them one by one.
pub(crate) fn flush(path: &Path) -> Result<()> {
    let directory = File::open(path).at("open", path)?;
    rustix::fs::syncfs(&directory).at("flush", path)
}

/// Removes a file or a tree if it exists.
pub(crate) fn remove(path: &Path) -> Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.at("remove", path),
    }
}

impl From<tokio::task::JoinError> for ImageError {
    fn from(_: tokio::task::JoinError) -> Self {
        Self::Cancelled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_that_share_a_folder_of_images_may_build_the_same_image_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("images/0123");
        for round in 0..50 {
            std::thread::scope(|scope| {
                for builder in ["one", "other"].map(|name| dir.path().join(name)) {
                    let place = &place;
                    scope.spawn(move || {
                        fs::create_dir_all(builder.join("image")).unwrap();
                        fs::write(builder.join("image/manifest.json"), "{}").unwrap();
                        put_in_place(&builder, place).unwrap();
                    });
                }
            });
            assert_eq!(fs::read_to_string(place.join("manifest.json")).unwrap(), "{}");
            // In every other round there is one to replace.
            if round % 2 == 0 {
                remove(&place).unwrap();
            }
        }
    }
}
