//! Files that outlive sessions and servers.

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use cellblock_artifact::{Retention, Store};
use cellblock_gateway::records::Records;
use cellblock_gateway::{Gateway, Models, Options};
use cellblock_interpreter::Interpreter;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;

use crate::support::{Api, block_on, until};

const FOLDER: &str = "/workspace/volume";

static INTERPRETER: OnceCell<Arc<Interpreter>> = OnceCell::const_new();
static STORE: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

/// A server over files of its own, which the next one finds again.
struct Server {
    api: Api,
    gateway: Gateway,
    served: JoinHandle<()>,
}

/// Starts a server over records in a folder.
async fn serve(folder: &Path, options: Options) -> Server {
    // One interpreter serves all: a template for each test would be slow.
    let interpreter = INTERPRETER.get_or_init(async || Arc::new(interpreter_over(STORE.path()).await));
    serve_with(folder, options, Arc::clone(interpreter.await)).await
}

async fn serve_with(folder: &Path, options: Options, interpreter: Arc<Interpreter>) -> Server {
    let records = Records::open(&folder.join("records.sqlite")).unwrap();
    let gateway = Gateway::new(options, records, Models::default(), interpreter);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let api = Api::at(listener.local_addr().unwrap());
    let serving = gateway.start(listener, &[]).await.unwrap();
    let served = tokio::spawn(async move { serving.run().await.unwrap() });
    Server { api, gateway, served }
}

async fn interpreter_over(store: &Path) -> Interpreter {
    let builder = Interpreter::builder().home(cellblock_testkit::home().unwrap());
    let interpreter = builder.store(Store::local(store).unwrap()).build().await.unwrap();
    interpreter.warmed().await.unwrap();
    interpreter
}

impl Server {
    async fn stop(self) {
        self.gateway.stop();
        tokio::time::timeout(Duration::from_mins(1), self.served)
            .await
            .unwrap()
            .unwrap();
    }

    async fn volume(&self, name: &str) -> Value {
        let (status, volume) = self.api.get(&format!("/v1/volumes/{name}")).await;
        assert_eq!(status, StatusCode::OK, "{volume}");
        volume
    }
}

/// A server with an artifact store of its own.
async fn with_store() -> (TempDir, Server) {
    let folder = tempfile::tempdir().unwrap();
    let interpreter = interpreter_over(&folder.path().join("artifacts")).await;
    let server = serve_with(folder.path(), Options::default(), Arc::new(interpreter)).await;
    (folder, server)
}

/// A server of one test.
async fn alone(change: impl FnOnce(&mut Options)) -> (TempDir, Server) {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    change(&mut options);
    let server = serve(folder.path(), options).await;
    (folder, server)
}

fn written(name: &str) -> Value {
    json!({"volume": name})
}

fn id(session: &str) -> &str {
    session.rsplit('/').next().unwrap()
}

/// Runs a cell that completes; its note.
async fn note(api: &Api, session: &str, code: &str) -> String {
    let cell = api.run(session, code).await;
    assert_eq!(cell["outcome"], "completed", "{cell}");
    cell["note"].as_str().unwrap_or_default().to_owned()
}

/// Returns what an expression prints.
async fn printed(api: &Api, session: &str, expression: &str) -> String {
    let cell = api.run(session, &format!("print({expression}, end='')")).await;
    assert_eq!(cell["outcome"], "completed", "{cell}");
    cell["stdout"].as_str().unwrap().to_owned()
}

#[test]
fn a_later_session_finds_the_files_of_a_volume_as_the_last_one_left_them() {
    block_on(async {
        let (_folder, server) = alone(|_| {}).await;
        let api = &server.api;
        let one = api.session(&written("data")).await;
        let (_, session) = api.get(&one).await;
        assert_eq!(
            session["volume"],
            json!({"name": "data", "access": "write", "revision": 0})
        );
        let make = format!(
            "import os\nos.makedirs('{FOLDER}/a/b')\nopen('{FOLDER}/a/b/x', 'w').write('one')\n\
             open('{FOLDER}/run.sh', 'w').write('#!/bin/sh\\necho hi')\nos.chmod('{FOLDER}/run.sh', 0o755)\n\
             open('{FOLDER}/gone', 'w').write('y')\nopen('{FOLDER}/empty', 'w').close()"
        );
        assert_eq!(note(api, &one, &make).await, "");
        let volume = server.volume("data").await;
        assert_eq!(
            (&volume["revision"], &volume["files"], &volume["bytes"]),
            (&json!(1), &json!(4), &json!(21)),
            "{volume}"
        );
        assert_eq!(
            volume["last_writer"],
            json!({"session": id(&one), "state": "writing"})
        );
        // Looking changes nothing; changing without another size or time does.
        printed(api, &one, &format!("open('{FOLDER}/gone').read()")).await;
        assert_eq!(server.volume("data").await["revision"], 1);
        let same = format!(
            "s = os.stat('{FOLDER}/a/b/x')\nopen('{FOLDER}/a/b/x', 'w').write('two')\n\
             os.utime('{FOLDER}/a/b/x', ns=(s.st_atime_ns, s.st_mtime_ns))\nos.remove('{FOLDER}/gone')"
        );
        note(api, &one, &same).await;
        assert_eq!(server.volume("data").await["revision"], 2);
        // Exit handlers are the last to write.
        let last = format!("import atexit\natexit.register(lambda: open('{FOLDER}/last', 'w').write('bye'))");
        note(api, &one, &last).await;
        api.end(&one).await;
        let volume = server.volume("data").await;
        assert_eq!(
            (&volume["revision"], &volume["files"]),
            (&json!(3), &json!(4)),
            "{volume}"
        );
        assert_eq!(volume["last_writer"]["state"], "saved");

        let two = api.session(&written("data")).await;
        let files = api.run(&two, "import os").await;
        assert_eq!(
            (&files["files"], &files["note"]),
            (&json!([]), &Value::Null),
            "{files}"
        );
        let walk = format!(
            "sorted(os.path.join(d, f)[{}:] for d, _, fs in os.walk('{FOLDER}') for f in fs)",
            FOLDER.len()
        );
        assert_eq!(
            printed(api, &two, &walk).await,
            "['/a/b/x', '/empty', '/last', '/run.sh']"
        );
        assert_eq!(
            printed(api, &two, &format!("open('{FOLDER}/a/b/x').read()")).await,
            "two"
        );
        let mode = format!("oct(os.stat('{FOLDER}/run.sh').st_mode & 0o777)");
        assert_eq!(printed(api, &two, &mode).await, "0o755");
        assert_eq!(server.volume("data").await["revision"], 3);
        // Without the folder, the volume is empty.
        note(api, &two, &format!("import shutil\nshutil.rmtree('{FOLDER}')")).await;
        assert_eq!(server.volume("data").await["files"], 0);
        server.stop().await;
    });
}

#[test]
fn a_restart_keeps_volumes_and_reports_a_session_that_was_lost() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let first = serve(folder.path(), Options::default()).await;
        let session = first.api.session(&written("data")).await;
        note(
            &first.api,
            &session,
            &format!("_ = open('{FOLDER}/x', 'w').write('one')"),
        )
        .await;
        first.stop().await;

        let second = serve(folder.path(), Options::default()).await;
        assert_eq!(
            second.volume("data").await["last_writer"],
            json!({"session": id(&session), "state": "saved"})
        );
        let lost = second.api.session(&written("data")).await;
        assert_eq!(
            printed(&second.api, &lost, &format!("open('{FOLDER}/x').read()")).await,
            "one"
        );

        // The second one has no time to stop: for the third, it is gone.
        let third = serve(folder.path(), Options::default()).await;
        let volume = third.volume("data").await;
        assert_eq!(
            volume["last_writer"],
            json!({"session": id(&lost), "state": "lost"})
        );
        assert!(volume["saved_at"].as_u64().unwrap() > 1_600_000_000, "{volume}");
        let next = third.api.session(&written("data")).await;
        assert_eq!(
            note(
                &third.api,
                &next,
                &format!("assert open('{FOLDER}/x').read() == 'one'")
            )
            .await,
            format!(
                "the volume `data` has revision 1: the server ended while the session {} wrote it, so later changes are lost",
                id(&lost)
            )
        );
        // Whatever the lost session does now changes nothing.
        let late = note(
            &second.api,
            &lost,
            &format!("_ = open('{FOLDER}/x', 'w').write('late')"),
        )
        .await;
        assert!(
            late.starts_with("the volume `data` was not saved: this session does not hold it any more"),
            "{late}"
        );
        assert!(late.ends_with("Its revision 1 is kept"), "{late}");
        second.api.end(&lost).await;
        let volume = third.volume("data").await;
        assert_eq!(volume["revision"], 1);
        assert_eq!(
            volume["last_writer"],
            json!({"session": id(&next), "state": "writing"})
        );
        second.stop().await;
        third.stop().await;
    });
}

#[test]
fn one_session_writes_a_volume_and_others_read_its_last_revision() {
    block_on(async {
        let (_folder, server) = alone(|_| {}).await;
        let api = &server.api;
        let readers = json!({"volume": "data", "volume_access": "read"});
        let (status, missing) = api.post("/v1/sessions", &readers).await;
        assert_eq!(
            (status, &missing["error"]["code"]),
            (StatusCode::NOT_FOUND, &json!("volume_not_found"))
        );

        let writer = api.session(&written("data")).await;
        note(api, &writer, &format!("_ = open('{FOLDER}/x', 'w').write('one')")).await;
        let (status, held) = api.post("/v1/sessions", &written("data")).await;
        assert_eq!(
            (status, &held["error"]["code"]),
            (StatusCode::CONFLICT, &json!("volume_held"))
        );
        let message = held["error"]["message"].as_str().unwrap();
        assert!(
            message.contains(id(&writer)) && message.contains("\"volume_access\": \"read\""),
            "{message}"
        );

        let reader = api.session(&readers).await;
        let (_, session) = api.get(&reader).await;
        assert_eq!(
            session["volume"],
            json!({"name": "data", "access": "read", "revision": 1})
        );
        note(api, &writer, &format!("_ = open('{FOLDER}/x', 'w').write('two')")).await;
        let change = format!("old = open('{FOLDER}/x').read()\n_ = open('{FOLDER}/x', 'w').write('mine')");
        assert_eq!(note(api, &reader, &change).await, "");
        assert_eq!(printed(api, &reader, "old").await, "one");
        api.end(&reader).await;
        let volume = server.volume("data").await;
        assert_eq!(
            (&volume["revision"], &volume["last_writer"]["session"]),
            (&json!(2), &json!(id(&writer)))
        );

        let (status, held) = api.delete("/v1/volumes/data").await;
        assert_eq!(
            (status, &held["error"]["code"]),
            (StatusCode::CONFLICT, &json!("volume_held"))
        );
        api.end(&writer).await;
        let next = api.session(&written("data")).await;
        assert_eq!(
            printed(api, &next, &format!("open('{FOLDER}/x').read()")).await,
            "two"
        );
        server.stop().await;
    });
}

#[test]
fn a_volume_keeps_its_contents_until_it_is_deleted() {
    block_on(async {
        let (_folder, server) = with_store().await;
        let api = &server.api;
        let session = api.session(&written("data")).await;
        let code = format!("for name in 'ab': open(f'{FOLDER}/{{name}}', 'w').write('kept ' + name)");
        note(api, &session, &code).await;
        note(
            api,
            &session,
            &format!("_ = open('{FOLDER}/a', 'w').write('new a')"),
        )
        .await;
        api.end(&session).await;
        let store = &server.gateway.store;
        let at_once = Retention {
            keep: Duration::ZERO,
            pins: None,
        };
        store.collect(&at_once, |_| false).await.unwrap();
        // What the first revision alone had is not kept.
        assert_eq!(store.list().await.unwrap().len(), 2);
        let session = api.session(&written("data")).await;
        assert_eq!(
            printed(
                api,
                &session,
                &format!("open('{FOLDER}/a').read(), open('{FOLDER}/b').read()")
            )
            .await,
            "new a kept b"
        );
        api.end(&session).await;

        let volume = server.volume("data").await;
        let (status, deleted) = api.delete("/v1/volumes/data").await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(
            deleted,
            json!({"object": "volume.deleted", "id": volume["id"], "deleted": true})
        );
        for (status, gone) in [
            api.get("/v1/volumes/data").await,
            api.delete("/v1/volumes/data").await,
        ] {
            assert_eq!(
                (status, &gone["error"]["code"]),
                (StatusCode::NOT_FOUND, &json!("volume_not_found"))
            );
        }
        store.collect(&at_once, |_| false).await.unwrap();
        assert_eq!(store.list().await.unwrap(), []);
        server.stop().await;
    });
}

#[test]
fn volumes_belong_to_their_owner_and_are_listed_in_pages() {
    block_on(async {
        let (one, two) = (Api::of("volumes one").await, Api::of("volumes two").await);
        let session = one.session(&written("shared-name")).await;
        note(
            &one,
            &session,
            &format!("_ = open('{FOLDER}/x', 'w').write('mine')"),
        )
        .await;
        for (method, path) in [(Method::GET, "shared-name"), (Method::DELETE, "shared-name")] {
            let response = two
                .request(method, &format!("/v1/volumes/{path}"))
                .send()
                .await
                .unwrap();
            assert_eq!(response.status(), StatusCode::NOT_FOUND);
        }
        let (_, none) = two.get("/v1/volumes").await;
        assert_eq!(none["data"], json!([]));
        // The same name is another volume.
        let theirs = two.session(&written("shared-name")).await;
        assert_eq!(
            printed(&two, &theirs, &format!("__import__('os').listdir('{FOLDER}')")).await,
            "[]"
        );
        two.end(&theirs).await;
        one.end(&session).await;

        let other = one.session(&written("b")).await;
        one.end(&other).await;
        let (_, page) = one.get("/v1/volumes?limit=1&order=asc").await;
        assert_eq!(
            (&page["data"][0]["name"], &page["has_more"]),
            (&json!("shared-name"), &json!(true))
        );
        let after = page["last_id"].as_str().unwrap();
        let (_, page) = one
            .get(&format!("/v1/volumes?limit=1&order=asc&after={after}"))
            .await;
        assert_eq!(
            (&page["data"][0]["name"], &page["has_more"]),
            (&json!("b"), &json!(false))
        );
        for (api, name) in [(&one, "shared-name"), (&one, "b"), (&two, "shared-name")] {
            assert_eq!(api.delete(&format!("/v1/volumes/{name}")).await.0, StatusCode::OK);
        }
    });
}

#[test]
fn what_exceeds_a_limit_is_not_saved_and_the_cell_says_which_limit() {
    block_on(async {
        let (_folder, server) = alone(|options| {
            options.volumes.max_bytes = 1000;
            options.volumes.max_files = 3;
            options.volumes.max_per_key = 2;
        })
        .await;
        let api = &server.api;
        let session = api.session(&written("data")).await;
        note(
            api,
            &session,
            &format!("_ = open('{FOLDER}/x', 'w').write('x' * 900)"),
        )
        .await;
        for (code, exceeded) in [
            (
                "_ = open('F/y', 'w').write('y' * 101)",
                "1001 bytes, the limit `volumes.max_bytes` is 1000",
            ),
            (
                "_ = open('F/y', 'w').truncate(1 << 20)",
                "1049476 bytes, the limit `volumes.max_bytes` is 1000",
            ),
            (
                "for n in 'yzu': open('F/' + n, 'w').close()",
                "4 files, the limit `volumes.max_files` is 3",
            ),
        ] {
            let told = note(api, &session, &code.replace('F', FOLDER)).await;
            assert_eq!(
                told,
                format!(
                    "the volume `data` was not saved: {FOLDER} has {exceeded}; remove files there, or ask the operator for a higher limit. \
                     Its revision 1 is kept"
                )
            );
            assert_eq!(server.volume("data").await["revision"], 1);
        }
        api.end(&session).await;
        let volume = server.volume("data").await;
        assert_eq!(
            (&volume["revision"], &volume["last_writer"]["state"]),
            (&json!(1), &json!("incomplete"))
        );

        let session = api.session(&written("data")).await;
        let told = note(
            api,
            &session,
            &format!("_ = open('{FOLDER}/y', 'w').write('y' * 100)"),
        )
        .await;
        assert!(
            told.starts_with("the volume `data` has revision 1: the last changes of the session"),
            "{told}"
        );
        assert_eq!(server.volume("data").await["bytes"], 1000);
        api.end(&session).await;

        let small = json!({"volume": "data", "limits": {"disk_bytes": 999}});
        let (status, refused) = api.post("/v1/sessions", &small).await;
        assert_eq!(
            (status, &refused["error"]["param"]),
            (StatusCode::BAD_REQUEST, &json!("volume"))
        );
        let second = api.session(&written("second")).await;
        let (status, full) = api.post("/v1/sessions", &written("third")).await;
        assert_eq!(
            (status, &full["error"]["code"]),
            (StatusCode::TOO_MANY_REQUESTS, &json!("too_many_volumes"))
        );
        // Neither of the refused requests holds a volume.
        let again = api.session(&written("data")).await;
        for session in [&second, &again] {
            api.end(session).await;
        }
        server.stop().await;
    });
}

#[test]
fn links_special_files_and_names_that_are_no_names_outside_stay_in_the_sandbox() {
    block_on(async {
        let (_folder, server) = alone(|_| {}).await;
        let api = &server.api;
        let session = api.session(&written("data")).await;
        let code = format!(
            "import os\nos.symlink('/etc/passwd', '{FOLDER}/link')\nos.mkfifo('{FOLDER}/pipe')\n\
             open('{FOLDER}/a\\nb', 'w').close()\nopen(b'{FOLDER}/\\xff', 'w').close()\n\
             _ = [open('{FOLDER}/' + n, 'w').write(n) for n in ('Case', 'case', '.hidden')]\n\
             os.mkdir('{FOLDER}/folder')\n_ = open('{FOLDER}/folder/x', 'w').write('x')"
        );
        let told = note(api, &session, &code).await;
        for part in [
            "`/workspace/volume/link` (is a symbolic link)",
            "`/workspace/volume/pipe` (is a ",
            "`/workspace/volume/a\\nb` (its name cannot be used outside the sandbox",
            "its name is not UTF-8",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert_eq!(server.volume("data").await["files"], 4);
        // The same is reported once.
        assert_eq!(note(api, &session, "1").await, "");

        // What is hidden behind a link is not removed from the volume.
        let hide = format!(
            "os.rename('{FOLDER}/folder', '/workspace/away')\nos.symlink('/workspace/away', '{FOLDER}/folder')"
        );
        note(api, &session, &hide).await;
        assert_eq!(server.volume("data").await["files"], 4);
        let replaced =
            format!("os.rename('{FOLDER}', '/workspace/whole')\nos.symlink('/workspace/whole', '{FOLDER}')");
        let told = note(api, &session, &replaced).await;
        assert!(
            told.starts_with("the volume `data` was not saved: /workspace/volume cannot be listed"),
            "{told}"
        );
        api.end(&session).await;

        let next = api.session(&written("data")).await;
        let walk = format!("sorted(f for _, _, fs in __import__('os').walk('{FOLDER}') for f in fs)");
        assert_eq!(
            printed(api, &next, &walk).await,
            "['.hidden', 'Case', 'case', 'x']"
        );
        for (body, param) in [
            (json!({"volume": ".."}), "volume"),
            (json!({"volume": "A"}), "volume"),
            (json!({"volume": "a/b"}), "volume"),
            (json!({"volume": "x", "toolset": "derivation"}), "volume"),
            (json!({"volume_access": "read"}), "volume_access"),
        ] {
            let (status, refused) = api.post("/v1/sessions", &body).await;
            assert_eq!(
                (status, &refused["error"]["param"]),
                (StatusCode::BAD_REQUEST, &json!(param)),
                "{body}"
            );
        }
        let (_, all) = api.get("/v1/volumes").await;
        assert_eq!(all["data"].as_array().unwrap().len(), 1, "{all}");
        server.stop().await;
    });
}

#[test]
fn a_save_that_fails_in_the_middle_leaves_the_last_whole_revision() {
    block_on(async {
        let (folder, server) = with_store().await;
        let api = &server.api;
        let session = api.session(&written("data")).await;
        note(
            api,
            &session,
            &format!("_ = open('{FOLDER}/x', 'w').write('one')"),
        )
        .await;
        let (objects, aside) = (
            folder.path().join("artifacts/objects"),
            folder.path().join("aside"),
        );
        // The contents cannot be stored, …
        std::fs::rename(&objects, &aside).unwrap();
        std::fs::write(&objects, "").unwrap();
        let failed = "the volume `data` was not saved: the server could not store";
        let two = format!("for name in 'xy': open(f'{FOLDER}/{{name}}', 'w').write('two')");
        let told = api
            .post(&format!("{session}/cells"), &json!({"code": two}))
            .await
            .1;
        assert_eq!(server.volume("data").await["revision"], 1, "{told}");
        std::fs::remove_file(&objects).unwrap();
        std::fs::rename(&aside, &objects).unwrap();
        // … then they are, and the manifest cannot be.
        let records = &server.gateway.records;
        records
            .with(|it| it.batch("ALTER TABLE volumes RENAME TO away"))
            .await
            .unwrap();
        let told = note(api, &session, "1").await;
        assert!(told.contains(failed), "{told}");
        records
            .with(|it| it.batch("ALTER TABLE away RENAME TO volumes"))
            .await
            .unwrap();
        let volume = server.volume("data").await;
        assert_eq!((&volume["revision"], &volume["files"]), (&json!(1), &json!(1)));

        let reader = api
            .session(&json!({"volume": "data", "volume_access": "read"}))
            .await;
        assert_eq!(
            printed(api, &reader, &format!("open('{FOLDER}/x').read()")).await,
            "one"
        );
        assert_eq!(note(api, &session, "1").await, "");
        let volume = server.volume("data").await;
        assert_eq!((&volume["revision"], &volume["files"]), (&json!(2), &json!(2)));
        server.stop().await;
    });
}

#[test]
fn commands_uploads_and_processes_save_what_they_write() {
    block_on(async {
        let (_folder, server) = alone(|_| {}).await;
        let api = &server.api;
        let bench = json!({"toolset": "workbench", "volume": "data"});
        let session = api.session(&bench).await;
        let upload = format!("{session}/files/workspace/volume/uploaded");
        assert_eq!(
            api.put(&upload, "text/plain", b"up".to_vec()).await.0,
            StatusCode::OK
        );
        assert_eq!(server.volume("data").await["revision"], 1);
        let command = json!({"command": ["sh", "-c", format!("echo x > {FOLDER}/by-command")]});
        let (status, ran) = api.post(&format!("{session}/tools/sandbox_exec"), &command).await;
        assert_eq!((status, &ran["exit_code"]), (StatusCode::OK, &json!(0)), "{ran}");
        assert_eq!(server.volume("data").await["revision"], 2);
        assert_eq!(api.delete(&upload).await.0, StatusCode::OK);
        assert_eq!(server.volume("data").await["files"], 1);

        let process = json!({"command": ["sh", "-c", format!("read line; echo $line > {FOLDER}/by-process")], "stdin": true});
        let (status, _) = api.post(&format!("{session}/processes"), &process).await;
        assert_eq!(status, StatusCode::CREATED);
        let input = json!({"data": "hello\n", "close": true});
        api.post(&format!("{session}/processes/p1/input"), &input).await;
        until("its end saves the volume", || async {
            server.volume("data").await["files"] == 2
        })
        .await;
        server.stop().await;
    });
}
