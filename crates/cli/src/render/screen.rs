//! Writes a run to stdout and stderr as it happens.

use std::io::{self, IsTerminal, Write};

use anstream::AutoStream;
use cellblock_interpreter::execution::StreamText;

use super::terminal_stream::TerminalStream;
use crate::env_vars;

/// The width of tables where nothing tells it.
const WIDTH: usize = 100;
/// Narrower than this no table can be read.
const NARROWEST: usize = 20;

/// Stdout and stderr, and where their lines are. A writer whose reader has gone is written to no more.
#[derive(Debug)]
pub(crate) struct Screen {
    stdout: Lane<AutoStream<io::Stdout>>,
    stderr: Lane<AutoStream<io::Stderr>>,
    width: usize,
}

#[derive(Debug)]
struct Lane<W> {
    writer: W,
    sandbox: TerminalStream,
    /// Bytes of the cell that were passed on.
    passed: u64,
    /// Whether the last line that was written has not ended.
    within_line: bool,
    gone: bool,
}

impl Screen {
    /// This process' streams.
    pub(crate) fn new() -> Self {
        Self {
            stdout: Lane::new(anstream::stdout(), io::stdout().is_terminal()),
            stderr: Lane::new(anstream::stderr(), io::stderr().is_terminal()),
            width: width(),
        }
    }

    /// Returns the maximum width of a table.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Shows bytes that the sandbox wrote to stdout.
    pub(crate) fn sandbox_stdout(&mut self, bytes: &[u8]) {
        self.stdout.pass(bytes);
    }

    /// Shows bytes that the sandbox wrote to stderr.
    pub(crate) fn sandbox_stderr(&mut self, bytes: &[u8]) {
        self.stderr.pass(bytes);
    }

    /// Shows a block of our own making on stdout, on lines of its own.
    pub(crate) fn show(&mut self, block: &str) {
        self.end_line();
        self.stdout.block(block);
    }

    /// Tells something about the run on stderr, on lines of its own.
    pub(crate) fn tell(&mut self, block: &str) {
        self.end_line();
        self.stderr.block(block);
    }

    /// Ends a cell: what its streams held back is shown.
    pub(crate) fn end_cell(&mut self) {
        self.stdout.flush_sandbox();
        self.stderr.flush_sandbox();
    }

    /// Shows the end of the streams of a cell that were too long to be passed on whole.
    pub(crate) fn ends_of_streams(&mut self, stdout: &StreamText, stderr: &StreamText) {
        self.stdout.end_of(stdout);
        self.stderr.end_of(stderr);
    }

    /// On a terminal both streams share the cursor, so an open line of either is ended.
    fn end_line(&mut self) {
        self.stdout.flush_sandbox();
        self.stderr.flush_sandbox();
        self.stdout.end_line();
        self.stderr.end_line();
    }
}

impl<W: Write> Lane<W> {
    fn new(writer: W, terminal: bool) -> Self {
        Self {
            writer,
            sandbox: TerminalStream::new(terminal),
            passed: 0,
            within_line: false,
            gone: false,
        }
    }

    fn end_of(&mut self, kept: &StreamText) {
        if let Some(end) = kept.end() {
            let missing = kept.bytes.saturating_sub(self.passed);
            let left_out = missing.saturating_sub(end.len() as u64);
            if left_out > 0 {
                self.flush_sandbox();
                self.end_line();
                self.pass(format!("[… {left_out} of {} bytes left out …]\n", kept.bytes).as_bytes());
            }
            // A part of the end may have been passed on, too.
            let known = end
                .len()
                .saturating_sub(usize::try_from(missing).unwrap_or(usize::MAX));
            self.pass(&end.as_bytes()[known..]);
        }
        self.passed = 0;
    }

    fn pass(&mut self, bytes: &[u8]) {
        self.passed += bytes.len() as u64;
        let safe = self.sandbox.push(bytes);
        self.write(&safe);
    }

    fn flush_sandbox(&mut self) {
        let rest = self.sandbox.finish();
        self.write(&rest);
    }

    fn block(&mut self, block: &str) {
        self.write(block);
        self.end_line();
    }

    fn end_line(&mut self) {
        self.sandbox.begin();
        if self.within_line {
            self.write("\n");
        }
    }

    fn write(&mut self, text: &str) {
        let Some(last) = text.chars().last() else { return };
        self.within_line = last != '\n';
        if !self.gone {
            let written = self
                .writer
                .write_all(text.as_bytes())
                .and_then(|()| self.writer.flush());
            self.gone = written.is_err();
        }
    }
}

fn width() -> usize {
    let stdout = io::stdout();
    let terminal = stdout
        .is_terminal()
        .then(|| rustix::termios::tcgetwinsize(&stdout).ok())
        .flatten();
    let terminal = terminal
        .map(|size| usize::from(size.ws_col))
        .filter(|width| *width > 0);
    let named = || env_vars::COLUMNS.get().and_then(|columns| columns.parse().ok());
    terminal.or_else(named).unwrap_or(WIDTH).max(NARROWEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_begins_on_a_line_of_its_own() {
        let mut lane = Lane::new(Vec::new(), false);
        lane.pass(b"working");
        lane.flush_sandbox();
        lane.end_line();
        lane.block("table");
        lane.block("table\n");
        lane.pass(b"x\n");
        assert_eq!(
            String::from_utf8(lane.writer).unwrap(),
            "working\ntable\ntable\nx\n"
        );
    }

    #[test]
    fn a_reader_that_left_is_not_written_to_again() {
        struct ClosedScreen(u32);
        impl Write for ClosedScreen {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                self.0 += 1;
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut lane = Lane::new(ClosedScreen(0), true);
        lane.pass(b"a");
        lane.pass(b"b");
        assert_eq!(lane.writer.0, 1);
    }
}
