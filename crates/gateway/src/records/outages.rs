//! A Postgres server that cannot be used: what is reported, what is kept, and that records work
//! again afterward.

use std::error::Error;
use std::sync::mpsc;

use cellblock_testkit::{DatabaseServer, require, wait};

use super::conformance::PostgresDatabase;
use super::database::params;
use super::database::postgres::CONNECTIONS;
use super::database::schema::known;
use super::*;

/// A role that has a password, and a database of its own.
const ROLE: &str = "create role ann login password 's3cret'";
const DATABASE: &str = "create database records owner ann";

async fn server() -> DatabaseServer {
    let server = DatabaseServer::postgres().await;
    let admin = server.admin().await.unwrap();
    admin.batch_execute(ROLE).await.unwrap();
    admin.batch_execute(DATABASE).await.unwrap();
    server
}

fn url(text: &str) -> PostgresUrl {
    PostgresUrl::new(text, Path::new("/")).unwrap()
}

/// The error of records that cannot be opened, with its causes.
async fn refused(text: &str) -> String {
    let error = Records::connect(&url(text)).await.unwrap_err();
    let mut all = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        all = format!("{all}: {error}");
        cause = error.source();
    }
    assert!(!all.contains("s3cret") && !all.contains("wr0ng"), "{all}");
    all
}

#[tokio::test]
async fn a_server_that_cannot_be_used_is_reported_with_its_address_and_a_repair() {
    require!(Postgres);
    let server = server().await;
    let port = server.port;
    let start = format!("use the records at `postgres://127.0.0.1:{port}/");
    for (user, database, expected) in [
        (
            "ann:wr0ng",
            "records",
            "rejects the user, the password or the encryption",
        ),
        (
            "eve:s3cret",
            "records",
            "rejects the user, the password or the encryption",
        ),
        ("ann:s3cret", "nothing", "create the database"),
        // It belongs to somebody else.
        ("ann:s3cret", "postgres", "make it the owner of the database"),
    ] {
        let text = refused(&format!("postgres://{user}@127.0.0.1:{port}/{database}")).await;
        assert!(text.starts_with(&start) && text.contains(expected), "{text}");
    }
    let right = format!("postgres://ann:s3cret@127.0.0.1:{port}/records");
    Records::connect(&url(&right)).await.unwrap();
    drop(server);
    let text = refused(&right).await;
    assert!(
        text.contains("see that Postgres runs and can be reached"),
        "{text}"
    );
    assert!(text.contains("Connection refused"), "{text}");
}

#[tokio::test]
async fn a_server_is_verified_where_the_url_says_so() {
    require!(Postgres);
    let server = server().await;
    let by_name = format!("postgres://ann:s3cret@localhost:{}/records", server.port);
    let roots = server.folder.path().join("tls.pem").display().to_string();
    let trusted = format!("{by_name}?sslmode=verify-full&sslrootcert={roots}");
    let encrypted = |text: String| async move {
        let records = Records::connect(&url(&text)).await.unwrap();
        let sql = "SELECT ssl::int::bigint FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        let read = records.with(|database| database.first(sql, &[], |row| row.is(0)));
        read.await.unwrap().unwrap()
    };
    assert!(encrypted(trusted.clone()).await);
    assert!(!encrypted(by_name.clone()).await);
    for unverified in [
        // The machine does not know its authority; the certificate has another name.
        format!("{by_name}?sslmode=require"),
        trusted.replace("localhost", "127.0.0.1"),
    ] {
        let text = refused(&unverified).await;
        assert!(text.contains("a certificate for this host"), "{text}");
    }
    let text = refused(&format!("{by_name}?sslrootcert=/nowhere/ca.pem")).await;
    assert!(text.contains("`/nowhere/ca.pem`"), "{text}");
    let admin = server.admin().await.unwrap();
    admin.batch_execute("alter system set ssl = off").await.unwrap();
    admin.batch_execute("select pg_reload_conf()").await.unwrap();
    wait::until_ok(async || match Records::connect(&url(&trusted)).await {
        Ok(_) => Err("it still has TLS".to_owned()),
        Err(error) if error.to_string().contains("see that Postgres has TLS") => Ok(()),
        Err(error) => Err(error.to_string()),
    })
    .await;
}

#[tokio::test]
async fn records_of_a_newer_version_are_refused_and_left_as_they_are() {
    require!(Postgres);
    let database = PostgresDatabase::create().await;
    let records = database.records().await;
    let newer = "UPDATE cellblock_schema SET version = 999";
    records.with(|database| database.batch(newer)).await.unwrap();
    let place = RecordsPlace::Postgres(Box::new(database.url.clone()));
    for opened in [place.open().await, place.look().await] {
        let error = opened.unwrap_err();
        assert!(matches!(error, RecordsError::Newer { found: 999, .. }), "{error}");
    }
    let found = records.with(|database| database.version()).await.unwrap();
    assert_eq!(found, 999);
}

#[tokio::test]
async fn looking_at_records_makes_no_tables() {
    require!(Postgres);
    let database = PostgresDatabase::create().await;
    let place = RecordsPlace::Postgres(Box::new(database.url.clone()));
    place.look().await.unwrap();
    let records = Records::unprepared(&database.url, WAIT).unwrap();
    let tables = "SELECT 1 FROM pg_tables WHERE schemaname = 'public'";
    let any = records.with(|database| database.exists(tables, &[]));
    assert!(!any.await.unwrap());
}

#[tokio::test]
async fn gateways_that_start_at_the_same_time_apply_each_step_once() {
    require!(Postgres);
    let database = PostgresDatabase::create().await;
    let mut starts = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let url = database.url.clone();
        starts.spawn(async move { Records::connect(&url).await });
    }
    for started in starts.join_all().await {
        let found = started.unwrap().with(|database| database.version()).await;
        assert_eq!(found.unwrap(), known());
    }
}

#[tokio::test]
async fn committed_rows_survive_a_kill_of_the_server_and_records_work_again_when_it_is_back() {
    require!(Postgres);
    let mut server = DatabaseServer::postgres().await;
    let records = Records::connect(&url(&server.create_database("records").await))
        .await
        .unwrap();
    let kept = Arc::new(Mutex::new(Vec::new()));
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..4 {
        let (records, kept) = (records.clone(), Arc::clone(&kept));
        writers.spawn(async move {
            let mut number = 0;
            loop {
                number += 1;
                let sha256 = format!("{writer}-{number}");
                let twin = format!("{sha256}-twin");
                if let Err(error) = records.grant_artifacts("ann", vec![sha256.clone(), twin]).await {
                    return error;
                }
                kept.lock().push(sha256);
            }
        });
    }
    wait::until("50 writes", || kept.lock().len() >= 50).await;
    server.kill();
    for error in writers.join_all().await {
        assert!(error.is_unavailable(), "{error:?}");
    }
    let kept = std::mem::take(&mut *kept.lock());
    let error = records.owns_artifact("ann", "0-0").await.unwrap_err();
    assert!(error.is_unavailable(), "{error:?}");
    server.restart_postgres().await;
    wait::until_ok(async || records.owns_artifact("ann", "0-0").await).await;
    for sha256 in kept {
        assert!(records.owns_artifact("ann", &sha256).await.unwrap(), "{sha256}");
    }
    // What was in the middle is there as a whole or not at all.
    let halves = "SELECT 1 FROM artifact_owners AS one WHERE sha256 NOT LIKE '%-twin' AND NOT EXISTS \
                  (SELECT 1 FROM artifact_owners AS two WHERE two.sha256 = one.sha256 || '-twin')";
    assert!(
        !records
            .with(|database| database.exists(halves, &[]))
            .await
            .unwrap()
    );
    records
        .grant_artifacts("ann", vec!["again".to_owned()])
        .await
        .unwrap();
}

#[tokio::test]
async fn work_waits_for_a_connection_and_fails_if_all_are_in_use_for_too_long() {
    require!(Postgres);
    let database = PostgresDatabase::create().await;
    let records = Records::unprepared(&database.url, Duration::from_millis(100)).unwrap();
    let mut holders = tokio::task::JoinSet::new();
    let (begun, mut begins) = tokio::sync::mpsc::channel(CONNECTIONS);
    let mut ends = Vec::new();
    for _ in 0..CONNECTIONS {
        let (go, goes) = mpsc::channel::<()>();
        ends.push(go);
        let (records, begun) = (records.clone(), begun.clone());
        holders.spawn(async move {
            let hold = records.with(move |_| {
                begun.try_send(()).unwrap();
                // Until the test lets it go.
                let _ = goes.recv();
                Ok(())
            });
            hold.await
        });
    }
    drop(begun);
    for _ in 0..CONNECTIONS {
        begins.recv().await.unwrap();
    }
    let error = records
        .with(|database| database.exists("SELECT 1", &[]))
        .await
        .unwrap_err();
    assert!(error.is_unavailable(), "{error:?}");
    assert!(
        error
            .to_string()
            .contains("all 8 connections of this gateway are in use"),
        "{error}"
    );
    ends.pop();
    wait::until_ok(async || records.with(|database| database.exists("SELECT 1", &[])).await).await;
    ends.clear();
    for held in holders.join_all().await {
        held.unwrap();
    }
}

#[tokio::test]
async fn a_text_with_a_nul_is_refused_before_it_is_sent() {
    require!(Postgres);
    let database = PostgresDatabase::create().await;
    let records = database.records().await;
    let error = records.owns_artifact("ann", "a\0b").await.unwrap_err();
    assert!(error.is_nul(), "{error:?}");
}

#[tokio::test]
async fn a_connection_whose_transaction_was_dropped_is_used_again() {
    require!(Postgres);
    let database = PostgresDatabase::create().await;
    let records = database.records().await;
    let pid = "SELECT pg_backend_pid()::bigint";
    let dropped = records.with(move |database| {
        let transaction = database.transaction()?;
        transaction.execute(
            "INSERT INTO secrets (name, key) VALUES (?1, ?2)",
            params!["a", [1; 4]],
        )?;
        transaction.first(pid, &[], |row| row.get::<i64>(0))
    });
    let before = dropped.await.unwrap();
    let after = records.with(move |database| database.first(pid, &[], |row| row.get::<i64>(0)));
    assert_eq!(after.await.unwrap(), before);
    let found = records.with(|database| database.exists("SELECT 1 FROM secrets", &[]));
    assert!(!found.await.unwrap());
}
