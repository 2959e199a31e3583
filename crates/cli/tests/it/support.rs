//! Runs the binary on a small image, and checks its JSON. With `CELLBLOCK_TEST_WARM=1` runs use a warm host.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use cellblock_testkit::{Cli, CommandOutput, Schema, binary, home, workspace_root};
use serde_json::Value;

/// Building an image downloads its packages.
pub(crate) const BUILD_LIMIT: Duration = Duration::from_mins(10);

/// The file of the image with a data frame library and little else.
pub(crate) fn small_image() -> Result<&'static str> {
    static STARTED: OnceLock<Result<(), String>> = OnceLock::new();
    let file = cellblock_testkit::small_image()?;
    if is_warm() {
        // It ends by itself, as nobody knows which test is the last.
        let start = ["warm", "start", "--image", file, "--idle-timeout", "1m"];
        let started = STARTED.get_or_init(|| succeed(&start));
        started.clone().map_err(anyhow::Error::msg)?;
    }
    Ok(file)
}

/// Exports the small image into a folder that becomes a mirror; returns the printed object.
pub(crate) fn export_to_mirror(folder: &Path) -> Result<Value> {
    small_image()?;
    let out = folder.to_string_lossy();
    let arguments = [
        "image",
        "export",
        "cellblock-tests",
        "--level",
        "1",
        "--index",
        "--json",
    ];
    let exported = Cli::new(arguments.into_iter().chain(["--out", &out])).run()?;
    ensure!(exported.code() == 0, "export an image: {}", exported.stderr);
    exported.json()
}

/// Builds the default image, and returns its manifest.
pub(crate) fn default_image() -> Result<Value> {
    let built = Cli::new(["image", "build", "--json"]).limit(BUILD_LIMIT).run()?;
    if is_warm() {
        succeed(&["warm", "start", "--idle-timeout", "1m"]).map_err(anyhow::Error::msg)?;
    }
    built.json()
}

fn succeed(arguments: &[&str]) -> Result<(), String> {
    match Cli::new(arguments).limit(BUILD_LIMIT).run() {
        Ok(finished) if finished.code() == 0 => Ok(()),
        Ok(finished) => Err(finished.stderr),
        Err(error) => Err(format!("{error:#}")),
    }
}

/// Whether runs use a warm host.
pub(crate) fn is_warm() -> bool {
    std::env::var_os("CELLBLOCK_TEST_WARM").is_some()
}

/// Returns the setting of a run for warm hosts.
pub(crate) fn warm_setting() -> &'static str {
    if is_warm() { "1m" } else { "off" }
}

/// `cellblock run` on the small image.
pub(crate) fn run<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Result<Cli> {
    let start = ["run", "--image", small_image()?];
    let cli = Cli::new(start.into_iter().chain(arguments));
    Ok(cli.env("CELLBLOCK_WARM", warm_setting()))
}

/// Runs one cell or more with `--json`, and gives the exit code with the object.
pub(crate) fn json<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Result<(i32, Value)> {
    answer(&run(["--json"].into_iter().chain(arguments))?.run()?)
}

/// The exit code and the object of a `--json` run, which has nothing else on stdout.
pub(crate) fn answer(finished: &CommandOutput) -> Result<(i32, Value)> {
    let report = finished.json()?;
    ensure!(
        finished.stdout.lines().count() == 1,
        "more than one line on stdout: {}",
        finished.stdout
    );
    valid(&report)?;
    Ok((finished.code(), report))
}

fn valid(report: &Value) -> Result<()> {
    static SCHEMA: OnceLock<Result<Schema, String>> = OnceLock::new();
    let schema = SCHEMA.get_or_init(|| {
        let path = workspace_root().join("docs/reference/run-output.schema.json");
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let schema: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        Schema::new(&schema).map_err(|error| error.to_string())
    });
    let schema = schema
        .as_ref()
        .map_err(|error| anyhow::anyhow!("read the schema: {error}"))?;
    let checked = schema.check(report);
    checked.with_context(|| format!("the output breaks the schema: {report:#}"))
}

/// A text of a report.
pub(crate) fn text<'a>(report: &'a Value, pointer: &str) -> Result<&'a str> {
    let value = report.pointer(pointer).and_then(Value::as_str);
    value.with_context(|| format!("no text at `{pointer}` in {report:#}"))
}

/// A directory with files for a test.
pub(crate) fn folder(files: &[(&str, &[u8])]) -> Result<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir()?;
    for (name, content) in files {
        std::fs::write(folder.path().join(name), content)?;
    }
    let path = folder.path().to_owned();
    Ok((folder, path))
}

/// Checks that a command rejects each connector at its line, with these words and without its secrets.
pub(crate) fn check_rejected(
    command: &[&str],
    files: &[(&str, &[u8])],
    cases: &[(&str, &str)],
) -> Result<()> {
    for (config, words) in cases {
        let text = format!("connectors:\n  {config}\n");
        let (_folder, path) = folder(&[files, &[("cellblock.yaml", text.as_bytes())]].concat())?;
        let finished = Cli::new(command).folder(path).run()?;
        assert_ne!(finished.code(), 0, "{config}");
        for expected in [*words, "cellblock.yaml:2:"] {
            assert!(
                finished.stderr.contains(expected),
                "{expected}: {}",
                finished.stderr
            );
        }
        assert!(!finished.stderr.contains("s3cret"), "{}", finished.stderr);
    }
    Ok(())
}

/// Result of a command that prepares a place for `cellblock` first.
#[derive(Debug)]
pub(crate) struct SetupResult {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs such a command to its end; a minute is too long.
pub(crate) fn ended(command: &mut Command) -> Result<SetupResult> {
    let mut limited = Command::new("timeout");
    limited
        .arg("300")
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        limited.env(name, value.unwrap_or_default());
    }
    if let Some(folder) = command.get_current_dir() {
        limited.current_dir(folder);
    }
    let output = limited.stdin(Stdio::null()).output().context("start `timeout`")?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(SetupResult {
        code: output.status.code().context("it was killed by a signal")?,
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    })
}

/// Runs a shell script in a mount namespace of its own, with `$cellblock`, `$image` (the small
/// one), and `$home` (where it is built).
pub(crate) fn in_own_mounts(script: &str) -> Result<SetupResult> {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-euc", script]);
    let home = home()?;
    ended(
        command
            .env("cellblock", binary()?)
            .env("image", small_image()?)
            .env("home", &home)
            .env("CELLBLOCK_HOME", &home)
            // What the machine lacks, a host outside of the mount namespace has.
            .env("CELLBLOCK_WARM", "off"),
    )
}
