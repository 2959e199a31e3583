//! `cellblock run`: code, a sandbox, and what came of it.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::mem;
use std::path::PathBuf;
use std::time::Duration;

use cellblock_artifact::Store;
use cellblock_image::Home;
use cellblock_interpreter::derivation::KIND as DERIVATION;
use cellblock_interpreter::execution::{Event, Outcome, UnsentOutputs};
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::lineage::VariableOrigin;
use cellblock_interpreter::output::Output;
use cellblock_interpreter::report::{CellReport, DerivationReport};
use cellblock_interpreter::{Cell, Execution, Input, Interpreter, Session};
use cellblock_sandbox::backend::BackendKind;
use cellblock_sandbox::limits::NetworkPolicy;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

mod advice;
mod derivation;
mod namespaces;
mod recording;

pub(super) use self::namespaces::without_namespaces;
use self::recording::LocalRuns;
use super::{image, skill};
use crate::args::RunArgs;
use crate::artifact_store;
use crate::cancel::Cancel;
use crate::config::snippet;
use crate::error::{self, Error, Result};
use crate::exit_code::ExitCode;
use crate::out_dir::{self, OutDir};
use crate::progress::Display;
use crate::render::figure::{self, Counter};
use crate::render::json::{self, FailureReport, RunOutput, RunReport, SessionReport};
use crate::render::{FAINT, Screen, exception, fetches, outcome, styled, table};
use crate::sanitize;
use crate::script::{self, NamedCell};
use crate::style::NOTE;
use crate::toolset::ToolsetSession;
use crate::warm::attach::HostRequirements;
use crate::warm::hint;
use crate::warm::setting::WarmSetting;
use cellblock_settings::Size;

/// Runs, prints, and says how it ended.
pub(crate) async fn run(args: RunArgs) -> ExitCode {
    let mut reports = Vec::new();
    let mut warm = false;
    let mut ended = match RunState::prepare(&args) {
        Ok(mut run) => {
            let ended = run.finish(&args, &mut reports).await;
            warm = run.warm;
            run.runs.write().await;
            ended
        }
        Err(error) => Err(error),
    };
    if args.json {
        let report = match &mut ended {
            Ok(ended) => report(ended, reports),
            Err(error) => RunReport::Failure(FailureReport::new(error, reports)),
        };
        json::print(&RunOutput { report, warm });
    }
    match ended {
        Ok(ended) => ExitCode::of_outcome(&ended.outcome),
        Err(error) => {
            if !args.json {
                error::tell(&error);
            }
            error.exit_code()
        }
    }
}

/// Outcome of a run.
#[derive(Debug)]
struct RunEnd {
    /// Of the last cell that was run.
    outcome: Outcome,
    given: usize,
    not_run: usize,
    /// Report of a call of a toolset.
    call: Option<DerivationReport>,
    /// Final origins of the variables.
    origins: BTreeMap<String, VariableOrigin>,
}

fn report(ended: &mut RunEnd, mut reports: Vec<CellReport>) -> RunReport {
    if let Some(call) = ended.call.take() {
        return RunReport::Derivation(Box::new(call));
    }
    if ended.given == 1
        && let Some(only) = reports.pop()
    {
        return RunReport::Cell(Box::new(only));
    }
    RunReport::Session(SessionReport {
        outcome: ended.outcome.name(),
        cells: reports,
        cells_not_run: ended.not_run,
        origins: mem::take(&mut ended.origins),
    })
}

/// A run on its way.
#[derive(Debug)]
struct RunState {
    cells: Vec<NamedCell>,
    /// Nothing is shown where only JSON is wanted.
    screen: Option<Screen>,
    /// Nothing is saved where only JSON is wanted and no directory is named.
    out: Option<OutDir>,
    counter: Counter,
    cancel: Cancel,
    /// Setting for warm hosts.
    setting: WarmSetting,
    /// Whether its sandbox is that of a warm host.
    warm: bool,
    /// Modules that a warm host has imported.
    preloaded: Vec<String>,
    /// Contents of its session.
    of_session: ToolsetSession,
    /// Records of its cells.
    runs: LocalRuns,
    /// The network of its sandbox.
    network: NetworkPolicy,
}

impl RunState {
    fn prepare(args: &RunArgs) -> Result<Self> {
        let cells = script::read(args)?;
        for input in inputs(args) {
            input.check(&limits(args))?;
        }
        let out = match &args.out {
            Some(dir) => Some(OutDir::new(dir)),
            None => (!args.json).then(|| OutDir::new(out_dir::DEFAULT)),
        };
        let screen = (!args.json).then(Screen::new);
        Ok(Self {
            cells,
            screen,
            out,
            counter: Counter::default(),
            cancel: Cancel::listen()?,
            setting: WarmSetting::from_env()?,
            warm: false,
            preloaded: Vec::new(),
            of_session: of_session(args)?,
            runs: LocalRuns::begin(),
            network: args.network.network,
        })
    }

    async fn finish(&mut self, args: &RunArgs, reports: &mut Vec<CellReport>) -> Result<RunEnd> {
        let display = Display::on_stderr();
        let started = self.start(args, &display).await;
        display.clear();
        let (interpreter, session) = started?;
        let Some(session) = session else {
            return self.derive(args, &interpreter).await;
        };
        // A dry run needs no data.
        for input in inputs(args).filter(|_| !args.dry_run) {
            self.cancel.unless(session.bind(input)).await?;
        }
        let cells = mem::take(&mut self.cells);
        let mut took = Duration::ZERO;
        let ended = self
            .run_cells(&cells, args, &session, interpreter.store(), reports, &mut took)
            .await;
        if ended.is_ok() {
            self.hint(took, &cells);
        }
        // Also after a failure: what the sandbox held of this machine is given back before this process ends.
        if let Err(error) = self.cancel.unless(session.close()).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "could not end the sandbox in order"
            );
        }
        ended
    }

    /// Starts an interpreter, and its session unless the derivation toolset makes its own.
    async fn start(&mut self, args: &RunArgs, display: &Display) -> Result<(Interpreter, Option<Session>)> {
        let interpreter = self.interpreter(args, display).await?;
        let mut options = mem::take(&mut self.of_session).options(interpreter.store())?;
        options.runs = Some(self.runs.sink());
        options.skills = skill::chosen(interpreter.store(), &args.skills).await?;
        interpreter.check_skills(None, &options.skills)?;
        let session = (args.toolset.toolset != Some(DERIVATION)).then(|| interpreter.session(options));
        if !self.warm {
            display.wait_for("starting Python");
            // A template that cannot start reports why, which its kernel does not know.
            let warmed = async { Ok::<_, Error>(interpreter.warmed().await?) };
            // The sandbox is made while Python starts.
            let prepared = async {
                Ok(match &session {
                    Some(session) => session.prepare().await.map(drop),
                    None => Ok(()),
                })
            };
            let both = async { tokio::try_join!(warmed, prepared) };
            let ((), prepared) = self.cancel.unless(both).await?;
            prepared?;
        }
        if let Some(warning) = without_namespaces(&interpreter) {
            self.tell(&outcome::note(&warning));
        }
        for module in interpreter.failed_modules() {
            let warning = format!(
                "the image's module {} could not be imported",
                sanitize::line(&module)
            );
            self.tell(&outcome::note(&warning));
        }
        Ok((interpreter, session))
    }

    /// Returns the interpreter of a warm host if there is one, or starts another.
    async fn interpreter(&mut self, args: &RunArgs, display: &Display) -> Result<Interpreter> {
        let backend = self.cancel.unless(args.wall.backend()).await?;
        let home = Home::find()?;
        let store = artifact_store::open(&home).await?;
        let image = self
            .cancel
            .unless(image::ready(&home, &args.image, None, display))
            .await?;
        self.preloaded.clone_from(&image.manifest().preload);
        let limits = limits(args);
        let demands = args.policy.demands();
        let wanted = HostRequirements {
            home: &home,
            image: &image,
            image_name: &args.image,
            demands: &demands,
        };
        let walled = backend != BackendKind::Process;
        let warm = async {
            Ok::<_, Error>(if walled {
                None
            } else {
                wanted.interpreter(self.setting, &limits, &store).await
            })
        };
        let warm = self.cancel.unless(warm).await?;
        self.warm = warm.is_some();
        if let Some(interpreter) = warm {
            return Ok(interpreter);
        }
        let starting = Interpreter::builder()
            .image(image)
            .limits(limits)
            .single_session()
            .demands(demands)
            .backend(backend)
            .walls(args.wall.options())
            .store(store)
            .build();
        display.wait_for("starting Python");
        self.cancel.unless(starting).await
    }

    async fn run_cells(
        &mut self,
        cells: &[NamedCell],
        args: &RunArgs,
        session: &Session,
        store: &Store,
        reports: &mut Vec<CellReport>,
        took: &mut Duration,
    ) -> Result<RunEnd> {
        let mut ended = RunEnd {
            outcome: Outcome::Completed,
            given: cells.len(),
            not_run: 0,
            call: None,
            origins: BTreeMap::new(),
        };
        for (index, named) in cells.iter().enumerate() {
            let mut saved = Vec::new();
            let mut cell = named.cell.clone().with_requirements(&args.requirements);
            cell.timeout = args.timeout;
            cell.dry_run = args.dry_run;
            cell.last = index + 1 == cells.len();
            let execution = self.run_cell(cell, session, store, &mut saved).await?;
            self.finish_cell(&execution, store, &mut saved).await?;
            if let Some(calls) = fetches::draw(&execution).filter(|_| args.fetches) {
                self.tell(&calls);
            }
            ended.outcome = execution.outcome.clone();
            *took += execution.duration;
            if args.json {
                reports.push(json::cell(execution, store, saved));
            }
            ended.not_run = cells.len() - index - 1;
            if ended.outcome != Outcome::Completed {
                self.tell_stopped(named, &ended);
                break;
            }
        }
        if args.json {
            ended.origins = session.origins().await?;
        }
        Ok(ended)
    }

    async fn run_cell(
        &mut self,
        cell: Cell,
        session: &Session,
        store: &Store,
        saved: &mut Vec<PathBuf>,
    ) -> Result<Execution> {
        let (events, ended) = session.start_cell(cell).await?.split();
        let mut unsent = UnsentOutputs::default();
        let watching = self.watch(session, events, ended, &mut unsent, store, saved);
        let execution = watching.await??;
        for output in unsent.rest(&execution.outputs) {
            self.show_output(output, store, saved).await?;
        }
        Ok(execution)
    }

    /// Shows what `running` tells until it ends. Ctrl-C interrupts it, and ends `cellblock` when it
    /// is pressed again.
    async fn watch<T>(
        &mut self,
        session: &Session,
        mut events: mpsc::Receiver<Event>,
        running: impl Future<Output = T>,
        unsent: &mut UnsentOutputs,
        store: &Store,
        saved: &mut Vec<PathBuf>,
    ) -> Result<T> {
        let pressed = CancellationToken::new();
        let mut running = std::pin::pin!(session.until(pressed.cancelled(), running));
        let ended = loop {
            tokio::select! {
                Some(event) = events.recv() => self.show(unsent.pass(event), store, saved).await?,
                ended = &mut running => break ended,
                () = self.cancel.pressed() => {
                    if pressed.is_cancelled() {
                        return Err(Error::Cancelled);
                    }
                    pressed.cancel();
                    self.tell(&outcome::note("interrupting the cell; press Ctrl-C again to end at once"));
                }
            }
        };
        while let Ok(event) = events.try_recv() {
            self.show(unsent.pass(event), store, saved).await?;
        }
        Ok(ended)
    }

    async fn show(&mut self, event: Option<Event>, store: &Store, saved: &mut Vec<PathBuf>) -> Result<()> {
        match (event, &mut self.screen) {
            (Some(Event::Output(output)), _) => self.show_output(&output, store, saved).await?,
            (Some(Event::Stdout(bytes)), Some(screen)) => screen.sandbox_stdout(&bytes),
            (Some(Event::Stderr(bytes)), Some(screen)) => screen.sandbox_stderr(&bytes),
            // What code can replace is shown at the cell's end.
            (
                None | Some(Event::Stdout(_) | Event::Stderr(_) | Event::Display(_) | Event::Clear { .. }),
                _,
            ) => {}
        }
        Ok(())
    }

    async fn show_output(&mut self, output: &Output, store: &Store, saved: &mut Vec<PathBuf>) -> Result<()> {
        let width = self.screen.as_ref().map_or(0, Screen::width);
        match output {
            Output::Dataframe(frame) => self.say(|| table::draw(frame, width)),
            Output::Primitive(it) => self.say(|| primitive(it)),
            Output::Rich(it) => {
                self.say(|| sanitize::text(&it.text));
                if !figure::drawn_forms(it).is_empty() {
                    self.save_pictures(output, "value", store, saved).await?;
                }
            }
            Output::Result(it) => self.say(|| sanitize::text(&format!("result: {:#}", it.value))),
            Output::Exception(it) => {
                self.tell_with(|| exception::draw(it));
                if let Some(hint) = advice::of(it, self.network, &std::env::current_dir().unwrap_or_default())
                {
                    self.tell(&format!("{}: {}", styled(NOTE, "hint"), sanitize::line(&hint)));
                }
            }
            Output::Chart(it) => {
                self.save_pictures(output, &figure::chart_caption(it), store, saved)
                    .await?;
            }
            Output::Figure(it) => {
                self.save_pictures(output, &figure::figure_caption(it), store, saved)
                    .await?;
            }
            Output::Image(it) => {
                self.save_pictures(output, &figure::image_caption(it), store, saved)
                    .await?;
            }
        }
        Ok(())
    }

    async fn save_pictures(
        &mut self,
        output: &Output,
        caption: &str,
        store: &Store,
        saved: &mut Vec<PathBuf>,
    ) -> Result<()> {
        let pictures = self.counter.pictures(output);
        let Some(out) = &mut self.out else { return Ok(()) };
        let mut paths = Vec::new();
        for picture in pictures {
            paths.push(out.save_picture(store, picture.artifact, &picture.name).await?);
        }
        let places: Vec<_> = paths.iter().map(|path| json::path(path)).collect();
        let places = if places.is_empty() {
            "too large to be kept".to_owned()
        } else {
            places.join(", ")
        };
        self.say(|| format!("{} {places}", styled(FAINT, &format!("{caption}:"))));
        saved.append(&mut paths);
        Ok(())
    }

    async fn finish_cell(
        &mut self,
        execution: &Execution,
        store: &Store,
        saved: &mut Vec<PathBuf>,
    ) -> Result<()> {
        if let Some(screen) = &mut self.screen {
            screen.ends_of_streams(&execution.stdout, &execution.stderr);
            screen.end_cell();
        }
        if let Some(out) = &mut self.out {
            let mut lines = Vec::new();
            for file in &execution.files {
                let Ok(id) = file.sha256.parse() else { continue };
                let path = out.save_file(store, id, &file.name).await?;
                let head = styled(FAINT, &format!("file, {}:", Size(file.bytes)));
                lines.push(format!("{head} {}", json::path(&path)));
                saved.push(path);
            }
            for line in lines {
                self.say(|| line);
            }
        }
        for remark in outcome::omissions(execution) {
            self.tell(&remark);
        }
        if let Some(ending) = outcome::ending(execution) {
            self.tell(&ending);
        }
        Ok(())
    }

    /// Tells a person who has no warm host of what it would do for them.
    fn hint(&mut self, took: Duration, cells: &[NamedCell]) {
        if self.warm || self.setting != WarmSetting::IfThere || !std::io::stderr().is_terminal() {
            return;
        }
        let code = cells.iter().map(|named| named.cell.code.as_str());
        if hint::helps(took, code, &self.preloaded) {
            let hint = "`cellblock warm start` keeps the image's libraries imported, so that the next \
                        runs start at once";
            self.tell(&format!("{}: {hint}", styled(NOTE, "hint")));
        }
    }

    fn tell_stopped(&mut self, named: &NamedCell, ended: &RunEnd) {
        if ended.given == 1 {
            return;
        }
        let not_run = match ended.not_run {
            0 => "no cell was left to run".to_owned(),
            1 => "1 cell was not run".to_owned(),
            count => format!("{count} cells were not run"),
        };
        let place = sanitize::line(&named.name);
        let number = ended.given - ended.not_run;
        self.tell(&outcome::note(&format!(
            "stopped in cell {number} of {}, which begins at {place}; {not_run}",
            ended.given
        )));
    }

    /// Shows something on stdout, made only if there is a screen.
    fn say(&mut self, block: impl FnOnce() -> String) {
        if let Some(screen) = &mut self.screen {
            screen.show(&block());
        }
    }

    fn tell_with(&mut self, block: impl FnOnce() -> String) {
        if let Some(screen) = &mut self.screen {
            screen.tell(&block());
        }
    }

    fn tell(&mut self, block: &str) {
        self.tell_with(|| block.to_owned());
    }
}

/// The text of a scalar, as Python would print it.
fn primitive(primitive: &cellblock_interpreter::output::Primitive) -> String {
    use cellblock_interpreter::output::Scalar;

    let text = match &primitive.value {
        Scalar::Null => "None".to_owned(),
        Scalar::Bool(true) => "True".to_owned(),
        Scalar::Bool(false) => "False".to_owned(),
        Scalar::Integer(number) => number.to_string(),
        Scalar::Float(number) => format!("{number:?}"),
        Scalar::Text(text) => sanitize::text(text),
    };
    match &primitive.note {
        Some(note) => format!("{text}\n{}", styled(FAINT, &sanitize::line(note))),
        None => text,
    }
}

/// Returns what the session has: what its toolset says, and then the command line.
fn of_session(args: &RunArgs) -> Result<ToolsetSession> {
    let mut of_session = args.toolset.session()?;
    if args.toolset.toolset == Some(DERIVATION)
        && (args.guard.is_some() || args.dry_run || args.fetches || !args.setup.is_empty())
    {
        return Err(Error::Refused(
            "`--guard`, `--setup`, `--dry-run` and `--fetches` are for cells, and `--toolset derivation` \
             runs none; remove them"
                .to_owned(),
        ));
    }
    if args.toolset.toolset == Some(DERIVATION) && !args.skills.is_empty() {
        return Err(Error::Refused(
            "`--skill` is for cells, and `--toolset derivation` runs none; remove it".to_owned(),
        ));
    }
    if args.toolset.toolset == Some(DERIVATION) && !args.language.is_python() {
        return Err(Error::Refused(format!(
            "`--language {}` is not for `--toolset derivation`, whose code is checked before it runs; \
             write it in Python",
            args.language.name()
        )));
    }
    if args.toolset.toolset == Some(DERIVATION) && !args.network.network.is_none() {
        return Err(Error::Refused(format!(
            "`--network {}` is not for `--toolset derivation`, whose code never has a network; remove it",
            args.network.network
        )));
    }
    of_session.egress = args.network.egress()?;
    if let Some(guard) = args.guard {
        of_session.guard = guard;
    }
    for path in &args.setup {
        let snippet = snippet(path)
            .map_err(|error| Error::Refused(format!("read the setup code `{}`: {error}", path.display())))?;
        of_session.setup.push(snippet);
    }
    Ok(of_session)
}

fn inputs(args: &RunArgs) -> impl Iterator<Item = Input> + '_ {
    args.inputs
        .iter()
        .map(|input| Input::file(&input.name, &input.path))
}

fn limits(args: &RunArgs) -> Limits {
    let mut limits = Limits::default();
    if let Some(timeout) = args.timeout {
        limits.cell_timeout = timeout;
    }
    if let Some(memory) = args.memory {
        limits.memory_bytes = memory.0;
    }
    limits.network = args.network.network;
    limits
}
