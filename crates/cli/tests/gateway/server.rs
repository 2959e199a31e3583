//! A server with a home of its own.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cellblock_testkit::wait::block_until_ok;
use cellblock_testkit::{Cli, CommandOutput, Count, LeakOwner, bare_image, binary, home};
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::http::{self, HttpAnswer, SentRequest};

/// Maximum time for something that happens in the background.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);
/// Parts of a home that all tests share.
const SHARED: [&str; 4] = ["images", "refs", "cache", "layers"];

/// A home, and a directory for temporary files.
#[derive(Debug)]
pub(crate) struct ServerHome {
    dir: tempfile::TempDir,
}

impl ServerHome {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let shared = home().unwrap();
        for folder in ["home", "temporary"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        for name in SHARED {
            std::fs::create_dir_all(shared.join(name)).unwrap();
            symlink(shared.join(name), dir.path().join("home").join(name)).unwrap();
        }
        Self { dir }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub(crate) fn temporary(&self) -> PathBuf {
        self.dir.path().join("temporary")
    }

    /// Runs a command of `cellblock` here.
    pub(crate) fn cellblock(&self, args: &[&str]) -> CommandOutput {
        let cli = Cli::new(args.iter().copied()).env("CELLBLOCK_HOME", self.home());
        cli.run().unwrap()
    }

    /// Returns the count of a server that has left nothing: only what belongs to nobody here.
    pub(crate) fn nothing(&self) -> Count {
        let mut count = LeakOwner::this_process().folder(self.temporary()).count();
        let (mounts, entries) = (count.mounts, count.entries);
        count = Count::default();
        Count {
            mounts,
            entries,
            ..count
        }
    }

    /// Starts a server, and waits until it is ready.
    pub(crate) fn serve(&self, more: &[&str]) -> Server {
        self.serve_with(more, &[])
    }

    /// The same, in an environment that says more.
    pub(crate) fn serve_with(&self, more: &[&str], environment: &[(&str, &str)]) -> Server {
        self.serve_in(Path::new("."), more, environment)
    }

    /// The same, in a directory.
    pub(crate) fn serve_in(&self, folder: &Path, more: &[&str], environment: &[(&str, &str)]) -> Server {
        let mut command = Command::new(binary().unwrap());
        command
            .args(["serve", "--demo", "--listen", "127.0.0.1:0"])
            .args(more)
            .current_dir(folder)
            .env("CELLBLOCK_HOME", self.home())
            .env("CELLBLOCK_IMAGE", bare_image().unwrap())
            .env("TMPDIR", self.temporary())
            .env("CELLBLOCK_LOG", "info")
            .env("CELLBLOCK_LOG_FORMAT", "json")
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let kept = Arc::clone(&log);
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let mut kept = kept.lock();
                kept.push_str(&line);
                kept.push('\n');
            }
        });
        let address = until(|| {
            let told = log.lock().lines().find_map(listening);
            assert!(
                child.try_wait().unwrap().is_none() || told.is_some(),
                "{}",
                log.lock()
            );
            told
        });
        let server = Server {
            owner: LeakOwner::of(child.id()).folder(self.temporary()),
            child,
            address,
            log,
        };
        until(|| (server.get("/readyz", &[]).status == 200).then_some(()));
        server
    }
}

fn listening(line: &str) -> Option<SocketAddr> {
    let line: Value = serde_json::from_str(line).ok()?;
    (line["message"] == "listening").then(|| line["address"].as_str()?.parse().ok())?
}

/// Asks until there is an answer.
pub(crate) fn until<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    block_until_ok(|| ask().ok_or("no answer"))
}

/// A server that runs; dropping it kills it.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) owner: LeakOwner,
    pub(crate) address: SocketAddr,
    log: Arc<Mutex<String>>,
}

impl Server {
    pub(crate) fn get(&self, path: &str, headers: &[(&str, &str)]) -> HttpAnswer {
        http::send(self.address, &format!("GET {path}"), headers, "").answer()
    }

    pub(crate) fn post(&self, path: &str, headers: &[(&str, &str)], body: &str) -> HttpAnswer {
        http::send(self.address, &format!("POST {path}"), headers, body).answer()
    }

    /// Begins to run code, and waits until it runs.
    pub(crate) fn begin(&self, code: &str) -> SentRequest {
        let body = http::code(code, true);
        let mut sent = http::send(self.address, "POST /v1/responses", &[], &body);
        sent.until("response.code_interpreter_call.interpreting");
        sent
    }

    /// Returns its log so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().clone()
    }

    /// Returns the security events of one kind. Waits for the first: it may be read later than the
    /// answer that it was logged before.
    pub(crate) fn security(&self, event: &str) -> Vec<Value> {
        let wanted = |line: &Value| line["target"] == "cellblock::security" && line["event"] == event;
        until(|| {
            let log = self.log();
            let lines = log.lines().filter_map(|line| serde_json::from_str(line).ok());
            let events: Vec<Value> = lines.filter(wanted).collect();
            (!events.is_empty()).then_some(events)
        })
    }

    /// A metric's value by its whole line up to the number; 0 when it is not there.
    pub(crate) fn metric(&self, name: &str, headers: &[(&str, &str)]) -> u64 {
        let text = self.get("/metrics", headers).body;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0, |number| number.parse().unwrap())
    }

    /// Bytes of memory that it uses.
    pub(crate) fn memory(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.unwrap().trim().trim_end_matches(" kB");
        kilobytes.parse::<usize>().unwrap() << 10
    }

    pub(crate) fn signal(&mut self, signal: Signal) {
        self.owner.look();
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end, and gives its exit code.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        until(|| self.child.try_wait().unwrap()).code()
    }

    /// Fails when something of it is left.
    pub(crate) fn leaves(&mut self, nothing: &Count) {
        let left = self.owner.until(nothing, PATIENCE);
        left.unwrap_or_else(|left| panic!("{left}\n{}", self.log()));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _gone_already = self.child.kill();
        let _gone_already = self.child.wait();
    }
}

/// Whether a file below a directory holds a text.
pub(crate) fn holds(folder: &Path, text: &str) -> bool {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut entries = entries.filter(|path| !path.is_symlink());
    entries.any(|path| {
        if path.is_dir() {
            return holds(&path, text);
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    })
}
