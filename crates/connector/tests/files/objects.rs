//! Object stores as roots: they answer like folders, are read sparingly, and fail with an explanation.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use cellblock_artifact::{Credentials, S3};
use cellblock_testkit::{S3Server, require};
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt as _};

use super::proxy::Proxy;
use super::*;

/// Objects below a prefix of the bucket `lake`.
fn store(endpoint: String) -> Arc<dyn ObjectStore> {
    let place = S3 {
        endpoint: Some(endpoint),
        region: Some("us-east-1".into()),
        credentials: Some(Credentials {
            key_id: "the-key-id".into(),
            secret: "the-secret".into(),
        }),
        ..S3::at("s3://lake/some/year=1/").unwrap()
    };
    place.objects(Duration::from_secs(1)).unwrap()
}

/// Uploads a folder, and returns a server with it.
fn served(folder: &Path) -> S3Server {
    let server = S3Server::start();
    server.create_bucket("lake");
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let below = path.strip_prefix(folder).unwrap().to_str().unwrap();
                server.put("lake", &format!("some/year=1/{below}"), &fs::read(&path).unwrap());
            }
        }
    }
    server
}

fn over(endpoint: String, more: &Value) -> FilesConnector {
    connector_at(PathBuf::new(), more).over(store(endpoint))
}

async fn failure(connector: &FilesConnector, table: &str) -> (ConnectorErrorKind, String) {
    let (kind, text) = rows(connector, table, json!({})).await.unwrap_err();
    for secret in ["the-key-id", "the-secret", "127.0.0.1", "http:", "some/year=1"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    assert!(text.starts_with(&format!("lake.{table}: ")), "{text}");
    (kind, text)
}

const PROVIDER: ConnectorErrorKind = ConnectorErrorKind::Provider { status: None };

#[tokio::test]
async fn an_object_store_answers_like_a_folder() {
    require!(S3Server);
    let folder = lake();
    // Longer than the windows that are requested first.
    let lines: Vec<String> = (0..60_000).map(|line| format!("{line},x\n")).collect();
    fs::write(
        folder.path().join("long.csv"),
        format!("line,note\n{}", lines.concat()),
    )
    .unwrap();
    let server = served(folder.path());
    let more = json!({"tables": {
        "trips": "trips/year=*/*.parquet", "deep": "trips/**/*.parquet", "sales": "sales.csv",
        "events": "events/*.jsonl",
        "long": "lo*.csv", "none": "none/*.csv", "no_file": "trips/*.parquet",
    }});
    let near = connector(&folder, &more);
    let far = over(server.endpoint(), &more);
    far.check().await.unwrap();
    let described = |cards: Vec<cellblock_interpreter::connector::Card>| {
        let texts = cards.into_iter().map(|card| card.description);
        texts.collect::<Vec<_>>()
    };
    assert_eq!(
        described(far.cards().await.unwrap()),
        described(near.cards().await.unwrap())
    );
    for (table, arguments) in [
        ("trips", json!({})),
        ("deep", json!({"columns": ["fare"], "limit": 4})),
        (
            "trips",
            json!({"columns": ["city", "year"], "where": {"fare": {">": 2}}}),
        ),
        (
            "trips",
            json!({"where": {"year": 2025, "city": null}, "columns": ["number"]}),
        ),
        ("trips", json!({"where": {"number": {">": 100}}})),
        ("sales", json!({"where": {"amount": null}})),
        ("events", json!({"where": {"id": {">=": 2}}})),
        ("long", json!({"where": {"line": {">=": 59_990}}})),
        ("none", json!({})),
        ("no_file", json!({})),
        ("sales", json!({"columns": ["x"]})),
    ] {
        let far = rows(&far, table, arguments.clone()).await;
        let near = rows(&near, table, arguments.clone()).await;
        assert_eq!(far, near, "{table} {arguments}");
    }
}

/// Numbers that compress badly.
fn noise(rows: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        f64::from_bits(0x3ff0_0000_0000_0000 | (state >> 12))
    })
    .take(rows)
    .collect()
}

#[tokio::test]
async fn one_of_fifty_columns_requests_a_small_share_of_the_bytes() {
    require!(S3Server);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("wide.parquet");
    let columns: Vec<(String, ArrayRef)> = (0..50)
        .map(|column| {
            let values = Float64Array::from(noise(20_000, column));
            (format!("c{column}"), Arc::new(values) as _)
        })
        .collect();
    let columns = columns
        .iter()
        .map(|(name, values)| (name.as_str(), values.clone()));
    write(&path, columns.collect(), 10_000);
    let server = served(folder.path());
    let proxy = Proxy::start(server.address(), || {});
    let lake = over(proxy.endpoint(), &json!({"tables": {"wide": "*.parquet"}}));
    let got = rows(&lake, "wide", json!({"columns": ["c7"]})).await.unwrap();
    assert_eq!(got.len(), 20_000);
    let (sent, all) = (proxy.sent(), fs::metadata(&path).unwrap().len());
    assert!(sent * 20 < all, "{sent} of {all} bytes");
}

#[tokio::test]
async fn long_column_chunks_are_read_in_windows() {
    require!(S3Server);
    let folder = TempDir::new().unwrap();
    let values = noise(2_500_000, 1);
    let path = folder.path().join("long.parquet");
    let column = Arc::new(Float64Array::from(values.clone())) as ArrayRef;
    write(&path, vec![("a", column)], values.len());
    let server = served(folder.path());
    let proxy = Proxy::start(server.address(), || {});
    let lake = over(proxy.endpoint(), &json!({"tables": {"long": "*.parquet"}}));
    let first = rows(&lake, "long", json!({"limit": 2})).await.unwrap();
    assert_eq!(first, [values[0].to_string(), values[1].to_string()]);
    let (sent, all) = (proxy.sent(), fs::metadata(&path).unwrap().len());
    assert!(sent * 2 < all, "{sent} of {all} bytes for two rows");
    let got = rows(&lake, "long", json!({})).await.unwrap();
    assert!(
        got.iter()
            .zip(&values)
            .all(|(got, value)| *got == value.to_string())
    );
    assert_eq!(got.len(), values.len());
}

#[tokio::test]
async fn failures_of_an_object_store_are_explained_without_its_address() {
    require!(S3Server);
    let folder = lake();
    let server = served(folder.path());
    let missing = S3Server::start();
    let (kind, text) = failure(&over(missing.endpoint(), &json!({})), "sales").await;
    assert_eq!(kind, PROVIDER);
    assert!(text.contains("check the bucket of `root`"), "{text}");

    server.require_known_keys();
    let (kind, text) = failure(&over(server.endpoint(), &json!({})), "sales").await;
    assert_eq!(kind, ConnectorErrorKind::Unauthorized);
    assert!(
        text.contains("the operator's credentials must be allowed"),
        "{text}"
    );

    let endpoint = server.endpoint();
    drop(server);
    let down = over(endpoint, &json!({}));
    let (kind, text) = failure(&down, "sales").await;
    assert_eq!(kind, PROVIDER);
    assert!(text.contains("failed or cannot be reached"), "{text}");
    assert!(down.check().await.is_err());
}

#[tokio::test]
async fn a_file_that_is_removed_or_replaced_after_the_listing_is_an_error() {
    require!(S3Server);
    let folder = lake();
    let server = Arc::new(served(folder.path()));
    for (replaced, words) in [
        (true, "it changed while it was read; call again"),
        (false, "the object store does not have it, or no longer"),
    ] {
        // The proxy's thread outlives the test, and must not keep the server.
        let far = Arc::downgrade(&server);
        let proxy = Proxy::start(server.address(), move || {
            let far = far.upgrade().unwrap();
            let key = "some/year=1/events/2.jsonl";
            far.delete("lake", key);
            if replaced {
                far.put("lake", key, b"{}\n");
            }
        });
        // The listing of the first call is of before.
        let (kind, text) = failure(&over(proxy.endpoint(), &json!({})), "events").await;
        assert_eq!(kind, PROVIDER);
        assert!(text.contains("`events/2.jsonl` cannot be read"), "{text}");
        assert!(text.contains(words), "{text}");
    }
}

#[tokio::test]
async fn a_store_that_never_answers_ends_with_the_timeout_or_the_call() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    let begun = Instant::now();
    let (kind, text) = failure(&over(endpoint.clone(), &json!({"timeout": "500ms"})), "sales").await;
    assert_eq!(kind, ConnectorErrorKind::Timeout);
    assert!(
        text.contains("did not answer within the limit `timeout`"),
        "{text}"
    );
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    drop(silent.accept().unwrap());

    let patient = over(endpoint, &json!({"timeout": "1m"}));
    let until = Instant::now() + Duration::from_mins(1);
    let call = patient.fetch("sales", serde_json::Map::new(), until);
    let asked = tokio::task::spawn_blocking(move || {
        let (mut connection, _) = silent.accept().unwrap();
        connection
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let mut request = [0; 4096];
        assert!(connection.read(&mut request).unwrap() > 0);
        connection
    });
    let mut connection = tokio::select! {
        answer = call => panic!("{answer:?}"),
        connection = asked => connection.unwrap(),
    };
    // The call was dropped, so its request is, too.
    let ended = tokio::task::spawn_blocking(move || {
        let mut rest = Vec::new();
        connection.read_to_end(&mut rest).is_ok() && connection.write_all(b"").is_ok()
    });
    assert!(ended.await.unwrap());
}

#[tokio::test]
async fn hostile_names_and_endless_folders_are_errors() {
    require!(S3Server);
    let server = served(lake().path());
    server.put("lake", "some/year=1/events//3.jsonl", b"{\"id\": 9}\n");
    server.put("lake", "some/year=1/.hidden.csv", b"a\n1\n");
    server.put(
        "lake",
        "some/year=1/a%5Cb%3B%20'%22%23.csv",
        b"day,amount,note\n2026-01-03,3,c\n",
    );
    let lake = over(server.endpoint(), &json!({}));
    let (kind, text) = failure(&lake, "events").await;
    assert_eq!(kind, PROVIDER);
    assert!(text.contains("has a name that is not a path"), "{text}");
    let sales = rows(&lake, "all_sales", json!({"columns": ["note"]})).await;
    assert_eq!(sales.unwrap(), ["c", "a", "b"]);

    let crowded = InMemory::new();
    for number in 0..=100_000 {
        let path = format!("{number}.csv").into();
        crowded.put(&path, "a\n1\n".into()).await.unwrap();
    }
    let crowded = connector_at(PathBuf::new(), &json!({})).over(Arc::new(crowded));
    let (_, text) = failure(&crowded, "all_sales").await;
    assert!(text.contains("more than 100000 files and folders"), "{text}");
}
