//! Connectors over files: what is read, what is skipped, and what is never opened.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod objects;
mod proxy;
#[path = "../table/mod.rs"]
mod table;

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray, types::Int8Type,
};
use cellblock_connector::{FilesConnector, TypeOptions};
use cellblock_interpreter::connector::{Connector as _, ConnectorErrorKind};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use serde_json::{Value, json};
use tempfile::TempDir;

fn parquet(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    write(path, columns, 2);
}

/// Writes a Parquet file with so many rows in a row group.
fn write(path: &Path, columns: Vec<(&str, ArrayRef)>, group: usize) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group))
        .build();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// Rides of two years, whose cities are a dictionary.
fn lake() -> TempDir {
    let folder = TempDir::new().unwrap();
    for (year, fares) in [
        (2024, vec![Some(1.0), Some(2.0), Some(3.0)]),
        (
            2025,
            vec![Some(5.0), None, Some(20.0), Some(f64::NAN), Some(12.0)],
        ),
    ] {
        let cities: DictionaryArray<Int8Type> = fares.iter().map(|fare| fare.map(|_| "Graz")).collect();
        let numbers = Int64Array::from_iter_values(1..=i64::try_from(fares.len()).unwrap());
        parquet(
            &folder.path().join(format!("trips/year={year}/a.parquet")),
            vec![
                ("number", Arc::new(numbers)),
                ("fare", Arc::new(Float64Array::from(fares))),
                ("city", Arc::new(cities)),
            ],
        );
    }
    fs::write(
        folder.path().join("sales.csv"),
        "\u{feff}day,amount,note\n2026-01-01,1.5,a\n2026-01-02,,b\n",
    )
    .unwrap();
    fs::create_dir(folder.path().join("events")).unwrap();
    fs::write(
        folder.path().join("events/1.jsonl"),
        "{\"id\": 1, \"kind\": \"x\"}\n{\"id\": 2}\n",
    )
    .unwrap();
    fs::write(
        folder.path().join("events/2.jsonl"),
        "{\"kind\": \"y\", \"id\": 3}\n",
    )
    .unwrap();
    folder
}

fn connector(folder: &TempDir, more: &Value) -> FilesConnector {
    connector_at(folder.path().to_owned(), more)
}

fn connector_at(root: PathBuf, more: &Value) -> FilesConnector {
    let mut options = json!({
        "root": ".",
        "tables": {
            "trips": "trips/year=*/*.parquet", "deep": "trips/**/*.parquet", "sales": "sales.csv",
            "all_sales": "*.csv",
            "events": "events/*.jsonl", "none": "none/*.csv",
        },
    });
    for (key, value) in more.as_object().unwrap() {
        options[key] = value.clone();
    }
    let options = TypeOptions::read(&options).unwrap();
    FilesConnector::new("lake", &options, root).unwrap()
}

/// Rows as text, or the kind and text of the error.
async fn rows(
    connector: &FilesConnector,
    table: &str,
    arguments: Value,
) -> Result<Vec<String>, (ConnectorErrorKind, String)> {
    let Value::Object(arguments) = arguments else {
        panic!("no arguments")
    };
    let until = Instant::now() + Duration::from_mins(1);
    let answer = connector.fetch(table, arguments, until).await;
    let answer = answer.map_err(|error| (error.kind(), error.to_string()))?;
    Ok(table::rows(answer, ",").1)
}

#[tokio::test]
async fn files_with_other_separators_than_commas_are_read() {
    for text in [
        "day,amount\nMon,\"1,5\"\nTue,2\n",
        "day;amount\nMon;1,5\nTue;2\n",
        "\u{feff}day\tamount\r\nMon\t1,5\r\nTue\t2\r\n",
        "sep=|\nday|amount\nMon|1,5\nTue|2\n",
    ] {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("sales.csv"), text).unwrap();
        let found = rows(&connector(&folder, &json!({})), "sales", json!({}))
            .await
            .unwrap();
        let columns = rows(
            &connector(&folder, &json!({})),
            "sales",
            json!({"columns": ["day"]}),
        )
        .await;
        assert_eq!(found, ["Mon,1,5", "Tue,2"], "{text:?}");
        assert_eq!(columns.unwrap(), ["Mon", "Tue"], "{text:?}");
    }
}

#[tokio::test]
async fn conditions_select_rows_of_parquet_files() {
    let folder = lake();
    let lake = connector(&folder, &json!({}));
    for (arguments, expected) in [
        (
            json!({"where": {"year": 2025}, "limit": 1}),
            vec!["1,5.0,Graz,2025"],
        ),
        (
            json!({"columns": ["year", "number"], "where": {"fare": {">": 10}}}),
            vec!["2025,3", "2025,5"],
        ),
        (
            json!({"columns": ["number"], "where": {"fare": {">": 2, "<=": 5.0}}}),
            vec!["3", "1"],
        ),
        (
            json!({"columns": ["number"], "where": {"fare": {">=": 2}, "year": {"<": 2025}}}),
            vec!["2", "3"],
        ),
        (json!({"columns": ["number"], "where": {"fare": null}}), vec!["2"]),
        (
            json!({"columns": ["number"], "where": {"city": ["Graz", "Linz"], "number": [3, 1.0],
                "year": {"!=": 2024}}}),
            vec!["1", "3"],
        ),
        (
            json!({"columns": ["year"], "where": {"city": {"=": null}}}),
            vec!["2025"],
        ),
        (
            json!({"columns": ["number"], "where": {"year": 2025, "number": {"!=": 1},
                "city": {"!=": null}}}),
            vec!["3", "4", "5"],
        ),
        (
            json!({"columns": ["year"], "limit": 4}),
            vec!["2024", "2024", "2024", "2025"],
        ),
        (json!({"where": {"year": 1999}}), vec![]),
    ] {
        for table in ["trips", "deep"] {
            assert_eq!(
                rows(&lake, table, arguments.clone()).await.unwrap(),
                expected,
                "{arguments}"
            );
        }
    }
}

#[tokio::test]
async fn files_of_other_folders_are_not_read() {
    let folder = lake();
    // The first file tells the columns.
    fs::write(folder.path().join("trips/year=2025/a.parquet"), "garbage").unwrap();
    let lake = connector(&folder, &json!({}));
    assert_eq!(
        rows(&lake, "trips", json!({"where": {"year": 2024}}))
            .await
            .unwrap()
            .len(),
        3
    );
    assert_eq!(rows(&lake, "trips", json!({"limit": 3})).await.unwrap().len(), 3);
    let (kind, text) = rows(&lake, "trips", json!({})).await.unwrap_err();
    assert_eq!(kind, ConnectorErrorKind::Parse);
    assert!(
        text.contains("`trips/year=2025/a.parquet` cannot be read"),
        "{text}"
    );
}

#[tokio::test]
async fn text_files_have_inferred_or_declared_types() {
    let folder = lake();
    let lake = connector(&folder, &json!({}));
    assert_eq!(
        rows(&lake, "sales", json!({})).await.unwrap(),
        ["2026-01-01,1.5,a", "2026-01-02,null,b"]
    );
    let filter = json!({"columns": ["note"], "where": {"day": {">": "2026-01-01"}}});
    assert_eq!(rows(&lake, "sales", filter).await.unwrap(), ["b"]);
    assert_eq!(
        rows(&lake, "events", json!({"columns": ["kind", "id"]}))
            .await
            .unwrap(),
        ["x,1", "null,2", "y,3"]
    );
    assert_eq!(
        rows(
            &lake,
            "events",
            json!({"where": {"id": {">=": 2}}, "columns": ["id"]})
        )
        .await
        .unwrap(),
        ["2", "3"]
    );
    let columns =
        json!({"columns": {"sales": {"day": "string"}, "events": {"id": "string", "later": "int64"}}});
    let lake = connector(&folder, &columns);
    let text = json!({"where": {"day": "2026-01-02"}, "columns": ["day"]});
    assert_eq!(rows(&lake, "sales", text).await.unwrap(), ["2026-01-02"]);
    let cards = lake.cards().await.unwrap();
    assert_eq!(
        cards[0].description,
        "Rows of the table `trips`. Columns: number int64, fare float64, city string, year int64."
    );
    assert_eq!(
        cards[2].description,
        "Rows of the table `sales`. Columns: day string, amount float64, note string."
    );
    assert_eq!(cards[5].description, "Rows of the table `none`.");
}

#[tokio::test]
async fn errors_name_columns_files_and_limits() {
    let folder = lake();
    fs::write(folder.path().join("other.csv"), "day,amount\n2026-01-01,2\n").unwrap();
    let lake = connector(&folder, &json!({"max_result": 900}));
    let invalid = ConnectorErrorKind::InvalidParameter;
    for (table, arguments, kind, words) in [
        (
            "trips",
            json!({"columns": ["fee"]}),
            invalid,
            "lake.trips: there is no column `fee`; the columns are number int64, fare float64",
        ),
        (
            "trips",
            json!({"where": {"fee": 1}}),
            invalid,
            "there is no column `fee`",
        ),
        (
            "trips",
            json!({"where": {"fare": "x"}}),
            invalid,
            "`fare` is of the type float64, which cannot be compared with \"x\"",
        ),
        (
            "trips",
            json!({"where": {"number": 1.5}}),
            invalid,
            "cannot be compared with 1.5",
        ),
        (
            "trips",
            json!({"where": {"fare": {"like": 1}}}),
            invalid,
            "`like` is not a comparison",
        ),
        (
            "none",
            json!({}),
            ConnectorErrorKind::EmptyData,
            "no file below `root` matches `none/*.csv`",
        ),
        (
            "all_sales",
            json!({}),
            ConnectorErrorKind::Parse,
            "`other.csv` and `sales.csv` have different columns: `note` is only in the second",
        ),
        (
            "trips",
            json!({}),
            ConnectorErrorKind::Provider { status: None },
            "the answer is larger than 900 bytes, the limit `max_result`",
        ),
    ] {
        let (found, text) = rows(&lake, table, arguments).await.unwrap_err();
        assert_eq!(found, kind, "{text}");
        assert!(text.contains(words), "{words}: {text}");
    }
    let names: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    parquet(
        &folder.path().join("trips/year=2026/b.parquet"),
        vec![
            ("number", Arc::clone(&names)),
            ("fare", Arc::clone(&names)),
            ("city", names),
        ],
    );
    let lake = connector(&folder, &json!({}));
    let (_, text) = rows(&lake, "trips", json!({"where": {"year": 2026}}))
        .await
        .unwrap_err();
    assert!(
        text.contains(
            "`trips/year=2024/a.parquet` and `trips/year=2026/b.parquet` have different \
             columns: `number` is int64 in the first and string"
        ),
        "{text}"
    );
}

#[tokio::test]
async fn no_link_leads_out_of_the_folder() {
    let outside = TempDir::new().unwrap();
    fs::write(outside.path().join("secret.csv"), "a\n1\n").unwrap();
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("real")).unwrap();
    symlink(
        outside.path().join("secret.csv"),
        folder.path().join("real/secret.csv"),
    )
    .unwrap();
    symlink(outside.path(), folder.path().join("linked")).unwrap();
    let tables = json!({"tables": {
        "file": "real/secret.csv", "glob": "real/*.csv", "folder": "linked/secret.csv",
        "folders": "*/secret.csv", "deep": "**/*.csv",
    }});
    let lake = connector(&folder, &tables);
    for table in ["file", "glob", "folder", "folders", "deep"] {
        let (kind, text) = rows(&lake, table, json!({})).await.unwrap_err();
        assert_eq!(kind, ConnectorErrorKind::EmptyData, "{table}: {text}");
    }
    fs::remove_file(folder.path().join("real/secret.csv")).unwrap();
    fs::copy(
        outside.path().join("secret.csv"),
        folder.path().join("real/secret.csv"),
    )
    .unwrap();
    assert_eq!(rows(&lake, "deep", json!({})).await.unwrap(), ["1"]);
}

#[tokio::test]
async fn a_call_ends_with_its_cell() {
    let folder = lake();
    let lake = connector(&folder, &json!({}));
    let error = lake
        .fetch("trips", serde_json::Map::new(), Instant::now())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ConnectorErrorKind::Timeout);
}
