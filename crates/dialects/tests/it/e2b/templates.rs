//! Templates that clients build.

use std::io::Write as _;

use cellblock_dialects::{BuildOptions, E2bOptions};
use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::Method;
use serde_json::{Value, json};

use super::envd::text;
use super::shelf::MemoryShelf;
use super::{E2bFixture, refused};
use crate::support::{RequestExt, block_on};

/// Packs a member of an archive: its name, its kind and its content.
fn packed(name: &str, kind: u8, content: &str) -> Vec<u8> {
    let mut header = [0_u8; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..107].copy_from_slice(b"0000644");
    header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
    header[148..156].fill(b' ');
    header[156] = kind;
    header[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    let mut archive = header.to_vec();
    archive.extend(content.as_bytes());
    archive.resize(archive.len().next_multiple_of(512) + 1024, 0);
    let mut compressed = GzEncoder::new(Vec::new(), Compression::fast());
    compressed.write_all(&archive).unwrap();
    compressed.finish().unwrap()
}

/// A build as a client knows it.
struct Build {
    name: String,
    id: String,
}

impl E2bFixture {
    /// Starts one whose clients build templates.
    pub(super) async fn building(shelf: &MemoryShelf, builds: BuildOptions) -> Self {
        let options = E2bOptions {
            builds: Some(builds),
            ..E2bOptions::default()
        };
        Self::on(options, |terms| terms.volumes = Some(shelf.shared())).await
    }

    async fn request_build(&self, body: Value) -> Build {
        let requested = self.api(Method::POST, "/v3/templates").json(&body).sent().await;
        assert_eq!(requested.status(), 202, "{:?}", requested.text().await);
        let requested: Value = requested.json().await.unwrap();
        let text = |name: &str| requested[name].as_str().unwrap().to_owned();
        Build {
            name: text("templateID"),
            id: text("buildID"),
        }
    }

    /// Uploads an archive to the address that the server names.
    async fn upload(&self, build: &Build, hash: &str, archive: Vec<u8>) {
        let path = format!("/templates/{}/files/{hash}", build.name);
        let link: Value = self.api(Method::GET, &path).read().await;
        assert_eq!(link["present"], false, "{link}");
        let url = link["url"].as_str().unwrap();
        assert_eq!(self.http.put(url).body(archive).status().await, 200);
        let again: Value = self.api(Method::GET, &path).read().await;
        assert_eq!(again, json!({"present": true}));
    }

    async fn start_build(&self, build: &Build, body: Value) -> reqwest::Response {
        let path = format!("/v2/templates/{}/builds/{}", build.name, build.id);
        self.api(Method::POST, &path).json(&body).sent().await
    }

    /// Reads the log to the end of the build, and returns its status and the lines.
    async fn end_of(&self, build: &Build) -> (Value, Vec<String>) {
        let mut lines: Vec<String> = Vec::new();
        loop {
            let (name, id, offset) = (&build.name, &build.id, lines.len());
            let path = format!("/templates/{name}/builds/{id}/status?logsOffset={offset}&limit=100");
            let status: Value = self.api(Method::GET, &path).read().await;
            let entries = status["logEntries"].as_array().unwrap();
            lines.extend(
                entries
                    .iter()
                    .map(|it| it["message"].as_str().unwrap().to_owned()),
            );
            let goes_on = ["waiting", "building"].contains(&status["status"].as_str().unwrap());
            if !goes_on && entries.is_empty() {
                return (status, lines);
            }
            tokio::task::yield_now().await;
        }
    }

    /// Builds a template to the end.
    async fn build(&self, name: &str, body: Value) -> (Value, Vec<String>) {
        let build = self.request_build(json!({ "name": name })).await;
        let started = self.start_build(&build, body).await;
        assert_eq!(started.status(), 202, "{:?}", started.text().await);
        self.end_of(&build).await
    }

    async fn exists(&self, name: &str) -> bool {
        let path = format!("/templates/aliases/{name}");
        self.api(Method::GET, &path).status().await == 200
    }
}

#[test]
fn a_template_starts_sandboxes_with_its_files_variables_and_program_also_after_a_restart() {
    block_on(async {
        let shelf = MemoryShelf::default();
        let world = E2bFixture::building(&shelf, BuildOptions::default()).await;
        let build = world
            .request_build(json!({"name": "app:v1", "tags": ["stable"]}))
            .await;
        world
            .upload(&build, "abc", packed("src/a.txt", b'0', "uploaded"))
            .await;
        let packages = "\"$PYTHONUSERBASE/lib/python$(python3 -c 'import sys; print(*sys.version_info[:2], \
                        sep=\".\")')/site-packages\"";
        let package = format!("mkdir -p {packages} && echo value = 41 > {packages}/mine.py");
        let steps = json!([
            {"type": "USER", "args": ["root"]},
            {"type": "WORKDIR", "args": ["/home/user/app"]},
            {"type": "ENV", "args": ["GREETING", "hello"]},
            {"type": "COPY", "args": ["src/a.txt", "files/", "", ""], "filesHash": "abc"},
            {"type": "RUN", "args": [package, "root"]},
            {"type": "RUN", "args": ["echo \"$GREETING, world\" | tee greeting"]},
            {"type": "USER", "args": ["user"]},
        ]);
        let body = json!({
            "fromImage": "python:3", "steps": steps, "force": false, "readyCmd": "test -e /tmp/started",
            "startCmd": "echo up > /tmp/started; exec sleep 1000",
        });
        let started = world.start_build(&build, body.clone()).await;
        assert_eq!(started.status(), 202, "{:?}", started.text().await);
        refused(world.start_build(&build, body).await, 409).await;
        let (status, lines) = world.end_of(&build).await;
        assert_eq!(status["status"], "ready", "{lines:#?}");
        assert!(lines.contains(&"hello, world".to_owned()), "{lines:#?}");
        assert!(lines.iter().any(|it| it.contains("runs as `user`")), "{lines:#?}");
        // The server is another one, and only the volumes are the same.
        drop(world);
        let world = E2bFixture::building(&shelf, BuildOptions::default()).await;
        assert_eq!(world.end_of(&build).await.0["status"], "ready");
        for (name, is_there) in [
            ("app", true),
            ("app:v1", true),
            ("app:stable", true),
            ("app:v2", false),
        ] {
            assert_eq!(world.exists(name).await, is_there, "{name}");
        }
        let sandbox = world
            .create(json!({"templateID": "app:v1", "timeout": 120, "envVars": {"MORE": "1"}}))
            .await;
        let (events, _) = world
            .command(
                &sandbox,
                "pwd; cat files/a.txt greeting /tmp/started; echo $GREETING $MORE",
            )
            .await;
        let expected = "/home/user/app\nuploadedhello, world\nup\nhello 1\n";
        assert_eq!(text(&events, "stdout"), expected);
        let code = "import os, mine\n[mine.value + 1, os.getcwd(), os.environ['GREETING']]";
        let value = world.value(&sandbox, json!({ "code": code })).await;
        assert_eq!(value, "[42, '/home/user/app', 'hello']");
    });
}

#[test]
fn templates_have_tags_are_bases_of_others_and_are_deleted() {
    block_on(async {
        let shelf = MemoryShelf::default();
        let world = E2bFixture::building(&shelf, BuildOptions::default()).await;
        let run = |command: &str| json!([{"type": "RUN", "args": [command]}]);
        let body = json!({"fromTemplate": "base", "steps": run("echo one > one")});
        assert_eq!(world.build("first", body).await.0["status"], "ready");
        let tags = json!({"target": "first", "tags": ["v1", "old"]});
        let tagged = world
            .api(Method::POST, "/templates/tags")
            .json(&tags)
            .sent()
            .await;
        assert_eq!(tagged.status(), 201);
        let body = json!({"fromTemplate": "first:v1", "steps": run("cat one > two")});
        assert_eq!(world.build("first", body).await.0["status"], "ready");
        let listed: Vec<Value> = world.api(Method::GET, "/templates/first/tags").read().await;
        let names: Vec<_> = listed.iter().map(|it| it["tag"].as_str().unwrap()).collect();
        assert_eq!(names, ["default", "old", "v1"]);
        assert_ne!(listed[0]["buildID"], listed[1]["buildID"]);
        let sandbox = world.create(json!({"templateID": "first", "timeout": 60})).await;
        let (events, _) = world.command(&sandbox, "cat one two").await;
        assert_eq!(text(&events, "stdout"), "one\none\n");
        let old = json!({"name": "first", "tags": ["v1", "old"]});
        let removing = world.api(Method::DELETE, "/templates/tags").json(&old);
        assert_eq!(removing.status().await, 204);
        let removing = world.api(Method::DELETE, "/templates/tags").json(&old);
        refused(removing.sent().await, 404).await;
        let all: Vec<Value> = world.api(Method::GET, "/v2/templates").read().await;
        assert_eq!((all.len(), &all[0]["buildCount"]), (1, &json!(1)));
        let one: Value = world.api(Method::GET, "/templates/first").read().await;
        assert_eq!(one["builds"].as_array().unwrap().len(), 1);
        let other = world.http.get(world.url("/templates/first"));
        refused(other.header("x-api-key", "e2b_other").sent().await, 404).await;
        let other = world.http.delete(world.url("/templates/first"));
        refused(other.header("x-api-key", "e2b_other").sent().await, 404).await;
        assert_eq!(world.api(Method::DELETE, "/templates/first").status().await, 204);
        assert!(!world.exists("first").await && shelf.is_empty());
        let gone = json!({"templateID": "first"});
        let gone = world.api(Method::POST, "/v2/sandboxes").json(&gone);
        refused(gone.sent().await, 404).await;
    });
}

#[test]
fn a_build_that_fails_names_its_step_and_leaves_nothing() {
    block_on(async {
        let shelf = MemoryShelf::default();
        let world = E2bFixture::building(&shelf, BuildOptions::default()).await;
        let step = |kind: &str, args: &[&str]| json!([{"type": kind, "args": args}]);
        for (steps, words) in [
            (step("RUN", &["echo said; exit 3"]), "exited with code 3"),
            (step("RUN", &["apt-get update"]), "`apt-get` needs root"),
            (step("RUN", &["pip install x"]), "this build reaches no hosts"),
            (step("WORKDIR", &["/app"]), "`/app` cannot be written"),
        ] {
            let body = json!({"fromImage": "e2bdev/base", "steps": steps});
            let (status, lines) = world.build("broken", body).await;
            assert_eq!(status["status"], "error", "{lines:#?}");
            assert_eq!(status["reason"]["step"], "1", "{status}");
            let message = status["reason"]["message"].as_str().unwrap();
            assert!(message.contains(words), "{message}");
            assert_eq!(lines.last().map(String::as_str), Some(message));
        }
        let unknown = json!({"fromTemplate": "unknown"});
        let (status, _) = world.build("broken", unknown).await;
        assert_eq!(status["reason"]["step"], "base", "{status}");
        let builds = BuildOptions {
            max_timeout: 1,
            ..BuildOptions::default()
        };
        let hasty = E2bFixture::building(&shelf, builds).await;
        let endless = json!({"fromImage": "python", "steps": step("RUN", &["sleep 1000"])});
        let (status, _) = hasty.build("broken", endless).await;
        let message = status["reason"]["message"].as_str().unwrap();
        assert!(message.contains("longer than 1 s"), "{message}");
        assert!(!world.exists("broken").await && shelf.is_empty());
    });
}

#[test]
fn hostile_archives_are_rejected() {
    block_on(async {
        let world = E2bFixture::building(&MemoryShelf::default(), BuildOptions::default()).await;
        for (archive, words) in [
            (packed("../../etc/x", b'0', "x"), "leads out of the archive"),
            (packed("/etc/x", b'0', "x"), "leads out of the archive"),
            (packed("pipe", b'6', ""), "neither a file, a folder nor a link"),
            (b"no archive".to_vec(), "cannot be read"),
        ] {
            let build = world.request_build(json!({"name": "hostile"})).await;
            world.upload(&build, "h", archive).await;
            let steps = json!([{"type": "COPY", "args": [".", "."], "filesHash": "h"}]);
            let body = json!({"fromImage": "python", "steps": steps});
            assert_eq!(world.start_build(&build, body).await.status(), 202);
            let (status, _) = world.end_of(&build).await;
            let message = status["reason"]["message"].as_str().unwrap();
            assert!(message.contains(words), "{message}");
        }
    });
}

#[test]
fn a_copied_folder_replaces_links_and_does_not_write_through_them() {
    block_on(async {
        let world = E2bFixture::building(&MemoryShelf::default(), BuildOptions::default()).await;
        let build = world.request_build(json!({"name": "links"})).await;
        world.upload(&build, "h", packed("a.txt", b'0', "new")).await;
        let steps = json!([
            {"type": "RUN", "args": ["mkdir d && echo kept > x && ln -s ../x d/a.txt"]},
            {"type": "COPY", "args": [".", "d/"], "filesHash": "h"},
            {"type": "RUN", "args": ["grep kept x && test ! -L d/a.txt"]},
        ]);
        let body = json!({"fromImage": "python", "steps": steps});
        assert_eq!(world.start_build(&build, body).await.status(), 202);
        let (status, lines) = world.end_of(&build).await;
        assert_eq!(status["status"], "ready", "{lines:#?}");
    });
}

#[test]
fn the_address_of_an_upload_has_the_scheme_of_its_host() {
    block_on(async {
        let shelf = MemoryShelf::default();
        let options = E2bOptions {
            builds: Some(BuildOptions::default()),
            domain: Some("cell.example:8443".to_owned()),
            ..E2bOptions::default()
        };
        let world = E2bFixture::on(options, |terms| terms.volumes = Some(shelf.shared())).await;
        world.request_build(json!({"name": "app"})).await;
        for (host, expected) in [
            ("api.cell.example:8443", "https://api.cell.example:8443/"),
            ("127.0.0.1:8080", "http://127.0.0.1:8080/"),
        ] {
            let link = world.api(Method::GET, "/templates/app/files/h");
            let link: Value = link.header("cellblock-forwarded-host", host).read().await;
            let url = link["url"].as_str().unwrap();
            assert!(url.starts_with(expected), "{url}");
        }
    });
}

#[test]
fn builds_are_bounded_and_belong_to_their_key() {
    block_on(async {
        let off = E2bFixture::start().await;
        let requested = off
            .api(Method::POST, "/v3/templates")
            .json(&json!({"name": "app"}));
        let message = refused(requested.sent().await, 501).await;
        assert!(message.contains("dialects: {e2b: {builds: {}}}"), "{message}");
        let world = E2bFixture::building(&MemoryShelf::default(), BuildOptions::default()).await;
        for (body, status, words) in [
            (json!({"name": "App"}), 400, "is not the name of a template"),
            (json!({"name": "base"}), 409, "is a template of this server"),
            (json!({"name": "a", "tags": ["a b"]}), 400, "is not a tag"),
            (json!({"name": "a", "memoryMB": 1 << 30}), 400, "`memoryMB`"),
            (json!({"name": "a", "teamID": "t"}), 400, "`teamID`"),
            (json!({"name": "a", "region": "x"}), 400, "region"),
            (json!({}), 400, "`name` is missing"),
        ] {
            let requested = world.api(Method::POST, "/v3/templates").json(&body);
            let message = refused(requested.sent().await, status).await;
            assert!(message.contains(words), "{message}");
        }
        let build = world.request_build(json!({"name": "app"})).await;
        let copy = json!([{"type": "COPY", "args": ["a", "b"], "filesHash": "missing"}]);
        for (body, words) in [
            (json!({"fromImage": "python:2.7"}), "use `python:"),
            (json!({"fromImage": "ubuntu:24.04"}), "builds on its own image"),
            (
                json!({"fromImage": "python", "fromTemplate": "base"}),
                "needs one base",
            ),
            (json!({"fromImage": "python", "steps": copy}), "were not uploaded"),
            (
                json!({"fromImage": "x", "fromImageRegistry": {"password": "secret"}}),
                "`fromImageRegistry`",
            ),
        ] {
            let message = refused(world.start_build(&build, body).await, 400).await;
            assert!(
                message.contains(words) && !message.contains("secret"),
                "{message}"
            );
        }
        let path = format!("/templates/app/builds/{}/status", build.id);
        let other = world.http.get(world.url(&path)).header("x-api-key", "e2b_other");
        refused(other.sent().await, 404).await;
        let other = world.http.get(world.url("/templates/app/files/h"));
        refused(other.header("x-api-key", "e2b_other").sent().await, 404).await;
        let upload = world.http.put(world.url("/templates/uploads/u1")).body("x");
        refused(upload.sent().await, 404).await;
        for _ in 1..8 {
            world.request_build(json!({"name": "app"})).await;
        }
        let ninth = world
            .api(Method::POST, "/v3/templates")
            .json(&json!({"name": "app"}));
        refused(ninth.sent().await, 429).await;
    });
}
