//! `cellblock session attach`: a program of a session in the terminal of this command.
//!
//! What the program writes goes to the terminal as it is, since a shell with colors or an editor
//! needs its control sequences. What is typed goes to the sandbox, Ctrl-C too: until the end, the
//! terminal makes no signals of keys.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use cellblock_interpreter::session::processes::{MAX_WAIT, ProcessReport, TerminalSize};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::signal::unix::{SignalKind, signal};

use super::process::{ask_output, ask_process, open, read_stdin, wait_for};
use crate::args::process::AttachArgs;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::render::{Screen, outcome};
use crate::session::place::SessionPlace;
use crate::session::wire::ProcessAsk;

/// Command that runs unless another one is named.
const SHELL: [&str; 2] = ["bash", "-i"];
/// Variables that say what this terminal can do.
const KIND: [&str; 2] = ["TERM", "COLORTERM"];
/// Size of a terminal that does not know its own.
const USUAL: TerminalSize = TerminalSize {
    rows: 24,
    columns: 80,
};
/// Ends what a program may have set that it did not end: the other screen, a hidden cursor, colors,
/// reports of the mouse, marked pastes.
const RESET: &[u8] =
    b"\x1b[?1047l\x1b[?25h\x1b[0m\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\r\n";

/// Outcome of a terminal's connection.
enum AttachEnd {
    Ended(ProcessReport),
    Detached,
}

pub(super) async fn attach(args: &AttachArgs) -> Result<ExitCode> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Error::Refused(
            "attach: standard input and output are not a terminal; `session exec --interactive` works \
             without one"
                .to_owned(),
        ));
    }
    let place = open(&args.session)?;
    let (id, offset) = match &args.process {
        Some(id) => resume(&place, id).await?,
        None => (start(&place, &args.command).await?, 0),
    };
    let raw = RawTerminal::enter()?;
    let parting = run(&place, &id, offset).await;
    if !matches!(parting, Ok(AttachEnd::Ended(_))) {
        let _ = std::io::stdout().write_all(RESET);
    }
    drop(raw);
    match parting? {
        AttachEnd::Detached => {
            let note = format!(
                "detached; `cellblock session attach {} --process {id}` returns",
                args.session
            );
            Screen::new().tell(&outcome::note(&note));
            Ok(ExitCode::Success)
        }
        AttachEnd::Ended(report) => Ok(leave(&report)),
    }
}

async fn start(place: &SessionPlace, command: &[String]) -> Result<String> {
    let command = if command.is_empty() {
        SHELL.map(str::to_owned).to_vec()
    } else {
        command.to_vec()
    };
    let kind = KIND
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
    let start = ProcessAsk::Start {
        command,
        env: kind.collect::<BTreeMap<_, _>>(),
        directory: None,
        stdin: false,
        terminal: Some(size()),
    };
    Ok(ask_process(place, start).await?.id)
}

/// Begins after what was written before: it may have questions to a terminal, which would be
/// answered into the program. Instead, a change of the size makes programs that use the whole
/// screen draw again.
async fn resume(place: &SessionPlace, id: &str) -> Result<(String, u64)> {
    let now = size();
    let other = TerminalSize {
        rows: if now.rows > 1 { now.rows - 1 } else { 2 },
        ..now
    };
    let (_, part) = ask_output(place, id, u64::MAX, Duration::ZERO).await?;
    resize(place, id, other).await?;
    resize(place, id, now).await?;
    Ok((id.to_owned(), part.next))
}

async fn run(place: &SessionPlace, id: &str, offset: u64) -> Result<AttachEnd> {
    let listen = |kind, action| signal(kind).map_err(Error::process(action));
    let mut resized = listen(SignalKind::window_change(), "listen for a change of the terminal")?;
    let mut hung_up = listen(SignalKind::hangup(), "listen for SIGHUP")?;
    let mut terminated = listen(SignalKind::terminate(), "listen for SIGTERM")?;
    let mut interrupted = listen(SignalKind::interrupt(), "listen for SIGINT")?;
    let follow_size = async {
        while resized.recv().await.is_some() {
            // One that has ended needs no size.
            let _ = resize(place, id, size()).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        shown = show(place, id, offset) => {
            shown?;
            Ok(AttachEnd::Ended(wait_for(place, id, None).await?))
        }
        typed = pass_on(place, id) => typed.map(|()| AttachEnd::Detached),
        () = follow_size => Ok(AttachEnd::Detached),
        _ = hung_up.recv() => Ok(AttachEnd::Detached),
        _ = terminated.recv() => Err(Error::Cancelled),
        _ = interrupted.recv() => Err(Error::Cancelled),
    }
}

/// Shows what the program writes, to its end.
async fn show(place: &SessionPlace, id: &str, mut offset: u64) -> Result<()> {
    loop {
        let (bytes, part) = ask_output(place, id, offset, MAX_WAIT).await?;
        let mut stdout = std::io::stdout().lock();
        let written = stdout.write_all(&bytes).and_then(|()| stdout.flush());
        written.map_err(Error::process("write to the terminal"))?;
        if part.eof {
            return Ok(());
        }
        offset = part.next;
    }
}

/// Passes on what is typed, until the keys to detach or the end of the terminal.
async fn pass_on(place: &SessionPlace, id: &str) -> Result<()> {
    let mut parts = read_stdin();
    let mut keys = DetachKeys::default();
    while let Some(part) = parts.recv().await {
        let part = part.map_err(Error::user_file("read", "<stdin>"))?;
        if part.is_empty() {
            return Ok(());
        }
        let (bytes, detached) = keys.pass(&part);
        if !bytes.is_empty() {
            let input = ProcessAsk::Input {
                id: id.to_owned(),
                bytes,
                close: false,
            };
            if let Err(error) = ask_process(place, input).await {
                // If it has ended, its output says so.
                let Error::Told(_) = error else { return Err(error) };
            }
        }
        if detached {
            return Ok(());
        }
    }
    Ok(())
}

async fn resize(place: &SessionPlace, id: &str, size: TerminalSize) -> Result<()> {
    let id = id.to_owned();
    ask_process(place, ProcessAsk::Resize { id, size })
        .await
        .map(drop)
}

fn size() -> TerminalSize {
    match tcgetwinsize(rustix::stdio::stdout()) {
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => TerminalSize {
            rows: size.ws_row,
            columns: size.ws_col,
        },
        _ => USUAL,
    }
}

/// Exits as the program did; the codes of [`ExitCode`] are those of `cellblock` itself.
#[expect(clippy::exit, reason = "the terminal is as it was, and nothing else is held")]
fn leave(report: &ProcessReport) -> ExitCode {
    match report.exit_code {
        Some(0) => ExitCode::Success,
        Some(code) => std::process::exit(code),
        None => {
            Screen::new().tell(&outcome::note(&format!(
                "the program {}",
                report.state_in_words()
            )));
            ExitCode::Lost
        }
    }
}

/// Keys that detach: Ctrl-P, then Ctrl-Q.
#[derive(Debug, Default)]
struct DetachKeys {
    /// Whether the last key was Ctrl-P, which is passed on with the next key.
    begun: bool,
}

impl DetachKeys {
    const FIRST: u8 = 0x10;
    const SECOND: u8 = 0x11;

    /// Returns the bytes to pass on, and whether the keys came after them.
    fn pass(&mut self, typed: &[u8]) -> (Vec<u8>, bool) {
        let mut passed = Vec::with_capacity(typed.len() + 1);
        for byte in typed {
            if std::mem::take(&mut self.begun) {
                if *byte == Self::SECOND {
                    return (passed, true);
                }
                passed.push(Self::FIRST);
            }
            if *byte == Self::FIRST {
                self.begun = true;
            } else {
                passed.push(*byte);
            }
        }
        (passed, false)
    }
}

/// The terminal of this command while it passes on each key as it is. Dropping it restores the terminal.
struct RawTerminal {
    before: Termios,
}

impl RawTerminal {
    fn enter() -> Result<Self> {
        let terminal = rustix::stdio::stdin();
        let failed = |errno: rustix::io::Errno| Error::process("set up the terminal")(errno.into());
        let before = tcgetattr(terminal).map_err(failed)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(terminal, OptionalActions::Now, &raw).map_err(failed)?;
        Ok(Self { before })
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // Flushes the input: an answer of the terminal to the sandbox must not become input of the
        // user's shell.
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Flush, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_detach_and_other_keys_are_passed_on() {
        let mut keys = DetachKeys::default();
        assert_eq!(keys.pass(b"ab\x10"), (b"ab".to_vec(), false));
        assert_eq!(keys.pass(b"c"), (b"\x10c".to_vec(), false));
        assert_eq!(keys.pass(b"\x10\x10"), (b"\x10".to_vec(), false));
        assert_eq!(keys.pass(b"\x11more"), (Vec::new(), true));
        assert_eq!(keys.pass(b"\x11x\x10\x11"), (b"\x11x".to_vec(), true));
    }
}
