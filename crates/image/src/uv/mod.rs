//! uv, which resolves and installs packages: found on this machine, or downloaded.

#[cfg(feature = "download")]
mod fetch;
mod speech;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::error::{ImageError, Result};
use super::home::Home;
use super::lock::Lock;
use super::process;
use super::progress::Sink;
use super::spec::PythonVersion;

use speech::Speech;

/// Oldest version with all options that are used here.
const OLDEST: [u32; 2] = [0, 5];

/// Variables that would change uv's inputs.
const UNWANTED: [&str; 11] = [
    "CONDA_PREFIX",
    "PYTHONHOME",
    "PYTHONPATH",
    "UV_CONSTRAINT",
    "UV_OVERRIDE",
    "UV_PROJECT",
    "UV_PYTHON",
    "UV_REQUIRE_HASHES",
    "UV_TARGET",
    "UV_WORKING_DIR",
    "VIRTUAL_ENV",
];

/// uv's variable with folders of wheels.
const FIND_LINKS: &str = "UV_FIND_LINKS";

/// An installed or downloaded uv.
#[derive(Clone, Debug)]
pub(crate) struct Uv {
    program: PathBuf,
    home: Home,
    lock: Lock,
    /// Its cache; none if the user has named one, which other programs use, too.
    cache: Option<PathBuf>,
}

impl Uv {
    /// Finds uv, or fetches the pinned one to the cache. Programs that it runs share the lock.
    pub(crate) fn find_or_fetch(home: &Home, lock: &Lock, sink: &Sink) -> Result<Self> {
        let program = match installed().find(|it| is_usable(it)) {
            Some(program) => program,
            None => fetched(home, sink)?,
        };
        let is_named = env::var_os("UV_CACHE_DIR").is_some();
        Ok(Self {
            program,
            home: home.clone(),
            lock: lock.clone(),
            cache: (!is_named).then(|| home.cache().join("uv")),
        })
    }

    /// Uses an empty cache in place of ours, whose files may be those of a damaged image.
    pub(crate) fn with_empty_cache(mut self, cache: PathBuf) -> Self {
        self.cache = self.cache.map(|_| cache);
        self
    }

    /// Returns how files get from the cache to where they are installed. A clone is a link where
    /// the filesystem cannot clone, which is safe only if nobody else uses the cache.
    pub(crate) fn link_mode(&self) -> &'static str {
        if self.cache.is_some() { "clone" } else { "copy" }
    }

    /// Returns a command of uv that ignores the configuration of surrounding projects.
    pub(crate) fn command(&self, subcommand: &[&str]) -> Result<Command> {
        let mut command = Command::new(&self.program);
        command
            .args(subcommand)
            .args(["--color", "never"])
            .current_dir("/");
        command.stdin(self.stdin()?);
        for name in UNWANTED {
            command.env_remove(name);
        }
        match user_configuration() {
            Some(file) => command.arg("--config-file").arg(file),
            None => command.arg("--no-config"),
        };
        if let Some(cache) = &self.cache {
            command.env("UV_CACHE_DIR", cache);
        }
        if !self.has_user_store() {
            command.env("UV_PYTHON_INSTALL_DIR", self.home.root().join("python"));
        }
        let own_index = ["UV_DEFAULT_INDEX", "UV_INDEX_URL"]
            .iter()
            .any(|it| env::var_os(it).is_some());
        if let (false, Some(index)) = (own_index, env::var_os("PIP_INDEX_URL")) {
            command.env("UV_DEFAULT_INDEX", index);
        }
        Ok(command)
    }

    /// Returns the stdin for every program that writes where only the lock's holder may.
    pub(crate) fn stdin(&self) -> Result<Stdio> {
        self.lock.stdin()
    }

    /// Returns the directory of uv's interpreters.
    pub(crate) fn python_store(&self) -> Option<PathBuf> {
        let answer = process::output(
            &mut self.command(&["python", "dir"]).ok()?,
            Duration::from_secs(20),
        )?;
        Some(PathBuf::from(String::from_utf8(answer).ok()?.trim())).filter(|it| it.is_absolute())
    }

    /// Installs an interpreter with uv and returns its program.
    pub(crate) fn install_python(&self, version: PythonVersion, sink: &Sink) -> Result<PathBuf> {
        let mut command = self.command(&["python", "install"])?;
        command.arg("--no-bin").arg(version.to_string());
        run(&mut command, "install Python with uv", sink)?;
        let mut find = self.command(&["python", "find", "--managed-python"])?;
        find.arg(version.to_string());
        process::output(&mut find, Duration::from_secs(20))
            .and_then(|it| String::from_utf8(it).ok())
            .map(|it| PathBuf::from(it.trim()))
            .ok_or_else(|| ImageError::Broken {
                problem: "uv does not find the Python that it installed".to_owned(),
            })
    }

    /// An ordinary user's store is in the data directory; if that is not writable, ours is used.
    fn has_user_store(&self) -> bool {
        env::var_os("UV_PYTHON_INSTALL_DIR").is_some() || !self.home.root().starts_with("/var/tmp")
    }
}

/// Returns what people call the package index in use, without a password.
pub(crate) fn index_name() -> String {
    let named = ["UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"];
    let offline = env::var("UV_OFFLINE").is_ok_and(|it| matches!(it.as_str(), "1" | "true"));
    if let (true, Some(folders)) = (offline, env::var_os(FIND_LINKS)) {
        return format!("the wheels in {}", folders.to_string_lossy());
    }
    let host = named.iter().find_map(|it| env::var(it).ok()).and_then(|it| {
        let (_, rest) = it.split_once("://")?;
        let host = rest.split('/').next()?;
        host.rsplit('@').next().map(str::to_owned)
    });
    host.unwrap_or_else(|| "the Python package index".to_owned())
}

/// Returns the pinned uv in the cache, fetching it if it is missing.
#[cfg(feature = "download")]
fn fetched(home: &Home, sink: &Sink) -> Result<PathBuf> {
    let program = fetch::place(home)?;
    if is_usable(&program) {
        return Ok(program);
    }
    fetch::fetch(home, &program, sink)?;
    if !is_usable(&program) {
        return Err(ImageError::Broken {
            problem: format!("the fetched `{}` does not run here", program.display()),
        });
    }
    Ok(program)
}

#[cfg(not(feature = "download"))]
fn fetched(_: &Home, _: &Sink) -> Result<PathBuf> {
    Err(ImageError::NoUv)
}

/// Runs a command of uv and reports its progress.
pub(crate) fn run(command: &mut Command, action: &'static str, sink: &Sink) -> Result<()> {
    let mut speech = Speech::default();
    process::run(command, action, |line| speech.hear(line, sink))
}

fn user_configuration() -> Option<PathBuf> {
    let named = env::var_os("UV_CONFIG_FILE").map(PathBuf::from);
    let directory = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let directory = directory.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".config")));
    named
        .or_else(|| directory.map(|it| it.join("uv/uv.toml")))
        .filter(|it| it.is_file())
}

fn installed() -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut dirs: Vec<_> = env::split_paths(&path).collect();
    if let Some(home) = env::var_os("HOME").map(PathBuf::from) {
        dirs.extend([home.join(".local/bin"), home.join(".cargo/bin")]);
    }
    dirs.extend(["/usr/local/bin", "/opt/uv/bin", "/home/linuxbrew/.linuxbrew/bin"].map(PathBuf::from));
    // uvx and `uv run` name the uv that they belong to.
    let running = env::var_os("UV").map(PathBuf::from);
    running
        .into_iter()
        .chain(dirs.into_iter().map(|it| it.join("uv")))
        .filter(|it| it.is_absolute() && it.is_file())
}

fn is_usable(program: &Path) -> bool {
    let answer = process::output(
        Command::new(program).arg("--version").current_dir("/"),
        Duration::from_secs(20),
    );
    let version = answer.and_then(|it| parse_version(&String::from_utf8_lossy(&it)));
    version.is_some_and(|it| it >= OLDEST)
}

fn parse_version(text: &str) -> Option<[u32; 2]> {
    let mut numbers = text.strip_prefix("uv ")?.split(['.', ' ', '\n']);
    Some([numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_uv_are_read() {
        assert_eq!(
            parse_version("uv 0.13.8 (x86_64-unknown-linux-gnu)\n"),
            Some([0, 13])
        );
        assert_eq!(parse_version("uv 1.0"), Some([1, 0]));
        assert_eq!(parse_version("pyenv: uv: command not found"), None);
    }
}
