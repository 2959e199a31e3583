//! Datasets without a sandbox: calls as a kernel makes them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{Int64Array, LargeStringArray, RecordBatch, StringArray};
use arrow_ipc::writer::StreamWriter;
use cellblock_protocol::{Blob, CallError};
use object_store::memory::InMemory;
use serde_json::{Value, json};

use super::*;
use crate::connector::{GrantTerms, Grants};
use crate::host_call::{HostCall, HostReply};
use crate::lineage::VariableOrigin;
use crate::output::DecodingLimits;

fn project() -> Project {
    Project::new(Store::new(Arc::new(InMemory::new())), "me", "macro").unwrap()
}

fn member(project: &Project, session: &str) -> ProjectCalls {
    ProjectCalls {
        member: Arc::new(ProjectMember::new(project.clone(), session.to_owned(), &[])),
        cell: 1,
        producer: None,
        origins: Arc::default(),
        grants: Grants::new(&[], GrantTerms::default()),
        limits: DecodingLimits::default(),
    }
}

async fn call(
    of: &ProjectCalls,
    method: &str,
    params: Value,
    blobs: Vec<Blob>,
) -> Result<HostReply, CallError> {
    let call = HostCall {
        method: method.to_owned(),
        params,
        blobs,
        until: Instant::now(),
    };
    of.clone().call(call).await
}

fn stream(batches: &[RecordBatch]) -> Blob {
    let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.into_inner().unwrap().into()
}

fn numbers(values: &[i64]) -> RecordBatch {
    RecordBatch::try_from_iter([("x", Arc::new(Int64Array::from(values.to_vec())) as _)]).unwrap()
}

fn about(slug: &str, rows: usize) -> Value {
    json!({
        "slug": slug, "title": null, "description": null, "tags": null, "notes": null, "library": "pandas",
        "rows": rows, "columns": [{"name": "x", "dtype": "int64"}], "index": [],
        "frame": "{\"library\":\"pandas\"}",
        "variable": "df",
    })
}

async fn publish(of: &ProjectCalls, slug: &str, values: &[i64]) -> Value {
    let published = call(
        of,
        "dataset.publish",
        about(slug, values.len()),
        vec![stream(&[numbers(values)])],
    );
    published.await.unwrap().value
}

async fn refused(of: &ProjectCalls, method: &str, slug: &str) -> String {
    let error = call(of, method, json!({"slug": slug}), Vec::new())
        .await
        .unwrap_err();
    assert_eq!(error.code, "not_loaded");
    error.message
}

#[tokio::test]
async fn a_session_loads_its_own_dataset_and_another_one_only_after_it_has_looked() {
    let project = project();
    let (one, other) = (member(&project, "s1"), member(&project, "s2"));
    publish(&one, "gdp", &[1, 2, 3]).await;
    let loaded = call(&one, "dataset.load", json!({"slug": "gdp"}), Vec::new())
        .await
        .unwrap();
    assert_eq!(loaded.value["slug"], "gdp");
    assert!(!loaded.blobs[0].is_empty());

    let message = refused(&other, "dataset.load", "gdp").await;
    assert!(
        message.contains("by s1") && message.contains("look at it first: read_dataset(\"gdp\")"),
        "{message}"
    );
    let listed = call(&other, "dataset.list", json!({}), Vec::new()).await.unwrap();
    assert_eq!(listed.value[0]["seen"], false);
    refused(&other, "dataset.load", "gdp").await;

    // What code reads is seen by its caller once the cell has ended.
    let read = call(&other, "dataset.read", json!({"slug": "gdp"}), Vec::new())
        .await
        .unwrap();
    assert_eq!(
        read.value["current"]["columns"],
        json!([{"name": "x", "dtype": "int64"}])
    );
    refused(&other, "dataset.load", "gdp").await;
    other.member.end_cell();
    call(&other, "dataset.load", json!({"slug": "gdp"}), Vec::new())
        .await
        .unwrap();
    let loads = other.member.end_cell();
    assert!(
        loads.iter().all(|load| load.starts_with("gdp@")) && loads.len() == 1,
        "{loads:?}"
    );
    assert_eq!(other.member.end_cell().len(), 0);

    // Looking from outside counts at once.
    let third = member(&project, "s3");
    third.member.read_dataset("gdp").await.unwrap();
    call(&third, "dataset.load", json!({"slug": "gdp"}), Vec::new())
        .await
        .unwrap();
}

#[tokio::test]
async fn each_reason_why_a_dataset_cannot_be_loaded_is_named() {
    let project = project();
    let one = member(&project, "s1");
    let none = refused(&one, "dataset.load", "gdp").await;
    assert!(
        none.contains("no dataset has been published in the project `macro`"),
        "{none}"
    );
    publish(&one, "gdp_us", &[1]).await;
    publish(&one, "cpi", &[1]).await;
    let no_match = refused(&one, "dataset.load", "gdp").await;
    assert!(
        no_match.contains("has no dataset \"gdp\"; it has `gdp_us`, `cpi`"),
        "{no_match}"
    );
    for path in ["../cpi", "a/b", "..", "CPI", ""] {
        assert!(
            refused(&one, "dataset.read", path)
                .await
                .contains("has no dataset"),
            "{path}"
        );
    }

    // Versions are named by the digits of their sha256.
    let first = publish(&one, "cpi", &[2]).await["current"]["sha256"].clone();
    publish(&one, "cpi", &[3]).await;
    let by_digits = json!({"slug": format!("cpi@{}", &first.as_str().unwrap()[..8])});
    let loaded = call(&one, "dataset.load", by_digits, Vec::new()).await.unwrap();
    assert_eq!(loaded.value["sha256"], first);
    let unknown = refused(&one, "dataset.load", "cpi@0000000000").await;
    assert!(unknown.contains("no version \"0000000000\""), "{unknown}");
    assert!(
        refused(&one, "dataset.load", "cpi@")
            .await
            .contains("4 or more digits")
    );

    let mut digits = BTreeMap::new();
    let ambiguous = loop {
        let count = i64::try_from(digits.len()).unwrap();
        let sha256 = publish(&one, "many", &[count]).await["current"]["sha256"].clone();
        let four = sha256.as_str().unwrap()[..4].to_owned();
        if digits.insert(four.clone(), sha256).is_some() {
            break four;
        }
    };
    let message = refused(&one, "dataset.load", &format!("many@{ambiguous}")).await;
    assert!(
        message.contains("is ambiguous, because 2 versions begin with"),
        "{message}"
    );

    let id = project.dataset("cpi").await.unwrap().unwrap().current.sha256;
    project.store().remove(id).await.unwrap();
    let missing = refused(&one, "dataset.load", "cpi").await;
    assert!(
        missing.contains("missing or damaged") && missing.contains("publish it again"),
        "{missing}"
    );
}

#[tokio::test]
async fn sessions_that_publish_at_the_same_time_make_two_versions_and_one_head() {
    let project = project();
    let (one, other) = (member(&project, "s1"), member(&project, "s2"));
    let publish = |of: ProjectCalls, value| async move { publish(&of, "gdp", &[value]).await };
    tokio::join!(publish(one, 1), publish(other, 2));
    let head = project.dataset("gdp").await.unwrap().unwrap();
    let versions = project.versions("gdp").await.unwrap();
    assert_eq!((head.versions, versions.len()), (2, 2));
    let latest = versions.iter().max_by_key(|it| it.published_unix_ms).unwrap();
    assert_eq!(head.current.published_unix_ms, latest.published_unix_ms);
}

#[tokio::test]
async fn a_new_version_keeps_the_title_unless_it_has_another() {
    let project = project();
    let one = member(&project, "s1");
    let titled = |title: Value, notes: Value| {
        let mut about = about("gdp", 1);
        (about["title"], about["notes"]) = (title, notes);
        call(&one, "dataset.publish", about, vec![stream(&[numbers(&[1])])])
    };
    let first = titled("GDP".into(), json!(["quarterly", "real"]))
        .await
        .unwrap()
        .value;
    let second = titled(Value::Null, "one note".into()).await.unwrap().value;
    assert_eq!(
        (&second["title"], &second["notes"]),
        (&json!("GDP"), &json!(["one note"]))
    );
    assert_eq!(second["created_unix_ms"], first["created_unix_ms"]);
    assert_eq!(second["versions"], 2);
    // Equal data is the same object.
    assert_eq!(second["current"]["sha256"], first["current"]["sha256"]);
    assert_eq!(second["current"]["logical_id"], first["current"]["logical_id"]);
}

#[tokio::test]
async fn a_version_has_the_origin_of_its_variable_and_what_its_cell_used() {
    let project = project();
    let mut one = member(&project, "s1");
    publish(&one, "source", &[1]).await;
    call(&one, "dataset.load", json!({"slug": "source"}), Vec::new())
        .await
        .unwrap();
    let origin = VariableOrigin {
        producer: "a.py".to_owned(),
        cell: 1,
        fetches: ["fred.series({}) at 2026-01-31T12:00:00.000Z".to_owned()].into(),
        artifacts: [].into(),
        loads: [].into(),
        rebound_by_scratch: true,
    };
    one.origins = Arc::new([("df".to_owned(), origin)].into());
    one.producer = Some("b.py".to_owned());
    let version = publish(&one, "made", &[1]).await["current"].clone();
    assert_eq!(version["producer"], "b.py");
    assert_eq!(
        version["fetches"],
        json!(["fred.series({}) at 2026-01-31T12:00:00.000Z"])
    );
    assert!(
        version["loads"][0].as_str().unwrap().starts_with("source@"),
        "{version}"
    );
    assert_eq!(version["rebound_by_scratch"], true);
}

#[tokio::test]
async fn nothing_is_visible_of_a_dataset_that_is_rejected() {
    let project = project();
    let one = member(&project, "s1");
    let with = |key: &str, value: Value| {
        let mut about = about("gdp", 1);
        about[key] = value;
        about
    };
    let table = || vec![stream(&[numbers(&[1])])];
    for (about, blobs, code, cause) in [
        (
            with("slug", "GDP 2026".into()),
            table(),
            "invalid_argument",
            "lowercase",
        ),
        (
            with("title", "x".repeat(201).into()),
            table(),
            "invalid_argument",
            "`title`",
        ),
        (
            with("tags", vec!["x"; 21].into()),
            table(),
            "invalid_argument",
            "21 items, the limit is 20",
        ),
        (
            with("notes", "\u{1b}[2J".into()),
            table(),
            "invalid_argument",
            "control characters",
        ),
        (
            with("frame", "x".repeat((1 << 20) + 1).into()),
            table(),
            "invalid_argument",
            "the limit is 1048576",
        ),
        (with("rows", 2.into()), table(), "not_published", "cannot be read"),
        (with("library", "excel".into()), table(), "invalid_call", "excel"),
        (
            with("columns", json!([])),
            table(),
            "not_published",
            "cannot be read",
        ),
        (
            about("gdp", 1),
            vec![b"no table".to_vec().into()],
            "not_published",
            "cannot be read",
        ),
        (about("gdp", 1), Vec::new(), "invalid_call", "no table"),
    ] {
        let error = call(&one, "dataset.publish", about, blobs).await.unwrap_err();
        assert_eq!(error.code, code, "{error:?}");
        assert!(error.message.contains(cause), "{error:?}");
    }
    assert_eq!(project.datasets().await.unwrap(), []);
    assert_eq!(project.versions("gdp").await.unwrap(), []);
}

#[tokio::test]
async fn equal_data_has_one_digest_whatever_its_batches_and_widths() {
    let project = project();
    let one = member(&project, "s1");
    let digest = async |about: Value, blob: Blob| {
        let published = call(&one, "dataset.publish", about, vec![blob])
            .await
            .unwrap()
            .value;
        published["current"]["data_sha256"].clone()
    };
    let whole = digest(about("a", 3), stream(&[numbers(&[1, 2, 3])])).await;
    let parts = digest(about("b", 3), stream(&[numbers(&[1]), numbers(&[2, 3])])).await;
    assert_eq!(whole, parts);
    let other = digest(about("c", 3), stream(&[numbers(&[1, 2, 4])])).await;
    assert_ne!(whole, other);
    let texts = ["a", "", "b"];
    let narrow =
        RecordBatch::try_from_iter([("x", Arc::new(StringArray::from_iter_values(texts)) as _)]).unwrap();
    let wide = RecordBatch::try_from_iter([("x", Arc::new(LargeStringArray::from_iter_values(texts)) as _)])
        .unwrap();
    assert_eq!(
        digest(about("d", 3), stream(&[narrow])).await,
        digest(about("e", 3), stream(&[wide])).await
    );
}

#[tokio::test]
async fn a_version_opens_as_batches_and_a_damaged_one_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::local(folder.path()).unwrap();
    let project = Project::new(store, "me", "macro").unwrap();
    let one = member(&project, "s1");
    publish(&one, "gdp", &[1, 2]).await;
    let version = project.dataset("gdp").await.unwrap().unwrap().current;
    let batches: Vec<_> = version.open(project.store()).await.unwrap().collect();
    assert_eq!(batches.len(), 1);
    assert_eq!(batches[0].as_ref().unwrap().columns(), numbers(&[1, 2]).columns());

    let path = project.store().local_path(version.sha256).unwrap();
    std::fs::write(path, b"damaged").unwrap();
    assert!(version.open(project.store()).await.is_err());
    assert!(
        refused(&one, "dataset.load", "gdp")
            .await
            .contains("missing or damaged")
    );
}

#[test]
fn names_of_projects_are_checked() {
    let store = Store::new(Arc::new(InMemory::new()));
    for name in ["", "..", "a/b", "Macro", "-a", "a b", &"x".repeat(65)] {
        let error = Project::new(store.clone(), "me", name).unwrap_err().to_string();
        assert!(
            error.contains("`project`") && error.contains("lowercase"),
            "{error}"
        );
    }
}
