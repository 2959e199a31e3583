//! Backends of these tests, and short ways to use them.

use std::fs;
use std::path::{Path, PathBuf};

use cellblock_image::{Home, ImageStore, OpenImage};
use cellblock_remote::RemoteBackend;
use cellblock_sandbox::jail::protection::Demands;
use cellblock_sandbox::pool::{Lease, create};
use cellblock_sandbox::{Limits, Result};
use cellblock_testkit::Capability;
use cellblock_walls::{WallConfig, WallOptions, microvm};
use tokio::sync::OnceCell;

use crate::machine_image::machine_image;
pub(crate) use local::{End, block_on, execute, finish, shows, start};

#[path = "../../../sandbox/tests/it/support.rs"]
#[expect(
    dead_code,
    unused_imports,
    reason = "shared with the other test binaries, which use all of it"
)]
mod local;

pub(crate) const NAME: &str = "microvm";
pub(crate) const CAPABILITY: Capability = Capability::Qemu;

static IMAGE: OnceCell<OpenImage> = OnceCell::const_new();
static BACKEND: OnceCell<RemoteBackend> = OnceCell::const_new();

/// The home of the machines that most tests share.
pub(crate) fn home() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("machines")
}

/// The default image. Its template imports what these tests use: all libraries would take minutes
/// where no processor runs them.
pub(crate) async fn image() -> OpenImage {
    let make = async || machine_image(&local::image().await, &home(), &["numpy", "pandas"]);
    IMAGE.get_or_init(make).await.clone()
}

/// The backend that most tests share.
pub(crate) async fn backend() -> &'static RemoteBackend {
    let start = async || start_backend(config(image().await)).await.unwrap();
    BACKEND.get_or_init(start).await
}

pub(crate) async fn start_backend(config: WallConfig) -> Result<RemoteBackend> {
    microvm::start(config).await
}

pub(crate) async fn lease() -> Lease {
    create(backend().await, &Limits::default()).await.unwrap()
}

pub(crate) fn config(image: OpenImage) -> WallConfig {
    let mut options = WallOptions::default();
    options.microvm.emulation = true;
    WallConfig {
        image,
        executable: cellblock_testkit::binary().unwrap(),
        limits: Limits::default(),
        demands: Demands::default(),
        options,
    }
}

pub(crate) fn with_qemu(image: OpenImage, qemu: PathBuf) -> WallConfig {
    let mut config = config(image);
    config.options.microvm.qemu = Some(qemu);
    config
}

/// The default image in a home of the test's own, so that its machines are, too.
pub(crate) async fn image_in(home: &Path) -> OpenImage {
    let image = image().await;
    fs::create_dir_all(home.join("images")).unwrap();
    let link = home.join("images").join(image.id());
    if !link.exists() {
        std::os::unix::fs::symlink(image.root(), &link).unwrap();
    }
    let store = ImageStore::new(Home::at(home).unwrap());
    store.resolve(image.id()).unwrap()
}

/// The directories of the microVM snapshots of a home.
pub(crate) fn snapshots(home: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(home.join("snapshots"))
        .into_iter()
        .flatten()
        .flatten();
    let paths = entries.map(|entry| entry.path());
    paths
        .filter(|path| path.join("disk.ext4").exists() && path.join("manifest.json").exists())
        .collect()
}

/// Gives a home the snapshot that the shared backend uses: making another takes minutes under emulation.
pub(crate) async fn share_snapshot(home: &Path) {
    backend().await;
    for from in snapshots(&self::home()) {
        let to = home.join("snapshots").join(from.file_name().unwrap());
        fs::create_dir_all(&to).unwrap();
        for entry in fs::read_dir(from).unwrap().flatten() {
            let file = to.join(entry.file_name());
            if fs::hard_link(entry.path(), &file).is_err() {
                fs::copy(entry.path(), &file).unwrap();
            }
        }
    }
}
