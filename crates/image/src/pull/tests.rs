//! Pulling from folders, from an HTTP server that misbehaves, and from a registry.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::archive::tests::{export, image, store};
use crate::digest::hex;
use crate::mirror::{Mirror, MirrorEntry, add_to_mirror};
use crate::{ImageError, ImageStore, LAYOUT, OpenImage, Sink};

/// A request's line and its headers, in lower case.
#[derive(Clone, Debug)]
struct RequestHead {
    path: String,
    headers: String,
}

/// A response: status, further headers, body, and after how many bytes of it the connection breaks.
struct HttpReply(u16, String, Vec<u8>, Option<usize>);

impl HttpReply {
    fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self(200, String::new(), body.into(), None)
    }
}

/// Serves until the test's process ends; returns the address and what was asked.
fn serve(
    reply: impl Fn(&RequestHead) -> HttpReply + Send + Sync + 'static,
) -> (SocketAddr, Arc<Mutex<Vec<RequestHead>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let log = Arc::new(Mutex::new(Vec::new()));
    let (heard, reply) = (log.clone(), Arc::new(reply));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (heard, reply) = (heard.clone(), reply.clone());
            thread::spawn(move || answer(stream, &heard, &*reply));
        }
    });
    (address, log)
}

fn answer(mut stream: TcpStream, heard: &Mutex<Vec<RequestHead>>, reply: &dyn Fn(&RequestHead) -> HttpReply) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let Some(Ok(first)) = lines.next() else { return };
    let path = first.split(' ').nth(1).unwrap().to_owned();
    let headers: Vec<String> = lines
        .map_while(Result::ok)
        .take_while(|it| !it.is_empty())
        .collect();
    let asked = RequestHead {
        path,
        headers: headers.join("\n").to_lowercase(),
    };
    heard.lock().push(asked.clone());
    let HttpReply(status, headers, body, breaks) = reply(&asked);
    let sent = &body[..breaks.unwrap_or(body.len()).min(body.len())];
    let start = format!(
        "HTTP/1.1 {status} It\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n",
        body.len()
    );
    let _ = stream
        .write_all(start.as_bytes())
        .and_then(|()| stream.write_all(sent));
}

/// Returns the part of a body that a request asks for.
fn ranged(asked: &RequestHead, body: &[u8]) -> HttpReply {
    let from = asked
        .headers
        .split("range: bytes=")
        .nth(1)
        .and_then(|it| it.split('-').next()?.parse::<usize>().ok());
    match from {
        Some(from) if from >= body.len() => HttpReply(416, String::new(), Vec::new(), None),
        Some(from) => HttpReply(206, String::new(), body[from..].to_vec(), None),
        None => HttpReply::ok(body),
    }
}

/// An exported image: its archive's bytes and its entry in an index.
async fn exported() -> (OpenImage, Vec<u8>, MirrorEntry) {
    let (_dir, from) = store();
    let image = image(&from);
    let (bytes, exported) = export(&image).await;
    let entry = MirrorEntry::new(image.manifest(), "tiny.tar.zst", exported.bytes, &exported.sha256);
    (image, bytes, entry)
}

async fn pull(from: &str) -> (TempDir, ImageStore, Result<OpenImage, ImageError>) {
    let (dir, store) = store();
    let pulled = store
        .pull("tiny", &from.parse().unwrap(), None, Sink::silent())
        .await;
    (dir, store, pulled)
}

fn index(entries: &[MirrorEntry]) -> Vec<u8> {
    json!({"images": entries}).to_string().into_bytes()
}

fn kept(home: &Path) -> usize {
    fs::read_dir(home.join("cache/pulls")).map_or(0, Iterator::count)
}

#[tokio::test]
async fn an_image_is_pulled_from_a_folder_and_found_there_by_name() {
    let (image, bytes, entry) = exported().await;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tiny.tar.zst"), &bytes).unwrap();
    let older = MirrorEntry {
        id: "0".repeat(64),
        ..entry.clone()
    };
    // The newer entry replaces the older one.
    add_to_mirror(folder.path(), older).unwrap();
    add_to_mirror(folder.path(), entry).unwrap();
    for address in [
        folder.path().display().to_string(),
        format!("file://{}", folder.path().display()),
        format!("{}/tiny.tar.zst", folder.path().display()),
    ] {
        let (_dir, store, pulled) = pull(&address).await;
        assert_eq!(pulled.unwrap().id(), image.id());
        assert_eq!(store.resolve("tiny").unwrap().id(), image.id());
    }
}

#[tokio::test]
async fn a_broken_connection_is_taken_up_where_it_broke() {
    let (image, bytes, entry) = exported().await;
    for has_ranges in [true, false] {
        let (index, bytes) = (index(std::slice::from_ref(&entry)), bytes.clone());
        let attempts = Mutex::new(0);
        let (address, log) = serve(move |asked| {
            if asked.path == "/m/images.json" {
                return HttpReply::ok(index.clone());
            }
            let mut attempt = attempts.lock();
            *attempt += 1;
            let mut reply = if has_ranges {
                ranged(asked, &bytes)
            } else {
                HttpReply::ok(bytes.clone())
            };
            if *attempt < 3 {
                reply.3 = Some(if has_ranges { 200 } else { 200 * *attempt });
            }
            reply
        });
        let (dir, _store, pulled) = pull(&format!("http://{address}/m")).await;
        assert_eq!(pulled.unwrap().id(), image.id());
        assert_eq!(kept(dir.path()), 0);
        let log = log.lock();
        assert!(log[2].headers.contains("range: bytes=200-"), "{log:?}");
        assert!(log[3].headers.contains("range: bytes=400-"), "{log:?}");
    }
}

#[tokio::test]
async fn an_interrupted_pull_is_kept_and_the_next_one_goes_on_from_it() {
    let (image, bytes, entry) = exported().await;
    let (index, whole) = (index(&[entry]), bytes.clone());
    let is_up = Arc::new(Mutex::new(false));
    let up = is_up.clone();
    let (address, log) = serve(move |asked| {
        if asked.path == "/images.json" {
            return HttpReply::ok(index.clone());
        }
        let mut reply = ranged(asked, &whole);
        if !*up.lock() {
            let is_first = !asked.headers.contains("range:");
            reply.3 = Some(if is_first { 700 } else { 0 });
        }
        reply
    });
    let (dir, store, pulled) = pull(&format!("http://{address}")).await;
    let error = pulled.unwrap_err().to_string();
    assert!(error.contains("the download stopped"), "{error}");
    assert_eq!(kept(dir.path()), 1);
    *is_up.lock() = true;
    log.lock().clear();
    let mirror = format!("http://{address}").parse().unwrap();
    let pulled = store.pull("tiny", &mirror, None, Sink::silent()).await.unwrap();
    assert_eq!(pulled.id(), image.id());
    assert_eq!(kept(dir.path()), 0);
    let log = log.lock();
    assert!(log[1].headers.contains("range: bytes=700-"), "{log:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_pulls_of_an_image_at_once_both_get_it() {
    let (image, bytes, entry) = exported().await;
    let (address, _) = serve(move |asked| {
        if asked.path.ends_with("images.json") {
            HttpReply::ok(index(std::slice::from_ref(&entry)))
        } else {
            ranged(asked, &bytes)
        }
    });
    let (dir, store) = store();
    let mirror = format!("http://{address}/").parse().unwrap();
    let pull = || store.pull("tiny", &mirror, None, Sink::silent());
    let (one, other) = tokio::join!(pull(), pull());
    assert_eq!(one.unwrap().id(), image.id());
    assert_eq!(other.unwrap().id(), image.id());
    assert_eq!(kept(dir.path()), 0);
}

#[tokio::test]
async fn another_file_than_the_index_names_is_rejected_and_not_kept() {
    let (_image, bytes, entry) = exported().await;
    let mut damaged = bytes.clone();
    let late = damaged.len() - 8;
    damaged[late] ^= 1;
    let mut named = entry.clone();
    named.id = "1".repeat(64);
    let mut hashed = entry.clone();
    hashed.sha256 = "2".repeat(64);
    for (entry, bytes, expected) in [
        (entry.clone(), damaged, "damaged"),
        (
            entry.clone(),
            bytes[..bytes.len() / 2].to_vec(),
            "cannot be read: incomplete",
        ),
        (entry.clone(), b"<html>Log in</html>".to_vec(), "cannot be read"),
        (named, bytes.clone(), "the mirror's index names another one"),
        (hashed, bytes.clone(), "2222 was expected"),
    ] {
        let index = index(&[entry]);
        let (address, _log) = serve(move |asked| match asked.path.as_str() {
            "/images.json" => HttpReply::ok(index.clone()),
            _ => ranged(asked, &bytes),
        });
        let (dir, store, pulled) = pull(&format!("http://{address}/")).await;
        let error = pulled.unwrap_err();
        assert!(matches!(error, ImageError::Archive { .. }), "{error}");
        assert!(
            error.to_string().contains(expected),
            "expected `{expected}`: {error}"
        );
        assert_eq!(kept(dir.path()), 0);
        assert_eq!(store.list().unwrap(), []);
    }
}

#[tokio::test]
async fn a_mirror_without_the_image_says_what_it_has() {
    let (_image, _bytes, entry) = exported().await;
    let other_machine = MirrorEntry {
        machine: "riscv64".to_owned(),
        ..entry.clone()
    };
    let older = MirrorEntry {
        layout: LAYOUT + 1,
        ..entry.clone()
    };
    let other = MirrorEntry {
        name: "geo".to_owned(),
        ..entry.clone()
    };
    let escaping = MirrorEntry {
        file: "../../etc/passwd".to_owned(),
        ..entry
    };
    for (index, expected) in [
        (index(&[]), "available: none"),
        (index(&[other]), "available: geo"),
        (
            index(&[other_machine]),
            "it has the image for riscv64 with layout 1",
        ),
        (index(&[older]), "with layout 2, and this Cellblock needs"),
        (index(&[escaping]), "invalid file name"),
        (b"{}".to_vec(), "missing field `images`"),
        (b"<html>".to_vec(), "`images.json` cannot be read"),
        (
            vec![b' '; (4 << 20) + 1],
            "images.json has more than 4194304 bytes",
        ),
    ] {
        let (address, _log) = serve(move |_| HttpReply::ok(index.clone()));
        let (_dir, _store, pulled) = pull(&format!("http://user:secret@{address}/")).await;
        let error = pulled.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(error.contains(&format!("http://{address}/")), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
    let (address, _log) = serve(|_| HttpReply(404, String::new(), Vec::new(), None));
    let (_dir, _store, pulled) = pull(&format!("http://{address}/")).await;
    assert!(pulled.unwrap_err().to_string().contains("404"));
    let (_dir, _store, pulled) = pull("/nowhere").await;
    assert!(
        pulled
            .unwrap_err()
            .to_string()
            .contains("`/nowhere/images.json` cannot be opened")
    );
}

#[tokio::test]
async fn a_registry_with_a_token_serves_an_archive_by_tag_and_by_digest() {
    let (image, bytes, entry) = exported().await;
    let machine = std::env::consts::ARCH;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": "sha256:0", "size": 2},
        "layers": [{
            "mediaType": "application/vnd.cellblock.image.v1.tar+zstd",
            "digest": format!("sha256:{}", entry.sha256),
            "size": bytes.len(),
        }],
    })
    .to_string();
    let digest = format!("sha256:{}", hex(&Sha256::digest(&manifest)));
    let (tag, by_digest) = (
        format!("/v2/team/images/manifests/tiny-{machine}"),
        digest.clone(),
    );
    let blob = format!("/v2/team/images/blobs/sha256:{}", entry.sha256);
    let own = Arc::new(Mutex::new(None::<SocketAddr>));
    let host = own.clone();
    let (address, log) = serve(move |asked| {
        let host = host.lock().unwrap();
        if asked.path.starts_with("/token?") {
            let known = asked.headers.contains("authorization: basic dxnlcjpzzwnyzxq=");
            let status = if known { 200 } else { 403 };
            return HttpReply(
                status,
                String::new(),
                json!({"token": "t0ken"}).to_string().into(),
                None,
            );
        }
        if !asked.headers.contains("authorization: bearer t0ken") {
            let challenge = format!(
                "www-authenticate: Bearer \
                 realm=\"http://{host}/token\",service=\"r\",scope=\"repository:team/images:pull\"\r\n"
            );
            return HttpReply(401, challenge, Vec::new(), None);
        }
        match &asked.path {
            path if *path == tag || path.ends_with(&by_digest) => HttpReply::ok(manifest.clone()),
            path if *path == blob => ranged(asked, &bytes),
            _ => HttpReply(404, String::new(), Vec::new(), None),
        }
    });
    *own.lock() = Some(address);
    for reference in [String::new(), format!(":tiny-{machine}"), format!("@{digest}")] {
        let from = format!("oci://user:secret@{address}/team/images{reference}");
        let (_dir, _store, pulled) = pull(&from).await;
        assert_eq!(pulled.unwrap().id(), image.id());
        assert_eq!(
            from.parse::<Mirror>().unwrap().to_string(),
            from.replace("user:secret@", "")
        );
    }
    let asked = log.lock().clone();
    let token = asked.iter().find(|it| it.path.starts_with("/token")).unwrap();
    assert_eq!(
        token.path,
        "/token?service=r&scope=repository%3Ateam%2Fimages%3Apull"
    );
    for (from, expected) in [
        (
            format!("oci://user:secret@{address}/team/images:old"),
            "it has no `old`",
        ),
        (format!("oci://{address}/team/images"), "403"),
    ] {
        let error = pull(&from).await.2.unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains("secret"), "{error}");
    }
}

#[test]
fn addresses_that_are_no_mirror_are_rejected() {
    for (address, expected) in [
        ("ftp://host/images", "file, http, https or oci, not `ftp://`"),
        ("file://images", "`file:///` and an absolute path"),
        ("https://", "it is not a URL"),
        ("oci://host", "oci://HOST/REPOSITORY"),
        ("oci://host/../x", "oci://HOST/REPOSITORY"),
        ("oci://host/x:../../v2", "oci://HOST/REPOSITORY"),
    ] {
        let error = address.parse::<Mirror>().unwrap_err();
        assert!(error.contains(expected), "{address}: {error}");
    }
    let shown = format!("{:?}", "https://user:secret@host/a".parse::<Mirror>().unwrap());
    assert_eq!(shown, "https://host/a/");
}

#[tokio::test]
async fn an_index_that_cannot_be_read_is_not_overwritten() {
    let (_image, _bytes, entry) = exported().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("images.json");
    fs::write(&path, "mine").unwrap();
    assert!(add_to_mirror(folder.path(), entry.clone()).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    fs::write(&path, json!({"images": []}).to_string()).unwrap();
    add_to_mirror(folder.path(), entry).unwrap();
    let written: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(written["images"][0]["file"], "tiny.tar.zst");
}
