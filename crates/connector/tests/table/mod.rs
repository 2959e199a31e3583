//! A table of an answer as text, which tests of several connectors compare.

use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_ipc::reader::StreamReader;
use arrow_schema::SchemaRef;
use cellblock_interpreter::connector::FetchAnswer;

/// Returns the columns of a table, and each row with its values between separators.
pub(crate) fn rows(answer: FetchAnswer, separator: &str) -> (SchemaRef, Vec<String>) {
    let FetchAnswer::Arrow(stream) = answer else {
        panic!("no table")
    };
    let reader = StreamReader::try_new(stream.reader(), None).unwrap();
    let schema = reader.schema();
    let mut rows = Vec::new();
    for batch in reader {
        let batch = batch.unwrap();
        let options = FormatOptions::default().with_null("null");
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options).unwrap())
            .collect();
        rows.extend((0..batch.num_rows()).map(|row| {
            let cells = columns.iter().map(|column| column.value(row).to_string());
            cells.collect::<Vec<_>>().join(separator)
        }));
    }
    (schema, rows)
}
