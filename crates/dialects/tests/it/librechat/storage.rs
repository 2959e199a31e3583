//! Uploads, lists, freshness and deletions.

use cellblock_testkit::UploadProbe;
use reqwest::StatusCode;
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};

use super::{code_api, options};
use crate::support::{DialectServer, KeyRing, QUOTA, RequestExt, block_on, bounded};

#[test]
fn a_batch_says_of_each_file_what_came_of_it() {
    block_on(async {
        let api = code_api().await;
        let part = |content: Vec<u8>, name: &str| Part::bytes(content).file_name(name.to_owned());
        let form = Form::new()
            .text("kind", "agent")
            .text("id", "agent-1")
            .part("file", part(b"one".to_vec(), "a/one.txt"))
            .part("file", part(b"bad".to_vec(), "../up.txt"))
            .part("file", part(vec![b'x'; (4 << 20) + 1], "large.bin"))
            .part("file", part(b"two".to_vec(), "two.txt"));
        let (status, answer) = api.upload("/upload/batch", form).await;
        assert_eq!(
            (status, &answer["message"]),
            (StatusCode::OK, &json!("partial_success")),
            "{answer}"
        );
        assert_eq!((&answer["succeeded"], &answer["failed"]), (&json!(2), &json!(2)));
        let each: Vec<_> = answer["files"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| &it["status"])
            .collect();
        assert_eq!(each, ["success", "error", "error", "success"]);
        let session = answer["storage_session_id"].as_str().unwrap();
        let list = async |query: &str| api.get(&format!("/files/{session}?{query}")).await;
        let (status, listed) = list("detail=full&kind=agent&id=agent-1").await;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        assert_eq!((status, listed.as_array().unwrap().len()), (StatusCode::OK, 2));
        assert_eq!(listed[0]["metadata"]["original-filename"], "a/one.txt");
        assert_eq!(list("kind=agent&id=agent-2").await.0, StatusCode::NOT_FOUND);
        assert_eq!(list("kind=user&id=agent-1").await.0, StatusCode::NOT_FOUND);
        assert_eq!(list("kind=skill&id=agent-1").await.0, StatusCode::BAD_REQUEST);
        let form = Form::new().part("file", part(b"bad".to_vec(), "/etc/passwd"));
        assert_eq!(api.upload("/upload/batch", form).await.0, StatusCode::BAD_REQUEST);
        let large = Form::new().part("file", part(vec![b'x'; (4 << 20) + 1], "large.bin"));
        assert_eq!(
            api.upload("/upload", large).await.0,
            StatusCode::PAYLOAD_TOO_LARGE
        );
        assert_eq!(
            api.upload("/upload", Form::new().text("kind", "user")).await.0,
            StatusCode::BAD_REQUEST
        );
    });
}

#[test]
fn a_stored_file_says_its_time_and_is_deleted_by_both_routes() {
    block_on(async {
        let api = code_api().await;
        for route in ["files/{s}/{f}", "sessions/{s}/objects/{f}"] {
            let file = api.file("a.txt", "x").await;
            let (session, id) = (
                file["storage_session_id"].as_str().unwrap(),
                file["id"].as_str().unwrap(),
            );
            let place = format!("/sessions/{session}/objects/{id}?kind=user&id=user-1");
            let (status, known) = api.get(&place).await;
            let known: Value = serde_json::from_str(&known).unwrap();
            assert_eq!(status, StatusCode::OK);
            assert!(
                chrono::DateTime::parse_from_rfc3339(known["lastModified"].as_str().unwrap()).is_ok(),
                "{known}"
            );
            let route = format!("/{}", route.replace("{s}", session).replace("{f}", id));
            let deleted = api.client.delete(api.url(&route)).sent().await;
            assert_eq!(deleted.status(), StatusCode::OK);
            assert_eq!(api.get(&place).await.0, StatusCode::NOT_FOUND);
            assert_eq!(
                api.client.delete(api.url(&route)).status().await,
                StatusCode::NOT_FOUND
            );
        }
        assert_eq!(api.get("/download/short/id").await.0, StatusCode::BAD_REQUEST);
        assert_eq!(api.get("/health").await, (StatusCode::OK, "OK".to_owned()));
        assert_eq!(api.get("/other").await.0, StatusCode::NOT_FOUND);
    });
}

#[test]
fn an_upload_is_refused_before_and_while_it_comes_and_leaves_nothing() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let server = DialectServer::with(&options(), KeyRing::Open, bounded(folder.path())).await;
        for path in ["/librechat/upload", "/librechat/upload/batch"] {
            let probe = UploadProbe::new(server.address, "POST", path, &[], folder.path());
            probe.in_a_form(&[]).assert_bounded(QUOTA).await;
        }
    });
}
