//! Files: what models do with them, and what the file browser does.

use cellblock_dialects::DialectsOptions;
use cellblock_dialects::open_terminal::OpenTerminalOptions;
use cellblock_testkit::UploadProbe;
use reqwest::Method;
use serde_json::{Value, json};

use super::{Chat, server};
use crate::support::{DialectServer, KeyRing, QUOTA, RequestExt, block_on, bounded};

fn names(listing: &Value) -> Vec<&str> {
    let entries = listing["entries"].as_array().unwrap().iter();
    entries.map(|entry| entry["name"].as_str().unwrap()).collect()
}

#[test]
fn a_file_is_written_read_changed_and_listed() {
    block_on(async {
        let server = server().await;
        let chat = Chat::new(&server);
        let written = chat
            .done(
                "/files/write",
                json!({"path": "notes/a.txt", "content": "one\ntwo\nthree\n"}),
            )
            .await;
        assert_eq!(written, json!({"path": "/workspace/notes/a.txt", "size": 14}));
        let read = chat
            .read("/files/read?path=notes/a.txt&start_line=2&end_line=2")
            .await;
        assert_eq!(
            read,
            json!({"path": "/workspace/notes/a.txt", "total_lines": 3, "content": "two\n"})
        );
        let change = json!({"path": "notes/a.txt", "replacements": [
            {"target": "two", "replacement": "2"},
            {"target": "e", "replacement": "E", "start_line": 3, "allow_multiple": true},
        ]});
        chat.done("/files/replace", change).await;
        assert_eq!(
            chat.read("/files/read?path=notes/a.txt").await["content"],
            "one\n2\nthrEE\n"
        );
        let listing = chat.read("/files/list").await;
        assert_eq!(
            (&listing["dir"], names(&listing)),
            (&json!("/workspace"), vec!["notes"])
        );
        assert_eq!(listing["entries"][0]["type"], "directory");
        let shown = chat.read("/files/display?path=notes/a.txt").await;
        assert_eq!(shown, json!({"path": "/workspace/notes/a.txt", "exists": true}));
    });
}

#[test]
fn lines_end_at_the_same_places_for_reads_searches_and_replacements() {
    block_on(async {
        let server = server().await;
        let chat = Chat::new(&server);
        let content = "a\u{c}b\r\nc\u{2028}d\r\nlast d\r\n";
        chat.done("/files/write", json!({"path": "a", "content": content}))
            .await;
        let read = chat.read("/files/read?path=a&start_line=2&end_line=2").await;
        assert_eq!(
            (&read["total_lines"], &read["content"]),
            (&json!(3), &json!("c\u{2028}d\r\n"))
        );
        let found = chat.read("/files/grep?query=last").await;
        assert_eq!(
            (&found["matches"][0]["line"], &found["matches"][0]["content"]),
            (&json!(3), &json!("last d"))
        );
        let change = json!({"path": "a", "replacements": [
            {"target": "d", "replacement": "D", "start_line": 3, "end_line": 3},
        ]});
        chat.done("/files/replace", change).await;
        let expected = content.replace("last d", "last D");
        assert_eq!(chat.read("/files/read?path=a").await["content"], expected);
    });
}

#[test]
fn a_replacement_that_fails_changes_nothing_and_says_why() {
    block_on(async {
        let server = server().await;
        let chat = Chat::new(&server);
        chat.done("/files/write", json!({"path": "a", "content": "x x y"}))
            .await;
        for (target, expected) in [("x", "occurs 2 times"), ("q", "was not found")] {
            let change = json!({"path": "a", "replacements": [
                {"target": "y", "replacement": "z"},
                {"target": target, "replacement": "w"},
            ]});
            let (status, answer) = chat.post("/files/replace", change).await;
            assert_eq!(status, 400);
            let detail = answer["detail"].as_str().unwrap();
            assert!(
                detail.contains(expected) && detail.contains("nothing was changed"),
                "{detail}"
            );
        }
        assert_eq!(chat.read("/files/read?path=a").await["content"], "x x y");
    });
}

#[test]
fn files_are_found_by_content_and_by_name() {
    block_on(async {
        let server = server().await;
        let chat = Chat::new(&server);
        for (path, content) in [
            ("a.py", "import os\nx = 1\n"),
            ("lib/b.py", "X = 2\n"),
            ("c.txt", "x = 3\n"),
        ] {
            chat.done("/files/write", json!({"path": path, "content": content}))
                .await;
        }
        let found = chat
            .read("/files/grep?query=x%20%3D&case_insensitive=True&include=%2A.py&include=%2A.rs")
            .await;
        let matches: Vec<_> = found["matches"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| {
                (
                    it["file"].as_str().unwrap(),
                    it["line"].as_u64().unwrap(),
                    it["content"].as_str().unwrap(),
                )
            })
            .collect();
        assert_eq!(
            matches,
            [
                ("/workspace/a.py", 2, "x = 1"),
                ("/workspace/lib/b.py", 1, "X = 2")
            ]
        );
        for query in ["%28", "a%7B99999999999999999999%7D"] {
            let (status, wrong) = chat.get(&format!("/files/grep?query={query}")).await;
            assert_eq!(status, 400, "{wrong}");
        }
        let globbed = chat
            .read("/files/glob?pattern=%2A.py&type=file&exclude=lib%2F%2A")
            .await;
        assert_eq!(globbed["matches"].as_array().unwrap().len(), 1);
        assert_eq!(globbed["matches"][0]["path"], "a.py");
        let searched = chat.read("/files/search?query=b").await;
        assert_eq!(
            searched["results"][0]["path"], "/workspace/lib/b.py",
            "{searched}"
        );
    });
}

#[test]
fn a_link_is_listed_as_the_file_that_it_leads_to() {
    block_on(async {
        let server = server().await;
        let chat = Chat::new(&server);
        chat.done("/files/write", json!({"path": "d/a.txt", "content": "one"}))
            .await;
        let links = json!({"command": "ln -s d to-d; ln -s d/a.txt to-a; ln -s none to-none"});
        chat.done("/execute?wait=60", links).await;
        let listing = chat.read("/files/list").await;
        assert_eq!(names(&listing), ["d", "to-a", "to-d", "to-none"]);
        let kinds = [0, 1, 2, 3].map(|index| &listing["entries"][index]["type"]);
        assert_eq!(kinds, ["directory", "file", "directory", "file"]);
        assert_eq!(listing["entries"][1]["size"], 3);
        // A search does not follow them.
        let found = chat.read("/files/glob?pattern=a.txt").await;
        assert_eq!(found["matches"].as_array().unwrap().len(), 1, "{found}");
        let (_, deleted) = chat.delete("/files/delete?path=to-d").await;
        assert_eq!(deleted["type"], "file");
        assert_eq!(chat.read("/files/read?path=d/a.txt").await["content"], "one");
    });
}

#[test]
fn the_browser_uploads_moves_archives_and_deletes() {
    block_on(async {
        let server = server().await;
        let chat = Chat::new(&server);
        let form = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"../x.bin\"\r\n\r\n\
                    a\u{0}b\r\n--b--\r\n";
        let upload = chat
            .request(Method::POST, "/files/upload?directory=/workspace/in")
            .header("content-type", "multipart/form-data; boundary=b")
            .body(form);
        let uploaded: Value = upload.read().await;
        assert_eq!(uploaded, json!({"path": "/workspace/in/x.bin", "size": 3}));
        chat.done("/files/mkdir", json!({"path": "out"})).await;
        let moved = json!({"source": "in/x.bin", "destination": "out/y.bin"});
        chat.done("/files/move", moved.clone()).await;
        let (status, _) = chat.post("/files/move", moved).await;
        assert_eq!(status, 404);
        let viewed = chat
            .request(Method::GET, "/files/view?path=/workspace/out/y.bin")
            .sent()
            .await;
        assert!(
            viewed.headers()["content-security-policy"]
                .to_str()
                .unwrap()
                .starts_with("sandbox")
        );
        assert_eq!(&viewed.bytes().await.unwrap()[..], b"a\0b");
        let zip = chat
            .request(Method::POST, "/files/archive")
            .json(&json!({"paths": ["out"]}));
        let zip = zip.sent().await;
        assert_eq!(
            zip.headers()["content-disposition"],
            "attachment; filename=\"out.zip\""
        );
        let zip = zip.bytes().await.unwrap();
        assert!(zip.starts_with(b"PK") && zip.windows(9).any(|it| it == b"out/y.bin"));
        // The archive is in this directory while it is written.
        let everything = chat
            .request(Method::POST, "/files/archive")
            .json(&json!({"paths": ["/tmp"]}));
        assert_eq!(everything.status().await, 200);
        let (status, deleted) = chat.delete("/files/delete?path=out").await;
        assert_eq!((status.as_u16(), &deleted["type"]), (200, &json!("directory")));
        let (status, _) = chat.get("/files/view?path=/workspace/out/y.bin").await;
        assert_eq!(status, 404);
        let left = chat.read("/files/list?directory=/tmp").await;
        assert!(!names(&left).iter().any(|name| name.contains(".zip")), "{left}");
    });
}

#[test]
fn the_working_directory_is_the_chats() {
    block_on(async {
        let server = server().await;
        let chat = Chat::new(&server);
        assert_eq!(
            chat.read("/files/cwd").await,
            json!({"cwd": "/workspace", "home": "/workspace"})
        );
        chat.done("/files/mkdir", json!({"path": "deep/er"})).await;
        chat.done("/files/cwd", json!({"path": "deep"})).await;
        assert_eq!(chat.read("/files/cwd").await["cwd"], "/workspace/deep");
        assert_eq!(names(&chat.read("/files/list").await), ["er"]);
        let ran = chat
            .done("/execute?wait=60", json!({"command": "pwd", "cwd": "er"}))
            .await;
        assert_eq!(ran["output"][0]["data"], "/workspace/deep/er\n");
        let (status, _) = chat.post("/files/cwd", json!({"path": "nowhere"})).await;
        assert_eq!(status, 404);
        assert_eq!(chat.read("/files/cwd").await["cwd"], "/workspace/deep");
    });
}

#[test]
fn two_texts_are_compared_by_lines_and_words() {
    block_on(async {
        let server = server().await;
        let chat = Chat::new(&server);
        chat.done(
            "/files/write",
            json!({"path": "a", "content": "same\nold word\n"}),
        )
        .await;
        chat.done(
            "/files/write",
            json!({"path": "b", "content": "same\nnew word\nmore\n"}),
        )
        .await;
        let compared = chat
            .done("/files/compare", json!({"original": "a", "revised": "b"}))
            .await;
        assert_eq!(
            (&compared["additions"], &compared["deletions"]),
            (&json!(2), &json!(1))
        );
        assert_eq!(compared["hunks"][0]["header"], "@@ -1,2 +1,3 @@");
        assert_eq!(
            compared["hunks"][0]["lines"][1]["segments"][0],
            json!({"text": "old", "changed": true})
        );
    });
}

#[test]
fn files_can_be_read_while_a_cell_runs() {
    block_on(async {
        let server = server().await;
        let chat = Chat::new(&server);
        chat.done("/files/write", json!({"path": "a", "content": "x"}))
            .await;
        let busy = chat.clone();
        let code = "import time, pathlib\nwhile not pathlib.Path('go').exists(): time.sleep(0.05)\n'went'";
        let cell = tokio::spawn(async move { busy.done("/python", json!({"code": code})).await });
        assert_eq!(chat.read("/files/read?path=a").await["content"], "x");
        chat.done("/files/write", json!({"path": "go", "content": ""}))
            .await;
        assert!(cell.await.unwrap()["output"].as_str().unwrap().contains("went"));
    });
}

#[test]
fn an_upload_is_refused_before_and_while_it_comes_and_leaves_nothing() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let options = DialectsOptions {
            open_terminal: Some(OpenTerminalOptions::default()),
            ..DialectsOptions::default()
        };
        let server = DialectServer::with(&options, KeyRing::Open, bounded(folder.path())).await;
        let headers = [("x-user-id", "user-1"), ("x-session-id", "chat-1")];
        let path = "/open-terminal/files/upload?directory=/workspace";
        let probe = UploadProbe::new(server.address, "POST", path, &headers, folder.path());
        probe.in_a_form(&[]).assert_bounded(QUOTA).await;
    });
}
