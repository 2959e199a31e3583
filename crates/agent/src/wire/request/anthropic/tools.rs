//! The tools of a Messages request, and which of them may or must be chosen.

use std::collections::HashSet;

use super::super::fields::{Fields, RequestFields as _};
use super::super::tools;
use crate::wire::approval::ApprovalRule;
use crate::wire::error::ApiError;
use crate::wire::skill::SkillRequest;
use crate::wire::tool::{
    AllowedCaller, AllowedMode, AutoContainer, ChoiceMode, Container, Function, McpTool, Secrets, Tool,
    ToolChoice, ToolName,
};

/// Label of the toolset with commands and the text editor. A request of another API cannot name it.
pub const COMMANDS: &str = "anthropic/code_execution";

/// The name of the code execution tool.
const NAME: &str = "code_execution";
/// The caller of tools in code, as the oldest version has it that a client's type knows.
pub(super) const CALLER: &str = "code_execution_20260120";

const KINDS: &str = "`custom`, or `code_execution_20250522`, `code_execution_20250825`, \
                     `code_execution_20260120` or `code_execution_20260521`; this server has no other \
                     tools, so send a tool with an `input_schema`";

/// Versions of code execution, by what they offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// Python.
    Python,
    /// Commands and a text editor.
    Commands,
    /// Both.
    Repl,
}

impl Version {
    fn of(kind: &str) -> Option<Self> {
        Some(match kind {
            "code_execution_20250522" => Self::Python,
            "code_execution_20250825" => Self::Commands,
            "code_execution_20260120" | "code_execution_20260521" => Self::Repl,
            _ => return None,
        })
    }

    pub(super) const fn caller(self) -> &'static str {
        match self {
            Self::Commands => "code_execution_20250825",
            Self::Python | Self::Repl => CALLER,
        }
    }
}

/// The tools that a request offers.
#[derive(Debug)]
pub(super) struct RequestTools {
    pub(super) tools: Vec<Tool>,
    pub(super) version: Option<Version>,
}

impl RequestTools {
    pub(super) const fn runs_code(&self) -> bool {
        self.version.is_some()
    }

    /// Whether the model may write Python; otherwise only the container of that tool is used.
    fn has_python(&self) -> bool {
        let programmatic = |tool: &Tool| tool.functions().any(|(_, function)| function.is_programmatic());
        match self.version {
            None => false,
            Some(Version::Commands) => self.tools.iter().any(programmatic),
            Some(Version::Python | Version::Repl) => true,
        }
    }

    /// The tools that the model itself may call.
    fn direct(&self) -> Vec<ToolName> {
        let python = self.has_python();
        let names = self.tools.iter().filter_map(|tool| match tool {
            Tool::Function(function) if function.is_direct() => Some(function_name(&function.name)),
            Tool::CodeInterpreter { .. } if python => Some(ToolName::CodeInterpreter),
            Tool::Mcp(tool) => Some(commands(&tool.server_label)),
            _ => None,
        });
        names.collect()
    }
}

/// Parses `tools`.
pub(super) fn offered(
    fields: &Fields<'_>,
    container: Option<String>,
    skills: &[SkillRequest],
) -> Result<RequestTools, ApiError> {
    let mut version = None;
    let mut found = Vec::new();
    let mut names = HashSet::new();
    fields.each("tools", |tool| {
        let kind = tool.text("type")?.unwrap_or_else(|| "custom".to_owned());
        let name = if let Some(asked) = Version::of(&kind) {
            version = Some(asked);
            NAME.to_owned()
        } else if kind == "custom" {
            let function = function(tool)?;
            let name = function.name.clone();
            found.push(Tool::Function(function));
            name
        } else {
            return Err(tool.unknown("type", &kind, KINDS));
        };
        if !names.insert(name.clone()) {
            let message = format!("a tool named `{name}` already exists; names of tools must be unique");
            return Err(ApiError::invalid(tool.path("name"), "invalid_value", message));
        }
        Ok(())
    })?;
    callable(&found, version)?;
    tools::bounded(found.len())?;
    if version.is_some() {
        found.push(Tool::CodeInterpreter {
            container: container.map_or_else(|| automatic(skills.to_vec()), Container::Id),
        });
    } else if !skills.is_empty() {
        let message = "`container.skills` are for code, and this request cannot run any; add the tool \
                       `code_execution_20260120`";
        return Err(ApiError::invalid("container.skills", "invalid_value", message));
    }
    if matches!(version, Some(Version::Commands | Version::Repl)) {
        found.push(Tool::Mcp(McpTool {
            server_label: COMMANDS.to_owned(),
            server_url: None,
            server_description: None,
            allowed_tools: None,
            allowed_callers: None,
            defer_loading: false,
            require_approval: ApprovalRule::NEVER,
            headers: Secrets::default(),
        }));
    }
    tools::unlike_fixed_tools(&found)?;
    Ok(RequestTools {
        tools: found,
        version,
    })
}

/// Returns a new container.
fn automatic(skills: Vec<SkillRequest>) -> Container {
    Container::Auto(AutoContainer {
        skills,
        shared: true,
        ..AutoContainer::default()
    })
}

/// Checks that there is code that can call the tools which are for code.
fn callable(found: &[Tool], version: Option<Version>) -> Result<(), ApiError> {
    let by_code = |tool: &Tool| tool.functions().any(|(_, function)| function.is_programmatic());
    let Some(index) = found.iter().position(by_code) else {
        return Ok(());
    };
    let problem = match version {
        Some(Version::Commands | Version::Repl) => return Ok(()),
        Some(Version::Python) => "code of `code_execution_20250522` cannot call tools; use a later version",
        None => "no code can call it; add the tool `code_execution_20260120`",
    };
    let path = format!("tools.{}.allowed_callers", found[index].name());
    let message = format!("`{path}`: {problem}");
    Err(ApiError::invalid(path, "invalid_value", message))
}

fn function(fields: &Fields<'_>) -> Result<Function, ApiError> {
    let schema = fields.object("input_schema")?;
    Ok(Function {
        name: tools::name(fields, "name")?,
        description: fields.text("description")?,
        parameters: Some(schema.ok_or_else(|| fields.missing("input_schema"))?),
        strict: fields.flag("strict")?,
        output_schema: None,
        allowed_callers: callers(fields)?,
        defer_loading: false,
    })
}

fn callers(fields: &Fields<'_>) -> Result<Option<Vec<AllowedCaller>>, ApiError> {
    if fields.get("allowed_callers").is_none() {
        return Ok(None);
    }
    let known = "`direct` or a version of code execution, such as `code_execution_20260120`";
    let callers = fields.texts("allowed_callers")?;
    let caller = |name: &String| match name.as_str() {
        "direct" => Ok(AllowedCaller::Direct),
        other if Version::of(other).is_some() => Ok(AllowedCaller::Programmatic),
        other => Err(fields.unknown("allowed_callers", &shortened(other), known)),
    };
    let callers: Vec<_> = callers.iter().map(caller).collect::<Result<_, _>>()?;
    if callers.is_empty() {
        return Err(fields.unknown("allowed_callers", "[]", known));
    }
    Ok(Some(callers))
}

fn shortened(name: &str) -> String {
    name.chars()
        .take(40)
        .collect::<String>()
        .escape_debug()
        .to_string()
}

fn function_name(name: &str) -> ToolName {
    ToolName::Function {
        name: name.to_owned(),
        namespace: None,
    }
}

fn commands(label: &str) -> ToolName {
    ToolName::Mcp {
        server_label: label.to_owned(),
        name: None,
    }
}

/// Parses `tool_choice`; returns it, and whether several tools may be called at once.
pub(super) fn choice(fields: &Fields<'_>, offered: &RequestTools) -> Result<(ToolChoice, bool), ApiError> {
    let choice = fields.fields("tool_choice")?;
    // Python that is there for its container only is left out.
    let all = |mode| {
        if offered.version == Some(Version::Commands) && !offered.has_python() {
            return ToolChoice::Allowed {
                r#type: "allowed_tools".to_owned(),
                mode,
                tools: offered.direct(),
            };
        }
        ToolChoice::Mode(match mode {
            AllowedMode::Auto => ChoiceMode::Auto,
            AllowedMode::Required => ChoiceMode::Required,
        })
    };
    let Some(choice) = choice else {
        return Ok((all(AllowedMode::Auto), true));
    };
    let parallel = !choice.flag("disable_parallel_tool_use")?.unwrap_or(false);
    let chosen = match choice.required("type")?.as_str() {
        "auto" => all(AllowedMode::Auto),
        "any" if offered.direct().is_empty() => {
            let message = "`tool_choice` is `any`, but `tools` has no tool that the model may call";
            return Err(ApiError::invalid("tool_choice", "invalid_value", message));
        }
        "any" => all(AllowedMode::Required),
        "none" => ToolChoice::Mode(ChoiceMode::None),
        "tool" => named(&choice, offered)?,
        other => return Err(choice.unknown("type", other, "`auto`, `any`, `tool` or `none`")),
    };
    Ok((chosen, parallel))
}

fn named(choice: &Fields<'_>, offered: &RequestTools) -> Result<ToolChoice, ApiError> {
    let name = choice.required("name")?;
    if name == NAME && offered.runs_code() {
        return Ok(ToolChoice::Tool(if offered.has_python() {
            ToolName::CodeInterpreter
        } else {
            commands(COMMANDS)
        }));
    }
    tools::among(function_name(&name), &offered.tools, choice, "name").map(ToolChoice::Tool)
}
