//! Tables as CSV: dtypes in the heads, pages of rows, and what is hidden.

use cellblock_protocol::DataframeLibrary;
use cellblock_protocol::text::counted;
use serde_json::Value;

use super::page::cut;
use super::plain::line;
use super::{Detail, label, note};
use crate::output::{Column, Dataframe, TablePage};

/// Part of a table that is shown.
#[derive(Clone, Copy)]
struct View {
    columns: usize,
    head: usize,
    tail: usize,
    cell: usize,
}

const fn view(columns: usize, head: usize, tail: usize, cell: usize) -> View {
    View {
        columns,
        head,
        tail,
        cell,
    }
}

const ALL: usize = usize::MAX;

/// From the columns and first rows to a name and a shape.
const MINIMAL_VIEWS: [View; 5] = [
    view(ALL, 3, 0, 40),
    view(10, 3, 0, 30),
    view(5, 2, 0, 30),
    view(3, 1, 0, 20),
    view(0, 0, 0, 0),
];

/// From all that is there to a name and a shape; cells are cut first, then rows go, then columns.
const VIEWS: [View; 12] = {
    [
        view(ALL, 10, 5, 1000),
        view(ALL, 10, 5, 200),
        view(ALL, 10, 5, 60),
        view(ALL, 5, 3, 60),
        view(ALL, 3, 2, 40),
        view(50, 3, 2, 40),
        view(20, 3, 2, 40),
        view(10, 3, 2, 30),
        view(5, 2, 2, 30),
        view(3, 2, 1, 20),
        view(1, 1, 0, 20),
        view(0, 0, 0, 0),
    ]
};

/// Shows a table in at most so many characters, where its shape has room.
pub(super) fn text(table: &Dataframe, detail: Detail, chars: usize) -> String {
    let views: &[View] = match detail {
        Detail::Full => &VIEWS,
        Detail::Minimal => &MINIMAL_VIEWS,
    };
    let mut texts = views.iter().map(|view| rendered(table, *view));
    let fits = texts.find(|text| text.chars().nth(chars).is_none());
    fits.unwrap_or_else(|| cut(&shape(table), chars))
}

/// Shows a page of a table in at most so many characters.
pub(super) fn page_text(table: &Dataframe, shown: &TablePage, chars: usize) -> String {
    let columns = table.columns.len();
    let mut texts = [1000, 200, 60, 20].into_iter().map(|cell| {
        let mut lines = vec![
            format!(
                "{} (page {} of {})",
                shape(table),
                shown.page + 1,
                shown.pages.max(1)
            ),
            heads(&table.columns, cell),
        ];
        let from = shown.first_row + 1;
        page(&mut lines, &shown.rows, from, table.rows_stored, columns, cell);
        lines.join("\n") + &note(table.note.as_deref())
    });
    let fits = texts.find(|text| text.chars().nth(chars).is_none());
    fits.unwrap_or_else(|| cut(&text(table, Detail::Full, chars), chars))
}

fn shape(table: &Dataframe) -> String {
    let kind = if table.series { "Series" } else { "DataFrame" };
    let (rows, columns) = (table.rows, table.columns.len());
    let name = label(table.name.as_deref());
    let (rows, columns) = (counted(rows, "row"), counted(columns, "column"));
    format!("{name}{kind} — {rows} × {columns}")
}

fn rendered(table: &Dataframe, view: View) -> String {
    let columns = view.columns.min(table.columns.len());
    let head = &table.head[..view.head.min(table.head.len())];
    // A shorter head leaves a gap before the tail, which the hidden rows count.
    let tail = &table.tail[table.tail.len() - view.tail.min(table.tail.len())..];
    let hidden_rows = table.rows.saturating_sub((head.len() + tail.len()) as u64);
    let hidden_columns = table.columns.len() - columns;
    let mut hidden = Vec::new();
    if hidden_rows > 0 {
        hidden.push(counted(hidden_rows, "row"));
    }
    if hidden_columns > 0 {
        hidden.push(counted(hidden_columns, "column"));
    }
    let mut lines = vec![match hidden.as_slice() {
        [] => shape(table),
        hidden => format!("{} ({} not shown)", shape(table), hidden.join(" and ")),
    }];
    if table.rows == 0 {
        lines.push("It has no rows.".to_owned());
    }
    if columns > 0 {
        lines.push(heads(&table.columns[..columns], view.cell));
        page(&mut lines, head, 1, table.rows, columns, view.cell);
        let from = table.rows.saturating_sub(tail.len() as u64) + 1;
        page(&mut lines, tail, from, table.rows, columns, view.cell);
    }
    let cue = if hidden.is_empty() {
        String::new()
    } else {
        cue(table)
    };
    lines.join("\n") + &note(table.note.as_deref()) + &cue
}

fn page(lines: &mut Vec<String>, rows: &[Vec<Value>], from: u64, of: u64, columns: usize, cell: usize) {
    if rows.is_empty() {
        return;
    }
    let to = from.saturating_add(rows.len() as u64 - 1);
    lines.push(format!("Rows {from}-{to} of {of}:"));
    lines.extend(rows.iter().map(|row| {
        let cells: Vec<_> = row.iter().take(columns).map(|value| field(value, cell)).collect();
        cells.join(",")
    }));
}

fn heads(columns: &[Column], cell: usize) -> String {
    let heads = columns.iter().map(|column| {
        quoted(&format!(
            "{} ({})",
            cut(&line(&column.name), cell),
            cut(&line(&column.dtype), cell)
        ))
    });
    heads.collect::<Vec<_>>().join(",")
}

fn field(value: &Value, cell: usize) -> String {
    match value {
        Value::Null => "<NULL>".to_owned(),
        Value::Bool(value) => if *value { "True" } else { "False" }.to_owned(),
        Value::String(text) => quoted(&cut(&line(text), cell)),
        other => quoted(&cut(&line(&other.to_string()), cell)),
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// Points at the value, which the kernel still has.
fn cue(table: &Dataframe) -> String {
    let Some(name) = &table.name else {
        return "\n(assign it to a variable to look at other parts of it)".to_owned();
    };
    let name = line(name);
    let rows = match table.library {
        DataframeLibrary::Pandas => format!("{name}.iloc[10:20]"),
        DataframeLibrary::Polars | DataframeLibrary::Pyarrow => format!("{name}.slice(10, 10)"),
    };
    format!("\n(`{name}` holds all of it: show other parts, such as `{rows}`, or summarise it)")
}
