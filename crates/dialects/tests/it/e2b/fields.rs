//! Fields, parameters and headers: each is enforced, or refused by its name.

use cellblock_dialects::E2bOptions;
use reqwest::Method;
use serde_json::{Value, json};

use super::envd::{Messages, text};
use super::{E2bFixture, refused};
use crate::support::{RequestExt, block_on};

#[test]
fn fields_of_a_new_sandbox_that_nothing_enforces_are_refused() {
    block_on(async {
        let world = E2bFixture::start().await;
        for (field, value) in [
            ("network", json!({"denyOut": ["evil.example"]})),
            ("network", json!({"denyOut": ["10.0.0.0/99"]})),
            ("network", json!({"allowOut": ["a.example"]})),
            ("network", json!({"dnsServers": ["1.1.1.1"]})),
            ("network", json!({"httpsPorts": [8443]})),
            ("network", json!({"maskRequestHost": "a.example"})),
            ("network", json!({"rules": {"a.example": []}})),
            ("network", json!({"egressProxy": {"address": "p.example:1080"}})),
            ("network", json!({"futureRule": true})),
            ("autoResume", json!({"enabled": true, "policy": "any"})),
            ("mcp", json!({"x": {}})),
            ("iam", json!({"tokens": {"t": {}}})),
            ("volumeMounts", json!([{"name": "v", "path": "/x"}])),
            ("futureField", json!(1)),
        ] {
            let name = value.as_object().and_then(|it| it.keys().next()).cloned();
            let body = json!({"templateID": "base", field: value});
            for path in ["/sandboxes", "/v2/sandboxes"] {
                let message = refused(world.api(Method::POST, path).json(&body).sent().await, 400).await;
                let named = name.as_ref().is_some_and(|name| message.contains(name.as_str()));
                assert!(named || message.contains(field), "{body}: {message}");
            }
        }
        // What clients send without being asked, and what asks for nothing.
        for body in [
            json!({"autoPause": false, "autoPauseMemory": true, "metadata": {}, "envVars": {}, "mcp": null}),
            json!({"iam": {"tokens": {}}, "volumeMounts": [], "network": {"rules": {}, "httpsPorts": []}}),
            json!({"templateID": "base:default", "network": {"denyOut": ["10.0.0.0/8"]}}),
        ] {
            world.create(body).await;
        }
        let tagged = world
            .api(Method::POST, "/v2/sandboxes")
            .json(&json!({"templateID": "base:v2"}));
        assert!(refused(tagged.sent().await, 400).await.contains("the tag `v2`"));
        let listed: Vec<Value> = world.api(Method::GET, "/v2/sandboxes").read().await;
        assert_eq!(listed.len(), 3, "what was refused has made nothing");
    });
}

#[test]
fn fields_and_parameters_of_later_requests_are_refused_too() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world.create(json!({"timeout": 60})).await;
        let at = |name: &str| format!("/sandboxes/{}/{name}", sandbox.id);
        for (path, body, name) in [
            (
                at("pause"),
                json!({"requireHealthyGuest": true}),
                "`requireHealthyGuest`",
            ),
            (at("connect"), json!({"timeout": 60, "mode": "x"}), "`mode`"),
            (at("resume"), json!({"mode": "x"}), "`mode`"),
            (at("snapshots"), json!({"tag": "x"}), "`tag`"),
            (at("timeout"), json!({"timeout": 60, "x": 1}), "`x`"),
            (at("refreshes"), json!({"timeout": 60}), "`timeout`"),
        ] {
            let message = refused(world.api(Method::POST, &path).json(&body).sent().await, 400).await;
            assert!(message.contains(name), "{path}: {message}");
        }
        for (path, name) in [
            ("/v2/sandboxes?team=x".to_owned(), "`team`"),
            ("/v2/sandboxes?order=newest".to_owned(), "`newest`"),
            ("/sandboxes?state=paused".to_owned(), "`state`"),
            ("/snapshots?state=paused".to_owned(), "`state`"),
            ("/snapshots?limit=0".to_owned(), "`0`"),
            (at("metrics?step=5"), "`step`"),
            (at("metrics?start=9&end=8"), "start"),
        ] {
            let message = refused(world.api(Method::GET, &path).sent().await, 400).await;
            assert!(message.contains(name), "{path}: {message}");
        }
        for (path, body, name) in [
            ("/execute", json!({"code": "1", "timeout": 5}), "`timeout`"),
            ("/contexts", json!({"kernel": "python"}), "`kernel`"),
            (
                "/files/compose",
                json!({"source_paths": [], "destination": "x", "mode": 1}),
                "`mode`",
            ),
        ] {
            let request = world.inside(&sandbox, Method::POST, path).json(&body);
            let message = refused(request.sent().await, 400).await;
            assert!(message.contains(name), "{path}: {message}");
        }
        for (method, body, name) in [
            ("/process.Process/List", json!({"filter": "x"}), "`filter`"),
            (
                "/process.Process/Start",
                json!({"process": {"cmd": "/bin/true", "limits": {}}}),
                "`limits`",
            ),
            (
                "/filesystem.Filesystem/ListDir",
                json!({"path": "/", "glob": "*"}),
                "`glob`",
            ),
        ] {
            let answer = world.call(&sandbox, method, body).await;
            assert_eq!(answer.status(), 400, "{method}");
            let answer: Value = answer.json().await.unwrap();
            assert_eq!(answer["code"], "invalid_argument");
            assert!(answer["message"].as_str().unwrap().contains(name), "{answer}");
        }
        let write = world
            .inside(&sandbox, Method::POST, "/files?path=a&mode=600")
            .body("x");
        assert!(refused(write.sent().await, 400).await.contains("`mode`"));
        let write = world.inside(&sandbox, Method::POST, "/files?path=a").body("x");
        let write = write.header("x-metadata-author", "m".repeat(5000));
        assert!(
            refused(write.sent().await, 400)
                .await
                .contains("the limit is 4096")
        );
    });
}

#[test]
fn another_user_than_the_sandboxs_is_refused() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world.create(json!({"timeout": 60})).await;
        let start = json!({"process": {"cmd": "/bin/true"}});
        for (user, is_refused) in [("root", true), ("nobody", true), ("user", false), ("", false)] {
            let made = world
                .inside(&sandbox, Method::POST, "/filesystem.Filesystem/Stat")
                .basic_auth(user, Some(""))
                .json(&json!({"path": "/tmp"}))
                .sent()
                .await;
            assert_eq!(made.status() == 400, is_refused, "{user}");
            if is_refused {
                let body: Value = made.json().await.unwrap();
                let message = body["message"].as_str().unwrap();
                assert!(message.contains(&format!("`user`: \"{user}\"")), "{message}");
                let path = format!("/files?path=a&username={user}");
                for method in [Method::GET, Method::POST] {
                    let message = refused(world.inside(&sandbox, method, &path).sent().await, 400).await;
                    assert!(message.contains("without root"), "{message}");
                }
                let started = world.inside(&sandbox, Method::POST, "/process.Process/Start");
                let started = started.basic_auth(user, Some("")).json(&start).sent().await;
                assert_eq!(started.status(), 400);
            }
        }
    });
}

#[test]
fn a_repeated_creation_with_a_key_returns_the_first_sandbox() {
    block_on(async {
        let world = E2bFixture::start().await;
        let create = async |key: &str, timeout: u64| {
            let body = json!({"templateID": "base", "timeout": timeout});
            let request = world.api(Method::POST, "/v2/sandboxes").json(&body);
            request.header("idempotency-key", key).sent().await
        };
        let id = async |answer: reqwest::Response| {
            assert_eq!(answer.status(), 201);
            answer.json::<Value>().await.unwrap()["sandboxID"].clone()
        };
        let (first, again) = tokio::join!(create("a-1", 60), create("a-1", 60));
        let first = id(first).await;
        assert_eq!(id(again).await, first);
        assert_ne!(id(create("a-2", 60).await).await, first);
        assert!(refused(create("a-1", 61).await, 409).await.contains("`a-1`"));
        assert!(
            refused(create("A 1", 60).await, 400)
                .await
                .contains("Idempotency-Key")
        );
        let others = world
            .http
            .post(world.url("/v2/sandboxes"))
            .header("x-api-key", "e2b_ff")
            .header("idempotency-key", "a-1")
            .json(&json!({"templateID": "base", "timeout": 60}));
        assert_ne!(id(others.sent().await).await, first, "a key belongs to its owner");
        assert_eq!(id(create("a-1", 60).await).await, first);
        let path = format!("/sandboxes/{}", first.as_str().unwrap());
        assert_eq!(world.api(Method::DELETE, &path).status().await, 204);
        assert_ne!(id(create("a-1", 61).await).await, first);
    });
}

#[test]
fn lists_and_metrics_are_of_the_time_and_template_that_is_asked_for() {
    block_on(async {
        let options = E2bOptions {
            templates: vec!["mine".to_owned()],
            ..E2bOptions::default()
        };
        let world = E2bFixture::with(options).await;
        let base = world.create(json!({"timeout": 60})).await;
        let mine = world.create(json!({"templateID": "mine", "timeout": 60})).await;
        let list = async |query: &str| {
            let all: Vec<Value> = world
                .api(Method::GET, &format!("/v2/sandboxes?{query}"))
                .read()
                .await;
            let ids = all.iter().map(|it| it["sandboxID"].as_str().unwrap().to_owned());
            ids.collect::<Vec<_>>()
        };
        assert_eq!(list("template=mine").await, [&*mine.id]);
        assert!(list("template=none").await.is_empty());
        let shown: Value = world
            .api(Method::GET, &format!("/sandboxes/{}", mine.id))
            .read()
            .await;
        let started = shown["startedAt"].as_str().unwrap();
        assert_eq!(list(&format!("startedAfter={started}")).await, [&*mine.id]);
        assert!(
            list("startedAfter=2130-01-01T00%3A00%3A00%2B00%3A00")
                .await
                .is_empty()
        );
        assert_eq!(
            list("startedAfter=2020-01-01T00:00:00Z&order=asc").await,
            [base.id.clone(), mine.id]
        );

        let metrics = async |query: &str| {
            let path = format!("/sandboxes/{}/metrics?{query}", base.id);
            world.api(Method::GET, &path).sent().await
        };
        for (query, count) in [
            ("", 1),
            ("start=1000", 1),
            ("start=1000&end=9999999999", 1),
            ("start=1000&end=2000", 0),
            ("start=9999999998&end=9999999999", 0),
        ] {
            let all: Vec<Value> = metrics(query).await.json().await.unwrap();
            assert_eq!(all.len(), count, "{query}");
        }
    });
}

#[test]
fn forty_commands_run_at_the_same_time_in_a_sandbox() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world.create(json!({"timeout": 240})).await;
        let mut running = Vec::new();
        for number in 0..40 {
            let body = json!({
                "process": {"cmd": "/bin/bash", "args": ["-l", "-c", format!("read; echo {number}")]},
                "stdin": true
            });
            running.push(world.stream(&sandbox, "/process.Process/Start", &body).await);
        }
        let listed = world.call(&sandbox, "/process.Process/List", json!({})).await;
        let listed: Value = listed.json().await.unwrap();
        let processes = listed["processes"].as_array().unwrap();
        assert_eq!(processes.len(), 40);
        for process in processes {
            let selector = json!({"process": {"pid": process["pid"]}});
            let ended = world
                .call(&sandbox, "/process.Process/CloseStdin", selector)
                .await;
            assert_eq!(ended.status(), 200);
        }
        for (number, stream) in running.into_iter().enumerate() {
            let (events, _) = Messages::of(stream).all().await;
            assert_eq!(text(&events, "stdout"), format!("{number}\n"));
        }
    });
}
