//! SQLite: a file, whose values have types and whose columns do not.

use std::fs;
use std::time::{Duration, Instant};

use cellblock_interpreter::connector::{Connector as _, ConnectorErrorKind};
use cellblock_testkit::wait;
use rusqlite::Connection;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::answers::{call, connector, refused, rejects, sql, with};

fn database(statements: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    let database = Connection::open(folder.path().join("x.db")).unwrap();
    database.execute_batch(statements).unwrap();
    folder
}

#[tokio::test]
async fn values_have_the_types_of_their_columns() {
    let folder = database(
        "create table t (id integer primary key, price real, name text, raw blob, paid boolean, \
         day date, seen datetime, at timestamp, amount decimal(10, 2), empty integer, anything);
         insert into t values (1, 2, 'a', x'00ff', 1, '2026-01-31', '2026-01-31 10:00:00.5',
         '2026-01-31T10:00:00+02:00', 1, null, 'x');
         insert into t values (9007199254740993, null, null, null, null, null, null, null, 2.5, null, null);",
    );
    let warehouse = connector("sqlite:x.db", folder.path(), &json!({}));
    let table = sql(&warehouse, "select *, count(*) over () as n, null as none from t").await;
    let table = table.unwrap();
    assert_eq!(
        table.columns,
        [
            "id Int64",
            "price Float64",
            "name Utf8",
            "raw Binary",
            "paid Boolean",
            "day Date32",
            "seen Timestamp(µs)",
            "at Timestamp(µs, \"UTC\")",
            "amount Float64",
            "empty Int64",
            "anything Utf8",
            "n Int64",
            "none Utf8"
        ]
    );
    assert_eq!(
        table.rows,
        [
            "1|2.0|a|00ff|true|2026-01-31|2026-01-31T10:00:00.500|2026-01-31T08:00:00Z|1.0|null|x|2|null",
            "9007199254740993|null|null|null|null|null|null|null|2.5|null|null|2|null"
        ]
    );
    let empty = sql(&warehouse, "select id, day from t where 0").await.unwrap();
    assert_eq!(empty.columns, ["id Int64", "day Date32"]);
    assert_eq!(empty.rows, [""; 0]);
}

#[tokio::test]
async fn columns_of_mixed_types_are_errors_that_name_the_column() {
    let folder = database(
        "create table t (a, b); insert into t values (1, 'x'), ('y', 1.5);
         create table late (a integer);
         with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
         insert into late select i from n;
         insert into late values ('last');",
    );
    let warehouse = connector("sqlite:x.db", folder.path(), &json!({}));
    let (kind, text) = sql(&warehouse, "select a from t").await.unwrap_err();
    assert_eq!(kind, ConnectorErrorKind::Parse);
    assert_eq!(
        text,
        "warehouse.sql: the column `a` has values of different types, such as an integer and a text; \
         convert it in SQL, such as `cast(a as text)`"
    );
    let (kind, text) = sql(&warehouse, "select a from late").await.unwrap_err();
    assert_eq!(kind, ConnectorErrorKind::Parse);
    assert!(
        text.contains("row 20001 of the column `a`: the value `last`"),
        "{text}"
    );
    let cast = sql(&warehouse, "select cast(a as text) as a from t")
        .await
        .unwrap();
    assert_eq!(cast.rows, ["1", "y"]);
    rejects(
        &warehouse,
        "select 1 as a, 2 as a",
        "two columns of the result have the name `a`",
    )
    .await;
}

#[tokio::test]
async fn arguments_are_bound_and_never_part_of_the_statement() {
    let folder = database("create table t (name text); insert into t values ('a'), ('b'), (''' or 1=1 --');");
    let options = json!({"functions": {"named": {"sql": "select name from t where name = :name",
        "parameters": {"name": {"type": "string"}}}}});
    let warehouse = connector("sqlite:x.db", folder.path(), &options);
    for hostile in ["' or 1=1 --", "a'; drop table t; --", "\\' or 1=1", ":name", "?1"] {
        let found = call(&warehouse, "named", json!({"name": hostile})).await.unwrap();
        let expected: Vec<_> = [hostile].into_iter().filter(|it| *it == "' or 1=1 --").collect();
        assert_eq!(found.rows, expected, "{hostile}");
    }
    let found = with(
        &warehouse,
        "select name, ':name' as b from t where name in (select value from json_each(:names)) -- :name",
        json!({"names": ["a", "c"]}),
    );
    assert_eq!(found.await.unwrap().rows, ["a|:name"]);
    for (statement, arguments, expected) in [
        ("select :a", json!({}), "pass its value as `a=…`"),
        ("select 1", json!({"a": 1}), "has no parameter `:a`"),
        ("select ?1", json!({}), "not of the form `:name`"),
        ("select @a", json!({}), "not of the form `:name`"),
    ] {
        let (kind, text) = with(&warehouse, statement, arguments).await.unwrap_err();
        assert_eq!(kind, ConnectorErrorKind::InvalidParameter);
        assert!(text.contains(expected), "{text}");
    }
}

#[tokio::test]
async fn nothing_is_written_and_no_other_file_is_opened() {
    let folder = database("create table t (a); insert into t values (1);");
    let other = folder.path().join("other.db");
    Connection::open(&other)
        .unwrap()
        .execute_batch("create table s (a)")
        .unwrap();
    let before = fs::read(folder.path().join("x.db")).unwrap();
    let warehouse = connector("sqlite:x.db", folder.path(), &json!({}));
    let attach = format!("attach '{}' as other", other.display());
    let vacuum = format!("vacuum into '{}'", folder.path().join("copy.db").display());
    for statement in [
        "insert into t values (2) returning a",
        "create table u (a)",
        "create temp table u as select 1",
        "drop table t",
        "update t set a = 2",
        attach.as_str(),
        vacuum.as_str(),
        "pragma query_only = 0",
        "pragma table_info(t)",
        "select * from pragma_database_list",
        "select load_extension('x')",
        "begin immediate",
        "with n as (select 1) insert into t select * from n",
    ] {
        rejects(&warehouse, statement, "only reads").await;
    }
    for statement in ["select 1; drop table t", "select 1; select 2"] {
        rejects(&warehouse, statement, "two statements").await;
    }
    assert_eq!(fs::read(folder.path().join("x.db")).unwrap(), before);
    assert!(!folder.path().join("copy.db").exists());
    assert_eq!(sql(&warehouse, "select * from t").await.unwrap().rows, ["1"]);
}

#[tokio::test]
async fn errors_name_what_to_repair_and_no_path() {
    let folder = database("create table t (a)");
    let warehouse = connector("sqlite:x.db", folder.path(), &json!({}));
    let text = refused(&warehouse, "select b from t").await;
    assert_eq!(
        text,
        "warehouse.sql: no such column: b, at position 7: `b from t`"
    );
    let missing = connector("sqlite:missing.db", folder.path(), &json!({}));
    let (kind, text) = sql(&missing, "select 1").await.unwrap_err();
    assert_eq!(kind, ConnectorErrorKind::Provider { status: None });
    assert!(!text.contains("missing.db"), "{text}");
    let text = missing.check().await.unwrap_err().to_string();
    assert!(
        text.contains("missing.db`: the database cannot be opened"),
        "{text}"
    );
    assert!(!folder.path().join("missing.db").exists());
    warehouse.check().await.unwrap();
}

#[tokio::test]
async fn limits_end_calls_with_errors_that_name_them() {
    let folder = database("create table t (a)");
    let many =
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < :most) select i from n";
    let warehouse = connector(
        "sqlite:x.db",
        folder.path(),
        &json!({"max_rows": 20_000, "max_result": "1MiB", "timeout": "1s"}),
    );
    let read = with(&warehouse, many, json!({"most": 20_000})).await.unwrap();
    assert_eq!(read.rows.len(), 20_000);
    let (_, text) = with(&warehouse, many, json!({"most": 20_001})).await.unwrap_err();
    assert!(
        text.contains("more than 20000 rows, the limit `max_rows`"),
        "{text}"
    );
    let wide = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 15000) select \
                hex(zeroblob(500)) as x from n";
    rejects(&warehouse, wide, "larger than 1 MiB, the limit `max_result`").await;
    rejects(&warehouse, "select zeroblob(5000000)", "`max_result`").await;
    let slow = "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n";
    let (kind, text) = sql(&warehouse, slow).await.unwrap_err();
    assert_eq!(kind, ConnectorErrorKind::Timeout);
    assert!(text.contains("`timeout`"), "{text}");
}

#[tokio::test]
async fn a_dropped_call_stops_its_statement() {
    let folder = database("create table t (a)");
    let warehouse = connector("sqlite:x.db", folder.path(), &json!({"timeout": "1h"}));
    let slow = "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n";
    let arguments = Map::from_iter([("statement".to_owned(), Value::from(slow))]);
    let until = Instant::now() + Duration::from_hours(1);
    let mut call = warehouse.fetch("sql", arguments, until);
    // The file is open while the statement runs.
    let file = folder.path().join("x.db").canonicalize().unwrap();
    let is_open = || {
        let descriptors = fs::read_dir("/proc/self/fd").unwrap().flatten();
        descriptors
            .filter_map(|it| fs::read_link(it.path()).ok())
            .any(|path| path == file)
    };
    tokio::select! {
        _ = &mut call => panic!("it has no end"),
        () = wait::until("the file is open", is_open) => {}
    }
    drop(call);
    wait::until("the file is closed", || !is_open()).await;
}

#[tokio::test]
async fn functions_describe_their_columns_and_the_tables() {
    let folder =
        database("create table orders (id integer, day date); create view v as select id from orders;");
    let options = json!({"functions": {"orders": {"description": "Orders.", "sql": "select * from orders"}}});
    let warehouse = connector("sqlite:x.db", folder.path(), &options);
    let cards = warehouse.cards().await.unwrap();
    assert_eq!(cards[0].description, "Orders. Columns: id int64, day date.");
    assert_eq!(cards[1].name, "sql");
    let tables = cards[1].description.split_once("\nTables:\n").unwrap().1;
    assert_eq!(tables, "orders(id integer, day date)\nv(id integer)");
}
