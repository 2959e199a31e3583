//! `cellblock warm`: a process that keeps sandboxes ready for `cellblock run`.

use std::time::{Duration, Instant};

use cellblock_image::Home;
use cellblock_sandbox::jail::protection::{Demands, Protection};
use cellblock_settings::Size;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{image, session};
use crate::args::warm::{WarmCommand, WarmStartArgs};
use crate::cancel::Cancel;
use crate::error::{self, Error, Result};
use crate::exit_code::ExitCode;
use crate::progress::Display;
use crate::render::json::print;
use crate::render::{FAINT, STRONG, Screen, outcome, styled};
use crate::sanitize;
use crate::session::client::{HostExchange, PATIENCE, silent, unexpected};
use crate::session::place::{Places, SessionPlace};
use crate::session::plan::WarmPlan;
use crate::session::spawn;
use crate::session::wire::{HostAnswer, HostCommand, WarmState};
use crate::session_error::{HostKind, SessionError};
use crate::warm::attach::HostRequirements;

pub(crate) mod host;

/// Interval between two checks of whether a host that somebody else starts is ready.
const PAUSE: Duration = Duration::from_millis(20);
/// Maximum time for the first sandbox of a host.
const FILL: Duration = Duration::from_secs(10);

/// Does it, prints, and says how it ended.
pub(crate) async fn run(command: WarmCommand) -> ExitCode {
    let done = match command {
        WarmCommand::Start(args) => start(&args).await,
        WarmCommand::Status { json } => status(json).await,
        WarmCommand::Stop => stop().await,
        // Begins before there is a runtime.
        WarmCommand::Host { .. } => Err(SessionError::NotStarted { kind: HostKind::Warm }.into()),
    };
    error::end(done)
}

async fn start(args: &WarmStartArgs) -> Result<()> {
    let home = Home::find()?;
    // Sweeps what hosts that are gone have left.
    let places = Places::warm(&home)?;
    places.live()?;
    let mut cancel = Cancel::listen()?;
    let display = Display::on_stderr();
    // Held until the host has opened it as well, so that nobody removes it in between.
    let image = cancel
        .unless(image::ready(&home, &args.image, None, &display))
        .await?;
    let demands = args.policy.demands();
    let wanted = HostRequirements {
        home: &home,
        image: &image,
        image_name: &args.image,
        demands: &demands,
    };
    display.announce("importing the image's libraries");
    let started = loop {
        match wanted.claim(args.idle_timeout)? {
            Some((place, held)) => {
                let notes = spawn::started(&home, &place, &held, &mut cancel).await;
                break notes.map(|notes| (place, notes));
            }
            None => match cancel.unless(joined(&wanted)).await {
                Ok(Some(place)) => break Ok((place, Vec::new())),
                // It has ended meanwhile.
                Ok(None) => {}
                Err(error) => break Err(error),
            },
        }
    };
    let (place, notes) = started.inspect_err(|_| display.clear())?;
    let host = cancel
        .unless(async { Ok::<_, Error>(HostStatus::filled(place).await) })
        .await;
    display.clear();
    let mut screen = Screen::new();
    for note in notes {
        screen.tell(&outcome::note(&note));
    }
    screen.show(&host?.line());
    Ok(())
}

/// Waits until a host that somebody else has started is ready; `None` if it has ended.
async fn joined(wanted: &HostRequirements<'_>) -> Result<Option<SessionPlace>> {
    let place = wanted.place()?;
    while place.is_live()? == Some(true) {
        if place.has_socket() {
            return Ok(Some(place));
        }
        sleep(PAUSE).await;
    }
    Ok(None)
}

async fn status(json: bool) -> Result<()> {
    let hosts = hosts().await?;
    if json {
        let hosts: Vec<_> = hosts.iter().map(HostStatus::report).collect();
        print(&json!({ "hosts": hosts }));
        return Ok(());
    }
    let lines: Vec<_> = hosts.iter().map(HostStatus::line).collect();
    let text = if lines.is_empty() {
        "no warm host is running; `cellblock warm start` starts one".to_owned()
    } else {
        lines.join("\n")
    };
    Screen::new().show(&text);
    Ok(())
}

async fn stop() -> Result<()> {
    let mut screen = Screen::new();
    let hosts = Places::warm(&Home::find()?)?.live()?;
    if hosts.is_empty() {
        screen.show("no warm host is running");
    }
    let mut failed = None;
    for place in hosts {
        let process = place.host();
        match session::end(&place).await {
            Ok(()) => {
                let process =
                    process.map_or(String::new(), |it| format!(", process {}", it.as_raw_nonzero()));
                screen.show(&format!("stopped {}{process}", place.id()));
            }
            // The others are stopped all the same.
            Err(error) => failed = Some(error),
        }
    }
    failed.map_or(Ok(()), Err)
}

async fn hosts() -> Result<Vec<HostStatus>> {
    let mut hosts = Vec::new();
    for place in Places::warm(&Home::find()?)?.live()? {
        let host = HostStatus::of(place).await;
        // One that has ended since is none.
        if host.state.is_some() || host.place.is_live()? == Some(true) {
            hosts.push(host);
        }
    }
    Ok(hosts)
}

/// A host, and what is known of it.
#[derive(Debug)]
struct HostStatus {
    place: SessionPlace,
    /// `None` if another version has written it in another form.
    plan: Option<WarmPlan>,
    /// `None` while it imports the image's libraries, or if it does not answer.
    state: Option<WarmState>,
}

impl HostStatus {
    /// Waits until a host has a sandbox ready, but not for long: without one, a run makes its own.
    async fn filled(place: SessionPlace) -> Self {
        let begun = Instant::now();
        loop {
            let host = Self::of(place.clone()).await;
            let is_empty = host.state.as_ref().is_some_and(|it| it.ready + it.running == 0);
            if !is_empty || begun.elapsed() > FILL {
                return host;
            }
            sleep(PAUSE).await;
        }
    }

    async fn of(place: SessionPlace) -> Self {
        let state = if place.has_socket() {
            describe(&place).await.ok()
        } else {
            None
        };
        Self {
            plan: state
                .as_ref()
                .map(|it| it.plan.clone())
                .or_else(|| place.plan().ok()),
            state,
            place,
        }
    }

    fn doing(&self) -> &'static str {
        match &self.state {
            Some(state) if state.running > 0 => "busy",
            Some(_) => "idle",
            None if self.place.has_socket() => "silent",
            None => "starting",
        }
    }

    fn process(&self) -> Option<u32> {
        let signed = || self.place.host()?.as_raw_nonzero().get().try_into().ok();
        self.state.as_ref().map(|it| it.process).or_else(signed)
    }

    fn report(&self) -> Value {
        let plan = self.plan.as_ref();
        let state = self.state.as_ref();
        json!({
            "id": self.place.id(),
            "state": self.doing(),
            "process": self.process(),
            "version": plan.map(|it| &it.version),
            "image": plan.map(|it| &it.image_name),
            "image_id": plan.map(|it| &it.image),
            "policy": plan.map(|it| &it.demands),
            "started": plan.map(|it| it.started),
            "ready": state.map(|it| it.ready),
            "running": state.map(|it| it.running),
            "idle_seconds": state.map(|it| (it.idle_seconds * 1e3).round() / 1e3),
            "idle_limit_seconds": plan.map(|it| it.idle.as_secs_f64()),
            "memory_bytes": state.and_then(|it| it.memory_bytes),
        })
    }

    fn line(&self) -> String {
        let mut about = Vec::new();
        if let Some(process) = self.process() {
            about.push(format!("process {process}"));
        }
        if let Some(plan) = &self.plan {
            about.push(format!("image {}", sanitize::line(&plan.image_name)));
            about.push(policy(&plan.demands));
            if plan.version != env!("CARGO_PKG_VERSION") {
                about.push(format!("version {}", sanitize::line(&plan.version)));
            }
        }
        match &self.state {
            Some(state) => {
                about.push(format!("{} ready", state.ready));
                if let Some(bytes) = state.memory_bytes {
                    about.push(Size(bytes).to_string());
                }
                about.push(if state.running > 0 {
                    format!("{} in use", state.running)
                } else {
                    let left = state.plan.idle.as_secs_f64() - state.idle_seconds;
                    format!("ends in {:.0} s if unused", left.max(0.0))
                });
            }
            None if self.place.has_socket() => about.push("does not answer".to_owned()),
            None => about.push("starting".to_owned()),
        }
        let id = styled(STRONG, self.place.id().as_str());
        format!("{id}  {}", styled(FAINT, &about.join(", ")))
    }
}

async fn describe(place: &SessionPlace) -> Result<WarmState> {
    let described = async {
        match HostExchange::ask(place, &HostCommand::Describe)
            .await?
            .answer()
            .await?
        {
            HostAnswer::Warm { state } => Ok(*state),
            other => Err(unexpected(&other)),
        }
    };
    let described = tokio::time::timeout(PATIENCE, described).await;
    described.unwrap_or_else(|_| Err(silent(place)))
}

/// Describes the demands of the policy that differ from the default.
fn policy(demands: &Demands) -> String {
    let default = Demands::default();
    let changed: Vec<_> = Protection::ALL
        .into_iter()
        .filter(|it| demands.of(*it) != default.of(*it))
        .map(|it| format!("{it} {}", format!("{:?}", demands.of(it)).to_lowercase()))
        .collect();
    if changed.is_empty() {
        "default policy".to_owned()
    } else if *demands == Demands::without_namespaces() {
        "policy without namespaces".to_owned()
    } else {
        format!("policy with {}", changed.join(", "))
    }
}
