//! The tools that a server lists: those that can be offered to a model, and why the others cannot.

use std::collections::HashMap;
use std::time::Duration;

use cellblock_agent::{LeftOutTool, OfferedTools};
use cellblock_interpreter::text::counted;
use cellblock_interpreter::toolset::ToolDefinition;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::failure::Failure;
use super::{scan, schema, words};

/// Maximum number of pages of a list.
pub(super) const MOST_PAGES: usize = 32;
/// Maximum number of tools of a server.
const MOST_TOOLS: usize = 512;
/// Maximum size of a description in bytes; longer ones are cut.
const DESCRIPTION: usize = 16 << 10;
/// Maximum size of annotations in bytes; larger ones are dropped.
const ANNOTATIONS: usize = 4 << 10;
/// Maximum length of a name in characters.
const NAME: usize = 128;
/// Maximum number of tools that are reported as left out.
const TOLD: usize = 64;

/// A list while it is read.
#[derive(Debug, Default)]
pub(super) struct ListReader {
    tools: Vec<Value>,
    /// Time for which the list may be cached, as declared by the server.
    pub(super) keep: Option<Duration>,
    /// Cursor of the next page.
    pub(super) cursor: Option<String>,
    cut: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolPage {
    tools: Vec<Value>,
    #[serde(default)]
    next_cursor: Option<String>,
    #[serde(default)]
    ttl_ms: Option<f64>,
}

impl ListReader {
    /// Reads a page.
    pub(super) fn page(&mut self, text: &RawValue, most_bytes: u64) -> Result<(), Failure> {
        scan::check(text.get(), most_bytes)?;
        let page: ToolPage = serde_json::from_str(text.get())
            .map_err(|error| Failure::unread("its list of tools is malformed", error))?;
        let keep = page
            .ttl_ms
            .filter(|ms| *ms >= 0.0)
            .map(|ms| Duration::from_secs_f64((ms / 1000.0).min(1e9)));
        self.keep = match (self.keep, keep) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        self.tools.extend(page.tools);
        let repeats = page.next_cursor.is_some() && page.next_cursor == self.cursor;
        self.cursor = page.next_cursor.filter(|_| !repeats);
        if repeats {
            self.cut = Some("the pages of its list of tools form a cycle".to_owned());
        }
        if self.tools.len() > MOST_TOOLS {
            let total = self.tools.len();
            let least = if self.cursor.is_some() { "at least " } else { "" };
            self.tools.truncate(MOST_TOOLS);
            self.cursor = None;
            self.cut = Some(format!(
                "the server lists {least}{total} tools; only the first {MOST_TOOLS} are offered"
            ));
        }
        Ok(())
    }

    /// Stops reading.
    pub(super) fn stop(&mut self) {
        self.cursor = None;
        self.cut = Some(format!(
            "the list of tools has more than the limit of {MOST_PAGES} pages"
        ));
    }

    /// Returns the tools, without those that are not allowed.
    pub(super) fn offered(self, allowed: impl Fn(&str) -> bool) -> OfferedTools {
        let mut offered = OfferedTools::default();
        let mut names: HashMap<String, usize> = HashMap::new();
        let name = |tool: &Value| tool["name"].as_str().unwrap_or_default().to_owned();
        for tool in &self.tools {
            *names.entry(name(tool)).or_default() += 1;
        }
        for tool in self.tools {
            let name = name(&tool);
            if !allowed(&name) {
                continue;
            }
            let read = match names.get_mut(&name) {
                // None of them can be identified; one reason covers all.
                Some(0) => continue,
                Some(count) if *count > 1 => {
                    let reason = format!("{count} tools of the server have this name");
                    *count = 0;
                    Err(reason)
                }
                _ => self::tool(tool),
            };
            match read {
                Ok(tool) => offered.tools.push(tool),
                Err(reason) => offered.left_out.push(left_out(&name, reason)),
            }
        }
        if offered.left_out.len() > TOLD {
            let more = offered.left_out.len() - TOLD;
            offered.left_out.truncate(TOLD);
            offered.left_out.push(left_out(
                "",
                format!("{} cannot be offered", counted(more, "more tool")),
            ));
        }
        offered
            .left_out
            .extend(self.cut.map(|reason| left_out("", reason)));
        offered
    }
}

fn left_out(name: &str, reason: String) -> LeftOutTool {
    LeftOutTool {
        name: words::told(name, NAME),
        reason,
    }
}

fn tool(mut tool: Value) -> Result<ToolDefinition, String> {
    let Some(name) = tool["name"].as_str().map(str::to_owned) else {
        return Err("it has no name".to_owned());
    };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/');
    if name.is_empty() || name.len() > NAME || !name.bytes().all(fits) {
        return Err(format!(
            "its name is invalid: must be 1 to {NAME} letters, digits and `_`, `-`, `.`, `/`"
        ));
    }
    let schema = tool["inputSchema"].take();
    let size = schema.to_string().len();
    if size > schema::MOST_BYTES {
        let limit = words::bytes(schema::MOST_BYTES as u64);
        return Err(format!("its input schema has {size} bytes, the limit is {limit}"));
    }
    let input_schema: Map<String, Value> = schema::read(schema)?;
    let description = cut(tool["description"].as_str().unwrap_or_default(), DESCRIPTION);
    let annotations = tool["annotations"].take();
    let output_schema = tool["outputSchema"].take();
    let output_schema = (output_schema.is_object() && output_schema.to_string().len() <= schema::MOST_BYTES)
        .then(|| schema::read(output_schema).ok());
    Ok(ToolDefinition {
        name,
        description,
        input_schema,
        output_schema: output_schema.flatten(),
        annotations: (annotations.is_object() && annotations.to_string().len() <= ANNOTATIONS)
            .then_some(annotations),
        ..ToolDefinition::default()
    })
}

fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(most)])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn page(listing: &mut ListReader, page: &Value) -> Result<(), Failure> {
        listing.page(&RawValue::from_string(page.to_string()).unwrap(), 32 << 20)
    }

    fn tool(name: &str) -> Value {
        json!({"name": name, "inputSchema": {"type": "object"}})
    }

    #[test]
    fn one_broken_tool_does_not_affect_the_others() {
        let mut listing = ListReader::default();
        let annotations = json!({"readOnlyHint": true});
        let good = json!({"name": "good.tool/x", "description": "d".repeat(20_000), "inputSchema": {},
            "annotations": annotations});
        let tools = json!([
            good, tool("twice"), tool("a b"), {"name": 5}, {"name": "none"},
            {"name": "large", "inputSchema": {"description": "x".repeat(70_000)}},
            tool("twice"), tool("hidden"), 7, tool("last"),
        ]);
        page(
            &mut listing,
            &json!({"tools": tools, "nextCursor": "n", "ttlMs": 90_000}),
        )
        .unwrap();
        assert_eq!(listing.cursor.as_deref(), Some("n"));
        page(&mut listing, &json!({"tools": [tool("twice")], "ttlMs": 60_000})).unwrap();
        assert_eq!(
            (listing.cursor.as_deref(), listing.keep),
            (None, Some(Duration::from_mins(1)))
        );
        let offered = listing.offered(|name| name != "hidden");
        let names: Vec<_> = offered.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["good.tool/x", "last"]);
        assert_eq!(offered.tools[0].description.len(), (16 << 10) + "…".len());
        assert_eq!(offered.tools[0].annotations, Some(annotations));
        let left_out: Vec<_> = offered
            .left_out
            .iter()
            .map(|it| (it.name.as_str(), it.reason.as_str()))
            .collect();
        let name = "its name is invalid: must be 1 to 128 letters, digits and `_`, `-`, `.`, `/`";
        assert_eq!(
            left_out,
            [
                ("twice", "3 tools of the server have this name"),
                ("a b", name),
                ("", "2 tools of the server have this name"),
                ("none", "its input schema is not a JSON object"),
                ("large", "its input schema has 70018 bytes, the limit is 64 KiB"),
            ]
        );
    }

    #[test]
    fn an_endless_list_is_cut() {
        let mut listing = ListReader::default();
        page(&mut listing, &json!({"tools": [tool("a")], "nextCursor": "x"})).unwrap();
        page(&mut listing, &json!({"tools": [tool("b")], "nextCursor": "x"})).unwrap();
        assert_eq!(listing.cursor, None);
        assert_eq!(
            listing.offered(|_| true).left_out[0].reason,
            "the pages of its list of tools form a cycle"
        );
        let mut listing = ListReader::default();
        let many: Vec<_> = (0..600).map(|number| tool(&format!("t{number}"))).collect();
        page(&mut listing, &json!({"tools": many, "nextCursor": "x"})).unwrap();
        assert_eq!(listing.cursor, None);
        let offered = listing.offered(|_| true);
        assert_eq!(offered.tools.len(), 512);
        assert_eq!(
            offered.left_out[0].reason,
            "the server lists at least 600 tools; only the first 512 are offered"
        );
    }

    #[test]
    fn a_malformed_list_is_an_error() {
        for wrong in [
            json!({}),
            json!({"tools": {}}),
            json!({"tools": [], "nextCursor": 5}),
        ] {
            assert!(
                matches!(
                    page(&mut ListReader::default(), &wrong),
                    Err(Failure::Malformed { .. })
                ),
                "{wrong}"
            );
        }
    }
}
