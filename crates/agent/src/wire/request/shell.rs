//! The tool `shell` in a request, and its items of earlier responses.

use super::fields::{Fields, RequestFields as _};
use super::items::call_id;
use super::tools::{callers, new_container};
use crate::wire::error::ApiError;
use crate::wire::item::ItemStatus;
use crate::wire::shell::{
    LocalSkill, ShellAction, ShellCall, ShellCallOutput, ShellEnvironment, ShellOutcome, ShellOutput,
    ShellPlace,
};
use crate::wire::skill::SkillRequest;
use crate::wire::tool::{AllowedCaller, AutoContainer, Container, Tool};

const ENVIRONMENTS: &str = "`container_auto`, `container_reference` or `local`";

/// Parses `{"type": "shell"}`.
pub(super) fn tool(fields: &Fields<'_>) -> Result<Tool, ApiError> {
    Ok(Tool::Shell {
        environment: environment(fields)?,
        allowed_callers: direct(fields)?,
    })
}

/// Parses the callers of a tool that code cannot call.
pub(super) fn direct(fields: &Fields<'_>) -> Result<Option<Vec<AllowedCaller>>, ApiError> {
    let callers = callers(fields)?;
    match &callers {
        Some(listed) if !listed.contains(&AllowedCaller::Direct) => {
            let path = fields.path("allowed_callers");
            let message = format!(
                "`{path}` does not list `direct`, and code cannot call this tool; add `direct`, or leave it \
                 out"
            );
            Err(ApiError::invalid(path, "unsupported_parameter", message))
        }
        _ => Ok(callers),
    }
}

/// Parses the environment of commands; without one, they run on the client's computer.
fn environment(tool: &Fields<'_>) -> Result<ShellEnvironment, ApiError> {
    let Some(fields) = tool.fields("environment")? else {
        return Ok(ShellEnvironment::Local { skills: Vec::new() });
    };
    match fields.required("type")?.as_str() {
        "container_auto" => {
            let skills = fields.each("skills", SkillRequest::parse)?;
            let container = AutoContainer {
                skills,
                shared: true,
                ..new_container(&fields)?
            };
            Ok(ShellEnvironment::Hosted(Container::Auto(container)))
        }
        "container_reference" => {
            let id = fields.required("container_id")?;
            Ok(ShellEnvironment::Hosted(Container::Id(id)))
        }
        "local" => Ok(ShellEnvironment::Local {
            skills: local_skills(&fields)?,
        }),
        other => Err(fields.unknown("type", other, ENVIRONMENTS)),
    }
}

fn local_skills(fields: &Fields<'_>) -> Result<Vec<LocalSkill>, ApiError> {
    fields.each("skills", |fields| {
        Ok(LocalSkill {
            name: fields.required("name")?,
            description: fields.required("description")?,
            path: fields.required("path")?,
        })
    })
}

/// Rejects tools that name different containers: the code and the commands of a response share one.
pub(super) fn one_container(tools: &[Tool]) -> Result<(), ApiError> {
    let placed = tools.iter().enumerate();
    let placed: Vec<_> = placed
        .filter_map(|(at, tool)| Some((at, tool.container()?)))
        .collect();
    let [(first, one), (second, other)] = placed[..] else {
        return Ok(());
    };
    let conflict = match (one, other) {
        (Container::Id(one), Container::Id(other)) => one != other,
        (Container::Auto(one), Container::Auto(other)) => {
            let limits = (&one.memory_limit, &other.memory_limit);
            let networks = (&one.network_policy, &other.network_policy);
            matches!(limits, (Some(one), Some(other)) if one != other)
                || matches!(networks, (Some(one), Some(other)) if one != other)
                || (one.no_network && other.network_policy.is_some())
                || (other.no_network && one.network_policy.is_some())
        }
        (Container::Id(_), Container::Auto(auto)) | (Container::Auto(auto), Container::Id(_)) => {
            let plain = AutoContainer {
                shared: auto.shared,
                ..AutoContainer::default()
            };
            *auto != plain
        }
    };
    if !conflict {
        return Ok(());
    }
    let path = format!("tools[{second}]");
    let message = format!(
        "`{path}` asks for another container than `tools[{first}]`: code and commands of a response run in \
         the same one; name the same container, with the same options"
    );
    Err(ApiError::invalid(path, "invalid_value", message))
}

/// Parses `shell_call` of an earlier response.
pub(super) fn call(fields: &Fields<'_>, id: String, status: ItemStatus) -> Result<ShellCall, ApiError> {
    let action = fields.required_fields("action")?;
    if action.get("commands").is_none() {
        return Err(action.missing("commands"));
    }
    Ok(ShellCall {
        id,
        status,
        call_id: call_id(fields)?,
        action: ShellAction {
            commands: action.texts("commands")?,
            timeout_ms: action.count("timeout_ms", 0)?,
            max_output_length: action.count("max_output_length", 0)?,
        },
        environment: match fields.fields("environment")? {
            None => None,
            Some(environment) => Some(place(&environment)?),
        },
    })
}

fn place(fields: &Fields<'_>) -> Result<ShellPlace, ApiError> {
    match fields.required("type")?.as_str() {
        "container_reference" => Ok(ShellPlace::ContainerReference {
            container_id: fields.required("container_id")?,
        }),
        "local" => Ok(ShellPlace::Local),
        other => Err(fields.unknown("type", other, "`container_reference` or `local`")),
    }
}

/// Parses `shell_call_output`. Clients send `status: failed`, which the API does not have.
pub(super) fn output(fields: &Fields<'_>, id: String) -> Result<ShellCallOutput, ApiError> {
    if fields.get("output").is_none() {
        return Err(fields.missing("output"));
    }
    let entry = |fields: &Fields<'_>| {
        let outcome = fields.required_fields("outcome")?;
        Ok(ShellOutput {
            stdout: fields.text("stdout")?.unwrap_or_default(),
            stderr: fields.text("stderr")?.unwrap_or_default(),
            outcome: match outcome.required("type")?.as_str() {
                "exit" => ShellOutcome::Exit {
                    exit_code: exit_code(&outcome)?,
                },
                "timeout" => ShellOutcome::Timeout,
                other => return Err(outcome.unknown("type", other, "`exit` or `timeout`")),
            },
        })
    };
    Ok(ShellCallOutput {
        id,
        status: ItemStatus::Completed,
        call_id: call_id(fields)?,
        output: fields.each("output", entry)?,
        max_output_length: fields.count("max_output_length", 0)?,
    })
}

fn exit_code(outcome: &Fields<'_>) -> Result<i32, ApiError> {
    let (least, most) = (f64::from(i32::MIN), f64::from(i32::MAX));
    let code = outcome.number("exit_code", least, most)?;
    let code = code.ok_or_else(|| outcome.missing("exit_code"))?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it is within the range of the type"
    )]
    Ok(code as i32)
}
