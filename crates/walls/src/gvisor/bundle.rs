//! View of a machine: the bundle's `config.json` and the small read-only tree at its root.
//!
//! The tree is the one that other sandboxes have: the host's programs and libraries read-only, the
//! image's Python at `/opt/python`, and memory for `/tmp` and `/workspace`. An image that is a root
//! filesystem is at `/opt/root`; the launcher inside makes it the root of everything that it
//! starts.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::Path;

use cellblock_image::OpenImage;
use cellblock_jail::mounts::{LINKS, ROOT_LINKS, SYSTEM};
use serde_json::{Value, json};

use crate::WallConfig;

const DIRECTORIES: [&str; 13] = [
    "proc",
    "sys",
    "dev",
    "etc/fonts",
    "home/user",
    "mnt",
    "tmp",
    "workspace",
    "run",
    "opt/python",
    "opt/root",
    "opt/layers",
    "opt/cellblock",
];
/// The program inside, and its data directory.
const PROGRAM: &str = "/opt/cellblock/cellblock";
const HOME: &str = "/run/home";
/// Directory that a machine shares with its host, and the socket in it.
const SHARED: &str = "/run/cb";
pub(super) const SOCKET: &str = "host";
/// Memory for the program's own files.
const RUN_BYTES: u64 = 64 << 20;

/// Writes the root of the machines of this process.
pub(super) fn write_root(root: &Path) -> io::Result<()> {
    for directory in DIRECTORIES {
        fs::create_dir_all(root.join(directory))?;
    }
    for directory in system() {
        fs::create_dir_all(root.join(directory.strip_prefix("/").unwrap_or(directory)))?;
    }
    for name in ROOT_LINKS {
        match fs::read_link(Path::new("/").join(name)) {
            Ok(target) => symlink(target, root.join(name))?,
            Err(_) if Path::new("/").join(name).is_dir() => fs::create_dir_all(root.join(name))?,
            Err(_) => {}
        }
    }
    for (name, target) in LINKS {
        symlink(target, root.join(name))?;
    }
    fs::write(root.join(PROGRAM.trim_start_matches('/')), "")?;
    for (name, text) in cellblock_jail::mounts::system_files() {
        fs::write(root.join("etc").join(name), text)?;
    }
    Ok(())
}

/// Writes the bundle of one machine, whose shared directory is `shared`.
pub(super) fn write(bundle: &Path, root: &Path, shared: &Path, config: &WallConfig) -> io::Result<()> {
    let limits = serde_json::to_string(&config.limits)?;
    let arguments = [
        PROGRAM,
        "inside",
        "--walled",
        "--image",
        config.image.id(),
        "--host",
        &format!("socket:{SHARED}/{SOCKET}"),
        "--limits",
        &limits,
        "--ready",
        "1",
    ];
    let text = json!({
        "ociVersion": "1.0.0",
        "hostname": "cellblock",
        "process": process(&arguments, &["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETPCAP",
            "SETUID", "SYS_ADMIN", "SYS_CHROOT"]),
        "root": {"path": root, "readonly": true},
        "mounts": mounts(shared, config),
        "linux": {"namespaces": namespaces()},
    });
    write_config(bundle, &text)
}

/// Writes a bundle that prints one line.
pub(super) fn write_trivial(bundle: &Path) -> io::Result<()> {
    let root = bundle.join("root");
    write_root(&root)?;
    let mut mounts = vec![json!({"destination": "/proc", "type": "proc", "source": "proc"})];
    mounts.extend(system().map(|path| bind(Path::new(path), path, true)));
    mounts.extend(root_directories());
    let text = json!({
        "ociVersion": "1.0.0",
        "process": process(&["/bin/echo", "works"], &[]),
        "root": {"path": root, "readonly": true},
        "mounts": mounts,
        "linux": {"namespaces": namespaces()},
    });
    write_config(bundle, &text)
}

fn write_config(bundle: &Path, text: &Value) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(bundle)?;
    fs::write(bundle.join("config.json"), text.to_string())
}

fn process(arguments: &[&str], capabilities: &[&str]) -> Value {
    let capabilities: Vec<_> = capabilities.iter().map(|name| format!("CAP_{name}")).collect();
    json!({
        "user": {"uid": 0, "gid": 0},
        "cwd": "/",
        "args": arguments,
        "env": ["PATH=/usr/bin:/bin", format!("CELLBLOCK_HOME={HOME}"), "LANG=C.UTF-8", "CELLBLOCK_LOG=warn"],
        "capabilities": {"bounding": capabilities, "effective": capabilities, "permitted": capabilities},
        "noNewPrivileges": true,
    })
}

fn namespaces() -> Value {
    ["pid", "mount", "ipc", "uts", "network"]
        .map(|kind| json!({"type": kind}))
        .into()
}

fn mounts(shared: &Path, config: &WallConfig) -> Vec<Value> {
    let image = &config.image;
    let layers = image.home().layers();
    let mut mounts = vec![
        json!({"destination": "/proc", "type": "proc", "source": "proc"}),
        // Covered by those of the room, with its own limits.
        memory("/tmp", 0o1777, RUN_BYTES),
        memory("/workspace", 0o755, RUN_BYTES),
        memory("/run", 0o755, RUN_BYTES),
        bind(image.root(), &home_of(image), true),
        bind(&layers, &format!("{HOME}/layers"), true),
        bind(&layers, "/opt/layers", true),
        bind(
            &image.tree(),
            if image.is_root() {
                "/opt/root"
            } else {
                "/opt/python"
            },
            true,
        ),
        bind(&config.executable, PROGRAM, true),
        bind(shared, SHARED, false),
    ];
    mounts.extend(system().map(|path| bind(Path::new(path), path, true)));
    mounts.extend(root_directories());
    mounts
}

fn home_of(image: &OpenImage) -> String {
    format!("{HOME}/images/{}", image.id())
}

fn system() -> impl Iterator<Item = &'static str> {
    SYSTEM.into_iter().filter(|path| Path::new(path).is_dir())
}

/// Binds those of the root's names that are directories on this host.
fn root_directories() -> impl Iterator<Item = Value> {
    let names = ROOT_LINKS.iter().map(|name| format!("/{name}"));
    names
        .filter(|path| Path::new(path).is_dir() && !Path::new(path).is_symlink())
        .map(|path| bind(Path::new(&path), &path, true))
}

fn bind(source: &Path, target: &str, read_only: bool) -> Value {
    let mode = if read_only { "ro" } else { "rw" };
    json!({"destination": target, "type": "bind", "source": source,
        "options": [mode, "rbind", "nosuid", "nodev"]})
}

fn memory(target: &str, mode: u32, bytes: u64) -> Value {
    let options = [
        "nosuid".to_owned(),
        "nodev".to_owned(),
        format!("mode={mode:o}"),
        format!("size={bytes}"),
    ];
    json!({"destination": target, "type": "tmpfs", "source": "tmpfs", "options": options})
}
