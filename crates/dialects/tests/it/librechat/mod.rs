//! The Code API of LibreChat on the wire.

mod access;
mod client;
mod exec;
mod programmatic;
mod storage;

use cellblock_dialects::{DialectsOptions, LibreChatOptions};
use reqwest::multipart::{Form, Part};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use crate::support::{DialectServer, RequestExt, client, serve};

fn options() -> DialectsOptions {
    DialectsOptions {
        librechat: Some(LibreChatOptions::default()),
        ..DialectsOptions::default()
    }
}

/// A server without keys, and its client.
struct CodeApi {
    served: DialectServer,
    client: Client,
}

async fn code_api() -> CodeApi {
    CodeApi {
        served: serve(options()).await,
        client: client(),
    }
}

impl CodeApi {
    fn url(&self, path: &str) -> String {
        self.served.url(&format!("/librechat{path}"))
    }

    async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        let answer = self.client.post(self.url(path)).json(&body).sent().await;
        (answer.status(), answer.json().await.unwrap())
    }

    /// A run that has to be answered.
    async fn exec(&self, body: Value) -> Value {
        let (status, answer) = self.post("/exec", body).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        answer
    }

    async fn python(&self, code: &str) -> Value {
        self.exec(json!({"lang": "py", "code": code})).await
    }

    async fn get(&self, path: &str) -> (StatusCode, String) {
        let answer = self.client.get(self.url(path)).sent().await;
        (answer.status(), answer.text().await.unwrap())
    }

    async fn upload(&self, path: &str, form: Form) -> (StatusCode, Value) {
        let answer = self.client.post(self.url(path)).multipart(form).sent().await;
        (answer.status(), answer.json().await.unwrap())
    }

    /// Uploads a file of the user; returns how a run names it.
    async fn file(&self, name: &str, content: &'static str) -> Value {
        let form = Form::new()
            .text("kind", "user")
            .text("id", "user-1")
            .part("file", Part::text(content).file_name(name.to_owned()));
        let (status, answer) = self.upload("/upload", form).await;
        assert_eq!(
            (status, &answer["message"]),
            (StatusCode::OK, &json!("success")),
            "{answer}"
        );
        json!({
            "id": answer["files"][0]["fileId"],
            "resource_id": "user-1",
            "storage_session_id": answer["storage_session_id"],
            "name": name,
            "kind": "user",
        })
    }

    async fn content(&self, file: &Value) -> String {
        let (session, id) = (&file["storage_session_id"], &file["id"]);
        let path = format!("/download/{}/{}", session.as_str().unwrap(), id.as_str().unwrap());
        let (status, content) = self.get(&path).await;
        assert_eq!(status, StatusCode::OK, "{content}");
        content
    }
}

/// The file of an answer with this name.
fn named<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let files = answer["files"].as_array().unwrap().iter();
    let found = files.into_iter().find(|it| it["name"] == name);
    found.unwrap_or_else(|| panic!("no file {name}: {answer}"))
}
