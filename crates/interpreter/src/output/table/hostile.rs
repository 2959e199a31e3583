//! Malformed tables.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, ListArray, NullArray, RecordBatch, StringArray};
use arrow_buffer::OffsetBuffer;
use arrow_ipc::{
    BodyCompression, BodyCompressionArgs, Buffer, FieldNode, Message, MessageArgs, MessageHeader,
    MetadataVersion, RecordBatchArgs,
};
use arrow_schema::{DataType, Field, Schema};
use cellblock_protocol::Blob;
use flatbuffers::FlatBufferBuilder;
use proptest::prelude::*;

use super::store;
use super::tests::{announced, batch, read, stream};
use crate::output::DecodingLimits;

fn schema_of(batch: &RecordBatch) -> Vec<u8> {
    let mut bytes = stream(&[RecordBatch::new_empty(batch.schema())]);
    let length = u32::from_le_bytes(*bytes[4..].first_chunk().unwrap()) as usize;
    bytes.truncate(8 + length);
    bytes
}

/// Encodes a batch with arbitrary metadata.
fn lie(rows: i64, nodes: &[(i64, i64)], buffers: &[(i64, i64)], compressed: bool, body: &[u8]) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let nodes: Vec<_> = nodes
        .iter()
        .map(|(length, nulls)| FieldNode::new(*length, *nulls))
        .collect();
    let buffers: Vec<_> = buffers
        .iter()
        .map(|(offset, length)| Buffer::new(*offset, *length))
        .collect();
    let nodes = builder.create_vector(&nodes);
    let buffers = builder.create_vector(&buffers);
    let compression =
        compressed.then(|| BodyCompression::create(&mut builder, &BodyCompressionArgs::default()));
    let fields = RecordBatchArgs {
        length: rows,
        nodes: Some(nodes),
        buffers: Some(buffers),
        compression,
        ..RecordBatchArgs::default()
    };
    let header = arrow_ipc::RecordBatch::create(&mut builder, &fields).as_union_value();
    let message = MessageArgs {
        version: MetadataVersion::V5,
        header_type: MessageHeader::RecordBatch,
        header: Some(header),
        bodyLength: i64::try_from(body.len()).unwrap(),
        custom_metadata: None,
    };
    let message = Message::create(&mut builder, &message);
    builder.finish(message, None);
    let description = builder.finished_data();
    let padded = description.len().next_multiple_of(8);
    let mut bytes = vec![0xff; 4];
    bytes.extend(u32::try_from(padded).unwrap().to_le_bytes());
    bytes.extend(description);
    bytes.resize(8 + padded, 0);
    bytes.extend(body);
    bytes
}

fn integers() -> RecordBatch {
    batch(vec![("n", Arc::new(Int64Array::from(vec![1, 2])))])
}

fn refused_for(template: &RecordBatch, rows: u64, message: &[u8], expected: &str) {
    let bytes = [schema_of(template), message.to_vec()].concat();
    let said = cellblock_protocol::Dataframe {
        rows,
        ..announced(template, 0)
    };
    let error = read(&said, bytes).unwrap_err();
    let text = match std::error::Error::source(&error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    };
    assert!(text.contains(expected), "{text}\ndoes not contain\n{expected}");
    assert!(error.is_from_the_kernel());
}

#[test]
fn the_valid_form_of_these_batches_is_accepted() {
    let bytes = [
        schema_of(&integers()),
        lie(2, &[(2, 0)], &[(0, 0), (0, 16)], false, &[0; 16]),
    ]
    .concat();
    assert_eq!(read(&announced(&integers(), 2), bytes).unwrap().head.len(), 2);
}

#[test]
fn batches_with_wrong_lengths_are_rejected() {
    let n = integers();
    let body = [0; 16];
    for (message, expected) in [
        (
            lie(1 << 60, &[(1 << 60, 0)], &[(0, 0), (0, 16)], false, &body),
            "Arrow batch in rows of 1152921504606846976",
        ),
        (
            lie(-1, &[(2, 0)], &[(0, 0), (0, 16)], false, &body),
            "a batch has a negative length",
        ),
        (
            lie(2, &[(1 << 60, 0)], &[(0, 0), (0, 16)], false, &body),
            "length of a column is not that of its batch",
        ),
        (
            lie(2, &[(2, 3)], &[(0, 0), (0, 16)], false, &body),
            "length of a column is not that of its batch",
        ),
        (
            lie(2, &[(2, -1)], &[(0, 0), (0, 16)], false, &body),
            "length of a column is not that of its batch",
        ),
        (
            lie(2, &[(2, 0)], &[(0, 0), (8, 16)], false, &body),
            "a buffer lies outside of its message",
        ),
        (
            lie(2, &[(2, 0)], &[(0, 0), (i64::MAX, 16)], false, &body),
            "a buffer lies outside of its message",
        ),
        (
            lie(2, &[(2, 0)], &[(0, 0), (-8, 16)], false, &body),
            "a buffer has a negative length or place",
        ),
        (
            lie(2, &[(2, 0)], &[(0, 0), (0, i64::MIN)], false, &body),
            "a buffer has a negative length or place",
        ),
        (
            lie(2, &[(2, 0)], &[(0, 16), (0, 16)], false, &body),
            "a buffer lies outside of its message",
        ),
        (
            lie(2, &[(2, 0)], &[(0, 0)], false, &body),
            "a batch has fewer buffers than its schema",
        ),
        (
            lie(2, &[(2, 0)], &[(0, 0); 3], false, &body),
            "a batch has more buffers than its schema",
        ),
        (
            lie(2, &[], &[(0, 0), (0, 16)], false, &body),
            "a batch has fewer arrays than its schema",
        ),
        (
            lie(2, &[(2, 0)], &[(0, 0), (0, 16)], true, &body),
            "a batch is compressed; send it uncompressed",
        ),
        (
            lie(2, &[(2, 0)], &[(0, 0), (0, 8)], false, &body),
            "could not read a table from a kernel",
        ),
        (
            lie(2, &[(2, 1)], &[(0, 0), (0, 16)], false, &body),
            "could not read a table from a kernel",
        ),
        (
            lie(2, &[(2, 2)], &[(0, 0), (0, 15)], false, &body),
            "ends in the middle of a value",
        ),
        (
            lie(2, &[(2, 0)], &[(0, 0), (4, 8)], false, &body),
            "a buffer is not aligned",
        ),
    ] {
        refused_for(&n, 2, &message, expected);
    }
}

#[test]
fn strings_with_wrong_offsets_or_bytes_are_rejected() {
    let text = batch(vec![("s", Arc::new(StringArray::from(vec!["ab"])))]);
    let offsets = |from: i32, to: i32| [from.to_le_bytes(), to.to_le_bytes(), *b"\xff\xfeab"].concat();
    for body in [offsets(0, 100), offsets(-4, 2), offsets(2, 0), offsets(0, 2)] {
        let message = lie(1, &[(1, 0)], &[(0, 0), (0, 8), (8, 4)], false, &body);
        refused_for(&text, 1, &message, "could not read a table from a kernel");
    }
}

#[test]
fn lists_longer_than_their_bytes_are_rejected() {
    let item = Arc::new(Field::new("item", DataType::Null, true));
    let lists = ListArray::new(
        item,
        OffsetBuffer::from_lengths([1]),
        Arc::new(NullArray::new(1)),
        None,
    );
    let lists = batch(vec![("l", Arc::new(lists))]);
    let message = lie(
        1,
        &[(1, 0), (1 << 40, 1 << 40)],
        &[(0, 0), (0, 8)],
        false,
        &[0, 0, 0, 0, 1, 0, 0, 0],
    );
    refused_for(&lists, 1, &message, "an array is longer than its bytes");
}

#[test]
fn a_decimal_with_too_many_digits_is_rejected() {
    for most in [
        DataType::Decimal32(9, 2),
        DataType::Decimal64(18, 2),
        DataType::Decimal128(38, 2),
        DataType::Decimal256(76, 2),
    ] {
        let over = match most {
            DataType::Decimal32(precision, scale) => DataType::Decimal32(precision + 1, scale),
            DataType::Decimal64(precision, scale) => DataType::Decimal64(precision + 1, scale),
            DataType::Decimal128(precision, scale) => DataType::Decimal128(precision + 1, scale),
            _ => DataType::Decimal256(77, 2),
        };
        let empty = |kind: DataType| {
            let schema = Schema::new(vec![Field::new("d", kind, true)]);
            RecordBatch::new_empty(Arc::new(schema))
        };
        let table = empty(most);
        assert!(read(&announced(&table, 0), stream(&[table])).is_ok());
        // Only a schema is sent, as no valid array has such a type.
        let table = empty(over);
        let error = read(&announced(&table, 0), schema_of(&table))
            .unwrap_err()
            .to_string();
        assert!(
            error.ends_with("is a decimal of more digits than its bytes hold"),
            "{error}"
        );
    }
}

#[test]
fn nested_lists_share_a_cells_limit() {
    let sizes = [20, 20, 20, 12, 6, 3];
    let mut lists: ArrayRef = Arc::new(BooleanArray::from(vec![true; sizes.iter().product()]));
    for size in sizes.into_iter().rev() {
        let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(size, lists.len() / size));
        let item = Arc::new(Field::new("item", lists.data_type().clone(), true));
        lists = Arc::new(ListArray::new(item, offsets, lists, None));
    }
    let lists = batch(vec![("l", lists)]);
    let table = read(&announced(&lists, 1), stream(std::slice::from_ref(&lists))).unwrap();
    let shown = serde_json::json!(table.head).to_string();
    assert!(
        shown.len() <= 4000,
        "one cell of 1000 characters is shown in {}",
        shown.len()
    );
}

#[test]
fn columns_of_nulls_cost_no_bytes_but_are_bounded() {
    let columns: Vec<(String, ArrayRef)> = (0..100)
        .map(|at| (at.to_string(), Arc::new(NullArray::new(1)) as ArrayRef))
        .collect();
    let nulls = RecordBatch::try_from_iter(columns).unwrap();
    let message = lie(1 << 20, &[(1 << 20, 1 << 20); 100], &[], false, b"");
    refused_for(
        &nulls,
        1 << 20,
        &message,
        "table in cells of 104857600 from a kernel is over the limit of ",
    );
}

#[test]
fn a_wrong_number_of_rows_is_rejected() {
    let n = integers();
    let expected = "it has more than the 1 rows that were announced";
    assert!(
        read(&announced(&n, 1), stream(std::slice::from_ref(&n)))
            .unwrap_err()
            .to_string()
            .ends_with(expected)
    );
    let expected = "it has 2 rows where 3 were announced";
    assert!(
        read(&announced(&n, 3), stream(std::slice::from_ref(&n)))
            .unwrap_err()
            .to_string()
            .ends_with(expected)
    );
}

#[test]
fn undeclared_columns_are_rejected() {
    let n = integers();
    let mut said = announced(&n, 2);
    said.columns[0].name = "m".into();
    let error = read(&said, stream(std::slice::from_ref(&n)))
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with("the names of its columns are not those of its stream"),
        "{error}"
    );
    said.columns.clear();
    let error = read(&said, stream(&[n])).unwrap_err().to_string();
    assert!(
        error.ends_with("0 columns are listed, but its stream has 1"),
        "{error}"
    );
}

#[test]
fn deep_types_and_too_many_columns_are_rejected() {
    let deep = (0..40).fold(DataType::Int64, |inner, _| {
        DataType::List(Arc::new(Field::new("item", inner, true)))
    });
    let deep = RecordBatch::new_empty(Arc::new(Schema::new(vec![Field::new("d", deep, true)])));
    let error = read(&announced(&deep, 0), stream(std::slice::from_ref(&deep)))
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "nesting of a column's type of 33 from a kernel is over the limit of 32"
    );
    let deeper = (0..70).fold(DataType::Int64, |inner, _| {
        DataType::List(Arc::new(Field::new("item", inner, true)))
    });
    let deeper = RecordBatch::new_empty(Arc::new(Schema::new(vec![Field::new("d", deeper, true)])));
    let error = read(&announced(&deeper, 0), stream(std::slice::from_ref(&deeper)))
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with("the description of a message is not a valid flatbuffer"),
        "{error}"
    );
    let fields: Vec<_> = (0..10_001)
        .map(|at| Field::new(at.to_string(), DataType::Int8, true))
        .collect();
    let wide = RecordBatch::new_empty(Arc::new(Schema::new(fields)));
    let error = read(&announced(&wide, 0), stream(std::slice::from_ref(&wide)))
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "table in columns of 10001 from a kernel is over the limit of 10000"
    );
}

#[test]
fn a_truncated_stream_is_rejected_or_short() {
    let n = integers();
    let bytes = stream(std::slice::from_ref(&n));
    // The last eight bytes are the optional end marker.
    for end in 0..bytes.len() - 8 {
        assert!(read(&announced(&n, 2), bytes[..end].to_vec()).is_err(), "{end}");
    }
    assert!(read(&announced(&n, 2), bytes[..bytes.len() - 8].to_vec()).is_ok());
}

#[test]
fn declared_gigabytes_are_rejected_before_allocation() {
    let mut bytes = schema_of(&integers());
    bytes.extend([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0x7f]);
    let error = read(&announced(&integers(), 2), bytes).unwrap_err().to_string();
    assert!(
        error.contains("description of an Arrow message in bytes of 2130706432"),
        "{error}"
    );
    let limits = DecodingLimits {
        batch_bytes: 8,
        ..DecodingLimits::default()
    };
    let error = store(
        &announced(&integers(), 2),
        &Blob::Memory(stream(&[integers()])),
        &limits,
        std::io::sink(),
    )
    .unwrap_err();
    assert!(error.to_string().contains("Arrow batch in bytes"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_changed_bytes_are_read_or_rejected(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)
    ) {
        let text: ArrayRef = Arc::new(StringArray::from(vec![Some("ab"), None]));
        let lists = [Some(vec![Some(1)]), None];
        let list = ListArray::from_iter_primitive::<arrow_array::types::Int32Type, _, _>(lists);
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        let original = batch(vec![("s", text), ("l", Arc::new(list)), ("n", numbers)]);
        let mut bytes = stream(std::slice::from_ref(&original));
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        drop(read(&announced(&original, 2), bytes));
    }

    #[test]
    fn any_bytes_are_rejected(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(read(&announced(&integers(), 2), bytes).is_err());
    }
}
