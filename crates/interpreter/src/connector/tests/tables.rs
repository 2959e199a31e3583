//! Answers that are tables: what is stored of them, recorded and sent.

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use cellblock_artifact::{Kind, Store};
use object_store::memory::InMemory;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::*;

/// A connector that returns what it was made with.
#[derive(Debug)]
struct FixedConnector {
    answer: Fixture,
    redaction: Redaction,
}

#[derive(Clone, Debug)]
enum Fixture {
    Json(Value),
    Stream(Vec<u8>),
}

impl Connector for FixedConnector {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn description(&self) -> &'static str {
        "Returns a table."
    }

    fn cards(&self) -> BoxFuture<'_, Result<Vec<Card>, ConnectorError>> {
        let card = card(
            "get",
            &json!({"city": {}, "days": {"default": 3}}),
            FetchEffect::Reads,
        );
        async { Ok(vec![card]) }.boxed()
    }

    fn fetch(
        &self,
        _: &str,
        _: Map<String, Value>,
        _: Instant,
    ) -> BoxFuture<'_, Result<FetchAnswer, ConnectorError>> {
        let answer = match self.answer.clone() {
            Fixture::Json(value) => FetchAnswer::Value(value),
            Fixture::Stream(bytes) => FetchAnswer::Arrow(bytes.into()),
        };
        async { Ok(answer) }.boxed()
    }

    fn redaction(&self) -> &Redaction {
        &self.redaction
    }
}

fn granted(answer: Fixture, store: &Store) -> Grants {
    let redaction = Redaction::new([SECRET]);
    let terms = GrantTerms {
        store: Some(store.clone()),
        ..GrantTerms::default()
    };
    Grants::new(&[Arc::new(FixedConnector { answer, redaction })], terms)
}

fn memory() -> Store {
    Store::new(Arc::new(InMemory::new()))
}

async fn fetch(grants: &Grants) -> Result<HostReply, CallError> {
    let call =
        json!({"connector": "fixed", "function": "get", "arguments": {"city": "Kyiv"}, "envelope": true});
    grants.fetch(call, Instant::now()).await
}

/// Returns the stored table of the only record.
async fn stored(grants: &Grants, store: &Store) -> (FetchRecord, RecordBatch) {
    let (mut records, _) = grants.take_records().await;
    let record = records.remove(0);
    let artifact = record.artifact.clone().unwrap_or_else(|| panic!("{record:?}"));
    assert_eq!(artifact.kind, Kind::Result);
    let bytes = store.get(artifact.sha256).await.unwrap();
    assert_eq!(bytes.len() as u64, artifact.bytes);
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
    let batches: Vec<_> = reader.build().unwrap().map(Result::unwrap).collect();
    assert_eq!(batches.len(), 1);
    (record, batches.into_iter().next().unwrap())
}

fn stream(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

fn sent(reply: &HostReply) -> RecordBatch {
    assert_eq!(reply.value["form"], "arrow");
    let mut batches = StreamReader::try_new(reply.blobs[0].reader(), None).unwrap();
    batches.next().unwrap().unwrap()
}

#[tokio::test]
async fn records_are_stored_as_parquet_without_changing_a_value() {
    let rows = json!([
        {"int": 1, "float": 1, "bool": true, "text": "a", "none": null, "mixed": 1, "nested": [1],
            "large": 9_007_199_254_740_993_i64},
        {"int": -2, "float": 0.5, "bool": null, "mixed": "1", "large": 0.5, "late": u64::MAX},
    ]);
    let types = "int:Int64 float:Float64 bool:Boolean text:Utf8 none:Null mixed:Utf8 nested:Utf8 \
                 large:Utf8 late:UInt64";
    for answer in [rows.clone(), json!({"count": 2, "rows": rows})] {
        let store = memory();
        let grants = granted(Fixture::Json(answer.clone()), &store);
        let reply = fetch(&grants).await.unwrap();
        assert_eq!(
            (super::answer(&reply), &reply.value["form"]),
            (answer, &json!("json"))
        );
        let (record, table) = stored(&grants, &store).await;
        assert_eq!(
            (record.row_count, record.columns.len(), &record.note),
            (Some(2), 9, &None)
        );
        let schema = table.schema();
        let found = schema
            .fields()
            .iter()
            .map(|it| format!("{}:{}", it.name(), it.data_type()));
        assert_eq!(found.collect::<Vec<_>>().join(" "), types);
        let shown = arrow_cast::pretty::pretty_format_batches(&[table])
            .unwrap()
            .to_string();
        for cell in [
            "| 9007199254740993 |",
            "| \"1\"   |",
            "| [1]    |",
            "| 18446744073709551615 |",
        ] {
            assert!(shown.contains(cell), "{shown}");
        }
        // Code sees the same in the envelope.
        assert_eq!(reply.value["artifact"], json!(record.artifact));
        assert_eq!(reply.value["arguments"], json!({"city": "Kyiv", "days": 3}));
        assert_eq!(reply.value["row_count"], 2);
        // So does an equal call.
        fetch(&grants).await.unwrap();
        let (again, _) = stored(&grants, &store).await;
        assert!(again.cached && again.artifact == record.artifact);
    }
}

#[tokio::test]
async fn what_is_not_a_table_is_not_stored() {
    for answer in [
        json!([]),
        json!([{}]),
        json!([1, 2]),
        json!({"a": 1}),
        json!({"a": [{"b": 1}], "c": {}}),
        json!("text"),
    ] {
        let store = memory();
        let grants = granted(Fixture::Json(answer.clone()), &store);
        let reply = fetch(&grants).await.unwrap();
        assert_eq!(
            (super::answer(&reply), &reply.value["artifact"]),
            (answer, &Value::Null)
        );
        let (records, _) = grants.take_records().await;
        assert_eq!((&records[0].artifact, &records[0].note), (&None, &None));
        assert_eq!(store.list().await.unwrap(), []);
    }
}

#[tokio::test]
async fn a_table_that_cannot_be_stored_is_returned_with_a_note() {
    // A file is where the store's folders should be.
    let folder = tempfile::tempdir().unwrap();
    let broken = Store::local(folder.path().join("store")).unwrap();
    std::fs::remove_dir_all(folder.path().join("store")).unwrap();
    std::fs::write(folder.path().join("store"), "").unwrap();
    let grants = granted(Fixture::Json(json!([{"a": 1}])), &broken);
    let reply = fetch(&grants).await.unwrap();
    assert_eq!(super::answer(&reply), json!([{"a": 1}]));
    let (records, _) = grants.take_records().await;
    assert_eq!((records[0].outcome, &records[0].artifact), ("ok", &None));
    let note = records[0].note.as_deref().unwrap();
    assert!(
        note.starts_with("the table could not be stored: the artifact store failed"),
        "{note}"
    );
    assert!(!note.contains(folder.path().to_str().unwrap()), "{note}");

    let wide: Map<_, _> = (0..10_001).map(|at| (format!("c{at}"), at.into())).collect();
    let grants = granted(Fixture::Json(json!([wide])), &memory());
    assert!(fetch(&grants).await.is_ok());
    let (records, _) = grants.take_records().await;
    let note = records[0].note.as_deref().unwrap();
    assert!(note.ends_with("it has more than 10000 columns"), "{note}");
}

#[tokio::test]
async fn an_arrow_stream_is_sent_and_stored() {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..13));
    let half: ArrayRef = Arc::new(Float64Array::from_iter_values(
        (0..13).map(|n| f64::from(n) / 2.0),
    ));
    let bytes = stream(vec![("n", numbers), ("half", half)]);
    let store = memory();
    let grants = granted(Fixture::Stream(bytes), &store);
    let reply = fetch(&grants).await.unwrap();
    let (record, table) = stored(&grants, &store).await;
    assert_eq!(sent(&reply), table);
    assert_eq!(
        (record.row_count, record.columns),
        (Some(13), vec!["n".to_owned(), "half".to_owned()])
    );
    assert_eq!(record.head[0], json!({"n": 0, "half": 0.0}));
    assert_eq!(
        (record.head.len(), record.tail.len(), &record.tail[4]),
        (5, 5, &json!({"n": 12, "half": 6.0}))
    );
}

#[tokio::test]
async fn an_invalid_stream_is_a_parse_error() {
    let good = stream(vec![("n", Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef)]);
    for (bytes, told) in [
        (Vec::new(), "its stream is empty"),
        (b"PAR1 is not Arrow".to_vec(), "not a valid Arrow IPC stream"),
        (good[..good.len() - 30].to_vec(), "not a valid Arrow IPC stream"),
    ] {
        let grants = granted(Fixture::Stream(bytes), &memory());
        let error = fetch(&grants).await.unwrap_err();
        assert_eq!(error.code, "parse");
        assert!(error.message.contains(told), "{error:?}");
        let (records, _) = grants.take_records().await;
        assert_eq!((records[0].outcome, &records[0].artifact), ("parse", &None));
    }
}

#[tokio::test]
async fn secrets_are_removed_from_text_and_anything_else_with_them_is_withheld() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec![
        Some("x"),
        None,
        Some(&*format!("key={SECRET}&a")),
    ]));
    let named = format!("by {SECRET}");
    let store = memory();
    let grants = granted(Fixture::Stream(stream(vec![(&named, texts)])), &store);
    let reply = fetch(&grants).await.unwrap();
    let (record, table) = stored(&grants, &store).await;
    assert_eq!(record.columns, ["by [redacted]"]);
    let clean: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), None, Some("key=[redacted]&a")]));
    assert_eq!(table.column(0), &clean);
    assert_eq!(sent(&reply), table);

    let mut lists = ListBuilder::new(StringBuilder::new());
    lists.append_value([Some(SECRET)]);
    let nested = stream(vec![("list", Arc::new(lists.finish()))]);
    let grants = granted(Fixture::Stream(nested), &memory());
    let error = fetch(&grants).await.unwrap_err();
    assert_eq!(error.code, "parse");
    assert!(
        error.message.contains("withheld") && !error.message.contains(SECRET),
        "{error:?}"
    );
}
