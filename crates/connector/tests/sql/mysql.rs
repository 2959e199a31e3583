//! MariaDB: types, what its transactions refuse, and what ends when a call does.

use std::time::{Duration, Instant};

use cellblock_interpreter::connector::{Connector as _, ConnectorErrorKind};
use cellblock_testkit::{require, wait};
use mysql_async::prelude::Queryable as _;
use serde_json::{Map, Value, json};

use crate::answers::{call, connector, refused, rejects, sql, with};
use crate::server::{ENCODED, PASSWORD, mariadb_root, mariadb_url, over_mariadb, start_mariadb};

const TYPES: [&str; 3] = [
    "create table kinds (b boolean, i1 tinyint, i8 bigint, u8 bigint unsigned, f4 float, f8 double, n \
     decimal(12, 3), wide decimal(60, 20), t text, c char(3), raw varbinary(9), d date, tm time(1), dt \
     datetime(1), ts timestamp null, j json, e enum('a', 'b'), y year, bits bit(8), u uuid)",
    "insert into kinds values (true, -1, -9223372036854775808, 18446744073709551615, 0.1, 0.1, \
     -12345.678, 1.00000000000000000001, 'é', 'c', x'00ff', '2026-01-31', '-100:00:00.5', '1969-12-31 \
     23:59:59.5', '2026-01-31 10:00:00', '{\"a\": 1}', 'b', 2026, 5, \
     '01234567-89ab-4def-8123-456789abcdef')",
    "insert into kinds (b) values (null)",
];

#[tokio::test]
async fn values_have_exactly_the_types_of_their_columns() {
    require!(MariaDb);
    let server = start_mariadb(&TYPES).await;
    let warehouse = over_mariadb(&server, &json!({}));
    let table = sql(&warehouse, "select * from kinds -- all").await.unwrap();
    assert_eq!(
        table.columns,
        [
            "b Int64",
            "i1 Int64",
            "i8 Int64",
            "u8 UInt64",
            "f4 Float32",
            "f8 Float64",
            "n Decimal128(12, 3)",
            "wide Utf8",
            "t Utf8",
            "c Utf8",
            "raw Binary",
            "d Date32",
            "tm Utf8",
            "dt Timestamp(µs)",
            "ts Timestamp(µs, \"UTC\")",
            "j Utf8",
            "e Utf8",
            "y Int64",
            "bits Binary",
            "u Utf8"
        ]
    );
    assert_eq!(
        table.rows,
        [
            "1|-1|-9223372036854775808|18446744073709551615|0.1|0.1|-12345.678|\
             1.00000000000000000001|é|c|00ff|2026-01-31|-100:00:00.500000|\
             1969-12-31T23:59:59.500|2026-01-31T10:00:00Z|{\"a\": 1}|b|2026|05|\
             01234567-89ab-4def-8123-456789abcdef"
                .to_owned(),
            vec!["null"; 20].join("|"),
        ]
    );
    let sums = sql(
        &warehouse,
        "select count(*) as c, sum(n) as s, sum(i1) as i from kinds",
    )
    .await
    .unwrap();
    assert_eq!(
        sums.columns,
        ["c Int64", "s Decimal128(34, 3)", "i Decimal128(25, 0)"]
    );
    assert_eq!(sums.rows, ["2|-12345.678|-1"]);
    rejects(
        &warehouse,
        "select 1 as a, 2 as a",
        "two columns of the result have the name `a`",
    )
    .await;
}

#[tokio::test]
async fn arguments_are_bound_and_never_part_of_the_statement() {
    require!(MariaDb);
    let server = start_mariadb(&[
        "create table orders (id integer, day date, note text)",
        "insert into orders values (1, '2026-01-01', 'a'), (2, '2026-02-01', ''' or 1 -- '), (3, \
         '2026-03-01', 'b')",
    ])
    .await;
    let options = json!({"functions": {"orders": {
        "sql": "select id from orders where day >= :since and (:note is null or note = :note) # :x\n \
                order by id",
        "parameters": {"since": {"type": "string"}, "note": {"type": "string", "default": null}},
    }}});
    let warehouse = over_mariadb(&server, &options);
    let found = call(&warehouse, "orders", json!({"since": "2026-02-01", "note": null}))
        .await
        .unwrap();
    assert_eq!(found.rows, ["2", "3"]);
    for hostile in ["' or 1 -- ", "\\' or 1 -- ", "?", "'; drop table orders; -- "] {
        let found = call(
            &warehouse,
            "orders",
            json!({"since": "2026-01-01", "note": hostile}),
        )
        .await
        .unwrap();
        assert_eq!(
            found.rows.len(),
            usize::from(hostile == "' or 1 -- "),
            "{hostile}"
        );
    }
    let found = with(
        &warehouse,
        "select ':a' as a, id from orders where json_contains(:ids, id) order by id",
        json!({"ids": [1, 3]}),
    );
    assert_eq!(found.await.unwrap().rows, [":a|1", ":a|3"]);
    let cards = warehouse.cards().await.unwrap();
    assert_eq!(cards[0].description, "Columns: id int64.");
    assert!(
        cards[1]
            .description
            .ends_with("\nTables:\norders(id int(11), day date, note text)"),
        "{}",
        cards[1].description
    );
}

#[tokio::test]
async fn nothing_is_written_and_no_file_is_reached() {
    require!(MariaDb);
    let server = start_mariadb(&[
        "create table t (a integer) engine = innodb",
        "create table m (a integer) engine = myisam",
        "insert into t values (1)",
        "create sequence s",
        "create procedure p() begin commit; start transaction read write; insert into t values (3); \
         commit; end",
        "create function f() returns integer begin insert into t values (2); return 1; end",
    ])
    .await;
    let warehouse = over_mariadb(&server, &json!({}));
    for (statement, expected) in [
        ("insert into t values (2) returning a", "only reads"),
        ("insert into m values (2) returning a", "only reads"),
        ("insert into t values (2)", "returns no columns"),
        ("create table u (a integer)", "returns no columns"),
        ("create temporary table u as select 1", "returns no columns"),
        ("select nextval(s) as n", "only reads"),
        ("select f()", "only reads"),
        ("call p()", "returns no columns"),
        ("commit", "returns no columns"),
        ("set session transaction read write", "returns no columns"),
        (
            "set statement tx_read_only = 0 for insert into t values (2) returning a",
            "only reads",
        ),
        ("select 1 into @x", "returns no columns"),
        ("select 1 into outfile '/tmp/x'", "returns no columns"),
        ("select 1; insert into t values (2)", "two statements"),
        ("select 1; commit", "two statements"),
        (
            "load data local infile '/etc/passwd' into table t",
            "not supported in the prepared statement protocol",
        ),
    ] {
        let text = refused(&warehouse, statement).await;
        // Some versions of MariaDB refuse a statement when it is prepared.
        let at_once = ["only reads", "Access denied"]
            .iter()
            .any(|words| text.contains(words));
        let is_one = expected != "two statements";
        assert!(
            text.contains(expected) || (is_one && at_once),
            "{statement}: {text}"
        );
    }
    assert_eq!(
        sql(
            &warehouse,
            "select (select count(*) from t) as t, (select count(*) from m) as m"
        )
        .await
        .unwrap()
        .rows,
        ["1|0"]
    );

    // Rights that no transaction restricts are refused as a whole, also those of a role.
    let mut root = mariadb_root(&server, None).await.unwrap();
    for (rights, undo) in [
        (
            "grant file on *.* to reader@'%'",
            "revoke file on *.* from reader@'%'",
        ),
        (
            "grant all on *.* to reader@'%'",
            "revoke all on *.* from reader@'%'",
        ),
    ] {
        root.query_drop(rights).await.unwrap();
        let (kind, text) = sql(&warehouse, "select load_file('/etc/passwd')")
            .await
            .unwrap_err();
        assert_eq!(kind, ConnectorErrorKind::Unauthorized);
        assert!(text.contains("FILE"), "{text}");
        root.query_drop(undo).await.unwrap();
    }
    for statement in [
        "create role files",
        "grant file on *.* to files",
        "grant files to reader@'%'",
        "set default role files for reader@'%'",
    ] {
        root.query_drop(statement).await.unwrap();
    }
    assert!(refused(&warehouse, "select 1").await.contains("FILE"));
}

#[tokio::test]
async fn the_server_ends_slow_statements_and_those_of_dropped_calls() {
    require!(MariaDb);
    let server = start_mariadb(&[]).await;
    let warehouse = over_mariadb(&server, &json!({"timeout": "20s"}));
    let set = sql(
        &warehouse,
        "select @@max_statement_time > 15 and @@max_statement_time <= 20 as x",
    )
    .await
    .unwrap();
    assert_eq!(set.rows, ["1"]);
    let short = over_mariadb(&server, &json!({"timeout": "300ms"}));
    let (kind, _) = sql(&short, "select sleep(60) as x").await.unwrap_err();
    assert_eq!(kind, ConnectorErrorKind::Timeout);

    let mut root = mariadb_root(&server, None).await.unwrap();
    let mut running = async |expected: i64| {
        let sql = "select count(*) from information_schema.processlist where info like 'select sleep%' \
                   and user = 'reader'";
        let count: i64 = root.query_first(sql).await.unwrap().unwrap();
        if count == expected {
            Ok(())
        } else {
            Err(format!("{count} run"))
        }
    };
    wait::until_ok(async || running(0).await).await;
    let arguments = Map::from_iter([("statement".to_owned(), Value::from("select sleep(15) as x"))]);
    let mut call = warehouse.fetch("sql", arguments, Instant::now() + Duration::from_mins(1));
    tokio::select! {
        _ = &mut call => panic!("it takes longer"),
        () = wait::until_ok(async || running(1).await) => {}
    }
    let dropped = Instant::now();
    drop(call);
    wait::until_ok(async || running(0).await).await;
    assert!(dropped.elapsed() < Duration::from_secs(10), "it ended by itself");
}

#[tokio::test]
async fn limits_end_calls_without_reading_the_rest() {
    require!(MariaDb);
    let server = start_mariadb(&[]).await;
    let options = json!({"max_rows": 10_000, "max_result": "1MiB"});
    let warehouse = over_mariadb(&server, &options);
    rejects(
        &warehouse,
        "select seq from seq_1_to_1000000000",
        "more than 10000 rows, the limit `max_rows`",
    )
    .await;
    rejects(
        &warehouse,
        "select repeat('x', 1000) as x from seq_1_to_1000000000",
        "larger than 1 MiB, the limit `max_result`",
    )
    .await;
    rejects(
        &warehouse,
        "select repeat('x', 10000000) as x",
        "limit `max_result`",
    )
    .await;
}

#[tokio::test]
async fn errors_have_no_password_and_unsafe_connections_are_refused() {
    require!(MariaDb);
    let server = start_mariadb(&[]).await;
    let url = mariadb_url(&server);
    let warehouse = connector(&url, server.folder.path(), &json!({}));
    warehouse.check().await.unwrap();
    let text = refused(&warehouse, "select x from y").await;
    assert_eq!(text, "warehouse.sql: Table 'test.y' doesn't exist (1146)");
    let echoed = with(
        &warehouse,
        "select cast(:p as integer) + nothing",
        json!({"p": PASSWORD}),
    )
    .await
    .unwrap_err()
    .1;
    assert!(!echoed.contains(PASSWORD), "{echoed}");
    let wrong = connector(
        &url.replace(ENCODED, "wr0ng-password"),
        server.folder.path(),
        &json!({}),
    );
    let (kind, text) = sql(&wrong, "select 1").await.unwrap_err();
    assert_eq!(kind, ConnectorErrorKind::Unauthorized);
    assert!(!text.contains("wr0ng"), "{text}");

    let by_name = url.replace("127.0.0.1", "localhost");
    let private = connector(&by_name, server.folder.path(), &json!({"allow_private": false}));
    rejects(&private, "select 1", "`allow_private: true`").await;

    let encrypted = "show status like 'ssl_version'";
    let certificate = server.folder.path().join("tls.pem");
    let trusted = format!(
        "{by_name}?sslmode=verify-full&sslrootcert={}",
        certificate.display()
    );
    let trusted = connector(&trusted, server.folder.path(), &json!({}));
    assert_eq!(
        sql(&trusted, encrypted).await.unwrap().rows,
        ["Ssl_version|TLSv1.3"]
    );
    for refused_url in [
        format!("{by_name}?sslmode=require"),
        format!("{url}?sslrootcert={}", certificate.display()),
    ] {
        let (_, text) = sql(
            &connector(&refused_url, server.folder.path(), &json!({})),
            encrypted,
        )
        .await
        .unwrap_err();
        assert!(text.contains("certificate"), "{text}");
    }
    let folder = server.folder.path().display();
    let socket = format!("mysql://root@localhost/mysql?socket={folder}/socket");
    let socket = connector(&socket, server.folder.path(), &json!({"allow_private": false}));
    assert!(refused(&socket, "select 1").await.contains("all rights"));

    drop(server);
    let down = connector(&url, &std::env::temp_dir(), &json!({}));
    let (kind, text) = sql(&down, "select 1").await.unwrap_err();
    assert_eq!(kind, ConnectorErrorKind::Provider { status: None });
    assert!(text.contains("cannot be reached"), "{text}");
}
