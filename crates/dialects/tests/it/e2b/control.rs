//! Sandboxes: creation, lists, timeouts, pauses and ends.

use cellblock_dialects::{DialectsOptions, E2bOptions};
use reqwest::Method;
use serde_json::{Value, json};

use super::{E2bFixture, refused};
use crate::support::{DialectServer, KeyRing, RequestExt, block_on, client};

#[test]
fn a_sandbox_is_created_found_and_killed_by_its_key_only() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world.create(json!({"metadata": {"a": "1"}, "timeout": 60})).await;
        assert!(
            sandbox
                .id
                .bytes()
                .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit())
        );
        assert!(
            sandbox.id.len() >= 40 && sandbox.id.len() <= 57,
            "a DNS label with a port"
        );
        let path = format!("/sandboxes/{}", sandbox.id);
        let found = world.api(Method::GET, &path).sent().await;
        let found: Value = found.json().await.unwrap();
        assert_eq!(
            (&found["state"], &found["metadata"]["a"]),
            (&json!("running"), &json!("1"))
        );

        let other = |method, path: &str| {
            world
                .http
                .request(method, world.url(path))
                .header("x-api-key", "e2b_ff")
        };
        for (method, path) in [
            (Method::GET, path.clone()),
            (Method::DELETE, path.clone()),
            (Method::POST, format!("{path}/pause")),
        ] {
            let message = refused(other(method, &path).sent().await, 404).await;
            assert!(message.contains("was not found"), "{message}");
        }
        let listed: Value = other(Method::GET, "/v2/sandboxes").read().await;
        assert_eq!(listed, json!([]));
        refused(world.http.get(world.url(&path)).sent().await, 401).await;
        let wrong = world.http.get(world.url(&path)).header("x-api-key", "x");
        refused(wrong.sent().await, 401).await;

        let killed = world.api(Method::DELETE, &path).sent().await;
        assert_eq!(killed.status(), 204);
        refused(world.api(Method::DELETE, &path).sent().await, 404).await;
        let gone: Value = world.inside(&sandbox, Method::GET, "/health").read().await;
        assert_eq!(
            (&gone["code"], &gone["sandboxId"]),
            (&json!(502), &json!(sandbox.id))
        );
        assert!(gone["message"].as_str().unwrap().contains("was not found"));
        for (method, name) in [
            (Method::POST, "fork"),
            (Method::POST, "snapshots"),
            (Method::PUT, "network"),
            (Method::POST, "logs"),
        ] {
            let request = world.api(method, &format!("{path}/{name}")).json(&json!({}));
            let message = refused(request.sent().await, 404).await;
            assert!(message.contains("was not found"), "{name}: {message}");
        }
    });
}

#[test]
fn sandboxes_are_listed_by_metadata_and_state_in_pages() {
    block_on(async {
        let world = E2bFixture::start().await;
        let mut ids = Vec::new();
        for group in ["x", "x", "y"] {
            ids.push(
                world
                    .create(json!({"metadata": {"group": group}, "timeout": 60}))
                    .await
                    .id,
            );
        }
        let list = async |query: &str| {
            let listed = world
                .api(Method::GET, &format!("/v2/sandboxes?{query}"))
                .sent()
                .await;
            assert_eq!(listed.status(), 200);
            let next = listed
                .headers()
                .get("x-next-token")
                .map(|it| it.to_str().unwrap().to_owned());
            let all: Vec<Value> = listed.json().await.unwrap();
            let all = all.iter().map(|it| it["sandboxID"].as_str().unwrap().to_owned());
            (all.collect::<Vec<_>>(), next)
        };
        let (first, next) = list("limit=2").await;
        assert_eq!(first, [ids[2].clone(), ids[1].clone()]);
        let (rest, none) = list(&format!("limit=2&nextToken={}", next.unwrap())).await;
        assert_eq!((rest, none), (vec![ids[0].clone()], None));
        assert_eq!(list("metadata=group%3Dy").await.0, [ids[2].clone()]);
        let paused = world
            .api(Method::POST, &format!("/sandboxes/{}/pause", ids[0]))
            .sent()
            .await;
        assert_eq!(paused.status(), 204);
        assert_eq!(list("state=paused").await.0, [ids[0].clone()]);
        assert_eq!(list("state=running&metadata=group%3Dx").await.0, [ids[1].clone()]);
        refused(world.api(Method::GET, "/v2/sandboxes?limit=0").sent().await, 400).await;
    });
}

#[test]
fn a_sandbox_ends_at_its_timeout_and_lives_longer_when_it_is_set_again() {
    block_on(async {
        let world = E2bFixture::start().await;
        let short = world.create(json!({"timeout": 1})).await;
        let long = world.create(json!({"timeout": 1})).await;
        let path = format!("/sandboxes/{}/timeout", long.id);
        let set = world
            .api(Method::POST, &path)
            .json(&json!({"timeout": 60}))
            .sent()
            .await;
        assert_eq!(set.status(), 204);
        let get = async |id: &str| world.api(Method::GET, &format!("/sandboxes/{id}")).status().await;
        cellblock_testkit::wait::until_ok(async || {
            (get(&short.id).await == 404).then_some(()).ok_or("it lives")
        })
        .await;
        assert_eq!(get(&long.id).await, 200);
        let too_long = world
            .api(Method::POST, &path)
            .json(&json!({"timeout": 86_401}))
            .sent()
            .await;
        assert!(refused(too_long, 400).await.contains("86400 seconds"));
    });
}

#[test]
fn a_paused_sandbox_keeps_its_variables_until_it_is_connected() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world.create(json!({"timeout": 60})).await;
        world.run(&sandbox, json!({"code": "x = 41"})).await;
        let at = |name: &str| format!("/sandboxes/{}/{name}", sandbox.id);
        assert_eq!(world.api(Method::POST, &at("pause")).status().await, 204);
        refused(world.api(Method::POST, &at("pause")).sent().await, 409).await;
        let refresh = world.api(Method::POST, &at("refreshes"));
        let refresh = refresh.json(&json!({"duration": 30})).sent().await;
        assert!(refused(refresh, 404).await.contains("is paused"));
        let asleep = world.inside(&sandbox, Method::GET, "/health").sent().await;
        assert!(refused(asleep, 502).await.contains("was not found: it is paused"));
        let connect = world.api(Method::POST, &format!("/v2{}", at("connect")));
        let resumed = connect.json(&json!({"timeout": 30})).sent().await;
        assert_eq!(resumed.status(), 201);
        let again = world
            .api(Method::POST, &at("connect"))
            .json(&json!({"timeout": 30}))
            .sent()
            .await;
        assert_eq!(again.status(), 200);
        assert_eq!(world.value(&sandbox, json!({"code": "x + 1"})).await, "42");
    });
}

#[test]
fn a_sandbox_that_pauses_at_its_timeout_is_not_killed() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world
            .create(json!({"timeout": 0, "autoPause": true, "autoResume": {"enabled": true}}))
            .await;
        let path = format!("/sandboxes/{}", sandbox.id);
        cellblock_testkit::wait::until_ok(async || {
            let found: Value = world.api(Method::GET, &path).read().await;
            (found["state"] == "paused").then_some(()).ok_or(found)
        })
        .await;
        assert_eq!(world.value(&sandbox, json!({"code": "1 + 1"})).await, "2");
    });
}

#[test]
fn what_is_not_served_is_refused_by_its_name() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world.create(json!({"timeout": 60})).await;
        for (path, name) in [
            ("/v3/templates", "templates"),
            ("/templates/base/builds/1", "templates"),
            ("/default-templates", "templates"),
            ("/volumes", "volumes"),
            ("/volumecontent/1/file", "volumes"),
            (&format!("/sandboxes/{}/logs", sandbox.id), "logs"),
        ] {
            let message = refused(world.api(Method::POST, path).sent().await, 501).await;
            assert!(
                message.contains(name) && message.contains("not served"),
                "{path}: {message}"
            );
        }
        let unknown = world
            .api(Method::POST, "/sandboxes")
            .json(&json!({"templateID": "mine"}));
        assert!(
            refused(unknown.sent().await, 404)
                .await
                .starts_with("template 'mine' not found")
        );
        let broken = world.api(Method::POST, "/sandboxes").body("{");
        assert!(
            refused(broken.sent().await, 400)
                .await
                .starts_with("invalid body")
        );
        let nowhere = world.api(Method::GET, "/nothing");
        refused(nowhere.sent().await, 404).await;
    });
}

#[test]
fn the_templates_that_are_served_exist() {
    block_on(async {
        let options = E2bOptions {
            templates: vec!["mine".to_owned()],
            ..E2bOptions::default()
        };
        let world = E2bFixture::with(options).await;
        for (name, status) in [
            ("base", 200),
            ("code-interpreter-v1", 200),
            ("mine", 200),
            ("base%3Adefault", 200),
            ("base%3Av2", 404),
            ("other", 404),
        ] {
            let request = world.api(Method::GET, &format!("/templates/aliases/{name}"));
            assert_eq!(request.status().await, status, "{name}");
        }
        let keyless = world.http.get(world.url("/templates/aliases/base"));
        refused(keyless.sent().await, 401).await;
    });
}

#[test]
fn hosts_of_a_domain_name_their_sandbox() {
    block_on(async {
        let free = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let options = E2bOptions {
            domain: Some("cell.example".to_owned()),
            listen: Some(free),
            templates: vec!["mine".to_owned()],
            ..E2bOptions::default()
        };
        let world = E2bFixture::with(options).await;
        let at = |host: String| {
            world
                .http
                .get(format!("http://{free}/health"))
                .header("host", host)
        };
        let created = world
            .api(Method::POST, "/sandboxes")
            .json(&json!({"templateID": "mine", "timeout": 60}));
        let created: Value = created.read().await;
        assert_eq!(created["domain"], "cell.example");
        let id = created["sandboxID"].as_str().unwrap();
        cellblock_testkit::wait::until_ok(async || at("api.cell.example".to_owned()).send().await).await;
        let daemon = at(format!("49983-{id}.cell.example")).sent().await;
        assert_eq!(daemon.status(), 204);
        let interpreter = at(format!("49999-{id}.cell.example")).sent().await;
        assert_eq!(
            (
                interpreter.status().as_u16(),
                interpreter.text().await.unwrap().as_str()
            ),
            (200, "\"OK\"")
        );
        let message = refused(at("evil.example".to_owned()).sent().await, 404).await;
        assert!(message.contains("`evil.example`"), "{message}");
    });
}

#[test]
fn clients_in_debug_mode_share_a_sandbox_with_their_own_key_alone() {
    block_on(async {
        let options = DialectsOptions {
            e2b: Some(E2bOptions {
                debug: true,
                ..E2bOptions::default()
            }),
            ..DialectsOptions::default()
        };
        let _server = DialectServer::with(&options, KeyRing::Beginning("e2b_"), |_| {}).await;
        let http = client();
        let run = async |key: &str, code: &str| {
            let request = http
                .post("http://127.0.0.1:49999/execute")
                .header("x-api-key", key);
            request.json(&json!({ "code": code })).text().await
        };
        run("e2b_1", "mine = 'found'").await;
        let read = "globals().get('mine', 'nothing')";
        assert!(run("e2b_1", read).await.contains("found"));
        assert!(run("e2b_2", read).await.contains("nothing"));
    });
}
