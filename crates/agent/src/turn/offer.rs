//! The request to a model in each step, and the tools that it is offered.

use std::fmt::Write as _;

use cellblock_interpreter::derivation::prompt::{Prompt, lines};
use cellblock_interpreter::derivation::tools::render_chart;
use serde_json::json;

use super::Turn;
use super::builder::ResponseBuilder;
use super::plan::{Budget, Plan};
use super::progress::Progress;
use super::research::DerivationTerms;
use super::shell::FILES;
use super::summary::since_summary;
use super::{patch, program, shell};
use crate::provider::{INTERPRETER, ModelRequest};
use crate::tools::{MAX_TOOLS, Source};
use crate::wire::{
    AllowedMode, ChoiceMode, Function, Item, LocalShellAction, ResponseRequest, ShellEnvironment, Tool,
    ToolChoice, ToolName, searches_as_functions, without_programs,
};

/// Maximum number of file paths that a model is shown by name.
const NAMED: usize = 100;

/// The parts of a model's request that are the same in every step; only fetched data is added.
pub(super) struct RequestTemplate {
    interpreter: Function,
    /// The tool for commands in a container.
    shell: Function,
    /// The tool that draws charts without code, if code derives.
    chart: Option<Function>,
    /// Prompt before its instructions, if code derives.
    prompt: Option<Prompt>,
    /// Functions that code can call.
    catalog: Option<String>,
    /// Skills of the sandbox.
    skills: Option<String>,
}

impl Turn {
    /// Returns the parts that are the same in every step.
    pub(super) fn alike(&self) -> RequestTemplate {
        RequestTemplate {
            interpreter: self.interpreter(),
            shell: shell::hosted(&self.files(), self.runner.network(), self.max_timeout),
            chart: self.deriving().map(|_| render_chart().into()),
            prompt: self.deriving().map(DerivationTerms::prompt),
            catalog: (self.deriving().is_none() && !self.catalog.is_empty()).then(|| self.catalog.clone()),
            skills: self.runner.skills(),
        }
    }

    fn deriving(&self) -> Option<&DerivationTerms> {
        self.research
            .as_ref()
            .and_then(|research| research.deriving.as_ref())
    }

    /// Returns the interpreter as offered to a model.
    fn interpreter(&self) -> Function {
        let files = self.files();
        match self.deriving() {
            Some(deriving) => deriving.interpreter(&format!("{FILES}{files}")),
            None => plain(&files, self.runner.about(), self.runner.network()),
        }
    }

    /// Returns sentences about the files that are there, and about what was lost.
    fn files(&self) -> String {
        let lost = self.runner.lost();
        let lost = lost.map_or_else(String::new, |lost| format!(" {lost}"));
        named(&self.runner.files()) + &lost
    }

    /// Returns the initial progress with the turn's budget.
    pub(super) fn progress(&self) -> Progress {
        let budget = Budget {
            steps: self.steps,
            chart_boost: self.research.as_ref().map_or(0, |research| research.chart_boost),
            ..Budget::default()
        };
        let plan = self
            .research
            .as_ref()
            .map_or_else(Plan::default, |research| research.plan);
        Progress::new(plan, budget)
    }
}

impl ResponseBuilder<'_> {
    /// Builds the request to the model. A choice that forces a tool applies only to the first step:
    /// otherwise no turn would end.
    pub(super) fn asked(
        &self,
        request: &ResponseRequest,
        items: Vec<Item>,
        alike: &RequestTemplate,
        again: bool,
    ) -> ModelRequest {
        // First, because names of a program's calls are not the model's.
        let mut items = without_programs(since_summary(items));
        self.functions.rename(&mut items);
        let mut items = searches_as_functions(items, |tool| self.found(tool));
        let mut sections = Vec::new();
        if let Some(research) = self.research {
            research.evidence.fit(&mut items, research.tokens);
            let derivation = alike.prompt.as_ref();
            let derivation = derivation.map(|prompt| prompt.section(&lines(research.evidence.aliases())));
            let toolsets = research.sources.iter().filter_map(Source::prompt);
            sections.extend(derivation.into_iter().chain(toolsets));
        }
        sections.extend(alike.catalog.clone().filter(|_| self.code));
        sections.extend(request.tools.iter().filter_map(skills));
        sections.extend(alike.skills.clone());
        sections.extend(request.instructions.clone());
        let instructions = (!sections.is_empty()).then(|| sections.join("\n\n"));
        ModelRequest {
            model: request.model.clone(),
            instructions,
            items,
            tools: self.offered(request, alike),
            tool_choice: self.choice(&request.tool_choice, again),
            parallel_tool_calls: request.parallel_tool_calls,
            max_output_tokens: request.max_output_tokens,
            sampling: request.sampling.clone(),
            text: request.text.clone(),
            reasoning: request.reasoning.clone(),
            prompt_cache_key: request.prompt_cache_key.clone(),
            prompt_cache: request.prompt_cache.clone(),
        }
    }

    /// Returns the request's own tools and those of servers, without an interpreter that failed too
    /// often.
    fn offered(&self, request: &ResponseRequest, alike: &RequestTemplate) -> Vec<Function> {
        let own = request.tools.iter().flat_map(|tool| match tool {
            Tool::Function(_) | Tool::Custom(_) | Tool::Namespace(_) => self.functions.offered(tool),
            Tool::CodeInterpreter { .. } if self.progress.exhausted() => Vec::new(),
            Tool::CodeInterpreter { .. } => vec![alike.interpreter.clone()],
            Tool::Shell { environment, .. } => vec![match environment {
                ShellEnvironment::Hosted(_) => alike.shell.clone(),
                ShellEnvironment::Local { .. } => shell::local(),
            }],
            Tool::ApplyPatch { .. } => vec![patch::function()],
            Tool::LocalShell => vec![LocalShellAction::function()],
            Tool::ProgrammaticToolCalling => vec![self.programs()],
            // The search comes after the tools that are always offered.
            Tool::Mcp(_) | Tool::ToolSearch(_) => Vec::new(),
        });
        let chart = alike.chart.clone().filter(|_| self.draws());
        let mut offered: Vec<_> = own.chain(chart).chain(self.catalog.functions()).collect();
        offered.extend(self.search_function());
        // Last, so that what comes before them can stay in the provider's cache.
        offered.extend(self.loaded(MAX_TOOLS.saturating_sub(offered.len())));
        offered
    }

    /// Returns the tool for programs, without functions that the model has to find first.
    fn programs(&self) -> Function {
        let functions = self.of_code.iter();
        program::function(functions.filter(|known| !self.is_hidden(&known.card.name)))
    }

    /// Returns the choice with the model's names.
    fn choice(&self, choice: &ToolChoice, again: bool) -> ToolChoice {
        let allowed = |mode, tools| ToolChoice::Allowed {
            r#type: "allowed_tools".to_owned(),
            mode,
            tools,
        };
        match choice {
            ToolChoice::Mode(ChoiceMode::Required) | ToolChoice::Tool(_) if again => {
                ToolChoice::Mode(ChoiceMode::Auto)
            }
            ToolChoice::Tool(name @ ToolName::Mcp { .. }) => {
                let mut names = self.known_as(name);
                match names.len() {
                    // Its server offers no tools, so none can be forced.
                    0 => ToolChoice::Mode(ChoiceMode::Auto),
                    1 => ToolChoice::Tool(names.remove(0)),
                    _ => allowed(AllowedMode::Required, names),
                }
            }
            ToolChoice::Tool(
                ToolName::Function { name, namespace } | ToolName::Custom { name, namespace },
            ) => ToolChoice::Tool(self.functions.known_as(namespace.as_deref(), name)),
            ToolChoice::Mode(_)
            | ToolChoice::Tool(
                ToolName::CodeInterpreter
                | ToolName::Shell
                | ToolName::ApplyPatch
                | ToolName::ProgrammaticToolCalling,
            ) => choice.clone(),
            ToolChoice::Allowed { mode, tools, .. } => {
                let mode = if again { AllowedMode::Auto } else { *mode };
                let names = tools.iter().flat_map(|name| self.known_as(name)).collect();
                allowed(mode, self.with_search(names))
            }
        }
    }

    /// Returns a tool with its model name.
    fn known_as(&self, name: &ToolName) -> Vec<ToolName> {
        let (server_label, name) = match name {
            ToolName::Mcp { server_label, name } => (server_label, name),
            ToolName::Function { name, namespace } | ToolName::Custom { name, namespace } => {
                return vec![self.functions.known_as(namespace.as_deref(), name)];
            }
            ToolName::CodeInterpreter
            | ToolName::Shell
            | ToolName::ApplyPatch
            | ToolName::ProgrammaticToolCalling => return vec![name.clone()],
        };
        let names = self.catalog.names(server_label, name.as_deref());
        names
            .map(|name| ToolName::Function {
                name: name.to_owned(),
                namespace: None,
            })
            .collect()
    }
}

/// Returns the interpreter for turns without fetching.
fn plain(files: &str, about: Option<&str>, network: Option<&str>) -> Function {
    let code = match about {
        None => "Python code. The value of its last expression is shown.",
        Some(_) => "A Python program. What it prints is shown.",
    };
    let parameters = json!({
        "type": "object",
        "properties": {
            "code": {"type": "string", "description": code},
            "requirements": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Packages that are needed in addition to the installed ones, \
                                such as `rapidfuzz`.",
            },
        },
        "required": ["code"],
        "additionalProperties": false,
    });
    let description = match about {
        None => {
            let (without, note) = network.map_or((" without a network", String::new()), |note| {
                ("", format!("{note} "))
            });
            format!(
                "Runs Python in a sandbox{without} and shows what it prints, its last value, tables and \
                 charts. Variables and files are kept from call to call. {note}{FILES}"
            )
        }
        Some(about) => format!(
            "Runs Python in a sandbox and shows what it prints, and pictures that it \
             writes. {about}"
        ),
    };
    Function {
        name: INTERPRETER.to_owned(),
        description: Some(description + files),
        parameters: parameters.as_object().cloned(),
        strict: None,
        output_schema: None,
        allowed_callers: None,
        defer_loading: false,
    }
}

/// Returns the section about the skills that a tool names.
fn skills(tool: &Tool) -> Option<String> {
    match tool {
        Tool::Shell {
            environment: ShellEnvironment::Local { skills },
            ..
        } => shell::skills(skills),
        _ => None,
    }
}

/// Returns a sentence that names files.
fn named(files: &[String]) -> String {
    let mut sentence = String::new();
    if !files.is_empty() {
        let named: Vec<_> = files.iter().take(NAMED).map(|path| format!("`{path}`")).collect();
        let more = files.len() - named.len();
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let named = named.join(", ");
        // Writing to a string cannot fail.
        let _ = write!(sentence, " Files that are there: {named}{more}.");
    }
    sentence
}
