//! A browser for tests.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

/// Maximum time for a page.
const LIMIT: Duration = Duration::from_mins(2);

/// Opens a page in a browser with a profile of its own, and returns the document as it is when it has loaded.
pub(crate) async fn show(url: &str) -> String {
    let profile = tempfile::tempdir().unwrap();
    let shown = Command::new("chromium")
        // Tests run as root, for whom it has no sandbox. The page is the test's own.
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--no-first-run", "--disable-background-networking", "--timeout=60000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(url)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let shown = tokio::time::timeout(LIMIT, shown)
        .await
        .expect("the browser did not end")
        .unwrap();
    assert!(
        shown.status.success(),
        "{}",
        String::from_utf8_lossy(&shown.stderr)
    );
    String::from_utf8(shown.stdout).unwrap()
}
