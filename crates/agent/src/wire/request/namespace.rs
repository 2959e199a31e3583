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

/// Parses which function a choice names. OpenAI's SDKs have no `namespace` there, so it may be
/// omitted if only one function has the name.
pub(super) fn chosen(fields: &Fields<'_>, tools: &[Tool]) -> Result<ToolName, ApiError> {
    let name = name(fields, "name")?;
    let chosen = |namespace| ToolName::Function {
        name: name.clone(),
        namespace,
    };
    if let Some(namespace) = namespace(fields)? {
        return Ok(chosen(Some(namespace)));
    }
    let functions = tools.iter().flat_map(Tool::functions);
    let of_name = functions.filter(|(_, function)| function.name == name);
    let within: Vec<_> = of_name
        .map(|(namespace, _)| namespace.map(|it| it.name.clone()))
        .collect();
    match &within[..] {
        // A function without a namespace is named as usual.
        names if names.contains(&None) => Ok(chosen(None)),
        [Some(namespace)] => Ok(chosen(Some(namespace.clone()))),
        [Some(one), Some(other), ..] => {
            let reason = format!("names a function of `{one}` and one of `{other}`: say `namespace` too");
            Err(fields.invalid("name", "invalid_value", &reason))
        }
        // There is no such function, which is reported as for any other tool.
        _ => Ok(chosen(None)),
    }
}
