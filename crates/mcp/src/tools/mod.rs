//! The tools: those of toolsets, and our own for sessions, files and results.

use std::future::ready;
use std::sync::Arc;

use cellblock_interpreter::Error;
use cellblock_interpreter::builder::Lack;
use cellblock_interpreter::limits::NetworkPolicy;
use cellblock_interpreter::toolset::{ToolDefinition, ToolsetKind};
use futures_util::future::BoxFuture;
use rmcp::model::Tool as Listed;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::answer::CallAnswer;
use crate::asking::ClientAsker;
use crate::conversations::McpConversation;
use crate::display::AnswerDisplay;
use crate::options::Options;
use crate::progress::CallProgress;
use crate::refusal::{self, Refusal};
use crate::sessions::{SessionTurn, Use};
use crate::shared::McpShared;
use cellblock_interpreter::hosting::Owner;
use cellblock_interpreter::hosting::Permit;

pub(crate) mod arguments;
mod cell;
mod checkpoints;
mod datasets;
mod derivation;
mod files;
mod forks;
mod json;
mod manage;
mod processes;
mod rehearsal;
mod schema;
mod toolset;
mod tries;
mod variables;

/// A tool that a server offers.
#[derive(Clone, Debug)]
pub(crate) struct OfferedTool {
    /// As the protocol lists it.
    pub(crate) listed: Listed,
    pub(crate) work: Work,
}

/// Work of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    /// It is served here, whatever the toolsets.
    Own(ToolCallback),
    /// It calls a toolset, in a session that has to be there if the tool resumes one.
    Toolset { kind: ToolsetKind, resumes: bool },
}

/// Serves a call.
pub(crate) type ToolCallback =
    for<'a> fn(&'a McpShared, &'a mut Call) -> BoxFuture<'a, Result<CallAnswer, Refusal>>;

/// A call, as a tool sees it.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) tool: String,
    pub(crate) owner: Owner,
    /// The conversation that it belongs to, if the client names it.
    pub(crate) conversation: Option<McpConversation>,
    pub(crate) display: AnswerDisplay,
    pub(crate) arguments: Value,
    pub(crate) progress: CallProgress,
    /// The way to ask the person behind the client.
    pub(crate) asker: ClientAsker,
    /// Canceled when the client gave the call up.
    pub(crate) stop: CancellationToken,
}

impl OfferedTool {
    /// Returns the tools that a server offers, in the order in which they are listed.
    pub(crate) fn offered(options: &Options) -> Vec<Self> {
        let kinds = options.toolsets.iter().copied();
        let (cells, others): (Vec<ToolsetKind>, Vec<_>) = kinds.partition(|kind| kind.runs_cells());
        let mut tools: Vec<_> = cells
            .into_iter()
            .flat_map(|kind| Self::of(kind, options))
            .collect();
        if !tools.is_empty() {
            tools.extend([
                Self::own(variables::list_definition(), |server, call| {
                    Box::pin(variables::list(server, call))
                }),
                Self::own(variables::show_definition(), |server, call| {
                    Box::pin(variables::show(server, call))
                }),
                Self::own(variables::origin_definition(), |server, call| {
                    Box::pin(variables::origin(server, call))
                }),
            ]);
        }
        tools.extend([
            Self::own(manage::create_definition(), |server, call| {
                Box::pin(manage::create(server, call))
            }),
            Self::own(manage::list_definition(), |server, call| {
                Box::pin(ready(manage::list(server, call)))
            }),
            Self::own(manage::reset_definition(), |server, call| {
                Box::pin(manage::reset(server, call))
            }),
            Self::own(manage::interrupt_definition(), |server, call| {
                Box::pin(ready(manage::interrupt(server, call)))
            }),
            Self::own(manage::close_definition(), |server, call| {
                Box::pin(manage::close(server, call))
            }),
            Self::own(files::upload_definition(), |server, call| {
                Box::pin(files::upload(server, call))
            }),
            Self::own(files::download_definition(), |server, call| {
                Box::pin(files::download(server, call))
            }),
            Self::own(files::list_definition(), |server, call| {
                Box::pin(files::list(server, call))
            }),
        ]);
        tools.extend(Self::of_states(options));
        // A derivation's code runs under contracts only.
        if options.toolsets.iter().any(|kind| !kind.on_results) {
            tools.extend([
                Self::own(processes::start_definition(), |server, call| {
                    Box::pin(processes::start(server, call))
                }),
                Self::own(processes::use_definition(), |server, call| {
                    Box::pin(processes::operate(server, call))
                }),
            ]);
        }
        if options.project.is_some() {
            tools.extend([
                Self::own(datasets::list_definition(), |server, call| {
                    Box::pin(datasets::list(server, call))
                }),
                Self::own(datasets::read_definition(), |server, call| {
                    Box::pin(datasets::read(server, call))
                }),
            ]);
            if options.cells().is_some() {
                tools.push(Self::own(datasets::publish_definition(), |server, call| {
                    Box::pin(datasets::publish(server, call))
                }));
            }
        }
        for kind in others {
            if kind.on_results {
                tools.push(Self::own(derivation::record_definition(), |server, call| {
                    Box::pin(derivation::record(server, call))
                }));
            }
            tools.extend(Self::of(kind, options));
        }
        if options.network == NetworkPolicy::Egress {
            for tool in tools.iter_mut().filter(|tool| tool.runs_code()) {
                tool.reaches_out();
            }
        }
        tools
    }

    /// Whether code or a program of the caller runs in it.
    fn runs_code(&self) -> bool {
        match self.work {
            Work::Toolset { kind, .. } => !kind.on_results,
            Work::Own(_) => matches!(&*self.listed.name, "start_process" | "try_python"),
        }
    }

    /// Says that it reaches systems outside of its sandbox.
    fn reaches_out(&mut self) {
        if let Some(hints) = &mut self.listed.annotations {
            hints.open_world_hint = Some(true);
        }
    }

    /// Tools that copy the state of a session.
    fn of_states(options: &Options) -> Vec<Self> {
        let mut tools = Vec::new();
        if !options.lacks.contains(&Lack::Forks) {
            tools.push(Self::own(forks::fork_definition(), |server, call| {
                Box::pin(forks::fork(server, call))
            }));
        }
        if !options.lacks.contains(&Lack::Checkpoints) {
            tools.extend([
                Self::own(checkpoints::keep_definition(), |server, call| {
                    Box::pin(checkpoints::keep(server, call))
                }),
                Self::own(checkpoints::back_definition(), |server, call| {
                    Box::pin(checkpoints::back(server, call))
                }),
            ]);
            // A derivation's code runs under contracts only.
            if options.cells().is_some() {
                tools.extend([
                    Self::own(tries::try_definition(options), |server, call| {
                        Box::pin(tries::run(server, call))
                    }),
                    Self::own(tries::decide_definition(), |server, call| {
                        Box::pin(tries::decide(server, call))
                    }),
                ]);
            }
        }
        tools
    }

    fn own(definition: ToolDefinition, own: ToolCallback) -> Self {
        Self {
            listed: listed(definition),
            work: Work::Own(own),
        }
    }

    fn of(kind: ToolsetKind, options: &Options) -> impl Iterator<Item = Self> {
        let definitions = (kind.definitions)(&options.terms("")).into_iter();
        definitions.map(move |definition| {
            let definition = if kind.runs_cells() {
                cell::in_session(kind, definition, options)
            } else {
                schema::in_session(definition)
            };
            Self {
                work: Work::Toolset {
                    kind,
                    resumes: definition.resumes,
                },
                listed: listed(definition),
            }
        })
    }
}

impl Work {
    /// Does it.
    pub(crate) async fn call(self, server: &McpShared, call: &mut Call) -> Result<CallAnswer, Refusal> {
        match self {
            Self::Own(own) => {
                call.asker = ClientAsker::Nobody;
                own(server, call).await
            }
            Self::Toolset { kind, resumes } => toolset::call(kind, resumes, server, call).await,
        }
    }
}

/// A tool as the protocol lists it.
fn listed(definition: ToolDefinition) -> Listed {
    let hints = definition.annotations.unwrap_or_default();
    let mut listed = Listed::new(definition.name, definition.description, definition.input_schema);
    listed.title = definition.title;
    let output = definition.output_schema.map(schema::or_refused);
    listed.output_schema = output.map(Arc::new);
    listed.annotations = serde_json::from_value(hints).ok();
    listed
}

impl Call {
    /// Reads the arguments.
    fn read<T: DeserializeOwned>(&mut self) -> Result<T, Refusal> {
        refusal::arguments(&self.tool, self.arguments.take())
    }

    /// Leave to run something, held while it runs.
    async fn permit(&self, server: &McpShared) -> Result<Permit, Refusal> {
        Ok(server.options.meter.cell(&self.owner).await?)
    }

    /// Waits until no other call's code runs in a session, so that this one, once it is cancelled,
    /// stops its own code and no other.
    async fn turn(&self, used: &Use) -> Result<SessionTurn, Refusal> {
        tokio::select! {
            turn = used.turn() => turn.map_err(|_| Error::Closed.into()),
            () = self.stop.cancelled() => Err(Refusal::cancelled()),
        }
    }

    /// The session of this handle.
    fn find(&self, server: &McpShared, handle: &str) -> Result<Use, Refusal> {
        server
            .sessions
            .find(&self.owner, self.conversation.as_ref(), handle)
    }

    /// The session of this handle, or a new one.
    async fn session(&self, server: &McpShared, handle: Option<&str>) -> Result<Use, Refusal> {
        if let Some(handle) = handle {
            return self.find(server, handle);
        }
        let interpreter = tokio::select! {
            interpreter = server.engine.get() => interpreter?,
            () = self.stop.cancelled() => return Err(Refusal::cancelled()),
        };
        let conversation = self.conversation.as_ref();
        server
            .sessions
            .create(interpreter, &self.owner, conversation)
            .await
    }
}
