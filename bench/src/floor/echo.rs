//! A bare round trip to a Python process on a socket pair, and Python's own time; see `floors/echo.py`.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{ChildStdout, Stdio};
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::driver::OwnedChild;
use crate::programs::SUM;
use crate::python::Python;
use crate::samples::ProbeTurn;

const DRIVER: &str = include_str!("../../floors/echo.py");

/// A process that evaluates what it is sent.
#[derive(Debug)]
pub(crate) struct Echo {
    child: OwnedChild,
    channel: UnixStream,
    stdout: ChildStdout,
}

/// A process that several probes ask.
pub(crate) type SharedEcho = Rc<RefCell<Echo>>;

impl Echo {
    pub(crate) fn start(python: &Python) -> Result<SharedEcho> {
        let (channel, theirs) = UnixStream::pair().context("make a socket pair")?;
        let mut command = python.command();
        command.args(["-c", DRIVER]).stdin(OwnedFd::from(theirs));
        command.stdout(Stdio::piped());
        let mut child = command.spawn().context("start the image's Python")?;
        let stdout = child.stdout.take().context("the process has no stdout")?;
        let mut echo = Self {
            child: OwnedChild(child),
            channel,
            stdout,
        };
        echo.send(SUM)?;
        echo.expect("2")?;
        Ok(Rc::new(RefCell::new(echo)))
    }

    fn send(&mut self, text: &str) -> Result<()> {
        let mut frame = u32::try_from(text.len())?.to_be_bytes().to_vec();
        frame.extend_from_slice(text.as_bytes());
        self.channel.write_all(&frame).context("send a frame")
    }

    fn expect(&mut self, expected: &str) -> Result<()> {
        let mut length = [0; 4];
        self.channel.read_exact(&mut length).context("receive a frame")?;
        let mut text = vec![0; usize::try_from(u32::from_be_bytes(length))?];
        self.channel.read_exact(&mut text).context("receive a frame")?;
        let came = String::from_utf8_lossy(&text);
        ensure!(came == expected, "`{came}` came instead of `{expected}`");
        Ok(())
    }

    /// Measures so many sums.
    pub(crate) fn sums(echo: &SharedEcho, turn: &ProbeTurn, times: usize) -> Result<()> {
        let mut echo = echo.borrow_mut();
        for _ in 0..times {
            let started = Instant::now();
            echo.send(SUM)?;
            echo.expect("2")?;
            turn.time("round_trip", started.elapsed());
        }
        Ok(())
    }

    /// Measures so many loops, which are stopped by a signal.
    pub(crate) fn loops(echo: &SharedEcho, turn: &ProbeTurn, times: usize) -> Result<()> {
        let mut echo = echo.borrow_mut();
        let pid = Pid::from_child(&echo.child.0);
        for _ in 0..times {
            echo.send("spin()")?;
            echo.expect("go")?;
            let started = Instant::now();
            kill_process(pid, Signal::INT).context("interrupt the process")?;
            echo.expect("interrupted")?;
            turn.time("interrupt", started.elapsed());
        }
        Ok(())
    }

    /// Measures so many bytes on stdout.
    pub(crate) fn stdout(echo: &SharedEcho, turn: &ProbeTurn, bytes: usize) -> Result<()> {
        let mut echo = echo.borrow_mut();
        let started = Instant::now();
        echo.send(&format!("shout({bytes})"))?;
        let mut rest = bytes;
        let mut buffer = vec![0; 64 * 1024];
        while rest > 0 {
            let read = echo.stdout.read(&mut buffer);
            let read = read.context("read the process's stdout")?;
            ensure!(read > 0, "the process ended");
            rest = rest.saturating_sub(read);
        }
        echo.expect("None")?;
        turn.time("stdout", started.elapsed());
        Ok(())
    }
}
