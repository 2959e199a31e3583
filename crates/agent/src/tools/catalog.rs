//! The tools of servers, under names that a model can call.

use std::collections::HashSet;
use std::fmt::Write as _;

use cellblock_interpreter::toolset::ToolDefinition;
use futures_util::future::join_all;

use super::source::{Callee, Source};
use crate::wire::{Function, ListedTool, MAX_DEFERRED};

/// Maximum number of tools offered to a model. Providers reject more, and fewer already confuse
/// models.
pub(crate) const MAX_TOOLS: usize = 128;
/// Maximum length of a name in characters, as in providers' APIs.
const MAX_NAME: usize = 64;

/// The tools that one turn may call.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    tools: Vec<ServerTool>,
}

/// A tool with its server.
#[derive(Clone, Debug)]
pub(crate) struct ServerTool {
    /// The model's name for it.
    pub(crate) name: String,
    /// Label of its server.
    pub(crate) label: String,
    pub(crate) callee: Callee,
    pub(crate) tool: ToolDefinition,
    /// Whether its calls need approval.
    pub(crate) asks: bool,
    /// Whether the request names its server by an address.
    requested: bool,
    /// The client's description of the server.
    pub(crate) about: Option<String>,
    /// Whether the model may call it only after it was loaded.
    pub(crate) deferred: bool,
}

/// A server's response to the request for its tools.
pub(crate) struct ServerOffer {
    pub(crate) label: String,
    /// The tools that it offers to this request, or the reason why there are none.
    pub(crate) offers: Result<Vec<ListedTool>, String>,
}

impl Catalog {
    /// Requests the tools of all servers at once; each applies its own timeout. Names in `taken`
    /// are those of the request's own tools.
    pub(crate) async fn ask(sources: &[Source], taken: &[&str]) -> (Self, Vec<ServerOffer>) {
        let asked = sources.iter().map(|source| source.callee.tools());
        let offered = join_all(asked).await;
        let mut catalog = Self::default();
        let mut names: HashSet<String> = taken.iter().map(|&name| name.to_owned()).collect();
        let mut answers = Vec::new();
        // Numbers of tools that are offered, and that are deferred.
        let mut counts = [0, 0];
        for (source, offered) in sources.iter().zip(offered) {
            let offers = match offered {
                // The operator's log contains the cause.
                Err(error) => Err(error.to_string()),
                Ok(offered) => {
                    let allowed = offered.tools.iter().filter(|tool| source.allows(tool));
                    let mut listed = Vec::new();
                    let limit = [MAX_TOOLS, MAX_DEFERRED][usize::from(source.deferred)];
                    for tool in allowed {
                        let count = &mut counts[usize::from(source.deferred)];
                        if *count == limit {
                            tracing::warn!(
                                server = source.label,
                                limit,
                                "the model cannot be offered more tools"
                            );
                            break;
                        }
                        *count += 1;
                        catalog.bind(source, tool, &mut names);
                        listed.push(shown(tool));
                    }
                    Ok(listed)
                }
            };
            answers.push(ServerOffer {
                label: source.label.clone(),
                offers,
            });
        }
        (catalog, answers)
    }

    fn bind(&mut self, source: &Source, tool: &ToolDefinition, names: &mut HashSet<String>) {
        let mut name = model_name(&tool.name);
        if names.contains(&name) {
            name = free(qualified(&source.label, &tool.name), names);
        }
        names.insert(name.clone());
        self.tools.push(ServerTool {
            name,
            label: source.label.clone(),
            callee: source.callee.clone(),
            tool: tool.clone(),
            asks: source.asks(tool),
            requested: source.requested,
            about: source.description.clone(),
            deferred: source.deferred,
        });
    }

    /// Returns the tool with this model name.
    pub(crate) fn find(&self, name: &str) -> Option<&ServerTool> {
        self.tools.iter().find(|bound| bound.name == name)
    }

    /// Returns the tool that a server has under this name.
    pub(crate) fn of_server(&self, label: &str, tool: &str) -> Option<&ServerTool> {
        self.tools
            .iter()
            .find(|bound| bound.label == label && bound.tool.name == tool)
    }

    /// Returns the model names of a server's tools, or of one of them.
    pub(crate) fn names<'a>(
        &'a self,
        label: &'a str,
        tool: Option<&'a str>,
    ) -> impl Iterator<Item = &'a str> {
        let fits = move |bound: &&ServerTool| {
            bound.label == label && tool.is_none_or(|tool| tool == bound.tool.name)
        };
        self.tools.iter().filter(fits).map(|bound| bound.name.as_str())
    }

    /// Returns the tools as functions for a model that need not load them.
    pub(crate) fn functions(&self) -> impl Iterator<Item = Function> {
        let offered = self.tools.iter().filter(|bound| !bound.deferred);
        offered.map(ServerTool::function)
    }

    /// Returns the tools that the model may call only after they were loaded.
    pub(crate) fn deferred(&self) -> impl Iterator<Item = &ServerTool> {
        self.tools.iter().filter(|bound| bound.deferred)
    }
}

impl ServerTool {
    /// Returns it as a function for a model.
    pub(crate) fn function(&self) -> Function {
        let mut tool = self.tool.clone();
        tool.name.clone_from(&self.name);
        if let Some(about) = &self.about {
            let before = if tool.description.is_empty() { "" } else { "\n\n" };
            // Writing to a string cannot fail.
            let _ = write!(tool.description, "{before}(`{}`: {about})", self.label);
        }
        tool.into()
    }

    /// Returns its server's label if the operator configured the server.
    pub(crate) fn configured(&self) -> Option<&str> {
        (!self.requested).then_some(&*self.label)
    }
}

fn shown(tool: &ToolDefinition) -> ListedTool {
    ListedTool {
        name: tool.name.clone(),
        description: Some(tool.description.clone()).filter(|it| !it.is_empty()),
        input_schema: tool.input_schema.clone().into(),
        annotations: tool.annotations.clone().filter(serde_json::Value::is_object),
    }
}

/// Returns the name of a tool, prefixed with that of its server.
pub(crate) fn qualified(before: &str, name: &str) -> String {
    model_name(&format!("{before}__{name}"))
}

/// Returns a free name: this one, or else one with a number.
pub(crate) fn free(name: String, taken: &HashSet<String>) -> String {
    let numbered = (2..).map(|number: usize| {
        let number = format!("_{number}");
        let room = MAX_NAME - number.len();
        format!("{}{number}", &name[..name.len().min(room)])
    });
    let mut candidates = std::iter::once(name.clone()).chain(numbered);
    // There are more numbers than names.
    candidates.find(|name| !taken.contains(name)).unwrap_or(name)
}

/// Converts a name to one that providers accept: 1 to 64 of `a-z A-Z 0-9 _ -`.
pub(crate) fn model_name(name: &str) -> String {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name: String = name
        .chars()
        .map(|c| if legal(c) { c } else { '_' })
        .take(MAX_NAME)
        .collect();
    if name.is_empty() { "tool".to_owned() } else { name }
}
