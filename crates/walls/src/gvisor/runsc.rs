//! The `runsc` program: finding it, checking its version and that it works, and its commands.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cellblock_sandbox::{Error, Result};
use tokio::process::Command;

use super::bundle;
use crate::program::{self, on_path};

/// The first release whose snapshots were tried.
const OLDEST: u32 = 20_240_729;
/// Number of starts of a trivial machine before a program is trusted: some builds crash in every
/// second start.
const STARTS: u32 = 5;
/// Maximum duration of one such start.
const START_LIMIT: Duration = Duration::from_secs(20);
/// Hint for installing one.
pub(super) const INSTALL: &str = "install gVisor 20240729 or newer: Debian's package `runsc` of Debian 13 \
                                  or of Debian 12's backports, or a release binary from gvisor.dev, as \
                                  `runsc` on PATH";

/// A program that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Runsc {
    pub(super) path: PathBuf,
    /// Its own words, such as `0.0~20240729.0`.
    pub(super) version: String,
}

impl Runsc {
    /// Finds the program and reads its version.
    pub(super) async fn find(configured: Option<&Path>) -> Result<Self> {
        let path = match configured {
            Some(path) => path.to_owned(),
            None => on_path("runsc").ok_or_else(|| missing("`runsc` is not on PATH"))?,
        };
        let version = program::version(&path, "runsc version ").await;
        let version = version.map_err(|reason| missing(&reason))?;
        match date(&version) {
            Some(found) if found >= OLDEST => Ok(Self { path, version }),
            _ => Err(missing(&format!(
                "`{}` has the version `{version}`, whose snapshots are not supported",
                path.display()
            ))),
        }
    }

    /// Starts a trivial machine several times, unless `seen` says that this program has passed.
    pub(super) async fn try_out(&self, home: &Path) -> Result<()> {
        let metadata = fs::metadata(&self.path).map_err(|error| missing(&error.to_string()))?;
        let facts = format!(
            "{} {} {} {}.{}",
            self.path.display(),
            self.version,
            metadata.size(),
            metadata.mtime(),
            metadata.mtime_nsec()
        );
        let seen = home.join("gvisor/tried");
        if fs::read_to_string(&seen).is_ok_and(|text| text == facts) {
            return Ok(());
        }
        for start in 1..=STARTS {
            self.start_once().await.map_err(|reason| {
                missing(&format!(
                    "`{}` {} failed in start {start} of {STARTS} of an empty machine: {reason}",
                    self.path.display(),
                    self.version
                ))
            })?;
        }
        if let Some(parent) = seen.parent() {
            let _ = fs::create_dir_all(parent);
        }
        // Only saves time.
        let _ = fs::write(&seen, facts);
        Ok(())
    }

    async fn start_once(&self) -> Result<(), String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let bundle = folder.path().join("bundle");
        bundle::write_trivial(&bundle).map_err(|error| error.to_string())?;
        let mut words = self.words(&folder.path().join("state"));
        words.extend([
            "run".to_owned(),
            "--bundle".to_owned(),
            bundle.display().to_string(),
            "probe".to_owned(),
        ]);
        let mut command = if rustix::process::geteuid().is_root() {
            Command::new(&words[0])
        } else {
            let mut command = Command::new("unshare");
            command
                .args(["--user", "--map-root-user", "--mount"])
                .arg(&words[0]);
            command
        };
        command
            .args(&words[1..])
            .stdin(std::process::Stdio::null())
            .kill_on_drop(true);
        let output = tokio::time::timeout(START_LIMIT, command.output())
            .await
            .map_err(|_| "it does not end".to_owned())?
            .map_err(|error| error.to_string())?;
        if output.status.success() && output.stdout == b"works\n" {
            return Ok(());
        }
        let words = String::from_utf8_lossy(&output.stderr);
        let said: String = words.trim().chars().take(400).collect();
        Err(format!(
            "{}{}{said}",
            output.status,
            if said.is_empty() { "" } else { ": " }
        ))
    }

    /// Returns the program with the flags of every command.
    pub(super) fn words(&self, state: &Path) -> Vec<String> {
        [
            self.path.display().to_string(),
            format!("--root={}", state.display()),
            "--platform=systrap".to_owned(),
            // Ours is around all of it.
            "--ignore-cgroups".to_owned(),
            "--overlay2=none".to_owned(),
            "--network=none".to_owned(),
            "--host-uds=all".to_owned(),
        ]
        .into()
    }
}

/// Returns the date in a version such as `0.0~20240729.0` or `release-20240729.0`.
fn date(version: &str) -> Option<u32> {
    version
        .split(|character: char| !character.is_ascii_digit())
        .find(|digits| digits.len() == 8)?
        .parse()
        .ok()
}

pub(super) fn missing(reason: &str) -> Error {
    Error::missing_protection(format!("gVisor does not work here: {reason}; {INSTALL}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_of_a_version_is_found() {
        assert_eq!(date("0.0~20240729.0"), Some(20_240_729));
        assert_eq!(date("release-20221219.0-2"), Some(20_221_219));
        assert_eq!(date("VERSION_MISSING"), None);
    }
}
