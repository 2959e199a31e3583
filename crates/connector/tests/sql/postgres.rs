//! Postgres: types, what its transactions refuse, and what ends when a call does.

use std::time::{Duration, Instant};

use cellblock_interpreter::connector::{Connector as _, ConnectorErrorKind};
use cellblock_testkit::{require, wait};
use serde_json::{Map, Value, json};

use crate::answers::{call, connector, refused, rejects, sql, with};
use crate::server::{ENCODED, PASSWORD, over_postgres, postgres_url, start_postgres};

const TYPES: &str = "create type mood as enum ('sad', 'happy');
    create table kinds (b boolean, i2 smallint, i4 integer, i8 bigint, f4 real, f8 double precision, \
    n numeric(12, 3), free numeric, t text, v varchar(9), c char(3), raw bytea, d date, tm time, \
    ts timestamp, tz timestamptz, j json, jb jsonb, u uuid, a integer[], texts text[], m mood, \
    dur interval, ip inet, r int4range);
    insert into kinds values (true, -2, 3, 9223372036854775807, 0.1, 0.1, -12345.678, \
    10000000000.00001, 'é', 'v', 'c', '\\x00ff', '2026-01-31', '10:00:00.5', \
    '1969-12-31 23:59:59.5', '2026-01-31 10:00:00+02', '{\"a\": 1}', '{\"b\":2}', \
    '01234567-89ab-cdef-0123-456789abcdef', '{1,null}', '{\"x,y\"}', 'happy', '1 day 02:00:00', \
    '10.0.0.1', '[1,3)');
    insert into kinds (i2) values (null);
    insert into kinds (n, free) values (0, 0), (0.001, 0.0001), (999999999.999, -1e20);";

#[tokio::test]
async fn values_have_exactly_the_types_of_their_columns() {
    require!(Postgres);
    let server = start_postgres(TYPES).await;
    let warehouse = over_postgres(&server, &json!({}));
    let table = sql(&warehouse, "select * from kinds limit 2 -- all\n;")
        .await
        .unwrap();
    assert_eq!(
        table.columns,
        [
            "b Boolean",
            "i2 Int64",
            "i4 Int64",
            "i8 Int64",
            "f4 Float32",
            "f8 Float64",
            "n Decimal128(12, 3)",
            "free Utf8",
            "t Utf8",
            "v Utf8",
            "c Utf8",
            "raw Binary",
            "d Date32",
            "tm Time64(µs)",
            "ts Timestamp(µs)",
            "tz Timestamp(µs, \"UTC\")",
            "j Utf8",
            "jb Utf8",
            "u Utf8",
            "a Utf8",
            "texts Utf8",
            "m Utf8",
            "dur Utf8",
            "ip Utf8",
            "r Utf8"
        ]
    );
    assert_eq!(
        table.rows,
        [
            "true|-2|3|9223372036854775807|0.1|0.1|-12345.678|10000000000.00001|é|v|c  |00ff|\
             2026-01-31|10:00:00.500|1969-12-31T23:59:59.500|2026-01-31T08:00:00Z|\
             {\"a\": 1}|{\"b\": 2}|01234567-89ab-cdef-0123-456789abcdef|[1,null]|[\"x,y\"]|happy|\
             1 day 02:00:00|10.0.0.1/32|[1,3)"
                .to_owned(),
            vec!["null"; 25].join("|"),
        ]
    );
    let numbers = sql(
        &warehouse,
        "select n, free, sum(n) over () as total, count(*) over () as rows from \
         kinds where i2 is null and n is not null",
    )
    .await
    .unwrap();
    assert_eq!(numbers.columns[2..], ["total Utf8", "rows Int64"]);
    assert_eq!(
        numbers.rows,
        [
            "0.000|0|1000000000.000|3",
            "0.001|0.0001|1000000000.000|3",
            "999999999.999|-100000000000000000000|1000000000.000|3"
        ]
    );
    let wrong = sql(&warehouse, "select 'infinity'::date as d").await.unwrap_err();
    assert_eq!(wrong.0, ConnectorErrorKind::Parse);
    assert!(
        wrong.1.contains("row 1 of the column `d`: the value is infinite"),
        "{wrong:?}"
    );
    rejects(
        &warehouse,
        "select 1 as a, 2 as a",
        "two columns of the result have the name `a`",
    )
    .await;
}

#[tokio::test]
async fn arguments_are_bound_as_the_types_that_the_statement_expects() {
    require!(Postgres);
    let server = start_postgres(
        "create table orders (id integer, day date, note text);
         insert into orders values
         (1, '2026-01-01', 'a'), (2, '2026-02-01', ''' or true --'), (3, '2026-03-01', 'b');",
    )
    .await;
    let options = json!({"functions": {"orders": {
        "description": "Orders.",
        "sql": "select id, note from orders where day >= :since and (:note::text is null or note = :note) \
                order by id",
        "parameters": {"since": {"type": "string", "format": "date"},
            "note": {"type": "string", "default": null}},
    }}});
    let warehouse = over_postgres(&server, &options);
    let found = call(&warehouse, "orders", json!({"since": "2026-02-01", "note": null}))
        .await
        .unwrap();
    assert_eq!(found.rows, ["2|' or true --", "3|b"]);
    for hostile in ["' or true --", "$1", "'; drop table orders; --", "\\"] {
        let found = call(
            &warehouse,
            "orders",
            json!({"since": "2026-01-01", "note": hostile}),
        )
        .await
        .unwrap();
        assert_eq!(
            found.rows.len(),
            usize::from(hostile == "' or true --"),
            "{hostile}"
        );
    }
    let found = with(
        &warehouse,
        "select id, :x::jsonb ->> 'k' as k, $$:id$$ as q from orders where id = any(:ids) and note <> :y \
         order by id",
        json!({"ids": [1, 3, null], "x": {"k": "v"}, "y": "a"}),
    );
    assert_eq!(found.await.unwrap().rows, ["3|v|:id"]);
    let (kind, text) = call(
        &warehouse,
        "orders",
        json!({"since": "yesterday or so", "note": null}),
    )
    .await
    .unwrap_err();
    assert_eq!(kind, ConnectorErrorKind::InvalidParameter);
    assert!(
        text.contains("invalid input syntax for type date: \"yesterday or so\""),
        "{text}"
    );
    let cards = warehouse.cards().await.unwrap();
    assert_eq!(cards[0].description, "Orders. Columns: id int64, note string.");
    assert!(
        cards[1]
            .description
            .ends_with("\nTables:\norders(id integer, day date, note text)"),
        "{}",
        cards[1].description
    );
}

#[tokio::test]
async fn nothing_is_written_and_no_file_or_program_is_reached() {
    require!(Postgres);
    let server = start_postgres(
        "create table t (a integer); insert into t values (1); create sequence s;
         create function f() returns integer language plpgsql
         as $$ begin insert into t values (2); return 1; end $$;
         create procedure p() language plpgsql
         as $$ begin commit; insert into t values (3); commit; end $$;
         grant create on schema public to public;",
    )
    .await;
    let admin = server.admin().await.unwrap();
    admin
        .batch_execute("grant insert, update, delete on t to reader")
        .await
        .unwrap();
    let warehouse = over_postgres(&server, &json!({}));
    for (statement, expected) in [
        (
            "insert into t values (2) returning a",
            "only reads: cannot execute INSERT",
        ),
        (
            "with x as (insert into t values (2) returning a) select * from x",
            "only reads",
        ),
        ("insert into t values (2)", "returns no columns"),
        ("create table u (a integer)", "returns no columns"),
        ("select 1 as a into u", "returns no columns"),
        ("create temp table u as select 1", "returns no columns"),
        ("select nextval('s')", "only reads: cannot execute nextval()"),
        ("select f()", "only reads: cannot execute INSERT"),
        ("call p()", "returns no columns"),
        (
            "do $$ begin commit; insert into t values (2); end $$",
            "returns no columns",
        ),
        ("commit", "returns no columns"),
        ("set transaction read write", "returns no columns"),
        (
            "set session characteristics as transaction read write",
            "returns no columns",
        ),
        ("select pg_read_file('/etc/passwd')", "permission denied"),
        ("select lo_import('/etc/passwd')", "permission denied"),
        ("copy t to program 'touch /tmp/x'", "returns no columns"),
        ("copy t to stdout", "returns no columns"),
        (
            "select set_config('transaction_read_only', 'off', true)",
            "must be set before any query",
        ),
        ("explain analyze insert into t values (2)", "only reads"),
        ("select 1; insert into t values (2)", "two statements"),
        ("select 1;commit", "two statements"),
    ] {
        rejects(&warehouse, statement, expected).await;
    }
    // Whatever one call sets, the next does not see.
    let _ = sql(
        &warehouse,
        "select set_config('default_transaction_read_only', 'off', false)",
    )
    .await;
    rejects(&warehouse, "insert into t values (2) returning a", "only reads").await;
    assert_eq!(
        sql(&warehouse, "select count(*) as n from t").await.unwrap().rows,
        ["1"]
    );
    assert_eq!(sql(&warehouse, "explain select 1").await.unwrap().rows.len(), 1);

    // Rights that no transaction restricts are refused as a whole.
    for rights in [
        "grant pg_read_server_files to reader",
        "grant pg_execute_server_program to reader",
        "alter role reader superuser",
    ] {
        admin.batch_execute(rights).await.unwrap();
        let (kind, text) = sql(&warehouse, "select 1").await.unwrap_err();
        assert_eq!(kind, ConnectorErrorKind::Unauthorized);
        assert!(text.contains("the role `reader` is a superuser"), "{text}");
        assert!(warehouse.check().await.is_err());
        let undo = "revoke pg_read_server_files, pg_execute_server_program from reader";
        admin.batch_execute(undo).await.unwrap();
    }
}

#[tokio::test]
async fn the_server_ends_slow_statements_and_those_of_dropped_calls() {
    require!(Postgres);
    let server = start_postgres("create table t (a integer)").await;
    let warehouse = over_postgres(&server, &json!({"timeout": "20s"}));
    let set = sql(&warehouse, "show statement_timeout").await.unwrap();
    let milliseconds = set.rows[0].trim_end_matches("ms").parse::<u32>();
    assert!(
        set.rows[0] == "20s" || milliseconds.is_ok_and(|it| it > 15_000 && it <= 20_000),
        "{set:?}"
    );

    let short = over_postgres(&server, &json!({"timeout": "300ms"}));
    let (kind, text) = sql(&short, "select pg_sleep(60)::text").await.unwrap_err();
    assert_eq!(kind, ConnectorErrorKind::Timeout);
    assert!(text.contains("`timeout`"), "{text}");

    let admin = server.admin().await.unwrap();
    let running = async |expected: i64| {
        let sql = "select count(*) from pg_stat_activity where query like 'select pg_sleep%' and usename \
                   = 'reader'";
        let count: i64 = admin.query_one(sql, &[]).await.unwrap().get(0);
        if count == expected {
            Ok(())
        } else {
            Err(format!("{count} run"))
        }
    };
    wait::until_ok(async || running(0).await).await;
    let arguments = Map::from_iter([("statement".to_owned(), Value::from("select pg_sleep(15)::text"))]);
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
    require!(Postgres);
    let server = start_postgres("create table t (a integer)").await;
    let options = json!({"max_rows": 10_000, "max_result": "1MiB"});
    let warehouse = over_postgres(&server, &options);
    rejects(
        &warehouse,
        "select generate_series(1, 1000000000) as i",
        "more than 10000 rows, the limit `max_rows`",
    )
    .await;
    rejects(
        &warehouse,
        "select repeat('x', 1000) as x, generate_series(1, 1000000000) as i",
        "larger than 1 MiB, the limit `max_result`",
    )
    .await;
    rejects(
        &warehouse,
        "select repeat('x', 300000000) as x",
        "a row is larger than the limit `max_result`",
    )
    .await;
    assert_eq!(
        sql(&warehouse, "select generate_series(1, 10000) as i")
            .await
            .unwrap()
            .rows
            .len(),
        10_000
    );
}

#[tokio::test]
async fn errors_help_to_repair_the_statement_and_have_no_password() {
    require!(Postgres);
    let server = start_postgres("create table orders (day date)").await;
    let url = postgres_url(&server);
    let warehouse = connector(&url, server.folder.path(), &json!({}));
    warehouse.check().await.unwrap();
    let text = refused(&warehouse, "select days from orders").await;
    assert_eq!(
        text,
        "warehouse.sql: column \"days\" does not exist (42703), at position 8: `days from orders`; \
         Perhaps you meant to reference the column \"orders.day\"."
    );
    let (kind, text) = with(&warehouse, "select :p || 1/0", json!({"p": PASSWORD}))
        .await
        .unwrap_err();
    assert_eq!(kind, ConnectorErrorKind::InvalidParameter);
    assert!(!text.contains(PASSWORD), "{text}");
    let echoed = with(&warehouse, "select (:p)::integer", json!({"p": PASSWORD}))
        .await
        .unwrap_err()
        .1;
    assert!(
        echoed.contains("[redacted]") && !echoed.contains(PASSWORD),
        "{echoed}"
    );

    let wrong = connector(
        &url.replace(ENCODED, "wr0ng-password"),
        server.folder.path(),
        &json!({}),
    );
    let (kind, text) = sql(&wrong, "select 1").await.unwrap_err();
    assert_eq!(kind, ConnectorErrorKind::Unauthorized);
    assert!(!text.contains("wr0ng"), "{text}");

    let port = server.port;
    drop(server);
    let folder = std::env::temp_dir();
    let down = connector(&url, &folder, &json!({}));
    let (kind, text) = sql(&down, "select 1").await.unwrap_err();
    assert_eq!(kind, ConnectorErrorKind::Provider { status: None });
    assert!(
        text.contains("cannot be reached") && !text.contains(&port.to_string()),
        "{text}"
    );
    assert!(down.cards().await.unwrap()[0].description.contains("Postgres"));
}

#[tokio::test]
async fn private_addresses_and_unverified_servers_are_refused() {
    require!(Postgres);
    let server = start_postgres("create table t (a integer)").await;
    let by_name = postgres_url(&server).replace("127.0.0.1", "localhost");
    let private = connector(&by_name, server.folder.path(), &json!({"allow_private": false}));
    let (_, text) = sql(&private, "select 1").await.unwrap_err();
    assert!(
        text.contains("private address") && text.contains("`allow_private: true`"),
        "{text}"
    );

    let encrypted = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";
    let certificate = server.folder.path().join("tls.pem");
    let trusted = format!(
        "{by_name}?sslmode=verify-full&sslrootcert={}",
        certificate.display()
    );
    let trusted = connector(&trusted, server.folder.path(), &json!({}));
    assert_eq!(sql(&trusted, encrypted).await.unwrap().rows, ["true"]);
    let plain = connector(&by_name, server.folder.path(), &json!({}));
    assert_eq!(sql(&plain, encrypted).await.unwrap().rows, ["false"]);
    // The machine does not trust this certificate, and it has another name.
    let unknown = connector(
        &format!("{by_name}?sslmode=require"),
        server.folder.path(),
        &json!({}),
    );
    rejects(&unknown, encrypted, "certificate").await;
    let other_name = format!("{}?sslrootcert={}", postgres_url(&server), certificate.display());
    let other_name = connector(&other_name, server.folder.path(), &json!({}));
    rejects(&other_name, encrypted, "certificate").await;
    // A server without TLS gets no password, and a Unix socket needs none.
    let admin = server.admin().await.unwrap();
    admin.batch_execute("alter system set ssl = off").await.unwrap();
    admin.batch_execute("select pg_reload_conf()").await.unwrap();
    wait::until_ok(async || match sql(&trusted, encrypted).await {
        Ok(_) => Err("it still has TLS".to_owned()),
        Err((_, text)) if text.contains("does not support TLS") => Ok(()),
        Err((_, text)) => Err(text),
    })
    .await;
    let folder = server.folder.path().display();
    let socket = format!(
        "postgres://reader@localhost:{}/postgres?host={folder}",
        server.port
    );
    let socket = connector(&socket, server.folder.path(), &json!({"allow_private": false}));
    assert_eq!(sql(&socket, encrypted).await.unwrap().rows, ["false"]);
}
