//! A program that behaves like Firecracker, a home with a small image, and short ways to use them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cellblock_image::OpenImage;
use cellblock_sandbox::Limits;
use cellblock_sandbox::jail::protection::Demands;
use cellblock_testkit::LeakOwner;
use cellblock_walls::microvm::Vmm;
use cellblock_walls::{WallConfig, WallOptions};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::image::with_preload;

pub(crate) use local::{block_on, execute, image, shows, until};

#[path = "../../../sandbox/tests/it/support.rs"]
#[expect(
    dead_code,
    reason = "shared with the other test binaries, which use all of it"
)]
mod local;

/// Beginning of an unpacked kernel; nothing runs it.
const KERNEL: &[u8] = b"\x7fELF and nothing more";

/// A fake Firecracker with its jailer, and a home for its machines.
pub(crate) struct Fake {
    folder: TempDir,
    home: PathBuf,
    image: OpenImage,
}

impl Fake {
    /// A version that restores machines, whose server is a process of this computer.
    pub(crate) async fn new(behavior: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        Self::at(folder, home, behavior).await
    }

    /// Does the same with a home elsewhere.
    pub(crate) async fn at(folder: TempDir, home: PathBuf, behavior: Value) -> Self {
        for name in ["firecracker", "jailer"] {
            let path = folder.path().join(name);
            fs::write(&path, include_str!("fake.py")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::write(folder.path().join("vmlinux"), KERNEL).unwrap();
        let image = with_preload(&local::image().await, &home, &[]);
        let limits = serde_json::to_string(&Limits::default()).unwrap();
        let program = cellblock_testkit::binary().unwrap();
        let mut whole = json!({
            "version": "1.16.1",
            "home": home,
            "guest": [program, "inside", "--image", image.id(), "--limits", limits, "--ready", "0"],
        });
        let given = behavior.as_object().unwrap().clone();
        whole.as_object_mut().unwrap().extend(given);
        fs::write(folder.path().join("behavior.json"), whole.to_string()).unwrap();
        Self { folder, home, image }
    }

    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn config(&self) -> WallConfig {
        let mut options = WallOptions::default();
        options.microvm.vmm = Vmm::Firecracker;
        options.microvm.firecracker = Some(self.path("firecracker"));
        options.microvm.kernel = Some(self.path("vmlinux"));
        WallConfig {
            image: self.image.clone(),
            executable: cellblock_testkit::binary().unwrap(),
            limits: Limits::default(),
            demands: Demands::default(),
            options,
        }
    }

    /// Does not wait long for machines.
    pub(crate) fn impatient(&self) -> WallConfig {
        let mut config = self.config();
        config.options.restore_timeout = Some(Duration::from_secs(3));
        config
    }

    /// Returns the requests to the programs, as a list of values with one key each.
    pub(crate) fn log(&self, key: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.path("log.jsonl")).unwrap_or_default();
        let entries = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        entries.filter(|entry| entry.get(key).is_some()).collect()
    }

    /// The names of the requests, in order.
    pub(crate) fn requests(&self) -> Vec<String> {
        let entries = self.log("request");
        entries
            .iter()
            .map(|entry| entry["request"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The directories of finished snapshots.
    pub(crate) fn snapshots(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.home.join("snapshots"));
        let paths = entries.into_iter().flatten().flatten().map(|entry| entry.path());
        paths.filter(|path| path.is_dir()).collect()
    }

    /// Waits until no process, no directory of a machine and no unfinished snapshot is left.
    pub(crate) async fn leaves_nothing(&self) {
        let own = self.folder.path().display().to_string();
        until("nothing of the machines is left", || {
            let machines = fs::read_dir(self.home.join("microvm"))
                .into_iter()
                .flatten()
                .flatten();
            let left = machines.filter(|entry| entry.file_name().to_string_lossy().starts_with("cellblock-"));
            let running = LeakOwner::this_process()
                .processes()
                .into_iter()
                .filter(|(pid, _)| {
                    let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                    words.contains(&own)
                });
            left.count() == 0 && running.count() == 0
        })
        .await;
        let staging = |path: &PathBuf| path.to_string_lossy().contains("staging");
        assert!(!self.snapshots().iter().any(staging), "{:?}", self.snapshots());
    }
}
