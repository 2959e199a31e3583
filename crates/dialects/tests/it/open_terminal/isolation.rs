//! Whose sandbox a request reaches.

use serde_json::json;

use super::{Chat, server};
use crate::support::{KEYS, block_on};

#[test]
fn each_key_user_and_chat_has_a_sandbox_of_its_own() {
    block_on(async {
        let server = server().await;
        let ann = Chat::new(&server);
        ann.done("/files/write", json!({"path": "secret", "content": "x"}))
            .await;
        let started = ann.done("/execute?wait=0", json!({"command": "sleep 100"})).await;
        let id = started["id"].as_str().unwrap();
        let others = [
            Chat {
                key: KEYS[1].0,
                ..ann.clone()
            },
            Chat {
                user: "user-2",
                ..ann.clone()
            },
            Chat {
                id: "chat-2",
                ..ann.clone()
            },
        ];
        for other in others {
            let (status, answer) = other.get("/files/read?path=/workspace/secret").await;
            assert_eq!(status, 404, "{other:?}: {answer}");
            let (status, answer) = other.get(&format!("/execute/{id}/status")).await;
            assert_eq!(status, 404, "{other:?}: {answer}");
            assert_eq!(other.read("/execute").await, json!([]));
        }
        assert_eq!(ann.read("/files/read?path=secret").await["content"], "x");
    });
}

#[test]
fn only_what_says_nothing_of_a_chat_needs_no_key() {
    block_on(async {
        let server = server().await;
        let stranger = Chat {
            key: "ck_other",
            ..Chat::new(&server)
        };
        for path in ["/openapi.json", "/health", "/api/config"] {
            stranger.read(path).await;
        }
        for path in [
            "/system",
            "/skills",
            "/execute",
            "/files/list",
            "/files/cwd",
            "/ports",
            "/api/terminals",
        ] {
            let (status, answer) = stranger.get(path).await;
            assert_eq!(status, 401, "{path}: {answer}");
            assert_eq!(answer, json!({"detail": "the API key is unknown"}));
        }
        let known = Chat::new(&server);
        assert!(
            known.read("/system").await["prompt"]
                .as_str()
                .unwrap()
                .contains("run_python")
        );
        assert_eq!(known.read("/skills").await, json!([]));
        let (status, answer) = known.get("/api/v1/policies").await;
        assert_eq!(status, 404, "{answer}");
    });
}

#[test]
fn two_first_requests_of_a_chat_share_one_sandbox() {
    block_on(async {
        let server = server().await;
        let chat = Chat::new(&server);
        let writes = (0..4).map(|number| {
            let chat = chat.clone();
            tokio::spawn(async move {
                chat.done(
                    "/files/write",
                    json!({"path": format!("f{number}"), "content": ""}),
                )
                .await;
            })
        });
        for write in writes.collect::<Vec<_>>() {
            write.await.unwrap();
        }
        let listing = chat.read("/files/list").await;
        assert_eq!(listing["entries"].as_array().unwrap().len(), 4, "{listing}");
    });
}
