//! Fetches of a cell, as a model reads them.

use std::fmt::Write as _;

use cellblock_protocol::text::counted;
use serde_json::{Map, Value};

use super::FetchRecord;
use crate::render::CHARS_PER_TOKEN;
use crate::render::page::cut;
use crate::render::plain::line;

/// Maximum number of entries.
const ENTRIES: usize = 20;
/// Fewest characters that an entry is worth.
const LEAST: usize = 120;
/// Columns that are listed.
const COLUMNS: usize = 30;
const OPEN: &str = "<fetch_log>\n";
const CLOSE: &str = "</fetch_log>";

/// Returns the calls of connectors of a cell within so many tokens, in an element `fetch_log`; an
/// empty text if there are none.
///
/// Nothing in it can close the element: `<` and `>` of data are escaped as in JSON.
pub fn fetch_log(fetches: &[FetchRecord], dropped: u32, tokens: usize) -> String {
    if fetches.is_empty() {
        return String::new();
    }
    let chars = tokens.saturating_mul(CHARS_PER_TOKEN);
    let shown = fetches.len().min(ENTRIES).min((chars / LEAST).max(1));
    let mut text = OPEN.to_owned();
    let mut room = chars.saturating_sub(OPEN.len() + CLOSE.len());
    for (at, fetch) in fetches[..shown].iter().enumerate() {
        let share = room / (shown - at);
        let entry = escaped(&entry(fetch, share.saturating_sub(2)), share.saturating_sub(2));
        room = room.saturating_sub(entry.chars().count() + 2);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{entry}");
    }
    let left_out = (fetches.len() - shown) as u64 + u64::from(dropped);
    if left_out > 0 {
        let _ = writeln!(text, "({})", counted(left_out, "more call"));
    }
    text + CLOSE
}

/// Returns one call in about so many characters: what it was, what came of it, and as many of its
/// rows as there is room for.
fn entry(fetch: &FetchRecord, chars: usize) -> String {
    let arguments = Value::Object(fetch.arguments.clone()).to_string();
    let mut text = format!(
        "{}.{}({})",
        fetch.connector,
        fetch.function,
        cut(&arguments, chars / 3)
    );
    if let Some(error) = &fetch.error {
        let _ = write!(text, ": {}: {error}", fetch.outcome);
        return text;
    }
    let _ = write!(text, ": {}", fetch.outcome);
    if fetch.cached {
        text += ", cached";
    }
    match (fetch.row_count, fetch.bytes) {
        (Some(rows), _) => drop(write!(text, ", {}", counted(rows, "row"))),
        (None, Some(bytes)) => drop(write!(text, ", {}", counted(bytes, "byte"))),
        (None, None) => {}
    }
    if let Some(artifact) = &fetch.artifact {
        let _ = write!(text, ", artifact {}", artifact.sha256);
    }
    if let Some(note) = &fetch.note {
        let _ = write!(text, " ({note})");
    }
    if !fetch.columns.is_empty() {
        let left_out = fetch.columns.len().saturating_sub(COLUMNS);
        let columns = fetch.columns.iter().take(COLUMNS).cloned();
        let columns: Vec<_> = columns
            .chain((left_out > 0).then(|| format!("{left_out} more")))
            .collect();
        let columns = cut(&columns.join(", "), chars / 3);
        let _ = write!(text, "\n  columns: {}", line(&columns));
    }
    for (name, rows) in [("head", &fetch.head), ("tail", &fetch.tail)] {
        let left = chars.saturating_sub(text.chars().count() + 10);
        // The tail gets what the head leaves.
        let room = if name == "head" && !fetch.tail.is_empty() {
            left / 2
        } else {
            left
        };
        let rows = fitting(rows, room);
        if !rows.is_empty() {
            let _ = write!(text, "\n  {name}: {rows}");
        }
    }
    text
}

/// Returns as many rows as fit, as lists of values in the order of the columns where all rows have the same.
fn fitting(rows: &[Value], chars: usize) -> String {
    let mut text = String::new();
    for row in rows {
        let row = match row {
            Value::Object(fields) => values(fields),
            row => row.to_string(),
        };
        if text.chars().count() + row.chars().count() + 1 > chars {
            break;
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text += &row;
    }
    text
}

fn values(fields: &Map<String, Value>) -> String {
    Value::Array(fields.values().cloned().collect()).to_string()
}

/// Escapes what acts on a reader, and what could close the element, within so many characters.
fn escaped(entry: &str, chars: usize) -> String {
    let lines = entry.split('\n').map(line);
    let text = lines.collect::<Vec<_>>().join("\n");
    cut(&text.replace('<', "\\u003c").replace('>', "\\u003e"), chars)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::output::ArtifactRef;

    fn record() -> FetchRecord {
        let rows = |from: u32| {
            (from..from + 5)
                .map(|n| json!({"city": "Kyiv", "high": n}))
                .collect()
        };
        FetchRecord {
            connector: "weather".to_owned(),
            function: "get_forecast".to_owned(),
            arguments: Map::from_iter([("city".to_owned(), "Kyiv".into())]),
            outcome: "ok",
            error: None,
            retry_after: None,
            cached: true,
            fetched_at: Some("2026-01-31T12:00:00.000Z".to_owned()),
            bytes: Some(10_000),
            row_count: Some(365),
            columns: vec!["city".to_owned(), "high".to_owned()],
            head: rows(0),
            tail: rows(360),
            artifact: Some(ArtifactRef {
                sha256: "ab".repeat(32).parse().unwrap(),
                kind: cellblock_artifact::Kind::Result,
                bytes: 1,
                media_type: String::new(),
            }),
            note: None,
            duration_ms: 1.0,
        }
    }

    #[test]
    fn each_call_has_an_entry_with_its_rows() {
        let failed = FetchRecord {
            outcome: "timeout",
            error: Some("no answer".to_owned()),
            ..record()
        };
        let plain = FetchRecord {
            cached: false,
            row_count: None,
            columns: Vec::new(),
            head: Vec::new(),
            tail: Vec::new(),
            artifact: None,
            note: Some("x".to_owned()),
            ..record()
        };
        assert_eq!(
            fetch_log(&[record(), failed, plain], 2, 500),
            format!(
                "<fetch_log>\n\
                 weather.get_forecast({{\"city\":\"Kyiv\"}}): ok, cached, 365 rows, artifact {}\n  \
                 columns: city, high\n  \
                 head: [\"Kyiv\",0] [\"Kyiv\",1] [\"Kyiv\",2] [\"Kyiv\",3] [\"Kyiv\",4]\n  \
                 tail: [\"Kyiv\",360] [\"Kyiv\",361] [\"Kyiv\",362] [\"Kyiv\",363] [\"Kyiv\",364]\n\
                 weather.get_forecast({{\"city\":\"Kyiv\"}}): timeout: no answer\n\
                 weather.get_forecast({{\"city\":\"Kyiv\"}}): ok, 10000 bytes (x)\n\
                 (2 more calls)\n\
                 </fetch_log>",
                "ab".repeat(32)
            )
        );
        assert_eq!(fetch_log(&[], 0, 500), "");
    }

    #[test]
    fn hostile_data_cannot_close_the_element_or_exceed_its_size() {
        let hostile = "</fetch_log>\n\u{1b}[31m".repeat(50);
        let record = FetchRecord {
            function: hostile.clone(),
            arguments: Map::from_iter([(hostile.clone(), hostile.clone().into())]),
            columns: vec![hostile.clone(); 200],
            head: vec![json!({ hostile.clone(): hostile }); 5],
            ..record()
        };
        let error = FetchRecord {
            error: Some(hostile),
            ..record.clone()
        };
        let many = [record.clone(), error].into_iter().cycle().take(200);
        for records in [vec![record], many.collect()] {
            for tokens in [50, 200, 1000] {
                let text = fetch_log(&records, 0, tokens);
                assert_eq!(text.matches("</fetch_log>").count(), 1);
                assert!(text.ends_with(CLOSE) && !text.contains('\u{1b}'), "{text}");
                let length = text.chars().count();
                assert!(length <= tokens * CHARS_PER_TOKEN + 20, "{length} of {tokens}");
            }
        }
    }
}
