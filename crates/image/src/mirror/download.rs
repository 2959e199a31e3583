//! A download that is read while it arrives, and kept so that the next attempt goes on from there.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use reqwest::blocking::{Client, Response};
use reqwest::{StatusCode, Url, header};

use super::address::shown;
use crate::error::IoResultExt as _;
use crate::home::Home;
use crate::http::{client, reasons};
use crate::lock::Lock;
use crate::{ImageError, Result, Sink, stop};

/// Attempts in a row that bring nothing before a download is given up.
const ATTEMPTS: u32 = 4;
/// Wait before the second attempt; it doubles with each further one.
const PAUSE: Duration = Duration::from_millis(500);

/// An address, and what a server wants to see with it.
#[derive(Clone)]
pub(super) struct Request {
    client: Client,
    url: Url,
    token: Option<String>,
    accept: Option<&'static str>,
}

impl Request {
    pub(super) fn new(url: Url) -> Result<Self, String> {
        Ok(Self {
            client: client().map_err(|error| reasons(&error))?,
            url,
            token: None,
            accept: None,
        })
    }

    /// Returns the same request for another address.
    pub(super) fn at(&self, url: Url) -> Self {
        Self { url, ..self.clone() }
    }

    /// Sends a token in place of the address's user and password.
    pub(super) fn bearer(mut self, token: String) -> Self {
        self.token = Some(token);
        self
    }

    pub(super) fn accept(mut self, types: &'static str) -> Self {
        self.accept = Some(types);
        self
    }

    /// Sends it and returns a successful response.
    pub(super) fn get(&self) -> Result<Response, String> {
        let answer = self.send(0).map_err(|error| reasons(&error))?;
        answer
            .error_for_status()
            .map_err(|error| reasons(&error.without_url()))
    }

    /// Sends it, for what follows the first `from` bytes, and returns any response.
    pub(super) fn send(&self, from: u64) -> reqwest::Result<Response> {
        let mut url = self.url.clone();
        if self.token.is_some() {
            // An address that takes no user has none.
            let _ = url.set_username("");
            let _ = url.set_password(None);
        }
        let mut request = self.client.get(url);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(types) = self.accept {
            request = request.header(header::ACCEPT, types);
        }
        if from > 0 {
            request = request.header(header::RANGE, format!("bytes={from}-"));
        }
        // A configured address may contain a password.
        request.send().map_err(reqwest::Error::without_url)
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.url))
    }
}

/// Reads an archive: first what an earlier attempt kept, then the rest from the server.
#[derive(Debug)]
pub(super) struct Download {
    request: Request,
    response: Option<Response>,
    /// The part that is kept; none if it cannot be written or the archive's hash is unknown.
    part: Option<File>,
    /// Bytes of the part that are still to be read from it.
    replay: u64,
    /// Bytes that were read.
    done: u64,
    failures: u32,
    interrupted: Arc<AtomicBool>,
    sink: Sink,
}

/// Decides what becomes of the part once the import has ended.
#[derive(Debug)]
pub(super) struct PartGuard {
    path: Option<PathBuf>,
    interrupted: Arc<AtomicBool>,
    _lock: Option<Lock>,
}

impl PartGuard {
    /// Removes the part, unless the download was interrupted and can go on.
    pub(super) fn end<T>(self, result: Result<T>) -> Result<T> {
        let goes_on = match &result {
            Ok(_) => false,
            Err(ImageError::Cancelled) => true,
            Err(_) => self.interrupted.load(Ordering::Relaxed),
        };
        if let Some(path) = self.path.filter(|_| !goes_on) {
            // It is only a cache.
            let _ = fs::remove_file(path);
        }
        result
    }
}

/// Starts a download. Only an archive whose hash is known is kept: of another, nobody could say
/// whether the rest belongs to it.
pub(super) fn start(
    home: &Home,
    request: &Request,
    origin: &str,
    sha256: Option<&str>,
    sink: &Sink,
) -> Result<(Download, PartGuard)> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let (mut part, mut replay, mut path, mut lock) = (None, 0, None, None);
    if let Some(sha256) = sha256 {
        let waiting = || sink.waiting(format!("another process that pulls {origin}"));
        lock = Some(Lock::exclusive(&home.lock(&format!("pull-{sha256}")), waiting)?);
        let folder = home.cache().join("pulls");
        fs::create_dir_all(&folder).at("create", &folder)?;
        let kept = folder.join(format!("{sha256}.partial"));
        let file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(&kept)
            .at("open", &kept)?;
        replay = file.metadata().at("look at", &kept)?.len();
        if replay > 0 {
            sink.line(format!(
                "going on after {} MB of an earlier download",
                replay / 1_000_000
            ));
        }
        (part, path) = (Some(file), Some(kept));
    }
    let download = Download {
        request: request.clone(),
        response: None,
        part,
        replay,
        done: 0,
        failures: 0,
        interrupted: interrupted.clone(),
        sink: sink.clone(),
    };
    let kept = PartGuard {
        path,
        interrupted,
        _lock: lock,
    };
    Ok((download, kept))
}

impl Download {
    /// Asks the server for what is missing. `None`: nothing is.
    fn connect(&self) -> Result<Option<Response>, String> {
        let mut response = self.request.send(self.done).map_err(|error| reasons(&error))?;
        if self.done > 0 && response.status() == StatusCode::RANGE_NOT_SATISFIABLE {
            return Ok(None);
        }
        response = response
            .error_for_status()
            .map_err(|error| reasons(&error.without_url()))?;
        if self.done > 0 && response.status() != StatusCode::PARTIAL_CONTENT {
            // A server without ranges sends everything again.
            let skipped = io::copy(&mut (&mut response).take(self.done), &mut io::sink());
            skipped.map_err(|error| reasons(&error))?;
        }
        Ok(Some(response))
    }

    fn failed(&mut self, problem: &str) -> io::Result<()> {
        self.response = None;
        self.failures += 1;
        if self.failures >= ATTEMPTS {
            self.interrupted.store(true, Ordering::Relaxed);
            return Err(io::Error::other(format!("the download stopped: {problem}")));
        }
        self.sink.line(format!("{problem}; trying again"));
        thread::sleep(PAUSE * 2_u32.pow(self.failures - 1));
        Ok(())
    }

    /// Keeps what has arrived. On a full disk the download goes on without.
    fn keep(&mut self, bytes: &[u8]) {
        if let Some(part) = &mut self.part
            && let Err(error) = part.write_all(bytes)
        {
            self.sink.line(format!(
                "the download cannot be kept for a later attempt: {error}"
            ));
            let _ = part.set_len(0);
            self.part = None;
        }
    }
}

impl Read for Download {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.replay > 0
            && let Some(part) = &mut self.part
        {
            let read = part.read(buffer)?;
            self.replay = if read == 0 {
                0
            } else {
                self.replay.saturating_sub(read as u64)
            };
            self.done += read as u64;
            if read > 0 {
                return Ok(read);
            }
        }
        loop {
            if stop::check().is_err() {
                self.interrupted.store(true, Ordering::Relaxed);
                return Err(io::Error::other("the pull was interrupted"));
            }
            let Some(response) = &mut self.response else {
                match self.connect() {
                    Ok(Some(response)) => self.response = Some(response),
                    Ok(None) => return Ok(0),
                    Err(problem) => self.failed(&problem)?,
                }
                continue;
            };
            match response.read(buffer) {
                Ok(read) => {
                    if read > 0 {
                        self.failures = 0;
                    }
                    self.done += read as u64;
                    self.keep(&buffer[..read]);
                    return Ok(read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.failed(&reasons(&error))?,
            }
        }
    }
}
