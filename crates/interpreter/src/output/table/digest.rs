//! A hash of a table's columns and values.
//!
//! It does not depend on batches, on the width of offsets, or on what null values hide, so that
//! equal tables have equal hashes whichever program and version wrote their files.

use arrow_array::cast::AsArray as _;
use arrow_array::{Array, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_data::ArrayData;
use arrow_schema::{DataType, Schema};
use cellblock_artifact::ArtifactId;
use sha2::{Digest as _, Sha256};

/// A table's hash while its batches are read.
pub(super) struct TableDigest(Vec<ColumnDigest>);

/// A column's hashes, and those of the columns inside it. With one hash for both, batches would show.
struct ColumnDigest {
    /// Of the name, the type, and which rows have values.
    rows: Sha256,
    values: Sha256,
    children: Vec<Self>,
}

impl TableDigest {
    pub(super) fn new(schema: &Schema) -> Self {
        let fields = schema.fields().iter();
        Self(
            fields
                .map(|it| ColumnDigest::new(it.name(), it.data_type()))
                .collect(),
        )
    }

    pub(super) fn take(&mut self, batch: &RecordBatch) {
        for (digest, column) in self.0.iter_mut().zip(batch.columns()) {
            digest.take(column);
        }
    }

    /// Returns the hash as hexadecimal digits.
    pub(super) fn finish(self) -> String {
        let columns: Vec<u8> = self.0.into_iter().flat_map(ColumnDigest::finish).collect();
        ArtifactId::of(&columns).to_string()
    }
}

impl ColumnDigest {
    fn new(name: &str, data_type: &DataType) -> Self {
        let mut rows = Sha256::new();
        let children = match data_type {
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::FixedSizeList(item, _)
            | DataType::Map(item, _) => {
                vec![Self::new("item", item.data_type())]
            }
            DataType::Struct(fields) => fields
                .iter()
                .map(|it| Self::new(it.name(), it.data_type()))
                .collect(),
            _ => Vec::new(),
        };
        let kind = match data_type {
            DataType::Utf8 | DataType::LargeUtf8 => "text".to_owned(),
            DataType::Binary | DataType::LargeBinary => "bytes".to_owned(),
            DataType::List(_) | DataType::LargeList(_) => "list".to_owned(),
            DataType::FixedSizeList(_, size) => format!("list of {size}"),
            DataType::Map(..) => "map".to_owned(),
            DataType::Struct(fields) => format!("struct of {}", fields.len()),
            plain => plain.to_string(),
        };
        for text in [name, &kind] {
            rows.update((text.len() as u64).to_le_bytes());
            rows.update(text);
        }
        Self {
            rows,
            values: Sha256::new(),
            children,
        }
    }

    fn take(&mut self, array: &dyn Array) {
        let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        self.take_nulls(nulls.as_ref(), array.len());
        let runs = runs(nulls.as_ref(), array.len());
        match array.data_type() {
            DataType::Null => {}
            DataType::Boolean => {
                let values = array.as_boolean();
                for (start, end) in runs {
                    let bytes: Vec<u8> = (start..end).map(|at| values.value(at).into()).collect();
                    self.values.update(bytes);
                }
            }
            DataType::Utf8 => self.take_slices(&runs, |at| array.as_string::<i32>().value(at).as_bytes()),
            DataType::LargeUtf8 => {
                self.take_slices(&runs, |at| array.as_string::<i64>().value(at).as_bytes());
            }
            DataType::Binary => self.take_slices(&runs, |at| array.as_binary::<i32>().value(at)),
            DataType::LargeBinary => self.take_slices(&runs, |at| array.as_binary::<i64>().value(at)),
            DataType::List(_) => self.take_lists(&runs, |at| array.as_list::<i32>().value(at)),
            DataType::LargeList(_) => self.take_lists(&runs, |at| array.as_list::<i64>().value(at)),
            DataType::FixedSizeList(..) => self.take_lists(&runs, |at| array.as_fixed_size_list().value(at)),
            DataType::Map(..) => {
                self.take_lists(&runs, |at| std::sync::Arc::new(array.as_map().value(at)) as _);
            }
            DataType::Struct(_) => {
                let columns = array.as_struct().columns();
                for (start, end) in runs {
                    for (child, column) in self.children.iter_mut().zip(columns) {
                        child.take(&column.slice(start, end - start));
                    }
                }
            }
            _ => self.take_fixed(&array.to_data(), &runs),
        }
    }

    fn take_nulls(&mut self, nulls: Option<&NullBuffer>, rows: usize) {
        let valid: Vec<u8> = match nulls {
            Some(nulls) => nulls.iter().map(u8::from).collect(),
            None => vec![1; rows],
        };
        self.rows.update(valid);
    }

    /// Takes values of the same width, which are side by side.
    fn take_fixed(&mut self, data: &ArrayData, runs: &[(usize, usize)]) {
        let width = match data.data_type() {
            DataType::FixedSizeBinary(size) => usize::try_from(*size).unwrap_or_default(),
            plain => plain.primitive_width().unwrap_or_default(),
        };
        let Some(values) = data.buffers().first() else {
            return;
        };
        for (start, end) in runs {
            let (start, end) = (data.offset() + start, data.offset() + end);
            self.values.update(&values[start * width..end * width]);
        }
    }

    fn take_slices<'a>(&mut self, runs: &[(usize, usize)], value: impl Fn(usize) -> &'a [u8]) {
        for at in runs.iter().flat_map(|(start, end)| *start..*end) {
            let bytes = value(at);
            self.values.update((bytes.len() as u64).to_le_bytes());
            self.values.update(bytes);
        }
    }

    fn take_lists(&mut self, runs: &[(usize, usize)], value: impl Fn(usize) -> arrow_array::ArrayRef) {
        for at in runs.iter().flat_map(|(start, end)| *start..*end) {
            let items = value(at);
            self.values.update((items.len() as u64).to_le_bytes());
            for child in &mut self.children {
                child.take(&items);
            }
        }
    }

    fn finish(mut self) -> [u8; 32] {
        self.rows.update(self.values.finalize());
        for child in self.children {
            self.rows.update(child.finish());
        }
        self.rows.finalize().into()
    }
}

/// Returns the ranges of rows that have values.
fn runs(nulls: Option<&NullBuffer>, rows: usize) -> Vec<(usize, usize)> {
    match nulls {
        Some(nulls) => nulls.valid_slices().collect(),
        None => vec![(0, rows)],
    }
}
