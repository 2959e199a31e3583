//! Files of a sandbox.

use cellblock_testkit::UploadProbe;
use reqwest::multipart::{Form, Part};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{SandboxClient, open, open_at, options};
use crate::support::{DialectServer, KeyRing, QUOTA, RequestExt, block_on, bounded};

async fn upload(opened: &SandboxClient, path: &str, content: &'static str, mode: u32) -> StatusCode {
    let metadata = json!({"path": path, "mode": mode}).to_string();
    let form = Form::new()
        .part("metadata", Part::text(metadata).file_name("metadata"))
        .part("file", Part::text(content).file_name("file"));
    let sent = opened.request(Method::POST, "/files/upload").multipart(form);
    sent.status().await
}

#[test]
fn files_are_written_read_and_changed() {
    block_on(async {
        let opened = open().await;
        assert_eq!(
            upload(&opened, "/workspace/a/one.txt", "first\nsecond\nthird\n", 755).await,
            StatusCode::OK
        );
        assert_eq!(
            upload(&opened, "/mnt/data/two.md", "two", 644).await,
            StatusCode::OK
        );
        let get = async |path: &str| opened.request(Method::GET, path).sent().await;
        let info: Value = get("/files/info?path=/workspace/a/one.txt&path=two.md")
            .await
            .json()
            .await
            .unwrap();
        let one = &info["/workspace/a/one.txt"];
        assert_eq!(
            (&one["mode"], &one["size"], &one["type"]),
            (&json!(755), &json!(19), &json!("file")),
            "{info}"
        );
        assert_eq!(info["two.md"]["mode"], 644);
        let read = async |path: &str, range: Option<&str>| {
            let request = opened.request(Method::GET, path);
            let request = match range {
                Some(range) => request.header("Range", range),
                None => request,
            };
            let answer = request.sent().await;
            (answer.status().as_u16(), answer.text().await.unwrap())
        };
        let path = "/files/download?path=/workspace/a/one.txt";
        assert_eq!(read(path, None).await, (200, "first\nsecond\nthird\n".to_owned()));
        assert_eq!(read(path, Some("bytes=6-11")).await, (206, "second".to_owned()));
        assert_eq!(read(path, Some("bytes=99-")).await.0, 416);
        assert_eq!(
            read(&format!("{path}&offset=2&limit=1"), None).await,
            (200, "second\n".to_owned())
        );
        assert_eq!(read("/files/download?path=/workspace/none", None).await.0, 404);
    });
}

#[test]
fn files_are_changed_moved_found_and_removed() {
    block_on(async {
        let opened = open().await;
        upload(&opened, "/workspace/a/one.txt", "first", 755).await;
        upload(&opened, "/workspace/two.md", "two", 644).await;
        let get = async |path: &str| opened.request(Method::GET, path).sent().await;
        let post =
            async |path: &str, body: Value| opened.request(Method::POST, path).json(&body).sent().await;
        let replaced = post(
            "/files/replace?verbose=true",
            json!({"/workspace/two.md": {"old": "two", "new": "2"}}),
        )
        .await;
        assert_eq!(
            replaced.json::<Value>().await.unwrap(),
            json!({"/workspace/two.md": {"replacedCount": 1}})
        );
        assert_eq!(
            post("/files/permissions", json!({"two.md": {"mode": 600}}))
                .await
                .status(),
            StatusCode::OK
        );
        assert_eq!(
            post("/files/mv", json!([{"src": "two.md", "dest": "b/three.md"}]))
                .await
                .status(),
            StatusCode::OK
        );
        assert_eq!(
            post("/directories", json!({"c/d": {"mode": 700}})).await.status(),
            StatusCode::OK
        );
        let listed: Value = get("/directories/list?path=/workspace&depth=2")
            .await
            .json()
            .await
            .unwrap();
        let paths: Vec<_> = listed
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["path"].as_str().unwrap())
            .collect();
        assert_eq!(
            paths,
            [
                "/workspace/a",
                "/workspace/a/one.txt",
                "/workspace/b",
                "/workspace/b/three.md",
                "/workspace/c",
                "/workspace/c/d"
            ]
        );
        let found: Value = get("/files/search?path=/workspace&pattern=*.md")
            .await
            .json()
            .await
            .unwrap();
        assert_eq!(found[0]["path"], "/workspace/b/three.md");
        assert_eq!(found[0]["mode"], 600);
        assert_eq!(
            get("/files/search?path=/workspace/none").await.status(),
            StatusCode::NOT_FOUND
        );
        opened
            .code("import os\nos.symlink('b/three.md', '/workspace/link')\nos.symlink('b', '/workspace/folder')")
            .await;
        let info: Value = get("/files/info?path=link").await.json().await.unwrap();
        assert_eq!(
            (&info["link"]["type"], &info["link"]["mode"]),
            (&json!("symlink"), &json!(600)),
            "{info}"
        );
        assert_eq!(
            get("/directories/list?path=folder").await.status(),
            StatusCode::BAD_REQUEST
        );
        let delete = async |path: &str| opened.request(Method::DELETE, path).status().await;
        assert_eq!(delete("/files?path=/workspace/b/three.md").await, StatusCode::OK);
        assert_eq!(
            delete("/files?path=/workspace/b/three.md").await,
            StatusCode::NOT_FOUND
        );
        assert_eq!(delete("/directories?path=/workspace/a").await, StatusCode::OK);
        assert_eq!(
            get("/files/info?path=/workspace/a").await.status(),
            StatusCode::NOT_FOUND
        );
        let metrics: Value = get("/metrics").await.json().await.unwrap();
        assert!(
            metrics["cpu_count"].as_f64().unwrap() >= 1.0 && metrics["mem_total_mib"].as_f64().unwrap() > 0.0,
            "{metrics}"
        );
    });
}

#[test]
fn an_upload_beyond_the_limit_is_refused() {
    block_on(async {
        let opened = open().await;
        let large = Part::bytes(vec![b'x'; (4 << 20) + 1]).file_name("file");
        let form = Form::new()
            .part("metadata", Part::text(r#"{"path": "large"}"#))
            .part("file", large);
        let sent = opened
            .request(Method::POST, "/files/upload")
            .multipart(form)
            .sent()
            .await;
        assert_eq!(sent.status(), StatusCode::PAYLOAD_TOO_LARGE);
        let form = Form::new().part("file", Part::text("x").file_name("file"));
        let sent = opened
            .request(Method::POST, "/files/upload")
            .multipart(form)
            .sent()
            .await;
        assert_eq!(sent.status(), StatusCode::BAD_REQUEST);
    });
}

#[test]
fn an_upload_is_refused_before_and_while_it_comes_and_leaves_nothing() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let server = DialectServer::with(&options(), KeyRing::Open, bounded(folder.path())).await;
        let opened = open_at(server).await;
        let path = format!("/opensandbox/execd/{}/files/upload", opened.id);
        let token = ("X-EXECD-ACCESS-TOKEN", &*opened.token);
        let probe = UploadProbe::new(opened.served.address, "POST", &path, &[token], folder.path());
        let metadata = json!({"path": "/workspace/a"}).to_string();
        probe
            .in_a_form(&[("metadata", &metadata)])
            .assert_bounded(QUOTA)
            .await;
    });
}
