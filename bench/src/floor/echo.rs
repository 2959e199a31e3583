//! A bare round trip to a Python process on a socket pair, and Python's own time; see `floors/echo.py`.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdout, Stdio};
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::WHO;
use crate::probe::{Probe, SampleFuture};
use crate::programs::{SHOUT_BYTES, SUM};
use crate::python::Python;
use crate::samples::Samples;

const DRIVER: &str = include_str!("../../floors/echo.py");

/// A process that evaluates what it is sent.
#[derive(Debug)]
pub(crate) struct Echo {
    child: Child,
    channel: UnixStream,
    stdout: ChildStdout,
}

impl Echo {
    pub(crate) fn start(python: &Python) -> Result<Rc<RefCell<Self>>> {
        let (channel, theirs) = UnixStream::pair().context("make a socket pair")?;
        let mut child = python
            .command()
            .args(["-c", DRIVER])
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::piped())
            .spawn()
            .context("start the image's Python")?;
        let stdout = child.stdout.take().context("the process has no stdout")?;
        let mut echo = Self {
            child,
            channel,
            stdout,
        };
        echo.ask(SUM, "2")?;
        Ok(Rc::new(RefCell::new(echo)))
    }

    fn ask(&mut self, text: &str, expected: &str) -> Result<()> {
        self.send(text)?;
        self.expect(expected)
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
        ensure!(
            text == expected.as_bytes(),
            "`{}` came instead of `{expected}`",
            String::from_utf8_lossy(&text)
        );
        Ok(())
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Message to the child.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EchoMessage {
    /// So many sums.
    Sum(usize),
    /// So many loops, which are stopped by a signal.
    Loop(usize),
    /// Ten megabytes on stdout.
    Stdout,
}

/// One thing that is measured of it.
pub(crate) struct EchoProbe {
    pub(crate) echo: Rc<RefCell<Echo>>,
    pub(crate) said: EchoMessage,
}

impl EchoProbe {
    fn run(&self, samples: &mut Samples) -> Result<()> {
        let mut echo = self.echo.borrow_mut();
        match self.said {
            EchoMessage::Sum(times) => {
                for _ in 0..times {
                    let started = Instant::now();
                    echo.ask(SUM, "2")?;
                    samples.time(WHO, "round_trip", started.elapsed());
                }
            }
            EchoMessage::Loop(times) => {
                let pid = Pid::from_child(&echo.child);
                for _ in 0..times {
                    echo.ask("spin()", "go")?;
                    let started = Instant::now();
                    kill_process(pid, Signal::INT).context("interrupt the process")?;
                    echo.expect("interrupted")?;
                    samples.time(WHO, "interrupt", started.elapsed());
                }
            }
            EchoMessage::Stdout => {
                let started = Instant::now();
                echo.send(&format!("shout({SHOUT_BYTES})"))?;
                let mut rest = usize::try_from(SHOUT_BYTES)?;
                let mut buffer = vec![0; 64 * 1024];
                while rest > 0 {
                    let read = echo
                        .stdout
                        .read(&mut buffer)
                        .context("read the process's stdout")?;
                    ensure!(read > 0, "the process ended");
                    rest = rest.saturating_sub(read);
                }
                echo.expect("None")?;
                samples.time(WHO, "stdout", started.elapsed());
            }
        }
        Ok(())
    }
}

impl Probe for EchoProbe {
    fn who(&self) -> &'static str {
        WHO
    }

    fn what(&self) -> &'static str {
        match self.said {
            EchoMessage::Sum(_) => "round_trip",
            EchoMessage::Loop(_) => "interrupt",
            EchoMessage::Stdout => "stdout",
        }
    }

    fn sample<'a>(&'a mut self, samples: &'a mut Samples) -> SampleFuture<'a> {
        Box::pin(async move { self.run(samples) })
    }
}
