//! Draws a data frame as a table that fits the width.

use cellblock_interpreter::output::Dataframe;
pub(crate) use cellblock_interpreter::text::plural;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use serde_json::Value;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{FAINT, STRONG, styled};
use crate::sanitize;

/// The widest that one column may be; longer values are cut.
const WIDEST: usize = 40;
/// Decimals of a number that are shown.
const DECIMALS: usize = 6;

/// Draws the head and the tail of a table, with the types of its columns and what is left out.
pub(crate) fn draw(frame: &Dataframe, width: usize) -> String {
    let shown = frame.head.len() + frame.tail.len();
    let hidden = frame.rows.saturating_sub(shown as u64);
    let columns: Vec<_> = (0..frame.columns.len())
        .map(|index| RenderedColumn::of(frame, index, hidden > 0))
        .collect();
    let fitting = fitting(&columns, width);
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Disabled);
    let cut = fitting < columns.len();
    let dots = || cut.then(|| Cell::new("…"));
    let heads = columns[..fitting].iter().map(RenderedColumn::head);
    table.set_header(heads.chain(dots()).collect::<Vec<_>>());
    for row in 0..columns.first().map_or(0, |column| column.values.len()) {
        let cells = columns[..fitting].iter().map(|column| column.cell(row));
        table.add_row(cells.chain(dots()).collect::<Vec<_>>());
    }
    let mut drawn = title(frame);
    if !columns.is_empty() {
        drawn.push('\n');
        drawn.push_str(&table.to_string());
    }
    if hidden > 0 {
        drawn.push_str(&remark(&format!(
            "… {} more {}",
            grouped(hidden),
            plural(hidden, "row")
        )));
    }
    if cut {
        drawn.push_str(&remark(&left_out(frame, fitting)));
    }
    if let Some(note) = &frame.note {
        drawn.push_str(&remark(&sanitize::line(note)));
    }
    drawn
}

fn title(frame: &Dataframe) -> String {
    let rows = format!(
        "{} {}",
        grouped(frame.rows),
        plural(frame.rows, if frame.series { "value" } else { "row" })
    );
    let columns = frame.columns.len().saturating_sub(frame.index.len()) as u64;
    let size = if frame.series {
        rows
    } else {
        format!("{rows} × {columns} {}", plural(columns, "column"))
    };
    match &frame.name {
        Some(name) => format!(
            "{} {}",
            styled(STRONG, &sanitize::line(name)),
            styled(FAINT, &size)
        ),
        None => styled(FAINT, &size),
    }
}

fn remark(text: &str) -> String {
    format!("\n{}", styled(FAINT, text))
}

fn left_out(frame: &Dataframe, fitting: usize) -> String {
    const NAMED: usize = 8;
    let left = &frame.columns[fitting..];
    let mut names: Vec<_> = left
        .iter()
        .take(NAMED)
        .map(|column| cut(&sanitize::line(&column.name)))
        .collect();
    if left.len() > NAMED {
        names.push("…".to_owned());
    }
    format!(
        "… {} more {}: {}",
        left.len(),
        plural(left.len() as u64, "column"),
        names.join(", ")
    )
}

/// Width of the column of dots that represents those left out.
const DOTS: usize = 4;

/// Returns the number of columns that fit; at least one is shown, however wide.
fn fitting(columns: &[RenderedColumn], width: usize) -> usize {
    // A border and a blank on each side of a column, and the border at the end.
    let needs = |columns: &[RenderedColumn]| columns.iter().map(|column| column.width + 3).sum::<usize>() + 1;
    if needs(columns) <= width {
        return columns.len();
    }
    let fits = (1..columns.len())
        .rev()
        .find(|count| needs(&columns[..*count]) + DOTS <= width);
    fits.unwrap_or(columns.len().min(1))
}

/// A column ready to be drawn.
struct RenderedColumn {
    name: String,
    dtype: String,
    values: Vec<String>,
    width: usize,
    is_number: bool,
}

impl RenderedColumn {
    fn of(frame: &Dataframe, index: usize, gap: bool) -> Self {
        let column = &frame.columns[index];
        let values: Vec<_> = frame
            .head
            .iter()
            .chain(&frame.tail)
            .map(|row| row.get(index).unwrap_or(&Value::Null))
            .collect();
        let decimals = decimals(&values);
        let mut values: Vec<_> = values
            .into_iter()
            .map(|value| cut(&show(value, decimals)))
            .collect();
        if gap {
            values.insert(frame.head.len(), "…".to_owned());
        }
        let name = cut(&sanitize::line(&column.name));
        let dtype = cut(&sanitize::line(&column.dtype));
        let width = values
            .iter()
            .chain([&name, &dtype])
            .map(|text| text.width())
            .max()
            .unwrap_or_default();
        let is_number = is_number(&column.dtype);
        Self {
            name,
            dtype,
            values,
            width,
            is_number,
        }
    }

    fn alignment(&self) -> CellAlignment {
        if self.is_number {
            CellAlignment::Right
        } else {
            CellAlignment::Left
        }
    }

    fn head(&self) -> Cell {
        Cell::new(format!("{}\n{}", self.name, self.dtype)).set_alignment(self.alignment())
    }

    fn cell(&self, row: usize) -> Cell {
        Cell::new(&self.values[row]).set_alignment(self.alignment())
    }
}

/// Whether a library's name of a type, such as `Int64`, `double` or `decimal128(5, 2)`, is one of numbers.
fn is_number(dtype: &str) -> bool {
    let dtype = dtype.to_ascii_lowercase();
    let numbers = [
        "int",
        "uint",
        "float",
        "double",
        "decimal",
        "halffloat",
        "complex",
    ];
    numbers.iter().any(|name| {
        dtype
            .strip_prefix(name)
            .is_some_and(|rest| !rest.starts_with("erval"))
    })
}

/// Decimals that show every number of a column as exactly as the most exact one needs, within reason.
fn decimals(values: &[&Value]) -> usize {
    let needs = |value: &&Value| match value {
        Value::Number(number) if number.is_f64() => number.as_f64().map(|number| {
            let text = format!("{number:.DECIMALS$}");
            text.trim_end_matches('0')
                .split_once('.')
                .map_or(0, |(_, fraction)| fraction.len())
                .max(1)
        }),
        _ => None,
    };
    values.iter().filter_map(needs).max().unwrap_or_default()
}

fn show(value: &Value, decimals: usize) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => sanitize::line(text),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => show_float(float, decimals),
            _ => number.to_string(),
        },
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => sanitize::line(&value.to_string()),
    }
}

fn show_float(number: f64, decimals: usize) -> String {
    let size = number.abs();
    if size != 0.0 && !(1e-4..1e15).contains(&size) {
        return format!("{number:.4e}");
    }
    format!("{number:.decimals$}")
}

/// Cuts text to the widest column.
fn cut(text: &str) -> String {
    if text.width() <= WIDEST {
        return text.to_owned();
    }
    let mut cut = String::new();
    let mut width = 1;
    for c in text.chars() {
        width += c.width().unwrap_or_default();
        if width > WIDEST {
            break;
        }
        cut.push(c);
    }
    cut.push('…');
    cut
}

/// A number with its thousands apart.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A count and what it counts, such as `1 row` or `2,000 rows`.
pub(crate) fn counted(count: impl TryInto<u64>, word: &str) -> String {
    // Nothing that is shown counts below 0.
    let count = count.try_into().unwrap_or_default();
    format!("{} {}", grouped(count), plural(count, word))
}

#[cfg(test)]
mod tests {
    use cellblock_interpreter::output::{Column, DataframeLibrary};
    use serde_json::json;

    use super::*;

    fn frame(columns: &[(&str, &str)], head: Vec<Vec<Value>>, tail: Vec<Vec<Value>>, rows: u64) -> Dataframe {
        let columns = columns.iter().map(|(name, dtype)| Column {
            name: (*name).into(),
            dtype: (*dtype).into(),
            arrow_type: String::new(),
            nulls: 0,
        });
        Dataframe {
            name: Some("sales".into()),
            library: DataframeLibrary::Pandas,
            rows,
            rows_stored: rows,
            complete: true,
            columns: columns.collect(),
            index: Vec::new(),
            series: false,
            head,
            tail,
            table: None,
            note: None,
        }
    }

    fn plain(frame: &Dataframe, width: usize) -> String {
        anstream::adapter::strip_str(&draw(frame, width)).to_string()
    }

    #[test]
    fn one_is_counted_without_an_s() {
        assert_eq!(
            [
                counted(0_u64, "row"),
                counted(1_usize, "row"),
                counted(2000_i64, "row")
            ],
            ["0 rows", "1 row", "2,000 rows"]
        );
    }

    #[test]
    fn numbers_are_aligned_and_types_are_shown() {
        let frame = frame(
            &[("city", "object"), ("price", "float64"), ("n", "int64")],
            vec![
                vec![json!("Oslo"), json!(1.5), json!(10)],
                vec![json!(null), json!(22.25), json!(7)],
            ],
            vec![],
            2,
        );
        insta::assert_snapshot!(plain(&frame, 80), @r"
        sales 2 rows × 3 columns
        ┌────────┬─────────┬───────┐
        │ city   ┆   price ┆     n │
        │ object ┆ float64 ┆ int64 │
        ╞════════╪═════════╪═══════╡
        │ Oslo   ┆    1.50 ┆    10 │
        │ null   ┆   22.25 ┆     7 │
        └────────┴─────────┴───────┘
        ");
    }

    #[test]
    fn what_is_left_out_is_counted_and_named() {
        let row = |n: i64| vec![json!(n), json!("a".repeat(60)), json!(true)];
        let frame = frame(
            &[("n", "int64"), ("text", "str"), ("flag", "bool")],
            vec![row(1)],
            vec![row(1_234_567)],
            1_234_567,
        );
        insta::assert_snapshot!(plain(&frame, 60), @r"
        sales 1,234,567 rows × 3 columns
        ┌─────────┬──────────────────────────────────────────┬───┐
        │       n ┆ text                                     ┆ … │
        │   int64 ┆ str                                      ┆   │
        ╞═════════╪══════════════════════════════════════════╪═══╡
        │       1 ┆ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa… ┆ … │
        │       … ┆ …                                        ┆ … │
        │ 1234567 ┆ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa… ┆ … │
        └─────────┴──────────────────────────────────────────┴───┘
        … 1,234,565 more rows
        … 1 more column: flag
        ");
    }

    #[test]
    fn a_drawn_table_is_never_wider_than_asked_unless_one_column_is() {
        let names: Vec<_> = (0..30).map(|n| format!("column_{n}")).collect();
        let columns: Vec<_> = names.iter().map(|name| (name.as_str(), "float64")).collect();
        let row = (0..30).map(|n| json!(f64::from(n) / 7.0)).collect();
        let frame = frame(&columns, vec![row], vec![], 1);
        for width in [30, 80, 120] {
            let drawn = plain(&frame, width);
            let widest = drawn
                .lines()
                .take_while(|line| !line.starts_with("… "))
                .map(UnicodeWidthStr::width)
                .max()
                .unwrap();
            assert!(widest <= width, "{widest} > {width}");
        }
    }

    #[test]
    fn hostile_names_and_values_stay_in_their_cells() {
        let frame = frame(
            &[("a\nb\x1b[2J", "object")],
            vec![vec![json!("x\ry\u{202e}")]],
            vec![],
            1,
        );
        let drawn = plain(&frame, 80);
        assert!(
            drawn.contains("a\\nb\\x1b[2J") && drawn.contains("x\\ry\\u{202e}"),
            "{drawn}"
        );
        assert!(
            !drawn
                .chars()
                .any(|c| c != '\n' && cellblock_interpreter::text::acts(c))
        );
    }

    #[test]
    fn numbers_are_shown_without_noise() {
        let column = [json!(0.1 + 0.2), json!(2.0), json!(1e-9), json!(1e20)];
        let decimals = decimals(&column.iter().collect::<Vec<_>>());
        let shown: Vec<_> = column.iter().map(|value| show(value, decimals)).collect();
        assert_eq!(shown, ["0.3", "2.0", "1.0000e-9", "1.0000e20"]);
        assert!(is_number("uint8") && is_number("Float64") && is_number("decimal128(5, 2)"));
        assert!(!is_number("interval[int64, right]") && !is_number("object"));
    }

    #[test]
    fn an_index_is_shown_and_not_counted() {
        let mut frame = frame(
            &[("year", "int64"), ("a", "int64")],
            vec![vec![json!(2001), json!(1)]],
            vec![],
            1,
        );
        frame.index = vec!["year".into()];
        assert_eq!(plain(&frame, 80).lines().next(), Some("sales 1 row × 1 column"));
        frame.series = true;
        assert_eq!(plain(&frame, 80).lines().next(), Some("sales 1 value"));
    }

    #[test]
    fn a_table_without_columns_has_a_title() {
        assert_eq!(
            plain(&frame(&[], vec![], vec![], 0), 80),
            "sales 0 rows × 0 columns"
        );
    }
}
