//! Room on the disks that the gateway writes to.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tokio::task::spawn_blocking;

/// Free space below which a disk counts as full.
const RESERVE: u64 = 16 << 20;
/// Time for which a measurement is used again.
const FRESH: Duration = Duration::from_secs(1);

/// The disks of the folders for artifacts, records and uploads.
#[derive(Debug)]
pub(crate) struct DiskRoom {
    folders: Vec<PathBuf>,
    measured: Mutex<Option<(Instant, bool)>>,
}

impl DiskRoom {
    pub(crate) fn new<'a>(folders: impl IntoIterator<Item = &'a Path>) -> Self {
        Self {
            folders: folders.into_iter().map(Path::to_owned).collect(),
            measured: Mutex::default(),
        }
    }

    /// Returns whether a disk has too little room for what clients store.
    pub(crate) async fn is_full(&self) -> bool {
        let last = *self.measured();
        if let Some((at, full)) = last
            && at.elapsed() < FRESH
        {
            return full;
        }
        let folders = self.folders.clone();
        let measured = spawn_blocking(move || folders.iter().any(|folder| is_full(folder)));
        let full = measured.await.unwrap_or(false);
        *self.measured() = Some((Instant::now(), full));
        full
    }

    fn measured(&self) -> MutexGuard<'_, Option<(Instant, bool)>> {
        self.measured.lock()
    }
}

/// A disk that reports nothing is not known to be full.
fn is_full(folder: &Path) -> bool {
    rustix::fs::statvfs(folder).is_ok_and(|disk| {
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        // File systems without a limit report 0.
        let no_bytes = disk.f_blocks > 0 && free < RESERVE;
        let no_files = disk.f_files > 0 && disk.f_favail == 0;
        no_bytes || no_files
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_folder_that_is_missing_is_not_full() {
        let folders = [Path::new("/nonexistent"), Path::new("")];
        assert!(!DiskRoom::new(folders).is_full().await);
        assert!(!DiskRoom::new([]).is_full().await);
    }
}
