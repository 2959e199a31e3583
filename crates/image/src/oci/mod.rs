//! Root filesystems as images: what other container tools save, or a folder, becomes an image of the store.
//!
//! ```text
//! docker-archive ─┐
//! oci-layout ─────┼─> layers, one over the other ─┐
//! folder ─────────┴─────────> copied ─────────────┴─> mount points ─> Python found ─> addressed, renamed into place
//! ```
//!
//! Nothing of the image runs meanwhile, and nothing of it decides where its files go: paths are
//! resolved beneath its root.

mod beneath;
mod blobs;
mod containerfile;
mod directory;
mod documents;
mod layer;
mod members;
mod mount_points;
mod python;
mod select;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use cellblock_protocol::text::counted;
use cellblock_settings::clock;
use sha2::{Digest as _, Sha256};

use crate::digest::hex;
use crate::error::IoResultExt as _;
use crate::error::invalid;
use crate::manifest::{LAYOUT, RootFilesystem};
use crate::running::BuildNotice;
use crate::spec::is_name;
use crate::stop::BuildGuard;
use crate::{
    DEFAULT_IMAGE, ImageSpec, ImageStore, Lock, Manifest, OpenImage, Package, PackagePolicy, Result, Sink,
};
use crate::{audit, build, digest, installed};
use beneath::RootDirectory;
use blobs::Blobs;
use documents::Runtime;

pub use containerfile::Containerfile;
pub(crate) use mount_points::check_mount_points;

/// Maximum length of a member's name in bytes, which is that of a path.
const MAX_NAME: usize = 4096;
/// Maximum size of all variables of an image in bytes.
const MAX_ENVIRONMENT: usize = 64 << 10;

/// Formats in which other tools write root filesystems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootFormat {
    /// One file of `docker save` or `podman save`.
    DockerArchive,
    /// A folder or an archive in the layout of the Open Container Initiative.
    OciLayout,
    /// A folder that contains the root filesystem itself.
    Directory,
}

impl FromStr for RootFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "docker-archive" => Ok(Self::DockerArchive),
            "oci-layout" => Ok(Self::OciLayout),
            "directory" => Ok(Self::Directory),
            _ => Err(format!(
                "`{}` is not a format of root filesystems; write `docker-archive`, \
                 `oci-layout` or `directory`",
                text.escape_debug()
            )),
        }
    }
}

/// A root filesystem to import.
#[derive(Clone, Debug)]
pub struct RootSource {
    /// Its format.
    pub format: RootFormat,
    /// Its file or folder; `-` is standard input.
    pub path: PathBuf,
    /// Name of the image; by default one that follows from its tag or its path.
    pub name: Option<String>,
    /// Tag of the image to use, where there are several.
    pub tag: Option<String>,
}

/// Maximum contents of a root filesystem.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Maximum number of members of all layers.
    entries: u64,
    /// Maximum size of all files of all layers in bytes.
    bytes: u64,
}

const LIMITS: Limits = Limits {
    entries: 2_000_000,
    bytes: 32 << 30,
};

/// Counts of what was unpacked so far.
#[derive(Debug, Default)]
struct Tally {
    entries: u64,
    bytes: u64,
    /// Devices that were left out.
    devices: u64,
    /// Mounts, sockets and the like that were left out of a folder.
    skipped: u64,
}

/// Settings with which a container of the image would be started.
#[derive(Debug, Default)]
struct Config {
    digest: Option<String>,
    tag: Option<String>,
    runtime: Runtime,
}

impl ImageStore {
    /// Adds a root filesystem to this store and returns its image.
    ///
    /// Nothing is kept unless all of it was read, everything has the digest that names it, and it
    /// contains a Python that cells can run with.
    pub async fn import_root(&self, source: RootSource, sink: Sink) -> Result<OpenImage> {
        let store = self.clone();
        tokio::task::spawn_blocking(move || store.import_root_blocking(&source, &LIMITS, &sink)).await?
    }

    fn import_root_blocking(&self, source: &RootSource, limits: &Limits, sink: &Sink) -> Result<OpenImage> {
        self.home().check_programs_run()?;
        let running = BuildGuard::start()?;
        let key = format!(
            "import-root-{}",
            &hex(&Sha256::digest(format!("{source:?}")))[..16]
        );
        let waiting = || sink.waiting("another process that imports the same root filesystem");
        let _lock = Lock::exclusive(&self.home().lock(&key), waiting)?;
        let what = format!("image of {}", source.path.display());
        let (_announced, sink) = BuildNotice::start(self.home(), what, sink);
        let staging = self.home().staging(&key);
        build::remove(&staging)?;
        let finished = import_to(&staging, source, limits, &sink).and_then(|manifest| {
            build::put_in_place(&staging, &self.home().images().join(&manifest.id))?;
            Ok(manifest.id)
        });
        if finished.is_err() {
            // The disk may be full, and nothing of it is of use.
            let _ = build::remove(&staging);
        }
        drop(running);
        OpenImage::open(self.home(), &finished?)
    }
}

/// Unpacks a root filesystem to a staging directory and describes it.
fn import_to(staging: &Path, source: &RootSource, limits: &Limits, sink: &Sink) -> Result<Manifest> {
    let origin = source.path.to_string_lossy();
    let origin = if origin == "-" { "stdin" } else { &origin };
    let tree = staging.join("image/root");
    fs::create_dir_all(&tree).at("create", &tree)?;
    let mut root = RootDirectory::open(&tree).at("open", &tree)?;
    let mut tally = Tally::default();
    sink.stage(format!("unpacking {origin}"));
    let config = match source.format {
        RootFormat::Directory => {
            directory::copy(&source.path, &mut root, &mut tally, limits, sink)?;
            Config::default()
        }
        RootFormat::OciLayout | RootFormat::DockerArchive => {
            let blobs = open(source, staging, limits, origin)?;
            let chosen = select::choose(&blobs, source, origin)?;
            let mut unpacker = layer::Unpacker {
                root: &mut root,
                tally: &mut tally,
                limits,
                origin,
                sink,
            };
            for layer in &chosen.layers {
                layer.unpack(&blobs, &mut unpacker)?;
            }
            chosen.config
        }
    };
    mount_points::make(&mut root).at("make the mount points of", &tree)?;
    let spool = staging.join(SPOOL);
    build::remove(&spool)?;
    let manifest = describe(&root, source, config, &tally, origin, sink)?;
    for (name, text) in [
        ("manifest.json", serde_json::json!(manifest).to_string()),
        ("lock", String::new()),
    ] {
        let path = staging.join("image").join(name);
        fs::write(&path, text).at("write", &path)?;
    }
    build::flush(staging)?;
    Ok(manifest)
}

/// File of a staging directory that holds an archive without its compression.
const SPOOL: &str = "spool.tar";

fn open(source: &RootSource, staging: &Path, limits: &Limits, origin: &str) -> Result<Blobs> {
    if source.path.is_dir() {
        return Blobs::folder(&source.path);
    }
    let file = if source.path == Path::new("-") {
        use std::os::fd::AsFd as _;
        File::from(
            io::stdin()
                .as_fd()
                .try_clone_to_owned()
                .at("read", &source.path)?,
        )
    } else {
        File::open(&source.path).at("open", &source.path)?
    };
    Blobs::archive(file, &staging.join(SPOOL), limits.bytes, origin)
}

/// Describes an unpacked root filesystem, whose Python is found first.
fn describe(
    root: &RootDirectory,
    source: &RootSource,
    config: Config,
    tally: &Tally,
    origin: &str,
    sink: &Sink,
) -> Result<Manifest> {
    let reject = |problem: String| invalid(origin, problem);
    let environment = environment(config.runtime.env.unwrap_or_default()).map_err(reject)?;
    let found = python::find(root, environment.get("PATH").map(String::as_str)).map_err(reject)?;
    let name = name(source, config.tag.as_deref()).map_err(reject)?;
    sink.stage("auditing");
    let tree = root.path();
    let directories: Vec<PathBuf> = found
        .sites
        .iter()
        .chain([&found.stdlib])
        .map(|it| tree.join(it))
        .collect();
    let directories: Vec<_> = directories.iter().map(PathBuf::as_path).collect();
    let policy = PackagePolicy {
        // Most images contain pip, which brings several.
        forbid_network_clients: false,
        ..PackagePolicy::default()
    };
    let report = audit(tree, &directories, &policy)?;
    let mut packages: Vec<Package> = Vec::new();
    for directory in &directories {
        packages.extend(installed(directory)?.into_iter().map(|it| it.0));
    }
    packages.sort();
    packages.dedup();
    let searched: Vec<&str> = found
        .sites
        .iter()
        .chain([&found.stdlib])
        .map(String::as_str)
        .collect();
    let mut preload = match ImageSpec::shipped(DEFAULT_IMAGE)? {
        Some(spec) => spec.preload,
        None => Vec::new(),
    };
    preload.retain(|module| python::has_module(root, &searched, module));
    sink.stage("addressing");
    let content = digest::of(tree)?;
    let mut manifest = Manifest {
        layout: LAYOUT,
        id: String::new(),
        name,
        python: found.version,
        interpreter: found.interpreter,
        stdlib: found.stdlib,
        library_path: None,
        system_libraries: Vec::new(),
        packages,
        preload,
        outputs: BTreeMap::new(),
        root: Some(RootFilesystem {
            config: config.digest,
            sites: found.sites,
            environment,
            user: config.runtime.user.filter(|it| !it.is_empty()),
            entrypoint: config.runtime.entrypoint.unwrap_or_default(),
            command: config.runtime.cmd.unwrap_or_default(),
            working_directory: config.runtime.working_dir.filter(|it| !it.is_empty()),
        }),
        policy,
        created: clock::unix_seconds(),
        size: content.size,
        files: content.files,
        machine: std::env::consts::ARCH.to_owned(),
        notes: Vec::new(),
        audit: report,
    };
    manifest.notes = notes(&manifest, tally);
    manifest.id = manifest.address(&content.id);
    // What cannot be read again must not be kept.
    Manifest::parse(serde_json::json!(manifest).to_string().as_bytes())
        .map_err(|problem| invalid(origin, problem))?;
    Ok(manifest)
}

/// Says what of the image's configuration sandboxes do not follow, and what was left out.
fn notes(manifest: &Manifest, tally: &Tally) -> Vec<String> {
    let mut notes = Vec::new();
    let Some(root) = &manifest.root else { return notes };
    let starts = [&root.entrypoint[..], &root.command[..]].concat().join(" ");
    if !starts.is_empty() {
        notes.push(format!(
            "its command `{starts}` is not run; cells run in its Python"
        ));
    }
    if let Some(user) = &root.user {
        notes.push(format!(
            "its user `{user}` is not used; cells run as the sandbox's own user"
        ));
    }
    if let Some(directory) = root.working_directory.as_ref().filter(|it| *it != "/") {
        notes.push(format!(
            "its directory `{directory}` is not entered; cells start in /workspace"
        ));
    }
    if tally.devices > 0 {
        let verb = if tally.devices == 1 { "was" } else { "were" };
        let devices = counted(tally.devices, "device");
        notes.push(format!("{devices} below its /dev {verb} left out"));
    }
    if tally.skipped > 0 {
        notes.push(format!(
            "{} mounts, sockets, pipes and devices were left out",
            tally.skipped
        ));
    }
    notes
}

fn environment(variables: Vec<String>) -> Result<BTreeMap<String, String>, String> {
    let bytes: usize = variables.iter().map(String::len).sum();
    if bytes > MAX_ENVIRONMENT {
        return Err(format!(
            "its environment has {bytes} bytes, the limit is {MAX_ENVIRONMENT}"
        ));
    }
    variables
        .into_iter()
        .map(|variable| match variable.split_once('=') {
            Some((name, value)) if !name.is_empty() && !variable.contains('\0') => {
                Ok((name.to_owned(), value.to_owned()))
            }
            _ => Err(format!(
                "its variable `{}` is not a name and a value",
                variable.escape_debug()
            )),
        })
        .collect()
}

/// Returns the image's name: the given one, or one that follows from the tag or the path.
fn name(source: &RootSource, tag: Option<&str>) -> Result<String, String> {
    let is_taken = |name: &str| ImageSpec::shipped(name).is_ok_and(|it| it.is_some());
    if let Some(name) = &source.name {
        let problem = if !is_name(name) {
            "is not 1 to 64 letters, digits, dots, dashes or underscores"
        } else if is_taken(name) {
            "is that of an image that comes along; choose another one"
        } else {
            return Ok(name.clone());
        };
        return Err(format!("the name `{}` {problem}", name.escape_debug()));
    }
    let path = source
        .path
        .file_stem()
        .map(|it| it.to_string_lossy().into_owned());
    // Without the registry and the user, as in `docker.io/library/python:3.13-slim`.
    let given = tag
        .map(|it| it.rsplit('/').next().unwrap_or(it).to_owned())
        .or(path)
        .unwrap_or_default();
    let usable = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-' | '_');
    let name: String = given
        .chars()
        .map(|it| if usable(it) { it } else { '-' })
        .take(64)
        .collect();
    if is_name(&name) && name != "-" && !is_taken(&name) {
        Ok(name)
    } else {
        Err("no name for the image follows from its tag or path; give one with `--name`".to_owned())
    }
}
