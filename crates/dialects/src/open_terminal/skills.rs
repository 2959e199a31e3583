//! `/skills`: the skills that a chat's sandbox has, in `/skills`.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use cellblock_interpreter::skill::SessionSkill;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::arguments::query;
use super::chat::{Caller, OpenTerminal};
use super::problem::Problem;

/// Maximum number of characters of a description, and of files that are listed with a skill.
const DESCRIPTION: usize = 1024;
const RESOURCES: usize = 50;
/// Maximum depth of a file that is listed.
const DEPTH: usize = 4;
/// File with the instructions of a skill.
const MANIFEST: &str = "SKILL.md";

#[derive(Debug, Deserialize, Serialize)]
pub(super) struct NameQuery {
    name: String,
}

/// `GET /skills`.
pub(super) async fn list(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
) -> Result<Json<Value>, Problem> {
    let skills = terminal.skills(&caller).await?;
    Ok(Json(skills.iter().map(described).collect()))
}

/// `GET /skills/read`.
pub(super) async fn read(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<Value>, Problem> {
    let NameQuery { name } = query(&uri)?;
    let skills = terminal.skills(&caller).await?;
    let Some(skill) = skills.iter().find(|skill| skill.name == name) else {
        let name: String = name.chars().take(64).flat_map(char::escape_debug).collect();
        return Err(Problem::missing(format!(
            "there is no skill `{name}`; GET /skills lists them"
        )));
    };
    let content = skill.bundle.instructions().await;
    let content = content.map_err(cellblock_interpreter::Error::from)?;
    let paths = skill.bundle.files.iter().map(|file| &*file.path);
    let shown = paths.filter(|path| *path != MANIFEST && path.matches('/').count() < DEPTH);
    let mut answer = described(skill);
    answer["content"] = content.into();
    answer["resources"] = shown.take(RESOURCES).map(Value::from).collect();
    Ok(Json(answer))
}

fn described(skill: &SessionSkill) -> Value {
    let description: String = skill.description.chars().take(DESCRIPTION).collect();
    json!({
        "id": format!("terminal:{}", skill.name),
        "name": skill.name,
        "description": description,
        "location": format!("{}/{MANIFEST}", skill.folder()),
        "scope": "user",
    })
}

impl OpenTerminal {
    /// Returns the skills of the chat's sandbox, or those that it would begin with.
    async fn skills(&self, caller: &Caller) -> Result<Vec<SessionSkill>, Problem> {
        match self.existing(caller) {
            Some(held) => Ok(held.session.skills().to_vec()),
            None => Ok(self.host.meter.skills(&caller.owner).await?),
        }
    }
}
