//! Skills of a request, in the forms of OpenAI and Anthropic.

use serde_json::Value;

use super::fields::{Fields, RequestFields as _};
use crate::wire::error::ApiError;
use crate::wire::skill::{InlineSource, SkillRequest};

/// Maximum number of skills of a container in Anthropic's API.
const MAX_CONTAINER_SKILLS: usize = 8;
const ZIP: &str = "application/zip";
const LATEST: &str = "latest";

impl SkillRequest {
    /// Parses a list of skills in OpenAI's form, which is at this path.
    pub fn parse_all(list: &[Value], path: &str) -> Result<Vec<Self>, ApiError> {
        let parse = |(index, value)| Self::parse(&Fields::of(value, format!("{path}[{index}]"))?);
        list.iter().enumerate().map(parse).collect()
    }

    pub(super) fn parse(fields: &Fields<'_>) -> Result<Self, ApiError> {
        match fields.required("type")?.as_str() {
            "skill_reference" => Ok(Self::SkillReference {
                skill_id: fields.required("skill_id")?,
                version: version(fields)?,
            }),
            "inline" => Ok(Self::Inline {
                name: fields.required("name")?,
                description: fields.required("description")?,
                source: source(fields)?,
            }),
            other => Err(fields.unknown("type", other, "`skill_reference` or `inline`")),
        }
    }
}

/// Parses the skills of a container in Anthropic's form. Skills without a version have the latest one.
pub(super) fn of_container(container: &Fields<'_>) -> Result<Vec<SkillRequest>, ApiError> {
    let list = container.list("skills")?;
    let path = container.path("skills");
    if list.len() > MAX_CONTAINER_SKILLS {
        let message = format!(
            "`{path}` has {} entries; at most {MAX_CONTAINER_SKILLS} are allowed",
            list.len()
        );
        return Err(ApiError::invalid(path, "array_above_max_length", message));
    }
    container.each("skills", |fields| {
        let kind = fields.required("type")?;
        if !matches!(&*kind, "anthropic" | "custom") {
            return Err(fields.unknown("type", &kind, "`anthropic` or `custom`"));
        }
        Ok(SkillRequest::SkillReference {
            skill_id: fields.required("skill_id")?,
            version: Some(version(fields)?.unwrap_or_else(|| LATEST.to_owned())),
        })
    })
}

/// Parses a version: a string in the API's types, a whole number in its guides.
fn version(fields: &Fields<'_>) -> Result<Option<String>, ApiError> {
    match fields.get("version") {
        None => Ok(None),
        Some(Value::String(version)) => Ok(Some(version.clone())),
        Some(Value::Number(version)) if version.is_u64() => Ok(Some(version.to_string())),
        Some(_) => Err(fields.wrong("version", "the number of a version or `latest`")),
    }
}

fn source(fields: &Fields<'_>) -> Result<InlineSource, ApiError> {
    let source = fields.required_fields("source")?;
    for (key, known) in [("type", "base64"), ("media_type", ZIP)] {
        let value = source.required(key)?;
        if value != known {
            return Err(source.unknown(key, &value, &format!("`{known}`")));
        }
    }
    Ok(InlineSource {
        media_type: ZIP.to_owned(),
        data: source.required("data")?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(skill: Value) -> Result<SkillRequest, ApiError> {
        let mut read = SkillRequest::parse_all(&[skill], "skills")?;
        Ok(read.remove(0))
    }

    #[test]
    fn versions_are_strings_whole_numbers_or_missing() {
        for (version, expected) in [
            (json!("2"), Some("2")),
            (json!(2), Some("2")),
            (json!("latest"), Some("latest")),
            (Value::Null, None),
        ] {
            let skill = json!({"type": "skill_reference", "skill_id": "skill_1", "version": version});
            let expected = SkillRequest::SkillReference {
                skill_id: "skill_1".to_owned(),
                version: expected.map(str::to_owned),
            };
            assert_eq!(read(skill).unwrap(), expected);
        }
    }

    #[test]
    fn mistakes_are_reported_with_their_path() {
        let inline =
            |source: Value| json!({"type": "inline", "name": "a", "description": "b", "source": source});
        let zip = json!({"type": "base64", "media_type": "application/zip", "data": "UEs="});
        assert!(read(inline(zip)).is_ok());
        for (skill, param) in [
            (json!({"type": "skill_reference"}), "skills[0].skill_id"),
            (
                json!({"type": "skill_reference", "skill_id": "s", "version": 1.5}),
                "skills[0].version",
            ),
            (json!({"type": "url"}), "skills[0].type"),
            (json!(1), "skills[0]"),
            (inline(json!({"type": "url"})), "skills[0].source.type"),
            (
                inline(json!({"type": "base64", "media_type": "text/plain"})),
                "skills[0].source.media_type",
            ),
        ] {
            assert_eq!(read(skill).unwrap_err().param.as_deref(), Some(param));
        }
    }

    #[test]
    fn a_container_has_at_most_eight_skills_and_their_latest_versions() {
        let skills = |count| json!({"skills": vec![json!({"type": "custom", "skill_id": "s"}); count]});
        let read = |count| of_container(&Fields::of(&skills(count), "container").unwrap());
        assert_eq!(
            read(8).unwrap()[0],
            SkillRequest::SkillReference {
                skill_id: "s".to_owned(),
                version: Some("latest".to_owned()),
            }
        );
        assert_eq!(read(9).unwrap_err().param.as_deref(), Some("container.skills"));
    }
}
