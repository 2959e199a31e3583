//! The release as its users meet it: every file is installed into an empty home and runs a cell there.

use std::collections::BTreeSet;
use std::env;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use super::archive::SUMS;
use super::{Release, glibc, wheel};

/// The versions of Python that the client is for.
const PYTHONS: [&str; 5] = ["3.10", "3.11", "3.12", "3.13", "3.14"];

/// Prints the interpreter behind shims and links, if it can make environments.
const INTERPRETER: &str = "import ensurepip, os, sys, venv; print(os.path.realpath(sys._base_executable))";

/// A session of the Python client.
const CLIENT: &str = "
import cellblock
with cellblock.Session(image='core') as session:
    print(session.run('20 + 22').value)
";

const TABLE: &str = "import pandas as pd; pd.DataFrame({'a': [1]}).shape";

/// Tries all files.
pub(super) fn test(release: &Release) -> Result<()> {
    release.needs_own_machine("install")?;
    glibc::check(&release.binary()?, wheel::GLIBC)?;
    let mut check = Command::new("sha256sum");
    check.args(["--check", "--quiet", "--strict", SUMS]);
    expect(check.current_dir(&release.out), "")?;
    wheel_and_archive(release)?;
    tarball(release)?;
    pages(release)?;
    for image in ["core", "default"] {
        from_nothing(release, image)?;
    }
    Ok(())
}

/// Installs the wheel into an environment of every Python that is found. The first of them imports
/// an image from its archive.
fn wheel_and_archive(release: &Release) -> Result<()> {
    let home = Home::new()?;
    let pythons = pythons();
    if pythons.is_empty() {
        bail!(
            "no Python from {} to {} with `venv` is on PATH",
            PYTHONS[0],
            PYTHONS[PYTHONS.len() - 1]
        );
    }
    let archive = release.image("core")?;
    for (number, python) in pythons.iter().enumerate() {
        eprintln!("wheel: {}", python.display());
        let environment = home.0.path().join(format!("venv-{number}"));
        expect(home.command(python).args(["-m", "venv"]).arg(&environment), "")?;
        let program = |name: &str| home.command(&environment.join("bin").join(name));
        expect(
            program("pip")
                .args([
                    "install",
                    "--quiet",
                    "--disable-pip-version-check",
                    "--no-index",
                    "--find-links",
                ])
                .arg(&release.out)
                .arg(format!("cellblock=={}", release.version)),
            "",
        )?;
        expect(
            program("cellblock").arg("--version"),
            &format!("cellblock {}", release.version),
        )?;
        if number == 0 {
            let mut import = program("cellblock");
            expect_success(import.args(["image", "import"]).arg(&archive))?;
            expect(
                program("cellblock").args(["run", "--image", "core", "-c", TABLE]),
                "(1, 1)",
            )?;
        }
        expect(program("python").args(["-c", CLIENT]), "42")?;
    }
    Ok(())
}

/// Unpacks the tarball and runs the program in it. What lies beside the release is its mirror.
fn tarball(release: &Release) -> Result<()> {
    eprintln!("tarball");
    let home = Home::new()?;
    let mut unpack = Command::new("tar");
    unpack.arg("--extract").arg("--file").arg(release.file(".tar.gz"));
    expect(unpack.arg("--directory").arg(home.0.path()), "")?;
    let folder = release.file("");
    let program = home
        .0
        .path()
        .join(folder.file_name().unwrap_or_default())
        .join("cellblock");
    let mut run = home.command(&program);
    run.env("CELLBLOCK_IMAGE_MIRROR", &release.out);
    expect(run.args(["run", "--image", "core", "-c", "1 + 1"]), "2")
}

/// Runs the commands of the README and the guide to installing that need a release, as they are written.
fn pages(release: &Release) -> Result<()> {
    let read = |page: &str| {
        let path = release.root.join(page);
        std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))
    };
    let home = Home::new()?;
    let environment = home.0.path().join("venv");
    let python = pythons().into_iter().next().context("no Python on PATH")?;
    expect(home.command(&python).args(["-m", "venv"]).arg(&environment), "")?;
    let downloads = home.0.path().join("downloads");
    std::fs::create_dir(&downloads)?;
    for file in [release.out.join(SUMS), release.file(".tar.gz")] {
        std::os::unix::fs::symlink(&file, downloads.join(file.file_name().unwrap_or_default()))?;
    }
    let mut folders = vec![environment.join("bin"), release.tools.folder()];
    folders.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    let shell = |script: &str| {
        eprintln!("page: {script}");
        let mut shell = home.command(Path::new("sh"));
        shell
            .args(["-euc", script])
            .current_dir(&downloads)
            .env("PATH", env::join_paths(&folders)?)
            .env("CELLBLOCK_IMAGE_MIRROR", &release.out)
            .env("PIP_NO_INDEX", "1")
            .env("PIP_FIND_LINKS", &release.out)
            .env("UV_OFFLINE", "1")
            .env("UV_FIND_LINKS", &release.out);
        expect_success(&mut shell)
    };
    let readme = read("README.md")?;
    let starts = readme
        .lines()
        .filter(|line| line.starts_with("uvx ") || line.starts_with("pip "));
    for line in starts {
        if !shell(line)?.lines().any(|printed| printed == "2") {
            bail!("`{line}` of README.md does not print 2");
        }
    }
    let guide = read("docs/guides/install.md")?;
    let blocks = guide.split("```sh\n").filter_map(|rest| rest.split("```").next());
    let tarball = blocks
        .filter(|block| block.contains("tar -xf"))
        .last()
        .context("docs/guides/install.md does not unpack a tarball")?;
    let folder = home.0.path().join(".local/bin");
    std::fs::create_dir_all(&folder)?;
    shell(tarball)?;
    expect(
        home.command(&folder.join("cellblock")).arg("--version"),
        &format!("cellblock {}", release.version),
    )
}

/// Runs a cell on a machine that has uv and nothing else, from a mirror behind HTTP.
fn from_nothing(release: &Release, image: &str) -> Result<()> {
    let home = Home::new()?;
    let mirror = MirrorServer::start(release)?;
    let start = Instant::now();
    let mut uvx = home.command(&release.tools.program("uvx"));
    uvx.env("CELLBLOCK_IMAGE_MIRROR", &mirror.address)
        .args(["--quiet", "--no-index", "--find-links"])
        .arg(&release.out)
        .arg(format!("cellblock@{}", release.version))
        .args(["run", "--image", image, "-c", "1 + 1"]);
    expect(&mut uvx, "2")?;
    eprintln!(
        "uvx: first result with `{image}` after {:.1} s",
        start.elapsed().as_secs_f64()
    );
    Ok(())
}

/// The empty home of somebody who has only the system's programs.
struct Home(TempDir);

impl Home {
    fn new() -> Result<Self> {
        Ok(Self(tempfile::tempdir()?))
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", self.0.path())
            .current_dir(self.0.path());
        if let Some(path) = env::var_os("PATH") {
            command.env("PATH", path);
        }
        command
    }
}

/// Python's own web server over the folder of the release.
struct MirrorServer {
    child: Child,
    address: String,
}

impl MirrorServer {
    fn start(release: &Release) -> Result<Self> {
        let mut child = release
            .tools
            .command("python3")?
            .args(["-u", "-m", "http.server", "--bind", "127.0.0.1", "--directory"])
            .arg(&release.out)
            .arg("0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("start `python3 -m http.server`")?;
        // Serving HTTP on 127.0.0.1 port 40123 (http://127.0.0.1:40123/) ...
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let address = line.split(['(', ')']).nth(1).unwrap_or_default().to_owned();
        let server = Self { child, address };
        if server.address.is_empty() {
            bail!(
                "`python3 -m http.server` did not start: it printed `{}`",
                line.trim()
            );
        }
        Ok(server)
    }
}

impl Drop for MirrorServer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the interpreters that can make an environment, the newest first.
fn pythons() -> Vec<PathBuf> {
    let mut seen = BTreeSet::new();
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = env::split_paths(&path).collect();
    let mut found = Vec::new();
    for version in PYTHONS.iter().rev() {
        for candidate in folders
            .iter()
            .map(|folder| folder.join(format!("python{version}")))
        {
            // Not in the empty home: shims look there for what they start.
            let answer = Command::new(&candidate).args(["-I", "-c", INTERPRETER]).output();
            let Some(answer) = answer.ok().filter(|answer| answer.status.success()) else {
                continue;
            };
            let python = PathBuf::from(String::from_utf8_lossy(&answer.stdout).trim());
            if seen.insert(python.clone()) {
                found.push(python);
            }
        }
    }
    found
}

/// Runs a command, which must succeed and print this.
fn expect(command: &mut Command, printed: &str) -> Result<()> {
    let stdout = expect_success(command)?;
    if stdout.trim() != printed {
        bail!("{command:?} printed `{}` instead of `{printed}`", stdout.trim());
    }
    Ok(())
}

/// Runs a command and returns what it prints. It must succeed.
fn expect_success(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("start {command:?}"))?;
    if !output.status.success() {
        bail!(
            "{command:?} ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
