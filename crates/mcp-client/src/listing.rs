//! The tools that a server lists: those that a model can be offered, and why the others cannot.

use std::collections::HashMap;
use std::time::Duration;

use cellblock_agent::{LeftOutTool, OfferedTools, ServerTool};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::failure::Failure;
use super::{scan, schema, words};

/// Pages of a list.
pub(super) const MOST_PAGES: usize = 32;
/// Tools of a server.
const MOST_TOOLS: usize = 512;
/// Bytes of a description; what is longer is cut.
const DESCRIPTION: usize = 16 << 10;
/// Bytes of annotations; more are left away.
const ANNOTATIONS: usize = 4 << 10;
/// Characters of a name.
const NAME: usize = 128;
/// Tools that are told of as left out.
const TOLD: usize = 64;

/// A list as far as it was read.
#[derive(Debug, Default)]
pub(super) struct Listing {
    tools: Vec<Value>,
    /// How long the list may be kept, as the server says.
    pub(super) keep: Option<Duration>,
    /// What stands for the next page.
    pub(super) cursor: Option<String>,
    cut: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    tools: Vec<Value>,
    #[serde(default)]
    next_cursor: Option<String>,
    #[serde(default)]
    ttl_ms: Option<f64>,
}

impl Listing {
    /// Reads a page.
    pub(super) fn page(&mut self, text: &RawValue, most_bytes: u64) -> Result<(), Failure> {
        scan::check(text.get(), most_bytes)?;
        let page: Page = serde_json::from_str(text.get())
            .map_err(|error| Failure::unread("its list of tools has not the form of one", error))?;
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
            self.cut = Some("its list of tools goes round in a circle".to_owned());
        }
        if self.tools.len() > MOST_TOOLS {
            let more = self.tools.len() - MOST_TOOLS;
            let and = if self.cursor.is_some() { " at least" } else { "" };
            self.tools.truncate(MOST_TOOLS);
            self.cursor = None;
            self.cut = Some(format!(
                "the server has {more} tools more{and} than {MOST_TOOLS}, which are the most"
            ));
        }
        Ok(())
    }

    /// Reads no further.
    pub(super) fn stop(&mut self) {
        self.cursor = None;
        self.cut = Some(format!(
            "the list of tools has more than {MOST_PAGES} pages, which are the most"
        ));
    }

    /// The tools, without those that are not allowed.
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
                // None of them can be told from the others; one reason says so.
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
            offered
                .left_out
                .push(left_out("", format!("{more} tools more cannot be offered")));
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

fn tool(mut tool: Value) -> Result<ServerTool, String> {
    let Some(name) = tool["name"].as_str().map(str::to_owned) else {
        return Err("it has no name".to_owned());
    };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/');
    if name.is_empty() || name.len() > NAME || !name.bytes().all(fits) {
        return Err(format!(
            "its name is none of the protocol: 1 to {NAME} letters, digits and `_`, `-`, `.`, `/`"
        ));
    }
    let schema = tool["inputSchema"].take();
    let size = schema.to_string().len();
    if size > schema::MOST_BYTES {
        let limit = words::bytes(schema::MOST_BYTES as u64);
        return Err(format!(
            "its input schema has {size} bytes, of which {limit} are the most"
        ));
    }
    let input_schema: Map<String, Value> = schema::read(schema)?;
    let description = tool["description"].as_str().map(|text| cut(text, DESCRIPTION));
    let annotations = tool["annotations"].take();
    Ok(ServerTool {
        name,
        description,
        input_schema,
        annotations: (annotations.is_object() && annotations.to_string().len() <= ANNOTATIONS)
            .then_some(annotations),
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

    fn page(listing: &mut Listing, page: &Value) -> Result<(), Failure> {
        listing.page(&RawValue::from_string(page.to_string()).unwrap(), 32 << 20)
    }

    fn tool(name: &str) -> Value {
        json!({"name": name, "inputSchema": {"type": "object"}})
    }

    #[test]
    fn one_broken_tool_leaves_the_others_standing() {
        let mut listing = Listing::default();
        let annotations = json!({"readOnlyHint": true});
        let good = json!({"name": "good.tool/x", "description": "d".repeat(20_000), "inputSchema": {}, "annotations": annotations});
        let tools = json!([
            good, tool("twice"), tool("a b"), {"name": 5}, {"name": "none"}, {"name": "large", "inputSchema": {"description": "x".repeat(70_000)}},
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
        assert_eq!(
            offered.tools[0].description.as_ref().unwrap().len(),
            (16 << 10) + "…".len()
        );
        assert_eq!(offered.tools[0].annotations, Some(annotations));
        let left_out: Vec<_> = offered
            .left_out
            .iter()
            .map(|it| (it.name.as_str(), it.reason.as_str()))
            .collect();
        let name = "its name is none of the protocol: 1 to 128 letters, digits and `_`, `-`, `.`, `/`";
        assert_eq!(
            left_out,
            [
                ("twice", "3 tools of the server have this name"),
                ("a b", name),
                ("", "2 tools of the server have this name"),
                ("none", "its input schema is no JSON object"),
                (
                    "large",
                    "its input schema has 70018 bytes, of which 64 KiB are the most"
                ),
            ]
        );
    }

    #[test]
    fn a_list_without_an_end_is_cut() {
        let mut listing = Listing::default();
        page(&mut listing, &json!({"tools": [tool("a")], "nextCursor": "x"})).unwrap();
        page(&mut listing, &json!({"tools": [tool("b")], "nextCursor": "x"})).unwrap();
        assert_eq!(listing.cursor, None);
        assert_eq!(
            listing.offered(|_| true).left_out[0].reason,
            "its list of tools goes round in a circle"
        );
        let mut listing = Listing::default();
        let many: Vec<_> = (0..600).map(|number| tool(&format!("t{number}"))).collect();
        page(&mut listing, &json!({"tools": many, "nextCursor": "x"})).unwrap();
        assert_eq!(listing.cursor, None);
        let offered = listing.offered(|_| true);
        assert_eq!(offered.tools.len(), 512);
        assert_eq!(
            offered.left_out[0].reason,
            "the server has 88 tools more at least than 512, which are the most"
        );
    }

    #[test]
    fn what_is_no_list_is_an_error() {
        for wrong in [
            json!({}),
            json!({"tools": {}}),
            json!({"tools": [], "nextCursor": 5}),
        ] {
            assert!(
                matches!(
                    page(&mut Listing::default(), &wrong),
                    Err(Failure::Malformed { .. })
                ),
                "{wrong}"
            );
        }
    }
}
