//! Skills as clients receive them.

use serde_json::{Value, json};

use super::anthropic;
use crate::json::deleted;
use crate::records::{SkillRow, SkillVersionRow};

/// Returns a skill in the form of the client's API.
pub(super) fn skill(row: &SkillRow, is_anthropic: bool) -> Value {
    if is_anthropic {
        return anthropic::skill(row);
    }
    json!({
        "id": row.id,
        "object": "skill",
        "created_at": row.created_ms / 1000,
        "name": row.name,
        "description": row.description,
        "default_version": row.default_version.to_string(),
        "latest_version": row.latest_version.to_string(),
    })
}

/// Returns a version in the form of the client's API.
pub(super) fn version(row: &SkillVersionRow, is_anthropic: bool) -> Value {
    if is_anthropic {
        return anthropic::version(row);
    }
    json!({
        "id": row.id,
        "object": "skill.version",
        "created_at": row.created_ms / 1000,
        "name": row.name,
        "description": row.description,
        "skill_id": row.skill,
        "version": row.version.to_string(),
    })
}

/// Returns the answer to a client that deletes a skill.
pub(super) fn removed_skill(id: &str, is_anthropic: bool) -> Value {
    if is_anthropic {
        json!({"id": id, "type": "skill_deleted"})
    } else {
        deleted(id, "skill.deleted")
    }
}

/// Returns the answer to a client that deletes a version.
pub(super) fn removed_version(row: &SkillVersionRow, is_anthropic: bool) -> Value {
    if is_anthropic {
        return json!({"id": row.id, "type": "skill_version_deleted"});
    }
    let mut answer = deleted(&row.id, "skill.version.deleted");
    answer["version"] = row.version.to_string().into();
    answer
}
