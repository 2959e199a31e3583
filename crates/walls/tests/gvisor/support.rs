//! Backends of these tests, and short ways to use them.

use std::path::{Path, PathBuf};

use cellblock_image::{Home, ImageStore, OpenImage};
use cellblock_remote::RemoteBackend;
use cellblock_sandbox::jail::protection::Demands;
use cellblock_sandbox::pool::{Lease, create};
use cellblock_sandbox::{Limits, Result};
use cellblock_testkit::Capability;
use cellblock_walls::gvisor::GvisorOptions;
use cellblock_walls::{WallConfig, WallOptions, gvisor};
use tokio::sync::OnceCell;

pub(crate) use local::{End, block_on, execute, image, shows};

#[path = "../../../sandbox/tests/it/support.rs"]
#[expect(
    dead_code,
    unused_imports,
    reason = "shared with the other test binaries, which use all of it"
)]
mod local;

pub(crate) const NAME: &str = "gvisor";
pub(crate) const CAPABILITY: Capability = Capability::Runsc;

static BACKEND: OnceCell<RemoteBackend> = OnceCell::const_new();

/// The backend that most tests share: it keeps the snapshot in the home that all tests share.
pub(crate) async fn backend() -> &'static RemoteBackend {
    let start = async || start_backend(config(image().await)).await.unwrap();
    BACKEND.get_or_init(start).await
}

pub(crate) async fn start_backend(config: WallConfig) -> Result<RemoteBackend> {
    gvisor::start(config).await
}

/// The home of the machines that most tests share.
pub(crate) fn home() -> PathBuf {
    cellblock_testkit::home().unwrap()
}

/// Gives a home the snapshots of the shared one.
pub(crate) async fn share_snapshot(home: &Path) {
    backend().await;
    std::os::unix::fs::symlink(self::home().join("snapshots"), home.join("snapshots")).unwrap();
}

pub(crate) async fn lease() -> Lease {
    create(backend().await, &Limits::default()).await.unwrap()
}

pub(crate) fn config(image: OpenImage) -> WallConfig {
    WallConfig {
        image,
        executable: cellblock_testkit::binary().unwrap(),
        limits: Limits::default(),
        demands: Demands::default(),
        options: WallOptions::default(),
    }
}

pub(crate) fn with_runsc(image: OpenImage, runsc: PathBuf) -> WallConfig {
    let mut config = config(image);
    config.options.gvisor = GvisorOptions { runsc: Some(runsc) };
    config
}

/// The default image in a home of the test's own, so that its snapshots are, too.
pub(crate) async fn image_in(home: &Path) -> OpenImage {
    let image = image().await;
    std::fs::create_dir_all(home.join("images")).unwrap();
    let link = home.join("images").join(image.id());
    if !link.exists() {
        std::os::unix::fs::symlink(image.root(), &link).unwrap();
    }
    let store = ImageStore::new(Home::at(home).unwrap());
    store.resolve(image.id()).unwrap()
}
