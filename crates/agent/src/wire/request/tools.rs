//! The tools of a request, and which of them may or must be chosen.

use serde_json::Value;

use super::fields::{Fields, RequestFields as _};
use super::network::NetworkAllowlist;
use crate::wire::error::ApiError;
use crate::wire::search::MAX_DEFERRED;
use crate::wire::tool::{
    AllowedCaller, AllowedMode, AutoContainer, ChoiceMode, Container, Function, Tool, ToolChoice, ToolName,
};

/// Maximum number of tools in a request.
const MAX_TOOLS: usize = 128;

const KINDS: &str = "`function`, `namespace`, `tool_search`, `code_interpreter`, `shell`, `apply_patch`, \
                     `custom`, `programmatic_tool_calling` or `mcp`; this server has no other tools, so leave \
                     it out";

/// Parses `tools`, each with `read`.
pub(super) fn tools(
    fields: &Fields<'_>,
    read: impl Fn(&Fields<'_>) -> Result<Tool, ApiError>,
) -> Result<Vec<Tool>, ApiError> {
    let count = fields.list("tools")?.len();
    if count > MAX_TOOLS + MAX_DEFERRED {
        bounded(count)?;
    }
    let mut tools: Vec<Tool> = Vec::new();
    fields.each("tools", |fields| {
        let tool = read(fields)?;
        let same = |other: &Tool| {
            let kinds = [std::mem::discriminant(other), std::mem::discriminant(&tool)];
            (kinds[0] == kinds[1] || is_callable(other) && is_callable(&tool)) && other.name() == tool.name()
        };
        if tools.iter().any(same) {
            let message = format!("a tool named `{}` already exists", tool.name());
            return Err(ApiError::invalid(fields.own_path(), "invalid_value", message));
        }
        tools.push(tool);
        Ok(())
    })?;
    unlike_fixed_tools(&tools)?;
    super::shell::one_container(&tools)?;
    // Models know no namespaces; their functions are offered individually.
    let deferred = super::search::deferred(&tools);
    super::search::bounded("tools", deferred)?;
    bounded(tools.iter().map(Tool::offered_as).sum::<usize>() - deferred)?;
    Ok(tools)
}

/// Returns whether the model calls it by the name that the client gives it.
const fn is_callable(tool: &Tool) -> bool {
    matches!(tool, Tool::Function(_) | Tool::Custom(_))
}

/// Rejects a function with the name of a hosted tool, such as the interpreter: models know tools by name.
pub(super) fn unlike_fixed_tools(tools: &[Tool]) -> Result<(), ApiError> {
    let fixed: Vec<_> = tools.iter().filter_map(Tool::fixed_name).collect();
    let same = |tool: &Tool| is_callable(tool) && fixed.contains(&tool.name());
    let Some(index) = tools.iter().position(same) else {
        return Ok(());
    };
    let name = tools[index].name();
    let message = format!(
        "`{name}` is what models call the tool of that type, which is offered as well; give the function \
         another name"
    );
    Err(ApiError::invalid(
        format!("tools[{index}].name"),
        "invalid_value",
        message,
    ))
}

pub(super) fn bounded(count: usize) -> Result<(), ApiError> {
    if count <= MAX_TOOLS {
        return Ok(());
    }
    let message = format!(
        "`tools` has {count} entries, those in namespaces counted one by one; at most {MAX_TOOLS} are allowed"
    );
    Err(ApiError::invalid("tools", "array_above_max_length", message))
}

/// Parses the name of a function or a schema.
pub(super) fn name(fields: &Fields<'_>, key: &str) -> Result<String, ApiError> {
    let name = fields.required(key)?;
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if (1..=64).contains(&name.len()) && name.bytes().all(legal) {
        return Ok(name);
    }
    Err(fields.invalid(key, "invalid_value", "must have 1 to 64 of `a-z A-Z 0-9 _ -`"))
}

/// Parses the namespace of a function.
pub(super) fn namespace(fields: &Fields<'_>) -> Result<Option<String>, ApiError> {
    fields
        .get("namespace")
        .map(|_| name(fields, "namespace"))
        .transpose()
}

/// Parses `{"type": "function"}`.
pub(super) fn function(fields: &Fields<'_>) -> Result<Function, ApiError> {
    super::unsupported::asynchronous(fields)?;
    Ok(Function {
        name: name(fields, "name")?,
        description: fields.text("description")?,
        parameters: fields.object("parameters")?,
        strict: fields.flag("strict")?,
        output_schema: fields.object("output_schema")?,
        allowed_callers: callers(fields)?,
        defer_loading: fields.flag("defer_loading")?.unwrap_or(false),
    })
}

/// Parses who may call a tool.
pub(super) fn callers(fields: &Fields<'_>) -> Result<Option<Vec<AllowedCaller>>, ApiError> {
    if fields.get("allowed_callers").is_none() {
        return Ok(None);
    }
    let invalid = |reason: &str| fields.invalid("allowed_callers", "invalid_value", reason);
    let callers = fields.texts("allowed_callers")?;
    if callers.is_empty() {
        return Err(invalid("must list `direct`, `programmatic` or both"));
    }
    let caller = |name: &String| match name.as_str() {
        "direct" => Ok(AllowedCaller::Direct),
        "programmatic" => Ok(AllowedCaller::Programmatic),
        other => Err(invalid(&format!(
            "has `{}`; use `direct` and `programmatic`",
            other.chars().take(40).collect::<String>().escape_debug()
        ))),
    };
    callers.iter().map(caller).collect::<Result<_, _>>().map(Some)
}

/// Parses a tool of the Responses API.
pub(super) fn tool(fields: &Fields<'_>) -> Result<Tool, ApiError> {
    match fields.required("type")?.as_str() {
        "function" => function(fields).map(Tool::Function),
        "namespace" => super::namespace::tool(fields).map(Tool::Namespace),
        "code_interpreter" => Ok(Tool::CodeInterpreter {
            container: container(fields)?,
        }),
        "shell" => super::shell::tool(fields),
        "local_shell" => Ok(Tool::LocalShell),
        "programmatic_tool_calling" => Ok(Tool::ProgrammaticToolCalling),
        "custom" => super::custom::tool(fields).map(Tool::Custom),
        "apply_patch" => Ok(Tool::ApplyPatch {
            allowed_callers: super::shell::direct(fields)?,
        }),
        "mcp" => super::mcp::tool(fields).map(Tool::Mcp),
        "tool_search" => super::search::tool(fields).map(Tool::ToolSearch),
        other => Err(fields.unknown("type", other, KINDS)),
    }
}

/// Parses the container of an interpreter.
pub(super) fn container(tool: &Fields<'_>) -> Result<Container, ApiError> {
    let fields = match tool.get("container") {
        None => return Err(tool.missing("container")),
        Some(Value::String(id)) => return Ok(Container::Id(id.clone())),
        Some(value @ Value::Object(_)) => Fields::of(value, tool.path("container"))?,
        Some(_) => return Err(tool.wrong("container", "a container's id or an object")),
    };
    let kind = fields.required("type")?;
    if kind != "auto" {
        return Err(fields.unknown("type", &kind, "`auto`"));
    }
    new_container(&fields).map(Container::Auto)
}

/// Parses the files and the memory limit of a new container.
pub(super) fn new_container(fields: &Fields<'_>) -> Result<AutoContainer, ApiError> {
    let memory_limit = fields.text("memory_limit")?;
    if let Some(limit) = &memory_limit
        && !["1g", "4g", "16g", "64g"].contains(&limit.as_str())
    {
        return Err(fields.unknown("memory_limit", limit, "`1g`, `4g`, `16g` or `64g`"));
    }
    let network_policy = NetworkAllowlist::of(fields)?;
    Ok(AutoContainer {
        file_ids: fields.texts("file_ids")?,
        memory_limit,
        no_network: network_policy.is_none() && fields.get("network_policy").is_some(),
        network_policy,
        ..AutoContainer::default()
    })
}

/// Parses `tool_choice`, an object with `chosen`; the tools that it names must be offered.
pub(super) fn choice(
    fields: &Fields<'_>,
    tools: &[Tool],
    chosen: impl Fn(&Fields<'_>, &[Tool]) -> Result<ToolChoice, ApiError>,
) -> Result<ToolChoice, ApiError> {
    let known = "`none`, `auto`, `required`, or an object";
    let mode = match fields.get("tool_choice") {
        None => return Ok(ToolChoice::Mode(ChoiceMode::Auto)),
        Some(Value::String(mode)) => mode.as_str(),
        Some(value) => return chosen(&Fields::of(value, "tool_choice")?, tools),
    };
    match mode {
        "none" => Ok(ToolChoice::Mode(ChoiceMode::None)),
        "auto" => Ok(ToolChoice::Mode(ChoiceMode::Auto)),
        "required" if tools.is_empty() => {
            let message = "`tool_choice` is `required`, but `tools` is empty";
            Err(ApiError::invalid("tool_choice", "invalid_value", message))
        }
        "required" => Ok(ToolChoice::Mode(ChoiceMode::Required)),
        other => Err(fields.unknown("tool_choice", other, known)),
    }
}

/// Parses a choice of the Responses API.
pub(super) fn chosen(fields: &Fields<'_>, tools: &[Tool]) -> Result<ToolChoice, ApiError> {
    if fields.required("type")? != "allowed_tools" {
        return Ok(ToolChoice::Tool(offered(fields, tools)?));
    }
    allowed(fields, |name| offered(name, tools))
}

/// Parses `mode` and `tools` of a choice among several, each with `name`.
pub(super) fn allowed(
    fields: &Fields<'_>,
    name: impl Fn(&Fields<'_>) -> Result<ToolName, ApiError>,
) -> Result<ToolChoice, ApiError> {
    let mode = match fields.text("mode")?.as_deref() {
        None | Some("auto") => AllowedMode::Auto,
        Some("required") => AllowedMode::Required,
        Some(other) => return Err(fields.unknown("mode", other, "`auto` or `required`")),
    };
    if fields.list("tools")?.is_empty() {
        return Err(fields.missing("tools"));
    }
    Ok(ToolChoice::Allowed {
        r#type: "allowed_tools".to_owned(),
        mode,
        tools: fields.each("tools", name)?,
    })
}

fn offered(fields: &Fields<'_>, tools: &[Tool]) -> Result<ToolName, ApiError> {
    let (key, name) = match fields.required("type")?.as_str() {
        "function" => ("name", super::namespace::chosen(fields, tools)?),
        "code_interpreter" => ("type", ToolName::CodeInterpreter),
        "custom" => ("name", super::custom::chosen(fields, tools)?),
        "shell" => ("type", ToolName::Shell),
        "apply_patch" => ("type", ToolName::ApplyPatch),
        "programmatic_tool_calling" => ("type", ToolName::ProgrammaticToolCalling),
        "mcp" => (
            "server_label",
            ToolName::Mcp {
                server_label: fields.required("server_label")?,
                name: fields.text("name")?,
            },
        ),
        "tool_search" => {
            let reason = "is `tool_search`, which cannot be forced: the model searches when it needs a tool";
            return Err(fields.invalid("type", "invalid_value", reason));
        }
        other => {
            let known = "`function`, `code_interpreter`, `shell`, `apply_patch`, `custom`, \
                         `programmatic_tool_calling`, `mcp` or `allowed_tools`";
            return Err(fields.unknown("type", other, known));
        }
    };
    among(name, tools, fields, key)
}

/// Parses a tool's name; the tool must be offered.
pub(super) fn among(
    name: ToolName,
    tools: &[Tool],
    fields: &Fields<'_>,
    key: &str,
) -> Result<ToolName, ApiError> {
    if tools.iter().any(|tool| name.names(tool)) {
        return Ok(name);
    }
    let reason = "names a tool that is not in `tools`, or that only code can call";
    Err(fields.invalid(key, "invalid_value", reason))
}
