//! `cellblock session exec`, `ps`, `output`, `input`, `signal` and `wait`: programs beside the
//! tools of a session.

use std::io::Read as _;
use std::time::{Duration, Instant};

use cellblock_image::Home;
use cellblock_interpreter::session::processes::{MAX_WAIT, ProcessReport, ProcessState};
use serde_json::json;
use tokio::sync::mpsc;

use crate::args::process::{InputArgs, OutputArgs, ProcessArgs, ProgramArgs};
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::render::json::print;
use crate::render::table::counted;
use crate::render::{STRONG, Screen, outcome, styled};
use crate::sanitize;
use crate::session::client::{HostExchange, HostMessage, unexpected};
use crate::session::place::{Places, SessionPlace};
use crate::session::wire::{HostAnswer, HostCommand, ProcessAsk};
use crate::session_id::SessionId;

/// Bytes of input that are sent at once.
const PART: usize = 64 * 1024;

pub(super) async fn exec(args: &ProgramArgs) -> Result<ExitCode> {
    let mut cancel = Cancel::listen()?;
    let place = open(&args.session)?;
    let start = ProcessAsk::Start {
        command: args.command.clone(),
        env: args.env.iter().cloned().collect(),
        directory: args.directory.clone(),
        stdin: args.interactive,
        terminal: None,
    };
    let id = ask_process(&place, start).await?.id;
    let mut screen = Screen::new();
    if args.detach {
        screen.show(&id);
        return Ok(ExitCode::Success);
    }
    let feeding = args
        .interactive
        .then(|| tokio::spawn(feed(place.clone(), id.clone(), true)));
    let followed = cancel.unless(follow(&place, &id, 0, &mut screen)).await;
    if let Some(feeding) = feeding {
        feeding.abort();
    }
    if let Err(error) = followed {
        let kill = ProcessAsk::Signal {
            id,
            signal: "SIGKILL".to_owned(),
        };
        // It may have ended, and so may the session.
        let _ = ask_process(&place, kill).await;
        return Err(error);
    }
    let ended = wait_for(&place, &id, None).await?;
    if ended.exit_code != Some(0) {
        screen.tell(&outcome::note(&format!("the program {}", ended.state_in_words())));
    }
    Ok(code_of(&ended))
}

pub(super) async fn list(id: &SessionId, as_json: bool) -> Result<()> {
    let processes = ask(&open(id)?, ProcessAsk::List).await?;
    if as_json {
        print(&json!({ "processes": processes }));
        return Ok(());
    }
    let lines: Vec<_> = processes.iter().map(line).collect();
    let text = if lines.is_empty() {
        "no process; `cellblock session exec --detach` starts one".to_owned()
    } else {
        lines.join("\n")
    };
    Screen::new().show(&text);
    Ok(())
}

pub(super) async fn output(args: &OutputArgs) -> Result<()> {
    let mut cancel = Cancel::listen()?;
    let place = open(&args.process.session)?;
    let id = &args.process.process;
    let mut screen = Screen::new();
    if args.follow {
        return cancel.unless(follow(&place, id, args.offset, &mut screen)).await;
    }
    let mut offset = args.offset;
    loop {
        let part = part(&place, id, offset, Duration::ZERO, &mut screen).await?;
        if part.eof || part.next == offset {
            screen.end_cell();
            return Ok(());
        }
        offset = part.next;
    }
}

pub(super) async fn input(args: &InputArgs) -> Result<()> {
    let place = open(&args.process.session)?;
    let id = args.process.process.clone();
    let Some(text) = &args.text else {
        return Cancel::listen()?.unless(feed(place, id, args.close)).await;
    };
    send(&place, &id, format!("{text}\n").into_bytes(), args.close).await
}

pub(super) async fn signal(args: &ProcessArgs, signal: &str) -> Result<()> {
    let ask = ProcessAsk::Signal {
        id: args.process.clone(),
        signal: signal.to_owned(),
    };
    ask_process(&open(&args.session)?, ask).await.map(drop)
}

pub(super) async fn wait(args: &ProcessArgs, timeout: Option<Duration>) -> Result<ExitCode> {
    let place = open(&args.session)?;
    let waited = wait_for(&place, &args.process, timeout);
    let report = Cancel::listen()?.unless(waited).await?;
    Screen::new().show(&format!("{} {}", report.id, report.state_in_words()));
    Ok(code_of(&report))
}

/// Waits for the end, in as many requests as it takes.
pub(super) async fn wait_for(
    place: &SessionPlace,
    id: &str,
    timeout: Option<Duration>,
) -> Result<ProcessReport> {
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let ask = ProcessAsk::Wait {
            id: id.to_owned(),
            limit: left.unwrap_or(MAX_WAIT),
        };
        let report = ask_process(place, ask).await?;
        let over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if over || report.state != ProcessState::Running {
            return Ok(report);
        }
    }
}

/// Result of reading a part of a process's output.
pub(super) struct ProcessPart {
    pub(super) next: u64,
    lost: u64,
    pub(super) eof: bool,
}

/// Shows a part of a process's output.
async fn part(
    place: &SessionPlace,
    id: &str,
    offset: u64,
    wait: Duration,
    screen: &mut Screen,
) -> Result<ProcessPart> {
    let (output, part) = ask_output(place, id, offset, wait).await?;
    if part.lost > 0 {
        screen.tell(&outcome::note(&format!(
            "{} {} no longer kept",
            counted(part.lost, "byte"),
            if part.lost == 1 { "is" } else { "are" }
        )));
    }
    screen.sandbox_stdout(&output);
    Ok(part)
}

/// Asks for a part of a process's output.
pub(super) async fn ask_output(
    place: &SessionPlace,
    id: &str,
    offset: u64,
    wait: Duration,
) -> Result<(Vec<u8>, ProcessPart)> {
    let what = ProcessAsk::Output {
        id: id.to_owned(),
        offset,
        wait,
    };
    let mut asked = HostExchange::ask(place, &HostCommand::Process { what }).await?;
    let mut output = Vec::new();
    loop {
        match asked.next().await? {
            HostMessage::Stdout(bytes) | HostMessage::Stderr(bytes) => output.extend(bytes),
            HostMessage::HostAnswer(HostAnswer::ProcessOutput { next, lost, eof }) => {
                return Ok((output, ProcessPart { next, lost, eof }));
            }
            HostMessage::HostAnswer(other) => return Err(unexpected(&other)),
        }
    }
}

/// Shows a process's output to its end.
async fn follow(place: &SessionPlace, id: &str, mut offset: u64, screen: &mut Screen) -> Result<()> {
    loop {
        let part = part(place, id, offset, MAX_WAIT, screen).await?;
        if part.eof {
            screen.end_cell();
            return Ok(());
        }
        offset = part.next;
    }
}

/// Sends standard input to a process, as it comes.
async fn feed(place: SessionPlace, id: String, close: bool) -> Result<()> {
    let mut parts = read_stdin();
    while let Some(part) = parts.recv().await {
        let part = part.map_err(Error::user_file("read", "<stdin>"))?;
        let last = part.is_empty();
        if !last || close {
            send(&place, &id, part, last && close).await?;
        }
        if last {
            break;
        }
    }
    Ok(())
}

/// Reads standard input as it comes; its end is an empty part.
pub(super) fn read_stdin() -> mpsc::Receiver<std::io::Result<Vec<u8>>> {
    let (sender, parts) = mpsc::channel(1);
    // A thread of its own, because nothing can interrupt such a read.
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        loop {
            let mut part = vec![0; PART];
            let read = stdin.read(&mut part).map(|length| part.truncate(length));
            let last = read.is_err() || part.is_empty();
            if sender.blocking_send(read.map(|()| part)).is_err() || last {
                return;
            }
        }
    });
    parts
}

async fn send(place: &SessionPlace, id: &str, bytes: Vec<u8>, close: bool) -> Result<()> {
    let input = ProcessAsk::Input {
        id: id.to_owned(),
        bytes,
        close,
    };
    ask_process(place, input).await.map(drop)
}

pub(super) fn open(id: &SessionId) -> Result<SessionPlace> {
    Places::of(&Home::find()?)?.open(id)
}

async fn ask(place: &SessionPlace, what: ProcessAsk) -> Result<Vec<ProcessReport>> {
    match HostExchange::ask(place, &HostCommand::Process { what })
        .await?
        .answer()
        .await?
    {
        HostAnswer::Processes { processes } => Ok(processes),
        other => Err(unexpected(&other)),
    }
}

/// Asks for something that is answered with one process.
pub(super) async fn ask_process(place: &SessionPlace, what: ProcessAsk) -> Result<ProcessReport> {
    let found = ask(place, what).await?.pop();
    found.ok_or_else(|| {
        unexpected(&HostAnswer::Processes {
            processes: Vec::new(),
        })
    })
}

fn line(process: &ProcessReport) -> String {
    let id = styled(STRONG, &process.id);
    let command = sanitize::line(&process.command.join(" "));
    format!("{id}  {}  {command}", process.state_in_words())
}

fn code_of(process: &ProcessReport) -> ExitCode {
    match (process.state, process.exit_code) {
        (ProcessState::Running, _) => ExitCode::Interrupted,
        (ProcessState::Exited, Some(0)) => ExitCode::Success,
        (ProcessState::Lost, _) => ExitCode::Lost,
        (ProcessState::Exited | ProcessState::Killed, _) => ExitCode::Raised,
    }
}
