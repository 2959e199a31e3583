//! The tables of a database, in few words, so that a model can write SQL.

use std::fmt::Write as _;

use cellblock_interpreter::text::counted;

/// Maximum number of columns that are read.
pub(super) const MOST_COLUMNS: usize = 2000;
/// Maximum number of characters of the list.
const CHARS: usize = 4000;

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TableColumn {
    pub(super) table: String,
    pub(super) column: String,
    pub(super) kind: String,
}

/// Lists tables, whose columns follow each other.
pub(super) fn listed(columns: &[TableColumn]) -> String {
    let tables: Vec<_> = columns.chunk_by(|one, other| one.table == other.table).collect();
    let mut text = String::new();
    for (at, table) in tables.iter().enumerate() {
        let listed = table
            .iter()
            .map(|it| format!("{} {}", it.column, it.kind.to_lowercase()));
        let line = format!(
            "\n{}({})",
            table[0].table,
            listed
                .map(|it| it.trim_end().to_owned())
                .collect::<Vec<_>>()
                .join(", ")
        );
        if text.len() + line.len() > CHARS {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n… and {}", counted(tables.len() - at, "more table"));
            break;
        }
        text += &line;
    }
    text
}
