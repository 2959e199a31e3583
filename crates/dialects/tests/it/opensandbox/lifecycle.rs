//! Sandboxes: made, listed, renewed and ended.

use std::sync::Arc;
use std::time::Duration;

use cellblock_interpreter::hosting::UnlimitedMeter;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{of, open, options, text};
use crate::support::{RequestExt, block_on, client, serve, serve_with};

#[test]
fn the_five_requests_of_litellm_run_code() {
    block_on(async {
        let opened = open().await;
        let events = opened
            .code("import os\nprint('hello', os.environ['COLOR'])\n21 * 2")
            .await;
        assert_eq!(text(&events, "stdout"), "hello blue\n");
        assert_eq!(of(&events, "result").unwrap()["results"]["text"], "42");
        assert_eq!(of(&events, "execution_count").unwrap()["execution_count"], 1);
        assert!(of(&events, "error").is_none(), "{events:?}");
        assert!(events.iter().all(|it| it["timestamp"].is_u64()), "{events:?}");
        assert_eq!(events.last().unwrap()["type"], "execution_complete");

        let place = opened
            .served
            .url(&format!("/opensandbox/sandboxes/{}", opened.id));
        let ended = opened.client.delete(&place).sent().await;
        assert_eq!(ended.status(), StatusCode::NO_CONTENT);
        let gone = opened.client.get(&place).sent().await;
        assert_eq!(gone.status(), StatusCode::NOT_FOUND);
        let gone: Value = gone.json().await.unwrap();
        assert_eq!(gone["code"], "SANDBOX_NOT_FOUND");
        let ping = opened.request(reqwest::Method::GET, "/ping").sent().await;
        assert_eq!(ping.status(), StatusCode::NOT_FOUND);
    });
}

#[test]
fn sandboxes_are_listed_by_pages_and_metadata() {
    block_on(async {
        let (served, client) = (serve(options()).await, client());
        for color in ["red", "a&b", "red"] {
            let request = json!({"image": {"uri": "x"}, "metadata": {"color": color}});
            let made = client
                .post(served.url("/opensandbox/v1/sandboxes"))
                .json(&request)
                .sent()
                .await;
            assert_eq!(made.status(), StatusCode::ACCEPTED);
        }
        let list = async |query: &str| -> Value {
            let url = served.url(&format!("/opensandbox/v1/sandboxes{query}"));
            client.get(url).read().await
        };
        let page = list("?page=2&pageSize=2").await;
        assert_eq!(page["items"].as_array().unwrap().len(), 1);
        assert_eq!(
            page["pagination"],
            json!({"page": 2, "pageSize": 2, "totalItems": 3, "totalPages": 2, "hasNextPage": false})
        );
        let found = list("?state=Running&metadata=color%3Da%2526b").await;
        assert_eq!(found["items"][0]["metadata"]["color"], "a&b");
        assert_eq!(found["pagination"]["totalItems"], 1);
        assert_eq!(list("?state=Paused").await["pagination"]["totalItems"], 0);
        assert!(
            list("?page=0").await["message"]
                .as_str()
                .unwrap()
                .starts_with("invalid page `0`")
        );
    });
}

#[test]
fn a_sandbox_ends_at_its_time_unless_it_is_renewed() {
    block_on(async {
        let (served, client) = (serve(options()).await, client());
        let make = async |timeout: f64| -> Value {
            let request = json!({"image": {"uri": "x"}, "timeout": timeout});
            let made = client
                .post(served.url("/opensandbox/v1/sandboxes"))
                .json(&request)
                .send();
            made.await.unwrap().json().await.unwrap()
        };
        let (short, renewed) = (make(1.5).await, make(1.5).await);
        let place = |of: &Value| {
            served.url(&format!(
                "/opensandbox/v1/sandboxes/{}",
                of["id"].as_str().unwrap()
            ))
        };
        let later = chrono::Utc::now() + chrono::TimeDelta::seconds(60);
        let renew = json!({"expiresAt": later.to_rfc3339()});
        let answer = client
            .post(format!("{}/renew-expiration", place(&renewed)))
            .json(&renew)
            .sent()
            .await;
        assert_eq!(answer.status(), StatusCode::OK);
        while client.get(place(&short)).status().await == StatusCode::OK {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(client.get(place(&renewed)).status().await, StatusCode::OK);
        let past = json!({"expiresAt": "2020-01-01T00:00:00Z"});
        let refused = client
            .post(format!("{}/renew-expiration", place(&renewed)))
            .json(&past)
            .sent()
            .await;
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
    });
}

#[test]
fn what_a_server_does_not_have_is_refused_by_name() {
    block_on(async {
        let (served, client) = (serve(options()).await, client());
        for (request, named) in [
            (json!({"snapshotId": "s"}), "snapshotId"),
            (json!({"templateId": "t"}), "templateId"),
            (json!({"volumes": [{"name": "v"}]}), "volumes"),
            (json!({"timeout": 0}), "timeout `0`"),
            (json!({"timeout": 1e9}), "at most 86400 seconds"),
            (
                json!({"networkPolicy": {"defaultAction": "deny",
                    "egress": [{"action": "allow", "target": "x"}]}}),
                "networkPolicy.egress",
            ),
            (
                json!({"networkPolicy": {"defaultAction": "allow",
                    "egress": [{"action": "allow", "target": "x"}]}}),
                "action `allow` of `defaultAction`",
            ),
            (
                json!({"networkPolicy": {"defaultAction": "deny", "dns": []}}),
                "`dns`",
            ),
            (json!({"resourceLimits": {"gpu": "1"}}), "resourceLimits.gpu"),
            (json!({"resourceRequests": {"cpu": "1"}}), "resourceRequests"),
            (json!({"platform": {"os": "windows"}}), "platform"),
            (json!({"env": {"A=B": "c"}}), "A=B"),
        ] {
            let answer = client
                .post(served.url("/opensandbox/sandboxes"))
                .json(&request)
                .sent()
                .await;
            assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{request}");
            let answer: Value = answer.json().await.unwrap();
            assert!(answer["message"].as_str().unwrap().contains(named), "{answer}");
        }
        let opened = open().await;
        for (action, code) in [("resume", "NOT_PAUSED"), ("snapshots", "SNAPSHOT_UNSUPPORTED")] {
            let place = format!("/opensandbox/v1/sandboxes/{}/{action}", opened.id);
            let answer = opened.client.post(opened.served.url(&place)).sent().await;
            assert_eq!(answer.status(), StatusCode::CONFLICT);
            let answer: Value = answer.json().await.unwrap();
            assert_eq!(answer["code"], code);
        }
        let place = format!("/opensandbox/v1/sandboxes/{}/endpoints/18080", opened.id);
        let endpoint = opened.client.get(opened.served.url(&place));
        let endpoint: Value = endpoint.read().await;
        let policy = format!("http://{}/policy", endpoint["endpoint"].as_str().unwrap());
        let policy = opened
            .client
            .get(policy)
            .header("X-EXECD-ACCESS-TOKEN", &opened.token);
        let policy: Value = policy.read().await;
        assert_eq!(policy["code"], "UNSUPPORTED", "{policy}");
        for (path, named) in [
            (
                format!("/execd/{}/v1/isolated/session", opened.id),
                "isolated sessions",
            ),
            ("/v1/templates".to_owned(), "templates"),
            (
                format!("/v1/sandboxes/{}/diagnostics/logs", opened.id),
                "diagnostics",
            ),
            (
                format!("/v1/sandboxes/{}/endpoints/80?expires=1", opened.id),
                "signed endpoints",
            ),
        ] {
            let url = opened.served.url(&format!("/opensandbox{path}"));
            let answer: Value = opened.client.get(url).read().await;
            assert_eq!(answer["code"], "UNSUPPORTED", "{path}: {answer}");
            assert!(answer["message"].as_str().unwrap().contains(named), "{answer}");
        }
    });
}

#[test]
fn a_key_and_a_token_open_only_their_own_sandboxes() {
    block_on(async {
        let served = serve_with(options(), &["key-a", "key-b"], Arc::new(UnlimitedMeter)).await;
        let client = client();
        let sandboxes = served.url("/opensandbox/v1/sandboxes");
        let none = client.post(&sandboxes).json(&json!({})).sent().await;
        assert_eq!(none.status(), StatusCode::UNAUTHORIZED);
        let mut tokens = Vec::new();
        for key in ["key-a", "key-b"] {
            let made = client
                .post(&sandboxes)
                .header("OPEN-SANDBOX-API-KEY", key)
                .json(&json!({}))
                .sent()
                .await;
            let made: Value = made.json().await.unwrap();
            let id = made["id"].as_str().unwrap().to_owned();
            let endpoint = format!("{sandboxes}/{id}/endpoints/44772");
            let endpoint = client
                .get(endpoint)
                .header("OPEN-SANDBOX-API-KEY", key)
                .sent()
                .await;
            let endpoint: Value = endpoint.json().await.unwrap();
            tokens.push((
                id,
                endpoint["headers"]["X-EXECD-ACCESS-TOKEN"]
                    .as_str()
                    .unwrap()
                    .to_owned(),
            ));
        }
        let ping = async |id: &str, header: &str, secret: &str| {
            let url = served.url(&format!("/opensandbox/execd/{id}/ping"));
            client.get(url).header(header, secret).status().await
        };
        let [(a, token_a), (b, token_b)] = [&tokens[0], &tokens[1]];
        assert_eq!(ping(a, "X-EXECD-ACCESS-TOKEN", token_a).await, StatusCode::OK);
        assert_eq!(
            ping(a, "X-EXECD-ACCESS-TOKEN", token_b).await,
            StatusCode::NOT_FOUND
        );
        assert_eq!(ping(b, "X-EXECD-ACCESS-TOKEN", "").await, StatusCode::NOT_FOUND);
        assert_eq!(ping(b, "OPEN-SANDBOX-API-KEY", "key-b").await, StatusCode::OK);
        assert_eq!(
            ping(b, "OPEN-SANDBOX-API-KEY", "key-a").await,
            StatusCode::NOT_FOUND
        );
        assert_eq!(
            ping(b, "OPEN-SANDBOX-API-KEY", "").await,
            StatusCode::UNAUTHORIZED
        );
        let others = client
            .delete(format!("{sandboxes}/{b}"))
            .header("OPEN-SANDBOX-API-KEY", "key-a")
            .sent()
            .await;
        assert_eq!(others.status(), StatusCode::NOT_FOUND);
    });
}

#[test]
fn a_program_that_listens_on_a_port_is_reached_at_its_endpoint() {
    block_on(async {
        let opened = open().await;
        let place = format!("/opensandbox/v1/sandboxes/{}/endpoints/8123", opened.id);
        let endpoint = opened.client.get(opened.served.url(&place));
        let endpoint: Value = endpoint.read().await;
        let base = format!("http://{}", endpoint["endpoint"].as_str().unwrap());
        let get = async |path: &str, token: &str| {
            let request = opened.client.get(format!("{base}{path}"));
            let answer = request.header("X-EXECD-ACCESS-TOKEN", token).sent().await;
            (answer.status(), answer.text().await.unwrap())
        };
        let (status, closed) = get("/", &opened.token).await;
        assert_eq!(status, StatusCode::BAD_GATEWAY);
        assert!(closed.contains("PORT_CLOSED"), "{closed}");
        let command = "echo served > 'a b.txt'; exec python3 -m http.server 8123 --bind 127.0.0.1";
        let request = json!({"command": command, "background": true});
        opened.events("/command", request).await;
        let page = cellblock_testkit::wait::until_ok(async || {
            let (status, page) = get("/a%20b.txt?x=1", &opened.token).await;
            if status == StatusCode::OK {
                Ok(page)
            } else {
                Err(page)
            }
        })
        .await;
        assert_eq!(page, "served\n");
        assert!(get("", &opened.token).await.1.contains("a%20b.txt"));
        assert_eq!(get("/", "another").await.0, StatusCode::NOT_FOUND);
    });
}

#[test]
fn a_paused_sandbox_cannot_be_used_until_it_is_resumed() {
    block_on(async {
        let opened = open().await;
        let place = opened
            .served
            .url(&format!("/opensandbox/v1/sandboxes/{}", opened.id));
        let post = async |action: &str| {
            let answer = opened.client.post(format!("{place}/{action}")).send().await;
            answer.unwrap().status()
        };
        let about = async || -> Value { opened.client.get(&place).read().await };
        opened.code("x = 42").await;
        assert_eq!(post("pause").await, StatusCode::ACCEPTED);
        assert_eq!(post("pause").await, StatusCode::CONFLICT);
        assert_eq!(about().await["status"]["state"], "Paused");
        let refused = opened.request(Method::GET, "/ping").sent().await;
        assert_eq!(refused.status(), StatusCode::CONFLICT);
        assert!(refused.text().await.unwrap().contains("SANDBOX_PAUSED"));
        assert_eq!(post("resume").await, StatusCode::ACCEPTED);
        assert_eq!(post("resume").await, StatusCode::CONFLICT);
        let ran = opened.code("x").await;
        assert_eq!(of(&ran, "result").unwrap()["results"]["text"], "42", "{ran:?}");
        let changes = json!({"a": "1", "none": null});
        let patch = opened.client.patch(format!("{place}/metadata")).json(&changes);
        let about: Value = patch.read().await;
        assert_eq!(about["metadata"], json!({"a": "1"}), "{about}");
    });
}
