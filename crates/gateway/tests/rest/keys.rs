//! Keys that are made, listed and revoked over HTTP.

use cellblock_gateway::Options;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Api, block_on, served};

fn code(error: &Value) -> &str {
    error["error"]["code"].as_str().unwrap_or_default()
}

#[test]
fn an_administrators_key_makes_keys_that_cannot_make_others() {
    block_on(async {
        let admin = Api::of("administrator of keys").await;
        let request = json!({
            "name": "made over HTTP", "expires_in": 3600, "quotas": {"sandboxes": 3, "stored_bytes": null},
            "connectors": ["weather"], "max_network": "none",
        });
        let response = admin.start("/v1/keys", &request).await;
        assert_eq!(response.status(), StatusCode::CREATED);
        assert_eq!(response.headers()["cache-control"], "no-store");
        let mut made: Value = response.json().await.unwrap();
        let secret = made.as_object_mut().unwrap().remove("secret").unwrap();
        let secret = secret.as_str().unwrap();
        assert_eq!(
            (&made["admin"], &made["usable"], &made["quotas"]),
            (
                &json!(false),
                &json!(true),
                &json!({"sandboxes": 3, "stored_bytes": null})
            )
        );
        let user = admin.with_key(secret);
        let (_, own) = user.get("/v1/key").await;
        assert_eq!(
            (&own["id"], &own["admin"], &own["connectors"], &own["max_network"]),
            (&made["id"], &json!(false), &json!(["weather"]), &json!("none"))
        );
        let lasts = own["expires_at"].as_u64().unwrap() - own["created_at"].as_u64().unwrap();
        assert!((3599..=3601).contains(&lasts), "{lasts}");
        // The list has no secret, and only administrators read it.
        let (_, listed) = admin.get("/v1/keys").await;
        let listed = listed["data"].as_array().unwrap();
        assert!(listed.iter().any(|key| key["id"] == made["id"]));
        assert!(!json!(listed).to_string().contains(secret));
        assert!(!json!(listed).to_string().contains("hash"));
        let revoking = format!("/v1/keys/{}", made["id"].as_str().unwrap());
        let (status, server) = admin.get("/v1/server").await;
        assert_eq!(status, StatusCode::OK, "{server}");
        assert!(
            server["images"]
                .as_array()
                .unwrap()
                .iter()
                .any(|it| it["in_use"] == true)
        );
        assert!(server["pool"]["taken"].is_u64(), "{server}");
        for (status, error) in [
            user.get("/v1/server").await,
            user.get("/v1/server/backends").await,
            user.get("/v1/keys").await,
            user.post("/v1/keys", &json!({"name": "another"})).await,
            user.delete(&revoking).await,
        ] {
            assert_eq!(
                (status, code(&error)),
                (StatusCode::FORBIDDEN, "not_an_administrator")
            );
        }
        let (status, error) = admin.post("/v1/keys", &request).await;
        assert_eq!((status, code(&error)), (StatusCode::CONFLICT, "key_exists"));
        // Revoked, it opens nothing, at once, and is not revoked twice.
        let (status, revoked) = admin.delete(&revoking).await;
        assert_eq!((status, &revoked["usable"]), (StatusCode::OK, &json!(false)));
        assert_eq!(user.get("/v1/key").await.0, StatusCode::UNAUTHORIZED);
        let (status, error) = admin.delete(&revoking).await;
        assert_eq!((status, code(&error)), (StatusCode::NOT_FOUND, "key_not_found"));
    });
}

#[test]
fn a_key_that_cannot_be_is_not_made() {
    block_on(async {
        let admin = Api::of("administrator of wrong keys").await;
        for (request, said) in [
            (json!({}), "1 to 100 characters"),
            (json!({"name": "a\u{202e}b"}), "1 to 100 characters"),
            (json!({"name": "x", "expires_in": 0}), "invalid expires_in `0`"),
            (json!({"name": "x", "quotas": {"rooms": 1}}), "rooms"),
            (
                json!({"name": "x", "connectors": ["none"]}),
                "there is no connector `none`",
            ),
            (json!({"name": "x", "admin": true}), "admin"),
            (json!({"name": "x", "secret": "cbk_x"}), "secret"),
        ] {
            let (status, error) = admin.post("/v1/keys", &request).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{request} {error}");
            let message = error["error"]["message"].as_str().unwrap();
            assert!(message.contains(said), "{message}");
        }
    });
}

#[test]
fn the_first_key_closes_an_open_server_and_is_an_administrators() {
    block_on(async {
        let open = served(Options::default()).await;
        let (_, own) = open.get("/v1/key").await;
        assert_eq!(own["admin"], true);
        let (status, made) = open.post("/v1/keys", &json!({"name": "first"})).await;
        assert_eq!(
            (status, &made["admin"]),
            (StatusCode::CREATED, &json!(true)),
            "{made}"
        );
        // Nobody without a key can do anything now, and least of all make another.
        for (method, path) in [(Method::GET, "/v1/sessions"), (Method::POST, "/v1/keys")] {
            let request = open.without_key(method, path).json(&json!({"name": "second"}));
            assert_eq!(request.send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
        }
        let admin = open.with_key(made["secret"].as_str().unwrap());
        let (status, second) = admin.post("/v1/keys", &json!({"name": "second"})).await;
        assert_eq!((status, &second["admin"]), (StatusCode::CREATED, &json!(false)));
        // Revoking the last one opens nothing again.
        for key in [&second, &made] {
            let path = format!("/v1/keys/{}", key["id"].as_str().unwrap());
            assert_eq!(admin.delete(&path).await.0, StatusCode::OK);
        }
        assert_eq!(open.get("/v1/keys").await.0, StatusCode::UNAUTHORIZED);
    });
}
