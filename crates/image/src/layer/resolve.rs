//! Creating a layer.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::running::{BuildNotice, running_builds};
use crate::{
    Home, ImageError, IoResultExt, Lock, OpenImage, Sink, Uv, audit, digest, flush, install, installed,
    remove, run_uv, write_atomically,
};

use super::error::LayerError;
use super::explain::explain;
use super::{Layer, Record, Requirement, key, room};

/// Finds the layer for these requirements, or creates it.
pub(super) fn resolve(
    image: &OpenImage,
    wanted: &[Requirement],
    max_bytes: u64,
    sink: &Sink,
) -> Result<Layer, LayerError> {
    let home = image.home();
    let key = key(image.id(), wanted);
    if let Some(layer) = made(image, &key) {
        return Ok(layer);
    }
    let waiting = || sink.waiting("another process is installing the same requirements");
    let lock = Lock::exclusive(&home.lock(&format!("layer-{key}")), waiting)?;
    if let Some(layer) = made(image, &key) {
        return Ok(layer);
    }
    let names: Vec<_> = wanted.iter().map(Requirement::name).collect();
    let what = format!("requirements {}", names.join(", "));
    let (_announced, sink) = BuildNotice::start(home, what, sink);
    let room = home.staging(&format!("layer-{key}"));
    remove(&room)?;
    let result = make(image, wanted, &room, max_bytes, &lock, &sink).and_then(|record| {
        let index = home.layer_index();
        fs::create_dir_all(&index).at("create", &index)?;
        write_atomically(&index.join(&key), &serde_json::json!(record).to_string())?;
        made(image, &key).ok_or_else(|| {
            ImageError::Broken {
                problem: "a new layer has disappeared".to_owned(),
            }
            .into()
        })
    });
    remove(&room)?;
    result
}

/// Returns a layer that exists, and begins a use of it.
pub(super) fn made(image: &OpenImage, key: &str) -> Option<Layer> {
    let record = Record::read(image.home(), key)?;
    let dir = image.home().layers().join(&record.id);
    let used = room::hold(&dir)?;
    Some(Layer {
        id: record.id,
        dir,
        packages: record.packages,
        used,
    })
}

/// Empties the installer's cache, unless more than so many builds run, which may need it. What
/// remains costs space, and nothing else.
pub(super) fn clean_cache(home: &Home, builds: usize) {
    if running_builds(home).len() <= builds {
        let _ = remove(&home.cache().join("uv"));
    }
}

fn make(
    image: &OpenImage,
    wanted: &[Requirement],
    room: &Path,
    max_bytes: u64,
    held: &Lock,
    sink: &Sink,
) -> Result<Record, LayerError> {
    let home = image.home();
    let tree = room.join("layer");
    fs::create_dir_all(&tree).at("create", &tree)?;
    let uv = Uv::find_or_fetch(home, held, sink)?;
    sink.stage("resolving requirements");
    let lock = resolved(image, wanted, room, &uv, sink)?;
    if fs::read_to_string(&lock)
        .at("read", &lock)?
        .lines()
        .any(|it| it.contains("=="))
    {
        sink.stage("installing requirements");
        let python = image.tree().join(&image.manifest().interpreter);
        install::install(&uv, &python, &lock, &tree, sink)
            .map_err(|error| explain(error, &image.manifest().packages))?;
        let shown = format!("{}/layer", super::LAYERS_IN_SANDBOX);
        install::compile(&uv, &python, &tree, &shown)?;
    }
    install::open_modes(&tree)?;
    let report = audit(&tree, &[&tree], &image.manifest().policy)?;
    if !report.passed() {
        let mut clients: Vec<_> = report
            .findings
            .iter()
            .filter(|it| !it.allowed)
            .map(|it| format!("{} ({})", it.client, it.reason))
            .collect();
        clients.dedup();
        return Err(LayerError::Forbidden { clients });
    }
    let packages = installed(&tree)?.into_iter().map(|it| it.0).collect();
    let id = digest::of(&tree)?.id;
    let layers = home.layers();
    fs::create_dir_all(&layers).at("create", &layers)?;
    fs::set_permissions(&layers, fs::Permissions::from_mode(0o755)).at("open to sandboxes", &layers)?;
    let place = layers.join(&id);
    // One at a time finds room, and takes it.
    let _room = Lock::exclusive(&home.lock("layers"), || ())?;
    if !place.is_dir() {
        room::make(home, room::size(&tree)?, max_bytes, || clean_cache(home, 1))?;
        flush(&tree)?;
        fs::rename(&tree, &place).at("move into place", &place)?;
    }
    Ok(Record {
        id,
        image: image.id().to_owned(),
        packages,
    })
}

/// Resolves the requirements on top of the image's packages, and excludes these.
fn resolved(
    image: &OpenImage,
    wanted: &[Requirement],
    room: &Path,
    uv: &Uv,
    sink: &Sink,
) -> Result<std::path::PathBuf, LayerError> {
    let installed = &image.manifest().packages;
    let write = |name: &str, lines: Vec<String>| {
        let path = room.join(name);
        fs::write(&path, lines.concat()).at("write", &path).map(|()| path)
    };
    let requirements = write(
        "requirements.in",
        wanted.iter().map(|it| format!("{it}\n")).collect(),
    )?;
    let pins = write(
        "installed.txt",
        installed
            .iter()
            .map(|it| format!("{}=={}\n", it.name, it.version))
            .collect(),
    )?;
    let lock = room.join("requirements.lock");
    let mut command = install::lock_command(uv, &image.tree().join(&image.manifest().interpreter), &lock)?;
    command.arg("--constraint").arg(pins).arg(requirements);
    for package in installed {
        command.args(["--no-emit-package", &package.name]);
    }
    run_uv(&mut command, "resolve the requirements", sink).map_err(|error| explain(error, installed))?;
    Ok(lock)
}
