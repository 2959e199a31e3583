//! The tools: what they are called, what they take and answer, and which of them a server offers.

use std::borrow::Cow;
use std::collections::BTreeSet;

use cellblock_interpreter::Error;
use rmcp::model::{Tool as Listed, ToolAnnotations};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::answer::Answer;
use crate::meter::Permit;
use crate::options::{Options, Toolset};
use crate::owner::Owner;
use crate::progress::Progress;
use crate::refusal::{self, Refusal};
use crate::server::Shared;
use crate::sessions::{SessionTurn, Use};

mod derivation;
mod files;
mod manage;
mod run_python;
mod schema;
mod workbench;

/// A tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    RunPython,
    CreateSession,
    ListSessions,
    ResetSession,
    InterruptSession,
    CloseSession,
    UploadFile,
    DownloadFile,
    ListFiles,
    SandboxExec,
    SandboxWriteFile,
    SandboxEditFile,
    RecordResult,
    CodeInterpreter,
    RenderChart,
}

/// A call, as a tool sees it.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) owner: Owner,
    pub(crate) arguments: Value,
    pub(crate) progress: Progress,
    /// Told when the client gave the call up.
    pub(crate) stop: CancellationToken,
}

/// What a tool is, for those who list it.
struct Definition {
    title: &'static str,
    description: Cow<'static, str>,
    input: Value,
    output: Value,
    effect: Effect,
}

/// What a call changes.
#[derive(Clone, Copy)]
enum Effect {
    /// Nothing.
    Reads,
    /// It adds something; a second call adds once more.
    Adds,
    /// It may change or remove what is there; a second call may do so again.
    Changes,
    /// It changes or removes what is there; a second equal call changes nothing more.
    Settles,
}

impl Tool {
    /// What a server with these toolsets offers, in the order in which it is listed.
    pub(crate) fn offered(toolsets: &BTreeSet<Toolset>) -> Vec<Self> {
        let has = |toolset| toolsets.contains(&toolset);
        let mut tools = Vec::new();
        if has(Toolset::Interpreter) {
            tools.push(Self::RunPython);
        }
        tools.extend([
            Self::CreateSession,
            Self::ListSessions,
            Self::ResetSession,
            Self::InterruptSession,
            Self::CloseSession,
            Self::UploadFile,
            Self::DownloadFile,
            Self::ListFiles,
        ]);
        if has(Toolset::Workbench) {
            tools.extend([Self::SandboxExec, Self::SandboxWriteFile, Self::SandboxEditFile]);
        }
        if has(Toolset::Derivation) {
            tools.extend([Self::RecordResult, Self::CodeInterpreter, Self::RenderChart]);
        }
        tools
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::RunPython => "run_python",
            Self::CreateSession => "create_session",
            Self::ListSessions => "list_sessions",
            Self::ResetSession => "reset_session",
            Self::InterruptSession => "interrupt_session",
            Self::CloseSession => "close_session",
            Self::UploadFile => "upload_file",
            Self::DownloadFile => "download_file",
            Self::ListFiles => "list_files",
            Self::SandboxExec => "sandbox_exec",
            Self::SandboxWriteFile => "sandbox_write_file",
            Self::SandboxEditFile => "sandbox_edit_file",
            Self::RecordResult => "record_result",
            Self::CodeInterpreter => "code_interpreter",
            Self::RenderChart => "render_chart",
        }
    }

    /// As the protocol lists it.
    pub(crate) fn listed(self, options: &Options) -> Listed {
        let definition = self.definition(options);
        let (reads, destroys, idempotent) = match definition.effect {
            Effect::Reads => (true, false, true),
            Effect::Adds => (false, false, false),
            Effect::Changes => (false, true, false),
            Effect::Settles => (false, true, true),
        };
        // Nothing leaves a sandbox, and nothing outside is reached.
        let annotations = ToolAnnotations::with_title(definition.title)
            .read_only(reads)
            .destructive(destroys)
            .idempotent(idempotent)
            .open_world(false);
        Listed::new(
            self.name(),
            definition.description,
            schema::object(definition.input),
        )
        .with_title(definition.title)
        .with_raw_output_schema(schema::object(definition.output))
        .with_annotations(annotations)
    }

    fn definition(self, options: &Options) -> Definition {
        match self {
            Self::RunPython => run_python::definition(options),
            Self::CreateSession => manage::create_definition(),
            Self::ListSessions => manage::list_definition(),
            Self::ResetSession => manage::reset_definition(),
            Self::InterruptSession => manage::interrupt_definition(),
            Self::CloseSession => manage::close_definition(),
            Self::UploadFile => files::upload_definition(),
            Self::DownloadFile => files::download_definition(),
            Self::ListFiles => files::list_definition(),
            Self::SandboxExec | Self::SandboxWriteFile | Self::SandboxEditFile => {
                workbench::definition(self, options)
            }
            Self::RecordResult => derivation::record_definition(),
            Self::CodeInterpreter => derivation::code_definition(),
            Self::RenderChart => derivation::chart_definition(),
        }
    }

    /// Calls it.
    pub(crate) async fn call(self, server: &Shared, call: &mut Call) -> Result<Answer, Refusal> {
        match self {
            Self::RunPython => run_python::call(server, call).await,
            Self::CreateSession => manage::create(server, call).await,
            Self::ListSessions => manage::list(server, call),
            Self::ResetSession => manage::reset(server, call).await,
            Self::InterruptSession => manage::interrupt(server, call),
            Self::CloseSession => manage::close(server, call).await,
            Self::UploadFile => files::upload(server, call).await,
            Self::DownloadFile => files::download(server, call).await,
            Self::ListFiles => files::list(server, call).await,
            Self::SandboxExec | Self::SandboxWriteFile | Self::SandboxEditFile => {
                workbench::call(self, server, call).await
            }
            Self::RecordResult => derivation::record(server, call).await,
            Self::CodeInterpreter => derivation::code(server, call).await,
            Self::RenderChart => derivation::chart(server, call).await,
        }
    }

    /// Reads the arguments of a call.
    fn arguments<T: DeserializeOwned>(self, call: &mut Call) -> Result<T, Refusal> {
        refusal::arguments(self.name(), call.arguments.take())
    }
}

impl Call {
    /// Leave to run something, held while it runs.
    async fn permit(&self, server: &Shared) -> Result<Permit, Refusal> {
        Ok(server.options.meter.cell(&self.owner).await?)
    }

    /// Waits until no other call's code runs in a session, so that this one, once it is cancelled, stops its own code and no other.
    async fn turn(&self, used: &Use) -> Result<SessionTurn, Refusal> {
        tokio::select! {
            turn = used.turn() => turn.map_err(|_| Error::Closed.into()),
            () = self.stop.cancelled() => Err(Refusal::cancelled()),
        }
    }

    /// The session of this handle, or a new one.
    async fn session(&self, server: &Shared, handle: Option<&str>) -> Result<Use, Refusal> {
        if let Some(handle) = handle {
            return server.sessions.find(&self.owner, handle);
        }
        let interpreter = tokio::select! {
            interpreter = server.engine.get() => interpreter?,
            () = self.stop.cancelled() => return Err(Refusal::cancelled()),
        };
        server.sessions.create(interpreter, &self.owner).await
    }
}
