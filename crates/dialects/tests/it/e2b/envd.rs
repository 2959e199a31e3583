//! The daemon: files, directories and ports.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use cellblock_dialects::E2bOptions;
use cellblock_testkit::UploadProbe;
use futures_util::StreamExt as _;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{E2bFixture, MAX_UPLOAD, Sandbox, refused};
use crate::support::{QUOTA, RequestExt, block_on, bounded};

/// Messages of a stream, each of which has a head of five bytes.
pub(super) struct Messages {
    body: futures_util::stream::BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    rest: Vec<u8>,
}

impl Messages {
    pub(super) fn of(response: Response) -> Self {
        assert_eq!(response.headers()["content-type"], "application/connect+json");
        Self {
            body: response.bytes_stream().boxed(),
            rest: Vec::new(),
        }
    }

    /// The next message, and whether it is the last.
    pub(super) async fn next(&mut self) -> (Value, bool) {
        loop {
            if let Some((head, rest)) = self.rest.split_first_chunk::<5>() {
                let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
                if rest.len() >= length {
                    let (value, is_last) = (serde_json::from_slice(&rest[..length]).unwrap(), head[0] == 2);
                    self.rest.drain(..5 + length);
                    return (value, is_last);
                }
            }
            self.rest.extend(self.body.next().await.unwrap().unwrap());
        }
    }

    /// Events to the end, and what the last message says.
    pub(super) async fn all(mut self) -> (Vec<Value>, Value) {
        let mut events = Vec::new();
        loop {
            match self.next().await {
                (end, true) => return (events, end),
                (message, false) => events.push(message["event"].clone()),
            }
        }
    }
}

impl E2bFixture {
    pub(super) async fn stream(&self, sandbox: &Sandbox, method: &str, body: &Value) -> Response {
        let json = body.to_string();
        let mut framed = vec![0];
        framed.extend(u32::try_from(json.len()).unwrap().to_be_bytes());
        framed.extend(json.as_bytes());
        let request = self.inside(sandbox, Method::POST, method);
        request
            .header("content-type", "application/connect+json")
            .body(framed)
            .sent()
            .await
    }

    pub(super) async fn command(&self, sandbox: &Sandbox, command: &str) -> (Vec<Value>, Value) {
        let body = json!({"process": {"cmd": "/bin/bash", "args": ["-l", "-c", command]}, "stdin": false});
        Messages::of(self.stream(sandbox, "/process.Process/Start", &body).await)
            .all()
            .await
    }
}

pub(super) fn text(events: &[Value], stream: &str) -> String {
    let parts = events.iter().filter_map(|it| it["data"][stream].as_str());
    let bytes: Vec<u8> = parts.flat_map(|part| STANDARD.decode(part).unwrap()).collect();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn the_home_is_one_place_for_code_commands_and_files() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world.create(json!({"timeout": 120, "envVars": {"A": "1"}})).await;
        let put = world
            .inside(&sandbox, Method::POST, "/files?path=a/b.txt")
            .body("one");
        let put = put
            .header("content-type", "application/octet-stream")
            .sent()
            .await;
        let written: Value = put.json().await.unwrap();
        assert_eq!(
            written,
            json!([{"name": "b.txt", "type": "file", "path": "/home/user/a/b.txt"}])
        );
        assert_eq!(
            world
                .value(&sandbox, json!({"code": "open('a/b.txt').read()"}))
                .await,
            "one"
        );
        let command =
            "cat a/b.txt /home/user/a/b.txt ~/a/b.txt; echo; pwd; echo $A $HOME >&2; echo two > /home/user/c";
        let (events, end) = world.command(&sandbox, command).await;
        assert_eq!(end, json!({}));
        assert_eq!(text(&events, "stdout"), "oneoneone\n/home/user\n");
        assert_eq!(text(&events, "stderr"), "1 /home/user\n");
        assert_eq!(
            events.last().unwrap()["end"],
            json!({"exitCode": 0, "exited": true, "status": "exit status 0"})
        );
        for path in ["c", "/home/user/c", "~/c", "/workspace/c"] {
            let read = world
                .inside(&sandbox, Method::GET, &format!("/files?path={path}"))
                .sent()
                .await;
            assert_eq!(read.text().await.unwrap(), "two\n", "{path}");
        }
    });
}

#[test]
fn files_that_cannot_be_read_or_written_are_refused_in_e2bs_words() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world.create(json!({"timeout": 120})).await;
        let get = async |path: &str| {
            world
                .inside(&sandbox, Method::GET, &format!("/files?path={path}"))
                .sent()
                .await
        };
        assert_eq!(
            refused(get("x").await, 404).await,
            "path '/home/user/x' does not exist"
        );
        assert_eq!(
            refused(get("/home/user").await, 400).await,
            "path '/home/user' is a directory"
        );
        world.command(&sandbox, "mkdir d").await;
        assert_eq!(
            refused(get("d").await, 400).await,
            "path '/home/user/d' is a directory"
        );

        let post = |path: &str| world.inside(&sandbox, Method::POST, path);
        let large = vec![0; usize::try_from(MAX_UPLOAD).unwrap() + 1];
        let message = refused(post("/files?path=big").body(large).sent().await, 413).await;
        assert!(
            message.contains("`sessions.max_upload` allows 1048576"),
            "{message}"
        );
        let broken = post("/files")
            .header("content-type", "multipart/form-data; boundary=x")
            .body("--x\r\nbroken");
        assert!(refused(broken.sent().await, 400).await.contains("multipart"));
        let packed = |encoding: &str, body: Vec<u8>| {
            post("/files?path=z")
                .header("content-encoding", encoding)
                .body(body)
        };
        refused(packed("br", Vec::new()).sent().await, 415).await;
        refused(packed("gzip", b"x".to_vec()).sent().await, 400).await;
        // A small body that is a large file.
        let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        bomb.write_all(&vec![0; usize::try_from(MAX_UPLOAD).unwrap() + 1])
            .unwrap();
        refused(packed("gzip", bomb.finish().unwrap()).sent().await, 413).await;
        let mut small = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        small.write_all(b"plain").unwrap();
        assert_eq!(packed("gzip", small.finish().unwrap()).status().await, 200);
        assert_eq!(get("z").await.text().await.unwrap(), "plain");
        refused(post("/files").body("x").sent().await, 400).await;
        assert_eq!(get("big").await.status(), 404);
    });
}

#[test]
fn a_multipart_body_writes_each_of_its_files() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world.create(json!({"timeout": 120})).await;
        let part = |name: &str, content: &str| {
            format!(
                "--x\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n\
                 {content}\r\n"
            )
        };
        let body = format!("{}{}--x--\r\n", part("/tmp/a", "1"), part("b/c", "2"));
        let request = world.inside(&sandbox, Method::POST, "/files").body(body);
        let written = request
            .header("content-type", "multipart/form-data; boundary=x")
            .sent()
            .await;
        let written: Vec<Value> = written.json().await.unwrap();
        let paths: Vec<_> = written.iter().map(|it| it["path"].as_str().unwrap()).collect();
        assert_eq!(paths, ["/tmp/a", "/home/user/b/c"]);
        let (events, _) = world.command(&sandbox, "cat /tmp/a b/c").await;
        assert_eq!(text(&events, "stdout"), "12");
    });
}

#[test]
fn a_signed_address_opens_one_file_without_a_token() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world.create(json!({"timeout": 120, "secure": true})).await;
        let token = sandbox.access.clone().unwrap();
        let put = world
            .inside(&sandbox, Method::POST, "/files?path=a")
            .body("one")
            .sent()
            .await;
        assert_eq!(put.status(), 200);
        let get = async |query: String| {
            let request = world.http.get(world.url(&format!("/files?{query}")));
            request.header("e2b-sandbox-id", &sandbox.id).sent().await
        };
        let sign = |text: String| {
            let signature = STANDARD_NO_PAD.encode(Sha256::digest(text.as_bytes()));
            format!("v1_{signature}").replace('+', "%2B").replace('/', "%2F")
        };
        refused(get("path=a".to_owned()).await, 401).await;
        let plain = sign(format!("a:read::{token}"));
        assert_eq!(
            get(format!("path=a&signature={plain}"))
                .await
                .text()
                .await
                .unwrap(),
            "one"
        );
        refused(get(format!("path=b&signature={plain}")).await, 401).await;
        refused(get(format!("path=a&username=user&signature={plain}")).await, 401).await;
        let later = sign(format!("a:read:user:{token}:99999999999"));
        let query = format!("path=a&username=user&signature={later}&signature_expiration=99999999999");
        assert_eq!(get(query).await.status(), 200);
        let over = sign(format!("a:read::{token}:1000"));
        let over = get(format!("path=a&signature={over}&signature_expiration=1000")).await;
        assert_eq!(refused(over, 401).await, "signature is already expired");
    });
}

#[test]
fn files_are_read_and_written_wherever_the_sandboxs_user_may() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world.create(json!({"timeout": 120})).await;
        let at = |method, path: &str| {
            let path = format!("/files?path={path}");
            world.inside(&sandbox, method, &path)
        };
        let (events, _) = world
            .command(&sandbox, "ln -s /etc/passwd link; cat /etc/passwd")
            .await;
        let expected = text(&events, "stdout");
        assert!(!expected.is_empty());
        for path in ["/etc/passwd", "link", "/home/user/../../etc/passwd"] {
            assert_eq!(at(Method::GET, path).text().await, expected, "{path}");
        }
        assert_eq!(at(Method::POST, "/dev/shm/a").body("one").status().await, 200);
        assert_eq!(at(Method::GET, "/dev/shm/a").text().await, "one");
        refused(at(Method::GET, "/etc/missing").sent().await, 404).await;
        refused(at(Method::GET, "/etc").sent().await, 404).await;
        let unwritable = at(Method::POST, "/etc/a").body("x").sent().await;
        assert!(
            [400, 403].contains(&unwritable.status().as_u16()),
            "{unwritable:?}"
        );
        let (events, _) = world.command(&sandbox, "ls /etc/a").await;
        assert_eq!(text(&events, "stdout"), "");
    });
}

#[test]
fn metadata_of_a_file_stays_with_it_until_it_is_written_again() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world.create(json!({"timeout": 120})).await;
        let write = async |metadata: &[(&str, &str)]| {
            let mut request = world.inside(&sandbox, Method::POST, "/files?path=a").body("x");
            for (name, value) in metadata {
                request = request.header(format!("X-Metadata-{name}"), *value);
            }
            request.sent().await
        };
        let call = async |method: &str, body: Value| -> Value {
            let method = format!("/filesystem.Filesystem/{method}");
            world.call(&sandbox, &method, body).await.json().await.unwrap()
        };
        let written = write(&[("Author", "me"), ("purpose", "a test")]).await;
        if written.status() == 400 {
            // Linux before 6.6.
            let message = refused(written, 400).await;
            assert!(message.contains("its file system cannot keep"), "{message}");
            return;
        }
        let expected = json!({"author": "me", "purpose": "a test"});
        let written: Value = written.json().await.unwrap();
        assert_eq!(written[0]["metadata"], expected);
        let found = call("Stat", json!({"path": "a"})).await;
        assert_eq!(found["entry"]["metadata"], expected);
        let moved = call("Move", json!({"source": "a", "destination": "b"})).await;
        assert_eq!(moved["entry"]["metadata"], expected);
        let listed = call("ListDir", json!({"path": "."})).await;
        let listed = listed["entries"].as_array().unwrap();
        let listed = listed.iter().find(|it| it["name"] == "b").unwrap();
        assert_eq!(listed["metadata"], expected);
        call("Move", json!({"source": "b", "destination": "a"})).await;
        let written: Value = write(&[]).await.json().await.unwrap();
        assert_eq!(written[0].get("metadata"), None);
        let found = call("Stat", json!({"path": "a"})).await;
        assert_eq!(found["entry"].get("metadata"), None);
    });
}

#[test]
fn directories_are_made_listed_moved_and_removed() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world.create(json!({"timeout": 120})).await;
        let call = async |method: &str, body: Value| {
            let answer = world
                .call(&sandbox, &format!("/filesystem.Filesystem/{method}"), body)
                .await;
            (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
        };
        let (status, made) = call("MakeDir", json!({"path": "d/e"})).await;
        assert_eq!((status, &made["entry"]["path"]), (200, &json!("/home/user/d/e")));
        assert_eq!(made["entry"]["type"], "FILE_TYPE_DIRECTORY");
        let (status, again) = call("MakeDir", json!({"path": "d/e"})).await;
        assert_eq!((status, &again["code"]), (409, &json!("already_exists")));
        world.command(&sandbox, "echo 12345 > d/e/f; ln -s f d/e/g").await;
        let (_, listed) = call("ListDir", json!({"path": "d", "depth": 2})).await;
        let names: Vec<_> = listed["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| &it["name"])
            .collect();
        assert_eq!(names, ["e", "f", "g"]);
        let (_, link) = call("Stat", json!({"path": "d/e/g"})).await;
        assert_eq!(
            (&link["entry"]["symlinkTarget"], &link["entry"]["size"]),
            (&json!("/home/user/d/e/f"), &json!("6"))
        );
        let (status, moved) = call("Move", json!({"source": "d/e/f", "destination": "n/m"})).await;
        assert_eq!((status, &moved["entry"]["path"]), (200, &json!("/home/user/n/m")));
        assert_eq!(
            call("Stat", json!({"path": "d/e/f"})).await.1["code"],
            "not_found"
        );
        assert_eq!(
            call("ListDir", json!({"path": "n/m"})).await.1["code"],
            "invalid_argument"
        );
        assert_eq!(call("Remove", json!({"path": "d"})).await, (200, json!({})));
        assert_eq!(call("Stat", json!({"path": "d"})).await.0, 404);
        assert_eq!(call("Nothing", json!({})).await.1["code"], "unimplemented");
        // Code can end the programs of the host; the next request starts another.
        world.command(&sandbox, "pkill -9 python3 || true").await;
        assert_eq!(call("Stat", json!({"path": "n/m"})).await.0, 200);
    });
}

#[test]
fn changes_in_a_directory_are_told() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world.create(json!({"timeout": 120})).await;
        world.command(&sandbox, "mkdir w; echo 1 > w/old").await;
        let body = json!({"path": "w", "recursive": true, "includeEntry": true});
        let mut watching = Messages::of(
            world
                .stream(&sandbox, "/filesystem.Filesystem/WatchDir", &body)
                .await,
        );
        assert_eq!(watching.next().await.0, json!({"start": {}}));
        let watcher = world
            .call(
                &sandbox,
                "/filesystem.Filesystem/CreateWatcher",
                json!({"path": "w"}),
            )
            .await;
        let watcher: Value = watcher.json().await.unwrap();
        world.command(&sandbox, "echo 2 > w/new; mv w/old w/moved").await;
        let expected = [
            "EVENT_TYPE_CREATE new",
            "EVENT_TYPE_WRITE new",
            "EVENT_TYPE_RENAME old",
            "EVENT_TYPE_CREATE moved",
        ];
        let mut missing = std::collections::BTreeSet::from(expected.map(str::to_owned));
        while !missing.is_empty() {
            let change = watching.next().await.0["filesystem"].clone();
            if change["type"] == "EVENT_TYPE_CREATE" {
                assert_eq!(change["entry"]["name"], change["name"]);
            }
            let seen = format!(
                "{} {}",
                change["type"].as_str().unwrap(),
                change["name"].as_str().unwrap()
            );
            missing.remove(&seen);
        }
        let id = json!({"watcherId": watcher["watcherId"]});
        let told = world
            .call(&sandbox, "/filesystem.Filesystem/GetWatcherEvents", id.clone())
            .await;
        let told: Value = told.json().await.unwrap();
        assert!(told["events"].as_array().unwrap().len() >= 4, "{told}");
        let removed = world
            .call(&sandbox, "/filesystem.Filesystem/RemoveWatcher", id.clone())
            .await;
        assert_eq!(removed.status(), 200);
        assert_eq!(
            world
                .call(&sandbox, "/filesystem.Filesystem/RemoveWatcher", id)
                .await
                .status(),
            404
        );
    });
}

#[test]
fn a_port_is_reached_by_headers() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world.create(json!({"timeout": 120})).await;
        let port = async || {
            let request = world
                .inside(&sandbox, Method::GET, "/x.txt?q=1")
                .header("e2b-sandbox-port", "8123");
            request.sent().await
        };
        let message = refused(port().await, 502).await;
        assert!(message.contains("port is not open"), "{message}");
        world
            .command(
                &sandbox,
                "echo served > x.txt; (python3 -m http.server 8123 >/dev/null 2>&1 &)",
            )
            .await;
        let body = json!({"process": {"cmd": "python3", "args": ["-m", "http.server", "8123"]}});
        let _server = world.stream(&sandbox, "/process.Process/Start", &body).await;
        let text = cellblock_testkit::wait::until_ok(async || {
            let answer = port().await;
            if answer.status() == 200 {
                Ok(answer.text().await.unwrap())
            } else {
                Err(answer.status())
            }
        })
        .await;
        assert_eq!(text, "served\n");
    });
}

#[test]
fn an_upload_is_refused_before_and_while_it_comes_and_leaves_nothing() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let world = E2bFixture::on(E2bOptions::default(), bounded(folder.path())).await;
        let sandbox = world.create(json!({})).await;
        let mut headers = vec![("e2b-sandbox-id", &*sandbox.id)];
        headers.extend(sandbox.access.as_deref().map(|access| ("x-access-token", access)));
        let probe = |path: &str, headers: &[(&str, &str)]| {
            UploadProbe::new(world.server.address, "POST", path, headers, folder.path())
        };
        probe("/e2b/files", &headers)
            .in_a_form(&[])
            .assert_bounded(QUOTA)
            .await;
        headers.push(("content-type", "application/octet-stream"));
        probe("/e2b/files?path=/home/user/a", &headers)
            .assert_bounded(QUOTA)
            .await;
    });
}
