//! Parquet files: only the columns, row groups and rows that an answer needs are read.

use std::ops::Range;

use arrow_array::ArrayRef;
use arrow_cast::cast;
use arrow_schema::{ArrowError, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::arrow::arrow_reader::{
    ArrowPredicate, ArrowPredicateFn, ParquetRecordBatchReaderBuilder as Builder, RowFilter,
};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::schema::types::SchemaDescriptor;

use super::condition::{Condition, Statistics};
use super::format::{BATCH, Batches, Part};
use super::table_file::TableFile;
use super::types::plain;

pub(super) fn schema(file: &TableFile) -> Result<SchemaRef, String> {
    Ok(file.footer()?.schema().clone())
}

pub(super) fn batches(file: &TableFile, part: Part<'_>, limit: Option<usize>) -> Result<Batches, String> {
    let footer = file.footer()?.clone();
    let mut builder = Builder::new_with_metadata(file.clone(), footer);
    let mut predicates: Vec<Box<dyn ArrowPredicate>> = Vec::new();
    let mut masks = Vec::new();
    let mut groups: Vec<usize> = (0..builder.metadata().num_row_groups()).collect();
    for condition in part.conditions {
        let possible = possible(&builder, &condition, part.schema);
        groups.retain(|group| possible[*group]);
        let column = [condition.column.as_str()];
        let mask = roots(builder.schema(), builder.parquet_schema(), &column);
        masks.push(mask.clone());
        let kind = part.schema.field_with_name(&condition.column);
        let kind = kind.map_err(|error| error.to_string())?.data_type().clone();
        predicates.push(Box::new(ArrowPredicateFn::new(mask, move |batch| {
            condition.holds(&cast(batch.column(0), &kind)?)
        })));
    }
    let columns: Vec<&str> = part.columns.iter().map(String::as_str).collect();
    let mask = roots(builder.schema(), builder.parquet_schema(), &columns);
    masks.push(mask.clone());
    file.want(|| wanted(builder.metadata(), &groups, &masks));
    builder = builder
        .with_batch_size(BATCH)
        .with_row_groups(groups)
        .with_projection(mask)
        .with_row_filter(RowFilter::new(predicates));
    if let Some(limit) = limit {
        builder = builder.with_limit(limit);
    }
    Ok(Box::new(builder.build().map_err(|error| error.to_string())?))
}

/// Returns the ranges of column chunks, those of a row group and of a step of reading together.
fn wanted(metadata: &ParquetMetaData, groups: &[usize], masks: &[ProjectionMask]) -> Vec<Vec<Range<u64>>> {
    let groups = groups.iter().map(|group| metadata.row_group(*group).columns());
    let steps = groups.flat_map(|columns| masks.iter().map(move |mask| (columns, mask)));
    steps
        .map(|(columns, mask)| {
            let read = columns
                .iter()
                .enumerate()
                .filter(|(leaf, _)| mask.leaf_included(*leaf));
            let ranges = read.map(|(_, column)| column.byte_range());
            ranges.map(|(start, length)| start..start + length).collect()
        })
        .collect()
}

/// Selects columns with all that is in them.
fn roots(schema: &Schema, parquet: &SchemaDescriptor, columns: &[&str]) -> ProjectionMask {
    let places = columns.iter().filter_map(|column| schema.index_of(column).ok());
    ProjectionMask::roots(parquet, places)
}

/// Returns which row groups can have rows that meet a condition; without usable statistics, all.
fn possible(builder: &Builder<TableFile>, condition: &Condition, table: &Schema) -> Vec<bool> {
    let groups = builder.metadata().row_groups();
    let found = statistics(
        groups,
        builder.schema(),
        builder.parquet_schema(),
        &condition.column,
        table,
    );
    let possible = found.and_then(|found| condition.possible(&found));
    possible.unwrap_or_else(|_| vec![true; groups.len()])
}

fn statistics(
    groups: &[RowGroupMetaData],
    schema: &Schema,
    parquet: &SchemaDescriptor,
    column: &str,
    table: &Schema,
) -> Result<Statistics, ArrowError> {
    let kind = plain(table).field_with_name(column)?.data_type().clone();
    let converter = StatisticsConverter::try_new(column, schema, parquet)?;
    // A writer that leaves the count out has not said that there are none.
    let converter = converter.with_missing_null_counts_as_zero(false);
    let plain = |values: ArrayRef| cast(&values, &kind);
    Ok(Statistics {
        least: plain(converter.row_group_mins(groups)?)?,
        greatest: plain(converter.row_group_maxes(groups)?)?,
        nulls: converter.row_group_null_counts(groups)?.iter().collect(),
    })
}
