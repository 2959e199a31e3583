//! Requests to the REST API.

use cellblock_dialects::DialectsOptions;
use cellblock_dialects::jupyter::JupyterOptions;
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

use super::server;
use crate::support::{DialectServer, KEYS, KeyRing, RequestExt, block_on, bounded, client};

struct Ann<'a> {
    server: &'a DialectServer,
    http: Client,
    key: &'static str,
}

impl<'a> Ann<'a> {
    fn new(server: &'a DialectServer) -> Self {
        let (http, key) = (client(), KEYS[0].0);
        Self { server, http, key }
    }

    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> (StatusCode, Value) {
        let url = self.server.url(&format!("/jupyter{path}"));
        let request = self
            .http
            .request(method, url)
            .header("Authorization", format!("token {}", self.key));
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        let response = request.sent().await;
        let status = response.status();
        let text = response.text().await.unwrap();
        let read = if text.is_empty() {
            Ok(Value::Null)
        } else {
            serde_json::from_str(&text)
        };
        (
            status,
            read.unwrap_or_else(|_| panic!("{status}: not JSON: {text}")),
        )
    }

    async fn kernel(&self) -> String {
        let (status, model) = self.ask(Method::POST, "/api/kernels", None).await;
        assert_eq!(status, 201, "{model}");
        model["id"].as_str().unwrap().to_owned()
    }
}

#[test]
fn a_kernel_is_made_listed_interrupted_restarted_and_deleted() {
    block_on(async {
        let server = server().await;
        let ann = Ann::new(&server);
        let id = ann.kernel().await;
        let (_, listed) = ann.ask(Method::GET, "/api/kernels", None).await;
        assert_eq!(listed[0]["id"], id.as_str());
        let path = format!("/api/kernels/{id}");
        let (status, _) = ann.ask(Method::POST, &format!("{path}/interrupt"), None).await;
        assert_eq!(status, 204);
        let (status, model) = ann.ask(Method::POST, &format!("{path}/restart"), None).await;
        assert_eq!(
            (status.as_u16(), &model["execution_state"]),
            (200, &json!("idle"))
        );
        let bob = Ann {
            key: KEYS[1].0,
            ..Ann::new(&server)
        };
        let (status, problem) = bob.ask(Method::GET, &path, None).await;
        assert_eq!(status, 404);
        assert!(
            problem["message"]
                .as_str()
                .unwrap()
                .contains("there is no kernel")
        );
        let (status, _) = ann.ask(Method::DELETE, &path, None).await;
        assert_eq!(status, 204);
        let (status, _) = ann.ask(Method::GET, &path, None).await;
        assert_eq!(status, 404);
        let (status, problem) = ann
            .ask(Method::POST, "/api/kernels", Some(json!({"name": "ruby"})))
            .await;
        assert_eq!(status, 404);
        assert!(
            problem["message"]
                .as_str()
                .unwrap()
                .contains("`python3`, `bash`, `javascript`"),
            "{problem}"
        );
    });
}

#[test]
fn a_session_is_a_document_with_its_kernel() {
    block_on(async {
        let server = server().await;
        let ann = Ann::new(&server);
        let asked =
            json!({"path": "a.ipynb", "name": "a", "type": "notebook", "kernel": {"name": "python3"}});
        let (status, made) = ann.ask(Method::POST, "/api/sessions", Some(asked.clone())).await;
        assert_eq!(status, 201, "{made}");
        let (_, again) = ann.ask(Method::POST, "/api/sessions", Some(asked)).await;
        assert_eq!(again["id"], made["id"]);
        let path = format!("/api/sessions/{}", made["id"].as_str().unwrap());
        let (_, moved) = ann
            .ask(Method::PATCH, &path, Some(json!({"path": "b.ipynb"})))
            .await;
        assert_eq!(
            (&moved["path"], &moved["kernel"]["id"]),
            (&json!("b.ipynb"), &made["kernel"]["id"])
        );
        let bob = Ann {
            key: KEYS[1].0,
            ..Ann::new(&server)
        };
        assert_eq!(bob.ask(Method::GET, "/api/sessions", None).await.1, json!([]));
        assert_eq!(bob.ask(Method::DELETE, &path, None).await.0, 404);
        assert_eq!(ann.ask(Method::DELETE, &path, None).await.0, 204);
        assert_eq!(ann.ask(Method::GET, "/api/kernels", None).await.1, json!([]));
    });
}

#[test]
fn contents_are_the_files_of_kernels() {
    block_on(async {
        let server = server().await;
        let ann = Ann::new(&server);
        let kernel = ann.kernel().await;
        let (_, root) = ann.ask(Method::GET, "/api/contents", None).await;
        assert_eq!(root["content"][0]["path"], kernel.as_str());
        let file = format!("/api/contents/{kernel}/a.txt");
        let (status, _) = ann
            .ask(
                Method::PUT,
                &file,
                Some(json!({"type": "file", "format": "text", "content": "one"})),
            )
            .await;
        assert_eq!(status, 201);
        let (_, read) = ann.ask(Method::GET, &file, None).await;
        assert_eq!(
            (&read["content"], &read["format"], &read["size"]),
            (&json!("one"), &json!("text"), &json!(3))
        );
        assert_eq!(
            ann.ask(Method::POST, &format!("{file}/checkpoints"), None)
                .await
                .0,
            201
        );
        let binary = json!({"type": "file", "format": "base64", "content": "AP8="});
        assert_eq!(ann.ask(Method::PUT, &file, Some(binary)).await.0, 200);
        let broken = json!({"type": "file", "format": "base64", "content": "AP*8="});
        assert_eq!(ann.ask(Method::PUT, &file, Some(broken)).await.0, 400);
        assert_eq!(ann.ask(Method::GET, &file, None).await.1["content"], "AP8=");
        let (_, points) = ann.ask(Method::GET, &format!("{file}/checkpoints"), None).await;
        assert_eq!(points[0]["id"], "checkpoint");
        assert_eq!(
            ann.ask(Method::POST, &format!("{file}/checkpoints/checkpoint"), None)
                .await
                .0,
            204
        );
        assert_eq!(ann.ask(Method::GET, &file, None).await.1["content"], "one");
        let (status, notebook) = ann
            .ask(
                Method::POST,
                &format!("/api/contents/{kernel}"),
                Some(json!({"type": "notebook"})),
            )
            .await;
        assert_eq!(
            (status.as_u16(), &notebook["name"]),
            (201, &json!("Untitled.ipynb"))
        );
        let next = json!({"type": "notebook"});
        let (_, next) = ann
            .ask(Method::POST, &format!("/api/contents/{kernel}"), Some(next))
            .await;
        assert_eq!(next["name"], "Untitled1.ipynb");
        let renamed = json!({"path": format!("{kernel}/b.txt")});
        assert_eq!(
            ann.ask(Method::PATCH, &file, Some(renamed)).await.1["name"],
            "b.txt"
        );
        assert_eq!(ann.ask(Method::GET, &file, None).await.0, 404);
        let bob = Ann {
            key: KEYS[1].0,
            ..Ann::new(&server)
        };
        assert_eq!(
            bob.ask(Method::GET, &format!("/api/contents/{kernel}/b.txt"), None)
                .await
                .0,
            404
        );
        assert_eq!(
            ann.ask(Method::GET, &format!("/api/contents/{kernel}/a%2F..%2Fb"), None)
                .await
                .0,
            400
        );
        assert_eq!(
            ann.ask(Method::DELETE, &format!("/api/contents/{kernel}/b.txt"), None)
                .await
                .0,
            204
        );
    });
}

#[test]
fn a_file_beyond_the_quota_is_refused_and_not_written() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let options = DialectsOptions {
            jupyter: Some(JupyterOptions::default()),
            ..DialectsOptions::default()
        };
        let server = DialectServer::with(&options, KeyRing::Open, |terms| {
            bounded(folder.path())(terms);
            terms.max_body = 4 << 20;
        })
        .await;
        let http = client();
        let made: Value = http
            .post(server.url("/jupyter/api/kernels"))
            .json(&json!({"name": "python3"}))
            .read()
            .await;
        let file = server.url(&format!(
            "/jupyter/api/contents/{}/a.txt",
            made["id"].as_str().unwrap()
        ));
        let content = "1".repeat(1 << 20);
        let model = json!({"type": "file", "format": "text", "content": content});
        let refused = http.put(&file).json(&model).sent().await;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        let text = refused.text().await.unwrap();
        assert!(text.contains("its limit is 1048576 bytes, 0 are used"), "{text}");
        assert_eq!(http.get(&file).status().await, StatusCode::NOT_FOUND);
    });
}
