//! Outputs from a kernel's frame to the store.

use std::io::Write as _;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_ipc::writer::StreamWriter;
use cellblock_artifact::{Kind, Store};
use cellblock_protocol::{self as protocol, Blob, DataframeLibrary, FigureLibrary, ImageMime, Scalar};
use serde_json::json;
use tempfile::TempDir;

use super::{DecodingLimits, Output, OutputDecoder};

fn decoding() -> (TempDir, Store, OutputDecoder) {
    let folder = TempDir::new().unwrap();
    let store = Store::local(folder.path()).unwrap();
    (folder, store.clone(), OutputDecoder::new(store))
}

fn png() -> Vec<u8> {
    let chunk = |kind: &[u8; 4], data: &[u8]| {
        let mut bytes = u32::try_from(data.len()).unwrap().to_be_bytes().to_vec();
        bytes.extend(kind);
        bytes.extend(data);
        bytes.extend(crc32fast::hash(&bytes[4..]).to_be_bytes());
        bytes
    };
    let header = [&5_u32.to_be_bytes()[..], &7_u32.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
    [
        b"\x89PNG\r\n\x1a\n".to_vec(),
        chunk(b"IHDR", &header),
        chunk(b"IEND", b""),
    ]
    .concat()
}

fn table() -> (protocol::Dataframe, Vec<u8>) {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let batch = RecordBatch::try_from_iter([("n", column)]).unwrap();
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    let said = protocol::Dataframe {
        name: Some("df".into()),
        library: DataframeLibrary::Polars,
        rows: 2,
        columns: vec![protocol::Column {
            name: "n".into(),
            dtype: "Int64".into(),
        }],
        index: vec![],
        truncated: false,
        head_rows: 0,
        tail_rows: 0,
        series: false,
    };
    (said, writer.into_inner().unwrap())
}

fn figure() -> protocol::Figure {
    protocol::Figure {
        name: Some("trend".into()),
        library: FigureLibrary::Altair,
        spec: Some(json!({"mark": "line"})),
        series: vec![],
        axes: vec![],
        title: None,
        width: Some(1),
        height: Some(1),
        truncated: false,
        note: None,
        alt: None,
    }
}

#[tokio::test]
async fn a_table_is_stored_as_parquet_and_shown_with_its_types() {
    let (_folder, store, decoding) = decoding();
    let (said, bytes) = table();
    let output = decoding
        .decode(protocol::Output::Dataframe(said), vec![bytes.into()])
        .await
        .unwrap()
        .output;
    let artifact = output.artifacts()[0].clone();
    assert_eq!(
        (artifact.kind, artifact.media_type.as_str()),
        (Kind::Dataframe, "application/vnd.apache.parquet")
    );
    let stored = store.get(artifact.sha256).await.unwrap();
    assert_eq!(stored.len() as u64, artifact.bytes);
    assert_eq!(
        serde_json::to_value(&output).unwrap(),
        json!({
            "type": "dataframe", "name": "df", "library": "polars", "rows": 2, "rows_stored": 2,
            "complete": true,
            "columns": [{"name": "n", "dtype": "Int64", "arrow_type": "Int64", "nulls": 1}],
            "index": [], "series": false, "head": [[1], [null]], "tail": [],
            "table": artifact,
        })
    );
}

#[tokio::test]
async fn a_table_in_a_spilled_file_is_the_same_table() {
    let (_folder, _store, decoding) = decoding();
    let (said, bytes) = table();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bytes).unwrap();
    let spilled = Blob::File(file, bytes.len() as u64);
    let from_file = decoding
        .decode(protocol::Output::Dataframe(said.clone()), vec![spilled])
        .await
        .unwrap()
        .output;
    assert_eq!(
        decoding
            .decode(protocol::Output::Dataframe(said), vec![bytes.into()])
            .await
            .unwrap()
            .output,
        from_file
    );
}

#[tokio::test]
async fn a_cut_table_is_not_complete_and_keeps_its_honest_count() {
    let (_folder, _store, decoding) = decoding();
    let (said, bytes) = table();
    let cut = protocol::Dataframe {
        rows: 1_000_000,
        truncated: true,
        head_rows: 1,
        tail_rows: 1,
        ..said
    };
    let output = decoding
        .decode(protocol::Output::Dataframe(cut.clone()), vec![bytes.into()])
        .await
        .unwrap()
        .output;
    let Output::Dataframe(table) = output else {
        panic!("{output:?}")
    };
    assert_eq!(
        (table.rows, table.rows_stored, table.complete),
        (1_000_000, 2, false)
    );
    assert_eq!(
        (table.head, table.tail),
        (vec![vec![json!(1)]], vec![vec![json!(null)]])
    );

    let nothing = protocol::Dataframe {
        head_rows: 0,
        tail_rows: 0,
        ..cut
    };
    let output = decoding
        .decode(protocol::Output::Dataframe(nothing), vec![])
        .await
        .unwrap()
        .output;
    let Output::Dataframe(table) = output else {
        panic!("{output:?}")
    };
    assert_eq!(
        (table.rows, table.rows_stored, table.complete, table.table),
        (1_000_000, 0, false, None)
    );
    assert!(table.note.is_some());
}

#[tokio::test]
async fn a_figure_is_stored_as_a_picture_and_as_its_specification() {
    let (_folder, store, decoding) = decoding();
    let output = decoding
        .decode(protocol::Output::Figure(figure()), vec![png().into()])
        .await
        .unwrap()
        .output;
    let Output::Figure(figure) = &output else {
        panic!("{output:?}")
    };
    assert_eq!(
        (figure.width, figure.height),
        (Some(5), Some(7)),
        "the size is what the bytes say"
    );
    let kinds: Vec<_> = output
        .artifacts()
        .iter()
        .map(|it| (it.kind, it.media_type.as_str()))
        .collect();
    assert_eq!(
        kinds,
        [
            (Kind::Figure, "image/png"),
            (Kind::Figure, "application/vnd.vegalite+json")
        ]
    );
    assert_eq!(
        store.get(output.artifacts()[1].sha256).await.unwrap(),
        r#"{"mark":"line"}"#
    );
}

#[tokio::test]
async fn specifications_that_are_not_objects_or_nest_too_deeply_are_rejected() {
    let (_folder, _store, decoding) = decoding();
    let with = |spec| {
        protocol::Output::Figure(protocol::Figure {
            spec: Some(spec),
            ..figure()
        })
    };
    let error = decoding.decode(with(json!([1])), vec![]).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "chart specification from a kernel is not a JSON object"
    );
    let deep = (0..70).fold(json!(1), |inner, _| json!({ "a": inner }));
    let error = decoding.decode(with(deep), vec![]).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "nesting of a chart specification of 70 from a kernel is over the limit of 64"
    );
}

#[tokio::test]
async fn pictures_are_checked_also_in_a_bundle() {
    let (_folder, _store, decoding) = decoding();
    let bundle = |mimes: &[&str]| {
        protocol::Output::Rich(protocol::Rich {
            name: None,
            mimes: mimes.iter().map(ToString::to_string).collect(),
            text: "it".into(),
            truncated: false,
        })
    };
    let good = bundle(&["text/html", "image/png"]);
    let output = decoding
        .decode(good, vec![b"<b>".to_vec().into(), png().into()])
        .await
        .unwrap()
        .output;
    let Output::Rich(rich) = &output else {
        panic!("{output:?}")
    };
    assert_eq!(rich.bundle[0].mime, "text/html");
    assert_eq!(rich.bundle[1].artifact.bytes, png().len() as u64);
    for (mimes, blob, expected) in [
        (
            bundle(&["image/png"]),
            b"<b>".to_vec(),
            "image/png from a kernel is malformed: it ends in the middle",
        ),
        (
            bundle(&["text"]),
            vec![],
            "media type \"text\" from a kernel is not of the form type/subtype",
        ),
        (
            bundle(&["a/\u{1b}"]),
            vec![],
            "media type \"a/\\u{1b}\" from a kernel is not of the form type/subtype",
        ),
        (
            bundle(&[]),
            vec![],
            "rich from a kernel has 1 blobs where it needs 0",
        ),
    ] {
        let error = decoding.decode(mimes, vec![blob.into()]).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert!(error.is_from_the_kernel());
    }
}

#[tokio::test]
async fn outputs_with_blobs_they_do_not_need_or_without_those_they_need_are_rejected() {
    let (_folder, _store, decoding) = decoding();
    let error = decoding
        .decode(protocol::Output::Dataframe(table().0), vec![])
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "dataframe from a kernel has 0 blobs where it needs 1"
    );
    let image = protocol::Image {
        name: None,
        mime: ImageMime::Png,
        width: None,
        height: None,
        truncated: false,
    };
    let error = decoding
        .decode(protocol::Output::Image(image), vec![])
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "image from a kernel has 0 blobs where it needs 1"
    );
    let error = decoding
        .decode(
            protocol::Output::Figure(figure()),
            vec![png().into(), png().into()],
        )
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "figure from a kernel has 2 blobs where it needs 1"
    );
}

#[tokio::test]
async fn texts_are_bounded_and_secrets_of_an_exception_are_taken_out() {
    let (_folder, _store, decoding) = decoding();
    let decoding = decoding.with_limits(DecodingLimits {
        text_chars: 100,
        ..DecodingLimits::default()
    });
    let primitive = protocol::Primitive {
        name: None,
        value: Scalar::Text("x".repeat(101)),
        python_type: "str".into(),
        truncated: false,
        note: None,
    };
    let output = decoding
        .decode(protocol::Output::Primitive(primitive), vec![])
        .await
        .unwrap()
        .output;
    let Output::Primitive(primitive) = output else {
        panic!("{output:?}")
    };
    assert_eq!(
        (primitive.value, primitive.truncated),
        (Scalar::Text("x".repeat(100)), true)
    );

    let exception = protocol::Exception {
        name: None,
        exception: "ValueError".into(),
        message: "password=hunter2 is wrong".into(),
        traceback: "line 1\n    token = read()\nValueError: password=hunter2 is wrong".into(),
        frames: vec![],
        line: Some(1),
        notes: vec!["Bearer abcdefgh123".into()],
        truncated: false,
    };
    let output = decoding
        .decode(protocol::Output::Exception(exception), vec![])
        .await
        .unwrap()
        .output;
    let Output::Exception(exception) = output else {
        panic!("{output:?}")
    };
    assert_eq!(exception.message, "password=[redacted] is wrong");
    assert_eq!(
        exception.traceback,
        "line 1\n    token = read()\nValueError: password=[redacted] is wrong"
    );
    assert_eq!(
        (exception.notes, exception.truncated),
        (vec!["Bearer [redacted]".to_owned()], false)
    );
}
