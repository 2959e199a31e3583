//! Functions of the client in namespaces, and choices of them.

use super::fields::{Fields, RequestFields as _};
use super::tools::{function, name, namespace};
use crate::wire::error::ApiError;
use crate::wire::tool::{Member, Namespace, Tool, ToolName};

/// Parses `{"type": "namespace"}`.
pub(super) fn tool(fields: &Fields<'_>) -> Result<Namespace, ApiError> {
    let name = name(fields, "name")?;
    let description = fields.required("description")?;
    let mut tools: Vec<Member> = Vec::new();
    fields.each("tools", |fields| {
        let member = member(fields)?;
        if tools.iter().any(|other| other.name() == member.name()) {
            let message = format!("a function named `{}` is in `{name}` already", member.name());
            return Err(ApiError::invalid(fields.own_path(), "invalid_value", message));
        }
        tools.push(member);
        Ok(())
    })?;
    if tools.is_empty() {
        let reason = "is empty: a namespace has at least one function";
        return Err(fields.invalid("tools", "invalid_value", reason));
    }
    Ok(Namespace {
        name,
        description,
        tools,
    })
}

fn member(fields: &Fields<'_>) -> Result<Member, ApiError> {
    match fields.required("type")?.as_str() {
        "function" => function(fields).map(Member::Function),
        "custom" => super::custom::tool(fields).map(Member::Custom),
        other => Err(fields.unknown(
            "type",
            other,
            "`function` or `custom`: a namespace cannot contain other tools here",
        )),
    }
}

/// Parses which function a choice names.
pub(super) fn chosen(fields: &Fields<'_>, tools: &[Tool]) -> Result<ToolName, ApiError> {
    let functions = tools.iter().flat_map(Tool::functions);
    let functions = functions.map(|(within, function)| (within, function.name.as_str()));
    let (name, namespace) = chosen_among(fields, "function", functions)?;
    Ok(ToolName::Function { name, namespace })
}

/// Parses which of the tools of a kind a choice names: the tool's name, and its namespace. OpenAI's
/// SDKs have no `namespace` there, so it may be omitted if only one tool has the name.
pub(super) fn chosen_among<'a>(
    fields: &Fields<'_>,
    kind: &str,
    tools: impl Iterator<Item = (Option<&'a Namespace>, &'a str)>,
) -> Result<(String, Option<String>), ApiError> {
    let name = name(fields, "name")?;
    if let Some(namespace) = namespace(fields)? {
        return Ok((name, Some(namespace)));
    }
    let of_name = tools.filter(|(_, other)| *other == name);
    let within: Vec<Option<&str>> = of_name
        .map(|(within, _)| within.map(|within| within.name.as_str()))
        .collect();
    match &within[..] {
        // A tool without a namespace is named as usual.
        names if names.contains(&None) => Ok((name, None)),
        [Some(namespace)] => Ok((name, Some((*namespace).to_owned()))),
        [Some(one), Some(other), ..] => {
            let reason = format!("names a {kind} of `{one}` and one of `{other}`: say `namespace` too");
            Err(fields.invalid("name", "invalid_value", &reason))
        }
        // There is no such tool, which is reported as for any other.
        _ => Ok((name, None)),
    }
}
