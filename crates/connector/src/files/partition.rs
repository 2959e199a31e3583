//! Columns whose values are in the names of folders, such as `year=2025`.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringArray};
use arrow_schema::{DataType, Field, Schema};
use percent_encoding::percent_decode_str;

use super::root::FileMatch;

/// Text that Hive and its descendants write for null.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// The values of a file.
type Pairs = Vec<(String, Option<String>)>;

/// The columns of folders, and their values for each file.
#[derive(Debug)]
pub(super) struct Partitions {
    pub(super) fields: Vec<Field>,
    values: Vec<Pairs>,
}

impl Partitions {
    /// Reads the folders of files. A column whose values are all whole numbers is one of integers.
    pub(super) fn new(files: &[FileMatch]) -> Result<Self, String> {
        let values: Vec<Pairs> = files.iter().map(|found| pairs(&found.path)).collect();
        let mut fields = Vec::new();
        let names = |pairs: &Pairs| pairs.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        let first = values.first().map(names).unwrap_or_default();
        if let Some(place) = values.iter().position(|pairs| names(pairs) != first) {
            return Err(format!(
                "`{}` and `{}` are in folders of different keys",
                files[0].path, files[place].path
            ));
        }
        for (column, name) in first.into_iter().enumerate() {
            let mut texts = values.iter().filter_map(|pairs| pairs[column].1.as_deref());
            let kind = if texts.all(|text| text.parse::<i64>().is_ok()) {
                DataType::Int64
            } else {
                DataType::Utf8
            };
            fields.push(Field::new(name, kind, true));
        }
        Ok(Self { fields, values })
    }

    /// Returns the columns of a file without those that its folders name, which may be in both.
    pub(super) fn without(&self, schema: &Schema) -> Schema {
        let fields = schema.fields().iter();
        let fields = fields.filter(|field| self.fields.iter().all(|it| it.name() != field.name()));
        Schema::new(fields.cloned().collect::<Vec<_>>())
    }

    /// Returns the column of a file, in so many rows, if it is one of folders.
    pub(super) fn column(&self, file: usize, name: &str, rows: usize) -> Option<ArrayRef> {
        let column = self.fields.iter().position(|field| field.name() == name)?;
        let text = self.values[file][column].1.as_deref();
        Some(if *self.fields[column].data_type() == DataType::Int64 {
            let number = text.and_then(|text| text.parse::<i64>().ok());
            Arc::new(Int64Array::from(vec![number; rows]))
        } else {
            Arc::new(StringArray::from(vec![text; rows]))
        })
    }
}

fn pairs(path: &str) -> Pairs {
    let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
    let pairs = folders.split('/').filter_map(|folder| folder.split_once('='));
    pairs
        .map(|(key, value)| {
            let value = (value != NULL).then(|| percent_decode_str(value).decode_utf8_lossy().into_owned());
            (key.to_owned(), value)
        })
        .collect()
}
