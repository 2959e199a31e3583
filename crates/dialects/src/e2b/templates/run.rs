//! Running a build: a sandbox is made for it alone, and ends with it, however it ends.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cellblock_interpreter::Session;
use cellblock_interpreter::artifact::{ArtifactDescription, Kind};
use cellblock_interpreter::limits::{Limits, NetworkPolicy};
use cellblock_interpreter::session::processes::{
    ProcessOrder, ProcessReader, ProcessReport, ProcessState, ProcessStream,
};
use cellblock_interpreter::session::{CommandEnd, SandboxProgram};
use cellblock_interpreter::volume::VolumeFile;
use cellblock_settings::clock;
use parking_lot::Mutex;
use serde::de::IgnoredAny;
use serde_json::json;

use super::super::error::{Problem, shortened};
use super::super::options::BuildOptions;
use super::super::paths::HOME;
use super::super::state::{E2b, FOREVER};
use super::base::{BuildBase, fits};
use super::builds::{BuildReason, TemplateBuild};
use super::index::{BuildRecord, BuiltTemplate};
use super::log::LogLevel;
use super::plan::{BuildPlan, PlannedStep, StepAction};
use super::request::BuildStart;
use super::start::{await_ready, shell, variables};
use crate::files::{measure, operate_within};
use crate::host::SessionWish;

/// Names of the steps before and after those of a client.
const BASE: &str = "base";
const FINALIZE: &str = "finalize";
/// Files in the sandbox: of an upload, and of the template.
const UPLOADED: &str = "/tmp/.cellblock-upload.tar";
const PACKED: &str = "/tmp/.cellblock-template.tar.gz";
/// Bytes of a line that are kept until it ends.
const MAX_LINE: usize = 8192;
/// Programs whose failure may be that of a network.
const CLIENTS: [&str; 9] = ["pip", "npm", "npx", "yarn", "pnpm", "bun", "curl", "wget", "git"];

/// A build with its sandbox.
struct BuildRun<'a> {
    e2b: &'a E2b,
    build: &'a TemplateBuild,
    session: &'a Session,
    options: &'a BuildOptions,
    /// Name of the step that runs.
    current: &'a Mutex<String>,
}

/// Runs a build to its end, and notes how it ended.
pub(super) async fn run(e2b: &E2b, build: &Arc<TemplateBuild>, base: BuildBase, request: BuildStart) {
    let current = Mutex::new(BASE.to_owned());
    let ended = tokio::select! {
        ended = perform(e2b, build, base, request, &current) => ended,
        () = e2b.host.ending.cancelled() => {
            Err("the server stopped; build the template again".to_owned().into())
        }
    };
    let failed = ended.err().map(|BuildFailure { message, step }| BuildReason {
        step: step.unwrap_or_else(|| current.lock().clone()),
        message,
    });
    match &failed {
        Some(reason) => build.log(LogLevel::Error, &reason.step, &reason.message),
        None => build.log(LogLevel::Info, FINALIZE, "The template is ready"),
    }
    build.end(failed);
}

/// Reason that a build fails, with its step unless that is the one that runs.
struct BuildFailure {
    message: String,
    step: Option<String>,
}

impl From<String> for BuildFailure {
    fn from(message: String) -> Self {
        Self { message, step: None }
    }
}

impl From<Problem> for BuildFailure {
    fn from(problem: Problem) -> Self {
        problem.0.message.into()
    }
}

async fn perform(
    e2b: &E2b,
    build: &Arc<TemplateBuild>,
    base: BuildBase,
    request: BuildStart,
    current: &Mutex<String>,
) -> Result<(), BuildFailure> {
    let options = e2b.options.builds.clone().unwrap_or_default();
    let _seat = e2b
        .builds
        .seats
        .acquire()
        .await
        .map_err(|error| error.to_string())?;
    build.run();
    let _permit = e2b.host.cell(&build.owner).await.map_err(Problem::from)?;
    let template = match &base {
        BuildBase::Template(name) => Some(e2b.built(&build.owner, name).await?.ok_or_else(|| {
            format!("template '{name}' not found; build it first, or use an image with `from_image`")
        })?),
        BuildBase::Image | BuildBase::Node(_) => None,
    };
    let wish = SessionWish {
        id: e2b.host.mint("b"),
        idle: FOREVER,
        network: NetworkPolicy::Egress,
        limits: Some(Limits {
            collected_file_bytes: options.max_bytes,
            ..e2b.host.interpreter.limits().clone()
        }),
        archive: template.as_ref().map(|it| it.archive),
        ..SessionWish::default()
    };
    let held = e2b.host.open(&e2b.builds.sessions, &build.owner, wish, ()).await;
    let held = held.map_err(Problem::from)?;
    let running = BuildRun {
        e2b,
        build,
        session: &held.session,
        options: &options,
        current,
    };
    let limit = options.max_timeout;
    let ended = tokio::time::timeout(
        Duration::from_secs(limit),
        running.build(&base, template, &request),
    )
    .await;
    e2b.builds.sessions.end(&held).await;
    ended.unwrap_or_else(|_| {
        Err(format!(
            "the build took longer than {limit} s, which is the limit; make its steps faster, or let the \
             operator raise `dialects: {{e2b: {{builds: {{max_timeout: …}}}}}}`"
        )
        .into())
    })
}

impl BuildRun<'_> {
    async fn build(
        &self,
        base: &BuildBase,
        template: Option<BuiltTemplate>,
        request: &BuildStart,
    ) -> Result<(), BuildFailure> {
        self.log(LogLevel::Info, "Preparing the base");
        self.session.prepare().await.map_err(Problem::from)?;
        if let BuildBase::Node(version) = base {
            self.check_node(version).await?;
        }
        let (envs, workdir) = if let Some(template) = template {
            (template.record.envs, template.record.workdir)
        } else {
            let path = self.output(&["/bin/sh", "-c", "printf %s \"$PATH\""]).await?;
            (variables(path.trim()), HOME.to_owned())
        };
        let plan = BuildPlan::new(&request.steps, envs, workdir);
        let plan = plan.map_err(|BuildReason { message, step }| BuildFailure {
            message,
            step: Some(step),
        })?;
        for step in &plan.steps {
            step.name.clone_into(&mut self.current.lock());
            self.step(step).await?;
        }
        FINALIZE.clone_into(&mut self.current.lock());
        let record = BuildRecord {
            envs: plan.envs,
            workdir: plan.workdir,
            start: command(request.start_cmd.as_ref().map(|it| it.as_str())),
            ready: command(request.ready_cmd.as_ref().map(|it| it.as_str())),
            python: self.e2b.python(),
            created_ms: clock::unix_millis(),
            bytes: 0,
        };
        self.finalize(record).await
    }

    /// Packs the template, sees whether its start command works, and saves it.
    async fn finalize(&self, mut record: BuildRecord) -> Result<(), BuildFailure> {
        self.log(LogLevel::Info, "Packing the files");
        let packed = json!({"file": PACKED, "max_bytes": self.options.max_bytes});
        let _: IgnoredAny = self.operate("template.pack", &packed).await?;
        let opened = self.session.open_file(PACKED).await.map_err(Problem::from)?;
        record.bytes = opened.bytes;
        let about = ArtifactDescription {
            kind: Kind::File,
            media_type: "application/gzip".to_owned(),
            origin: None,
        };
        let store = self.e2b.host.interpreter.store();
        let sha256 = store.put_file(opened.content, &about).await;
        let sha256 = sha256.map_err(|error| Problem::internal("store a template", &error))?;
        let file = VolumeFile {
            mode: 0o600,
            bytes: record.bytes,
            sha256,
        };
        if let Some(start) = &record.start {
            self.log(LogLevel::Info, &format!("Starting `{}`", shortened(start)));
            let order = order(start, &record.envs, &record.workdir);
            let started = self.session.processes().start(order).await;
            started.map_err(Problem::from)?;
        }
        if let Some(ready) = &record.ready {
            self.log(LogLevel::Info, "Waiting until it is ready");
            await_ready(self.session, ready, &record.workdir, &record.envs).await?;
        }
        self.log(LogLevel::Info, &format!("Saving {} bytes", record.bytes));
        let (id, tags) = (self.build.id.clone(), self.build.tags.clone());
        let archive = Some((id.clone(), file));
        let now_ms = clock::unix_millis();
        let change = move |index: &mut super::index::TemplateIndex| index.add(&id, record, &tags, now_ms);
        let saved = self
            .e2b
            .change_template(&self.build.owner, &self.build.name, archive, change);
        Ok(saved.await?)
    }

    async fn step(&self, step: &PlannedStep) -> Result<(), BuildFailure> {
        self.log(LogLevel::Info, &step.text);
        if step.is_root && !matches!(step.action, StepAction::Note) {
            let note = "note: it runs as `user`, because sandboxes have no root";
            self.log(LogLevel::Warn, note);
        }
        match &step.action {
            StepAction::Run(command) => self.command(step, command).await,
            StepAction::Enter => {
                let _: IgnoredAny = self
                    .operate("template.enter", &json!({ "path": step.workdir }))
                    .await?;
                Ok(())
            }
            StepAction::Copy {
                hash,
                source,
                destination,
                mode,
            } => {
                let content = self.build.open(hash)?;
                let put = self.session.put_file(UPLOADED, content).await;
                put.map_err(Problem::from)?;
                let copied = json!({
                    "file": UPLOADED, "source": source, "destination": destination, "mode": mode,
                    "max_bytes": self.e2b.host.interpreter.limits().disk_bytes,
                });
                let _: IgnoredAny = self.operate("template.copy", &copied).await?;
                Ok(())
            }
            StepAction::Note => Ok(()),
        }
    }

    /// Runs a command, and logs what it writes line by line.
    async fn command(&self, step: &PlannedStep, command: &str) -> Result<(), BuildFailure> {
        let order = order(command, &step.envs, &step.workdir);
        let processes = self.session.processes();
        let started = processes.start(order).await.map_err(Problem::from)?;
        let mut reading = ProcessReader::new(self.session, &started.id, 0);
        let mut lines = [Vec::new(), Vec::new()];
        while let Some((stream, bytes)) = reading.next().await.map_err(Problem::from)? {
            let line = &mut lines[usize::from(stream == ProcessStream::Stderr)];
            for byte in bytes {
                if byte == b'\n' || line.len() >= MAX_LINE {
                    self.log(LogLevel::Info, String::from_utf8_lossy(line).trim_end());
                    line.clear();
                }
                if byte != b'\n' {
                    line.push(byte);
                }
            }
        }
        for line in lines.iter().filter(|it| !it.is_empty()) {
            self.log(LogLevel::Info, String::from_utf8_lossy(line).trim_end());
        }
        let ended = reading.end().await.map_err(Problem::from)?;
        if ended.state == ProcessState::Exited && ended.exit_code == Some(0) {
            return Ok(());
        }
        Err(self.describe(command, &ended).await.into())
    }

    /// Says how a command failed, and which limit that may be.
    async fn describe(&self, command: &str, ended: &ProcessReport) -> String {
        let mut parts = vec![format!("`{}` {}", shortened(command), ended.state_in_words())];
        let limits = self.e2b.host.interpreter.limits();
        let used = measure(self.session).await.ok();
        if used.is_some_and(|it| it.disk_used >= it.disk_total / 100 * 98) {
            parts.push(format!(
                "the disk of the sandbox is full, its limit `limits.disk` is {} bytes: remove files in the \
                 same step, or let the operator raise it",
                limits.disk_bytes
            ));
        }
        if ended.signal.as_deref() == Some("SIGKILL") {
            parts.push(format!(
                "it may have reached the limit `limits.memory` of {} bytes, for which files count too",
                limits.memory_bytes
            ));
        }
        let is_client = command
            .split_whitespace()
            .any(|word| CLIENTS.contains(&word) || word.ends_with("/pip"));
        if is_client && self.session.network() != NetworkPolicy::Egress {
            let hint = "this build reaches no hosts: the operator allows them with `limits: {max_network: \
                        egress}` and `egress: {allow: […]}`";
            parts.push(hint.to_owned());
        }
        parts.join("; ")
    }

    async fn check_node(&self, wanted: &str) -> Result<(), BuildFailure> {
        let found = self.output(&["node", "--version"]).await;
        let found = found.map(|it| it.trim().trim_start_matches('v').to_owned());
        match found {
            Ok(version) if fits(wanted, &version) => Ok(()),
            Ok(version) => Err(format!(
                "this server's image has Node.js {}, and the base is `node:{wanted}`; use `node:{}`",
                shortened(&version),
                shortened(version.split('.').next().unwrap_or_default())
            )
            .into()),
            Err(_) => Err(
                "this server's image has no Node.js; use a base with Python, or let the operator build an \
                 image that has it"
                    .to_owned()
                    .into(),
            ),
        }
    }

    /// Runs a program of ours, and returns what it wrote.
    async fn output(&self, argv: &[&str]) -> Result<String, BuildFailure> {
        let program = SandboxProgram {
            argv: argv.iter().map(|it| (*it).to_owned()).collect(),
            env: BTreeMap::new(),
            requirements: Vec::new(),
            timeout: Duration::from_mins(1),
            stream_bytes: MAX_LINE,
        };
        let ran = self.session.run_program(program).await.map_err(Problem::from)?;
        match ran.end {
            CommandEnd::Exited(0) => Ok(ran.stdout.text),
            _ => Err(format!("`{}` failed in the base", argv.join(" ")).into()),
        }
    }

    async fn operate<T: serde::de::DeserializeOwned>(
        &self,
        operation: &str,
        arguments: &serde_json::Value,
    ) -> Result<T, BuildFailure> {
        let limit = Duration::from_secs(self.options.max_timeout);
        let done = operate_within(self.session, "/", operation, arguments, limit).await;
        Ok(done.map_err(Problem::from)?)
    }

    fn log(&self, level: LogLevel, line: &str) {
        let step = self.current.lock().clone();
        self.build.log(level, &step, line);
    }
}

/// Describes a command of a step.
fn order(command: &str, envs: &BTreeMap<String, String>, workdir: &str) -> ProcessOrder {
    // Downloads are used once, and must not become part of the template.
    let own = [
        ("HOME", HOME),
        ("PIP_NO_CACHE_DIR", "1"),
        ("NPM_CONFIG_CACHE", "/tmp/.npm"),
    ];
    let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
    ProcessOrder {
        command: shell(command).to_vec(),
        env: own.into_iter().chain(envs.clone()).collect(),
        directory: Some(workdir.to_owned()),
        stdin: false,
        terminal: None,
    }
}

/// Returns a command, unless it is empty.
fn command(text: Option<&str>) -> Option<String> {
    text.map(str::to_owned).filter(|it| !it.trim().is_empty())
}
