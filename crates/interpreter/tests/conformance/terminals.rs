//! Processes with a terminal: what they see of it, its size, its keys, and that cells have none.

use std::time::Duration;

use cellblock_interpreter::Session;
use cellblock_interpreter::error::Error;
use cellblock_interpreter::session::processes::{
    MAX_WAIT, ProcessError, ProcessOrder, ProcessReport, ProcessState, TerminalSize,
};

use crate::support::{block_on, session, value};

const SIZE: TerminalSize = TerminalSize {
    rows: 24,
    columns: 80,
};

/// A terminal, and what was read of it.
struct Terminal<'a> {
    session: &'a Session,
    id: String,
    seen: String,
    offset: u64,
}

impl<'a> Terminal<'a> {
    async fn start<const N: usize>(session: &'a Session, command: [&str; N]) -> Self {
        let order = ProcessOrder {
            command: command.map(str::to_owned).to_vec(),
            terminal: Some(SIZE),
            ..ProcessOrder::default()
        };
        let report = session.processes().start(order).await.unwrap();
        assert!(report.terminal && report.stdin);
        Self {
            session,
            id: report.id,
            seen: String::new(),
            offset: 0,
        }
    }

    async fn types(&self, text: &str) {
        let processes = self.session.processes();
        processes.input(&self.id, text.as_bytes(), false).await.unwrap();
    }

    /// Reads until it shows this; drops everything up to there.
    async fn shows(&mut self, text: &str) {
        let mut ended = false;
        loop {
            if let Some(at) = self.seen.find(text) {
                self.seen.drain(..at + text.len());
                return;
            }
            let before = self.offset;
            assert!(!ended, "it never showed {text:?}, but {:?}", self.seen);
            ended = self.read().await;
            assert!(
                ended || self.offset > before,
                "it did not show {text:?} within {MAX_WAIT:?}, but {:?}",
                self.seen
            );
        }
    }

    /// Reads more; returns whether it has ended.
    async fn read(&mut self) -> bool {
        let processes = self.session.processes();
        let part = processes.output(&self.id, self.offset, 1 << 16, MAX_WAIT);
        let part = part.await.unwrap();
        let eof = part.eof;
        let (text, next) = part.into_text();
        self.seen += &text;
        self.offset = next;
        eof
    }

    async fn ends(&mut self) -> ProcessReport {
        while !self.read().await {}
        let report = self.session.processes().wait(&self.id, MAX_WAIT).await.unwrap();
        assert_ne!(report.state, ProcessState::Running);
        report
    }
}

/// Whether a program opens its terminal by name, and hears of changes of the size.
pub(crate) async fn are_full(session: &Session) -> bool {
    let script = "import signal\nheard = []\nsignal.signal(signal.SIGWINCH, lambda *_: heard.append(1))\n\
                  print('ready')\ninput()\n\
                  try:\n    named = open('/dev/tty').isatty()\nexcept OSError:\n    named = False\n\
                  print('full' if heard and named else 'other')";
    let mut terminal = Terminal::start(session, ["python", "-c", script]).await;
    terminal.shows("ready\r\n").await;
    let wider = TerminalSize {
        rows: 50,
        columns: 132,
    };
    session.processes().resize(&terminal.id, wider).await.unwrap();
    terminal.types("\n").await;
    terminal.ends().await;
    terminal.seen.contains("full")
}

#[test]
fn a_process_with_a_terminal_has_its_size_and_hears_of_changes() {
    needs!(FullTerminals);
    block_on(async {
        let session = session().await;
        let script = "import os, signal, sys, time\n\
                      print(os.isatty(0), os.isatty(1), os.isatty(2), os.environ['TERM'], os.getsid(0) == \
                      os.tcgetpgrp(0))\n\
                      print(tuple(os.get_terminal_size()), open('/dev/tty').isatty())\n\
                      heard = []\nsignal.signal(signal.SIGWINCH, lambda *_: heard.append(1))\n\
                      print('ready')\nwhile not heard: time.sleep(0.01)\n\
                      print(tuple(os.get_terminal_size()))\nsys.exit(7)";
        let mut terminal = Terminal::start(&session, ["python", "-c", script]).await;
        terminal
            .shows("True True True xterm-256color True\r\n(80, 24) True\r\nready\r\n")
            .await;
        let wider = TerminalSize {
            rows: 50,
            columns: 132,
        };
        session.processes().resize(&terminal.id, wider).await.unwrap();
        terminal.shows("(132, 50)\r\n").await;
        assert_eq!(terminal.ends().await.exit_code, Some(7));
        let gone = session.processes().resize(&terminal.id, wider).await;
        assert!(
            matches!(gone, Err(Error::Process(ProcessError::NoTerminal { .. }))),
            "{gone:?}"
        );
    });
}

#[test]
fn ctrl_c_and_ctrl_z_reach_the_foreground_job_alone() {
    block_on(async {
        let session = session().await;
        let mut shell = Terminal::start(&session, ["bash", "--norc", "-i"]).await;
        // The shell shows what is typed, so what is waited for must not stand in it.
        shell.types("(echo first u''p; exec sleep 1000)\n").await;
        shell.shows("first up\r\n").await;
        shell.types("\x03").await;
        shell.types("echo code $?\n").await;
        shell.shows("code 130\r\n").await;
        shell.types("(echo second u''p; exec sleep 1000)\n").await;
        shell.shows("second up\r\n").await;
        shell.types("\x1a").await;
        shell.shows("Stopped").await;
        // The shell may hear of its end only later.
        shell
            .types("kill -9 %1; while jobs | grep -q Stopped; do sleep 0.1; done; echo ki''lled\n")
            .await;
        shell.shows("killed\r\n").await;
        shell.types("exit 3\n").await;
        assert_eq!(shell.ends().await.exit_code, Some(3));
    });
}

#[test]
fn ctrl_d_and_closed_input_end_a_program_that_reads() {
    block_on(async {
        let session = session().await;
        let mut typed = Terminal::start(&session, ["cat"]).await;
        typed.types("one\n").await;
        typed.shows("one\r\none\r\n").await;
        typed.types("\x04").await;
        assert_eq!(typed.ends().await.exit_code, Some(0));
        let mut closed = Terminal::start(&session, ["cat"]).await;
        session
            .processes()
            .input(&closed.id, b"two\n", true)
            .await
            .unwrap();
        closed.shows("two\r\ntwo\r\n").await;
        assert_eq!(closed.ends().await.exit_code, Some(0));
    });
}

#[test]
fn terminals_are_given_back_and_lose_no_output() {
    block_on(async {
        let session = session().await;
        let lines = (1..=3000).fold(String::new(), |text, line| text + &line.to_string() + "\r\n");
        // More than a sandbox may have at the same time.
        for _ in 0..40 {
            let mut terminal = Terminal::start(&session, ["seq", "3000"]).await;
            assert_eq!(terminal.ends().await.exit_code, Some(0));
            assert_eq!(terminal.seen, lines);
        }
    });
}

#[test]
fn cells_and_processes_without_a_terminal_have_none() {
    block_on(async {
        let session = session().await;
        let code = "import errno, os\ntry:\n    os.open('/dev/tty', os.O_RDWR)\n\
                    except OSError as error:\n    said = error.errno\nsaid in (errno.ENXIO, errno.EIO)";
        assert_eq!(value(&session, code).await, true);
        let order = ProcessOrder {
            command: ["sleep", "1000"].map(str::to_owned).to_vec(),
            ..ProcessOrder::default()
        };
        let processes = session.processes();
        let report = processes.start(order.clone()).await.unwrap();
        assert!(!report.terminal);
        let resized = processes.resize(&report.id, SIZE).await;
        assert!(
            matches!(resized, Err(Error::Process(ProcessError::NoTerminal { .. }))),
            "{resized:?}"
        );
        let size = TerminalSize {
            rows: 1,
            columns: 5000,
        };
        for error in [
            processes.resize(&report.id, size).await.unwrap_err(),
            processes
                .start(ProcessOrder {
                    terminal: Some(size),
                    ..order
                })
                .await
                .unwrap_err(),
        ] {
            assert_eq!(
                error.to_string(),
                "`terminal`: `5000` columns are not between 1 and 4096"
            );
        }
        assert_eq!(
            processes.wait(&report.id, Duration::ZERO).await.unwrap().state,
            ProcessState::Running
        );
    });
}
