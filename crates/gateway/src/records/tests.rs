//! Opening, migration and checks of records.

use rusqlite::Connection;

use super::conformance::over_each_database;
use super::database::params;
use super::database::schema::known;
use super::*;

async fn texts(records: &Records) -> Vec<String> {
    let read = |database: &mut Database| database.query("SELECT text FROM notes", &[], |row| row.get(0));
    records.with(read).await.unwrap()
}

async fn note(records: &Records) {
    let sql = "CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('kept');";
    records.with(|database| database.batch(sql)).await.unwrap();
}

#[tokio::test]
async fn records_are_there_after_they_were_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("records.sqlite");
    note(&Records::open(&path).unwrap()).await;
    assert_eq!(texts(&Records::open(&path).unwrap()).await, ["kept"]);
}

#[test]
fn records_of_a_newer_version_are_refused_and_left_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("records.sqlite");
    let connection = Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 999).unwrap();
    drop(connection);
    assert!(matches!(
        Records::open(&path),
        Err(RecordsError::Newer { found: 999, .. })
    ));
    let connection = Connection::open(&path).unwrap();
    let found: u32 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    assert_eq!(found, 999);
}

/// Records of a page-sized row each, with the bytes of a page in their middle overwritten.
async fn damaged(path: &Path) {
    let rows = "CREATE TABLE notes (text TEXT);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
                INSERT INTO notes SELECT printf('%.1000c', 'x') FROM n;
                PRAGMA wal_checkpoint(TRUNCATE);";
    let records = Records::open(path).unwrap();
    records.with(|database| database.batch(rows)).await.unwrap();
    drop(records);
    let mut bytes = std::fs::read(path).unwrap();
    let middle = bytes.len() * 3 / 4 / 4096 * 4096;
    bytes[middle..middle + 4096].fill(0xa5);
    std::fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn damage_anywhere_in_the_file_is_found_and_reported_with_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("records.sqlite");
    Records::open(&path).unwrap().check().await.unwrap();
    damaged(&path).await;
    // Opening reads only the schema.
    let records = Records::open(&path).unwrap();
    let error = records.check().await.unwrap_err();
    assert!(matches!(error, RecordsError::Damaged { .. }), "{error:?}");
    let expected = format!("use the records at `{}`: the file is damaged: ", path.display());
    assert!(error.to_string().starts_with(&expected), "{error}");
    // A statement that meets the damage reports it in the same way.
    let read = records
        .with(|database| database.exists("SELECT sum(length(text)) FROM notes", &[]))
        .await;
    assert!(matches!(read, Err(RecordsError::Damaged { .. })), "{read:?}");
    // A check that may take no time gives up before it comes to the damage.
    let checked = records.with(|database| database.damage_within(std::time::Duration::ZERO));
    assert_eq!(checked.await.unwrap(), None);
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_reported_as_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("records.sqlite");
    std::fs::write(&path, "not a database, however often it is read".repeat(200)).unwrap();
    for opened in [Records::open(&path), Records::look(&path)] {
        let error = opened.unwrap_err().to_string();
        let expected = format!(
            "use the records at `{}`: the file is damaged: file is not a database",
            path.display()
        );
        assert_eq!(error, expected);
    }
}

#[tokio::test]
async fn a_transaction_that_reads_and_then_writes_waits_for_another_process() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("records.sqlite");
    let (one, other) = (Records::open(&path).unwrap(), Records::open(&path).unwrap());
    note(&one).await;
    let (read, reads) = std::sync::mpsc::channel::<()>();
    let first = one.with(move |database| {
        let transaction = database.transaction()?;
        assert!(transaction.exists("SELECT text FROM notes", &[])?);
        read.send(()).unwrap();
        // Time for the other to write first, if it could.
        std::thread::sleep(std::time::Duration::from_millis(200));
        transaction.execute("INSERT INTO notes VALUES (?1)", params!["first"])?;
        transaction.commit()
    });
    let second = other.with(move |database| {
        reads.recv().unwrap();
        database.execute("INSERT INTO notes VALUES (?1)", params!["second"])
    });
    let (first, second) = tokio::join!(first, second);
    first.unwrap();
    second.unwrap();
    assert_eq!(texts(&one).await, ["kept", "first", "second"]);
}

/// Whether there is a key that can be used, in records that are only looked at.
async fn any_key(place: &RecordsPlace) -> bool {
    let keys = crate::keys::Keys::new(place.look().await.unwrap());
    keys.any_usable().await.unwrap()
}

#[tokio::test]
async fn looking_at_records_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("records.sqlite");
    let place = RecordsPlace::File(path.clone());
    assert!(!any_key(&place).await);
    assert!(!path.exists());
    let keys = crate::keys::Keys::new(place.open().await.unwrap());
    keys.create("ci", crate::keys::KeyTerms::default()).await.unwrap();
    assert!(any_key(&place).await);
}

over_each_database! {
    async fn a_transaction_that_is_not_committed_leaves_nothing(records: Records) {
        note(&records).await;
        let dropped = records.with(|database| {
            let transaction = database.transaction()?;
            transaction.execute("INSERT INTO notes VALUES (?1)", params!["dropped"])?;
            Ok(())
        });
        dropped.await.unwrap();
        let failed = records.with(|database| {
            let transaction = database.transaction()?;
            transaction.execute("INSERT INTO notes VALUES (?1)", params!["failed"])?;
            transaction.batch("INSERT INTO nothing VALUES (1)")?;
            transaction.commit()
        });
        assert!(matches!(failed.await, Err(RecordsError::Statement { .. })));
        let panicked = records.with(|database| -> database::DatabaseResult<()> {
            let transaction = database.transaction()?;
            transaction.execute("INSERT INTO notes VALUES (?1)", params!["panicked"])?;
            panic!("in the middle of a transaction");
        });
        assert!(matches!(panicked.await, Err(RecordsError::Ending)));
        assert_eq!(texts(&records).await, ["kept"]);
    }

    async fn work_is_done_to_its_end_when_nobody_waits_for_it_any_more(records: Records) {
        note(&records).await;
        let (begun, begins) = tokio::sync::oneshot::channel();
        let (go, goes) = std::sync::mpsc::channel::<()>();
        let work = tokio::spawn({
            let records = records.clone();
            async move {
                let work = records.with(move |database| {
                    let transaction = database.transaction()?;
                    transaction.execute("INSERT INTO notes VALUES (?1)", params!["late"])?;
                    begun.send(()).unwrap();
                    goes.recv().unwrap();
                    transaction.commit()
                });
                work.await
            }
        });
        begins.await.unwrap();
        work.abort();
        assert!(work.await.unwrap_err().is_cancelled());
        go.send(()).unwrap();
        cellblock_testkit::wait::until_ok(async || match texts(&records).await.as_slice() {
            [_, late] if late == "late" => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
    }

    async fn values_of_each_type_come_back_as_they_were(records: Records) {
        let read = records.with(|database| {
            database.batch("CREATE TABLE kinds (t TEXT, i BIGINT)")?;
            let sql = "INSERT INTO kinds (t, i) VALUES (?1, ?2)";
            let text = "é \u{1F980} '; --";
            database.execute(sql, params![text, i64::MIN])?;
            database.execute(sql, params![None::<String>, None::<i64>])?;
            database.query("SELECT t, i FROM kinds ORDER BY i IS NULL", &[], |row| {
                Ok((row.get::<Option<String>>(0)?, row.get::<Option<i64>>("i")?))
            })
        });
        let expected = [(Some("é \u{1F980} '; --".to_owned()), Some(i64::MIN)), (None, None)];
        assert_eq!(read.await.unwrap(), expected);
    }

    async fn a_page_goes_on_after_a_row_in_both_directions(records: Records) {
        let file = |id: &str| FileRow {
            id: id.to_owned(),
            owner: "ann".to_owned(),
            filename: "a".to_owned(),
            purpose: if id == "c" { "other" } else { "user_data" }.to_owned(),
            bytes: 1,
            sha256: String::new(),
            created_ms: 0,
            expires_ms: None,
        };
        for id in ["a", "b", "c", "d"] {
            records.add_file(file(id)).await.unwrap();
        }
        let page = |after: Option<&str>, ascending| Page {
            after: after.map(str::to_owned),
            limit: 2,
            ascending,
        };
        for (purpose, page, expected, more) in [
            (None, page(None, true), vec!["a", "b"], true),
            (None, page(Some("b"), true), vec!["c", "d"], false),
            (None, page(None, false), vec!["d", "c"], true),
            (Some("user_data"), page(Some("d"), false), vec!["b", "a"], false),
        ] {
            let purpose = purpose.map(str::to_owned);
            let found = records.files("ann", purpose, page, 0).await.unwrap().unwrap();
            let ids: Vec<_> = found.rows.iter().map(|row| row.id.as_str()).collect();
            assert_eq!((ids, found.more), (expected, more));
        }
        let unknown = records.files("ann", None, page(Some("x"), true), 0).await.unwrap();
        assert_eq!(unknown, None);
        assert_eq!(records.stored_bytes("ann").await.unwrap(), 4);
    }
}

over_each_database! {
    async fn the_schema_is_made_once_and_counts_stored_bytes(records: Records) {
        let again = records.with(Database::migrate).await.unwrap();
        assert_eq!(again, known());
        let file = "INSERT INTO files (id, owner, filename, purpose, bytes, sha256, created_ms) \
                    VALUES ('file_1', 'ann', 'a', 'user_data', 5, '', 7)";
        records.with(move |database| database.execute(file, &[])).await.unwrap();
        assert_eq!(records.stored_bytes("ann").await.unwrap(), 5);
        records.remove_file("ann", "file_1").await.unwrap();
        assert_eq!(records.stored_bytes("ann").await.unwrap(), 0);
    }
}

#[test]
fn records_from_before_the_first_release_are_refused_and_left_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records.sqlite");
    let old = Connection::open(&path).unwrap();
    old.execute_batch("CREATE TABLE keys (id TEXT); PRAGMA user_version = 7")
        .unwrap();
    let error = Records::open(&path).unwrap_err();
    assert!(matches!(error, RecordsError::Older { found: 7, .. }), "{error}");
    assert!(error.to_string().contains("move them away"), "{error}");
    let version: u32 = old
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    assert_eq!(version, 7);
}
