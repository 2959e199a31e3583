//! `/v1/models` in Anthropic's form.

use std::collections::HashMap;

use cellblock_agent::wire::ApiError;
use serde_json::{Value, json};

use super::{limit, time};
use crate::models::Model;

/// Models in one answer where nothing is said.
const USUAL: usize = 20;

/// Returns a page of models as clients receive it.
pub(crate) fn listed(models: &[Model], query: &HashMap<String, String>) -> Result<Value, ApiError> {
    let limit = limit(query, USUAL)?;
    let place = |id: &String| models.iter().position(|model| model.id == *id);
    let missing = |name: &str| {
        let message = format!("`{name}` is the id of no model in this list");
        ApiError::invalid(name, "invalid_value", message)
    };
    let (page, more) = if let Some(id) = query.get("before_id") {
        let end = place(id).ok_or_else(|| missing("before_id"))?;
        let start = end.saturating_sub(limit);
        (&models[start..end], start > 0)
    } else {
        let start = match query.get("after_id") {
            Some(id) => place(id).ok_or_else(|| missing("after_id"))? + 1,
            None => 0,
        };
        let end = models.len().min(start + limit);
        (&models[start..end], end < models.len())
    };
    let data: Vec<_> = page.iter().map(object).collect();
    Ok(json!({
        "data": data,
        "has_more": more,
        "first_id": page.first().map(|model| &model.id),
        "last_id": page.last().map(|model| &model.id),
    }))
}

/// Returns a model as clients receive it.
pub(crate) fn object(model: &Model) -> Value {
    let created_ms = i64::try_from(model.created.saturating_mul(1000)).unwrap_or(i64::MAX);
    json!({
        "type": "model",
        "id": model.id,
        "display_name": model.id,
        "created_at": time(created_ms),
        "lifecycle": "active",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(id: &str) -> Model {
        Model {
            id: id.to_owned(),
            object: "model",
            created: 0,
            owned_by: String::new(),
        }
    }

    #[test]
    fn pages_go_forward_and_backward() {
        let models = ["a", "b", "c"].map(model);
        let page = |query: &[(&str, &str)]| {
            let query = query
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            listed(&models, &query.collect())
        };
        for (query, ids, more) in [
            (&[][..], "a b c", false),
            (&[("limit", "2")], "a b", true),
            (&[("limit", "2"), ("after_id", "b")], "c", false),
            (&[("limit", "1"), ("before_id", "c")], "b", true),
        ] {
            let listed = page(query).unwrap();
            let found: Vec<_> = listed["data"].as_array().unwrap().iter().collect();
            let found: Vec<_> = found.iter().map(|it| it["id"].as_str().unwrap()).collect();
            assert_eq!(
                (found.join(" "), &listed["has_more"]),
                (ids.to_owned(), &json!(more))
            );
        }
        assert_eq!(
            page(&[("after_id", "x")]).unwrap_err().param.as_deref(),
            Some("after_id")
        );
        assert_eq!(
            page(&[("limit", "0")]).unwrap_err().param.as_deref(),
            Some("limit")
        );
    }
}
