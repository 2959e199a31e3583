//! Programs that run machines: finding them, and their versions.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::process::Command;

/// Maximum time to print a version.
const VERSION_LIMIT: Duration = Duration::from_secs(20);

/// Returns the file of a program on `PATH`.
pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Returns the version that a program prints after `prefix`.
pub(crate) async fn version(path: &Path, prefix: &str) -> Result<String, String> {
    let output = Command::new(path).arg("--version").kill_on_drop(true).output();
    let output = tokio::time::timeout(VERSION_LIMIT, output)
        .await
        .map_err(|_| format!("`{} --version` does not end", path.display()))?
        .map_err(|error| format!("cannot run `{}`: {error}", path.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text
        .lines()
        .find_map(|line| line.strip_prefix(prefix))
        .and_then(|rest| rest.split_whitespace().next());
    version
        .map(str::to_owned)
        .ok_or_else(|| format!("`{} --version` does not print a version", path.display()))
}
