//! Forks, snapshots, and pauses that keep files alone.

use std::sync::Arc;

use cellblock_dialects::E2bOptions;
use cellblock_interpreter::hosting::uploads::UploadAllowance;
use cellblock_interpreter::hosting::{Admission, Meter, MeterDenial, Owner, Permit};
use cellblock_testkit::require;
use cellblock_testkit::wait::until_ok;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{E2bFixture, Sandbox, refused};
use crate::support::{RequestExt, block_on};

/// Lets an owner have as many sessions as there are permits.
#[derive(Debug)]
struct Seats(Arc<Semaphore>);

impl Meter for Seats {
    fn session<'a>(&'a self, _: &'a Owner) -> Admission<'a, Permit> {
        Box::pin(async {
            let seat = Arc::clone(&self.0).try_acquire_owned();
            seat.map(Permit::new)
                .map_err(|_| MeterDenial("the quota `sandboxes` of this key is used up".to_owned()))
        })
    }

    fn cell<'a>(&'a self, _: &'a Owner) -> Admission<'a, Permit> {
        Box::pin(async { Ok(Permit::new(())) })
    }

    fn upload<'a>(&'a self, _: &'a Owner, _: u64) -> Admission<'a, Box<dyn UploadAllowance>> {
        Box::pin(async { Ok(Box::new(()) as _) })
    }
}

/// Reads a sandbox of an answer.
fn sandbox(answer: &Value) -> Sandbox {
    Sandbox {
        id: answer["sandboxID"].as_str().unwrap().to_owned(),
        access: answer["envdAccessToken"].as_str().map(str::to_owned),
    }
}

impl E2bFixture {
    async fn at(&self, sandbox: &Sandbox, name: &str, body: Value) -> Response {
        let path = format!("/sandboxes/{}/{name}", sandbox.id);
        self.api(Method::POST, &path).json(&body).sent().await
    }

    async fn fork(&self, parent: &Sandbox, body: Value) -> Vec<Value> {
        let forked = self.at(parent, "fork", body).await;
        assert_eq!(forked.status(), 201, "{:?}", forked.text().await);
        forked.json().await.unwrap()
    }

    /// Makes a snapshot, and returns its id.
    async fn snapshot(&self, source: &Sandbox, body: Value) -> String {
        let made = self.at(source, "snapshots", body).await;
        assert_eq!(made.status(), 201, "{:?}", made.text().await);
        let made: Value = made.json().await.unwrap();
        made["snapshotID"].as_str().unwrap().to_owned()
    }

    async fn snapshots(&self, query: &str) -> Vec<String> {
        let path = format!("/snapshots?{query}");
        let all: Vec<Value> = self.api(Method::GET, &path).read().await;
        let ids = all.iter().map(|it| it["snapshotID"].as_str().unwrap().to_owned());
        ids.collect()
    }

    async fn write(&self, sandbox: &Sandbox, path: &str, text: &'static str) {
        let put = self.inside(sandbox, Method::POST, &format!("/files?path={path}"));
        assert_eq!(put.body(text).status().await, 200);
    }

    async fn content(&self, sandbox: &Sandbox, path: &str) -> String {
        let path = format!("/files?path={path}");
        self.inside(sandbox, Method::GET, &path).text().await
    }

    async fn delete(&self, path: &str) -> u16 {
        self.api(Method::DELETE, path).status().await.as_u16()
    }
}

#[test]
fn forks_begin_with_variables_files_and_contexts_and_go_their_own_ways() {
    require!(UserNamespaces);
    block_on(async {
        let world = E2bFixture::start().await;
        let body = json!({"timeout": 120, "metadata": {"a": "1"}, "envVars": {"WHO": "parent"}});
        let parent = world.create(body).await;
        world.run(&parent, json!({"code": "x = [1]"})).await;
        world.write(&parent, "a", "one").await;
        let context = world.inside(&parent, Method::POST, "/contexts").json(&json!({}));
        let context: Value = context.read().await;
        let within = |code: &str| json!({"code": code, "context_id": context["id"]});
        world.run(&parent, within("y = 2")).await;

        let forks = world.fork(&parent, json!({"count": 2, "timeout": 60})).await;
        let forks: Vec<_> = forks.iter().map(|it| sandbox(&it["sandbox"])).collect();
        assert!(forks.len() == 2 && forks[0].id != forks[1].id);
        let state = "import os; x.append(2); (x, os.environ['WHO'], open('/home/user/a').read())";
        for fork in &forks {
            assert_ne!(fork.access, parent.access);
            assert_eq!(
                world.value(fork, json!({"code": state})).await,
                "([1, 2], 'parent', 'one')"
            );
            assert_eq!(world.value(fork, within("y")).await, "2");
            world.write(fork, "a", "two").await;
            let shown: Value = world
                .api(Method::GET, &format!("/sandboxes/{}", fork.id))
                .read()
                .await;
            assert_eq!(
                (&shown["metadata"]["a"], &shown["state"]),
                (&json!("1"), &json!("running"))
            );
        }
        assert_eq!(world.value(&parent, json!({"code": "x"})).await, "[1]");
        assert_eq!(world.content(&parent, "a").await, "one");
        let stranger = Sandbox {
            access: forks[0].access.clone(),
            ..parent.clone()
        };
        refused(
            world.inside(&stranger, Method::GET, "/files?path=a").sent().await,
            401,
        )
        .await;
        assert_eq!(world.delete(&format!("/sandboxes/{}", parent.id)).await, 204);
        assert_eq!(world.value(&forks[1], json!({"code": "x"})).await, "[1, 2]");
    });
}

#[test]
fn copies_that_cannot_be_made_are_refused_with_the_reason() {
    require!(UserNamespaces);
    block_on(async {
        let world = E2bFixture::start().await;
        let parent = world.create(json!({"timeout": 120})).await;
        for (body, reason) in [
            (json!({"count": 0}), "invalid count `0`"),
            (json!({"count": 17}), "1 to 16"),
            (json!({"timeout": 86_401}), "86400 seconds"),
            (json!({"copies": 2}), "`copies`"),
        ] {
            let message = refused(world.at(&parent, "fork", body).await, 400).await;
            assert!(message.contains(reason), "{message}");
        }
        for (name, reason, status) in [
            ("team/app", "letters", 400),
            ("a b", "letters", 400),
            ("app:", "letters", 400),
            ("base", "is a template", 409),
        ] {
            let answer = world.at(&parent, "snapshots", json!({"name": name})).await;
            let message = refused(answer, status).await;
            assert!(message.contains(reason), "{message}");
        }

        let start = json!({"process": {"cmd": "/bin/sleep", "args": ["600"]}, "stdin": false});
        let _events = world.stream(&parent, "/process.Process/Start", &start).await;
        for name in ["fork", "snapshots"] {
            let message = refused(world.at(&parent, name, json!({})).await, 409).await;
            assert!(message.contains("`/bin/sleep 600` with pid"), "{message}");
        }
        let listed = world.call(&parent, "/process.Process/List", json!({})).await;
        let listed: Value = listed.json().await.unwrap();
        let kill = json!({
            "process": {"pid": listed["processes"][0]["pid"]},
            "signal": "SIGNAL_SIGKILL"
        });
        let killed = world.call(&parent, "/process.Process/SendSignal", kill).await;
        assert_eq!(killed.status(), 200);

        let threads = "import threading\n\
                       held = threading.Thread(target=threading.Event().wait, daemon=True)\n\
                       held.start()";
        world.run(&parent, json!({"code": threads})).await;
        for name in ["fork", "snapshots"] {
            let message = refused(world.at(&parent, name, json!({})).await, 409).await;
            assert!(message.contains("threads"), "{message}");
        }
        assert_eq!(world.at(&parent, "pause", json!({})).await.status(), 204);
        for name in ["fork", "snapshots"] {
            let message = refused(world.at(&parent, name, json!({})).await, 409).await;
            assert!(message.contains("is paused"), "{message}");
        }
        assert!(
            world.snapshots("").await.is_empty(),
            "what was refused has made nothing"
        );
    });
}

#[test]
fn forks_and_snapshots_count_as_sandboxes_of_their_key() {
    require!(UserNamespaces);
    block_on(async {
        let seats = Arc::new(Semaphore::new(3));
        let meter = Arc::new(Seats(Arc::clone(&seats)));
        let world = E2bFixture::on(E2bOptions::default(), |terms| terms.meter = meter).await;
        let parent = world.create(json!({"timeout": 120})).await;
        let snapshot = world.snapshot(&parent, json!({})).await;
        assert_eq!(seats.available_permits(), 1);
        let forks = world.fork(&parent, json!({"count": 3})).await;
        let fork = sandbox(&forks[0]["sandbox"]);
        for denied in &forks[1..] {
            assert_eq!(denied["error"]["code"], 429);
            let message = denied["error"]["message"].as_str().unwrap();
            assert!(message.contains("`sandboxes`"), "{message}");
        }
        refused(world.at(&parent, "fork", json!({})).await, 429).await;
        refused(world.at(&parent, "snapshots", json!({})).await, 429).await;
        let more = json!({"templateID": snapshot});
        let more = world.api(Method::POST, "/v2/sandboxes").json(&more);
        refused(more.sent().await, 429).await;
        // Each seat is free again after its sandbox or snapshot ends.
        for path in [
            format!("/templates/{snapshot}"),
            format!("/sandboxes/{}", fork.id),
        ] {
            let before = seats.available_permits();
            assert_eq!(world.delete(&path).await, 204);
            until_ok(async || {
                let there = seats.available_permits();
                (there == before + 1).then_some(()).ok_or(there)
            })
            .await;
        }
    });
}

#[test]
fn sandboxes_begin_from_a_snapshot_that_outlives_its_source() {
    require!(UserNamespaces);
    block_on(async {
        let world = E2bFixture::start().await;
        let source = world
            .create(json!({"timeout": 120, "envVars": {"A": "1", "B": "1"}}))
            .await;
        world.run(&source, json!({"code": "x = 41"})).await;
        world.write(&source, "a", "kept").await;
        let plain = world.snapshot(&source, json!({})).await;
        let named = world.snapshot(&source, json!({"name": "app:v1"})).await;
        assert_eq!(named, "app:v1");
        world.run(&source, json!({"code": "x = 0"})).await;
        assert_eq!(world.snapshots("").await, [&*named, &*plain]);
        assert_eq!(world.snapshots("name=app").await, [&*named]);
        assert!(world.snapshots("name=app%3Av2").await.is_empty());
        assert_eq!(
            world.snapshots(&format!("sandboxID={}&limit=1", source.id)).await,
            [&*named]
        );
        assert!(world.snapshots("sandboxID=other").await.is_empty());
        let path = format!("/sandboxes/{}", source.id);
        assert_eq!(world.delete(&path).await, 204);

        let alias = world.api(Method::GET, "/templates/aliases/app%3Av1");
        assert_eq!(alias.status().await, 200);
        let body = json!({"templateID": named, "timeout": 60, "envVars": {"B": "2"}});
        let one = world.create(body.clone()).await;
        let state = "import os; x += 1; (x, os.environ['A'], os.environ['B'], open('a').read())";
        assert_eq!(
            world.value(&one, json!({"code": state})).await,
            "(42, '1', '2', 'kept')"
        );
        let shown: Value = world
            .api(Method::GET, &format!("/sandboxes/{}", one.id))
            .read()
            .await;
        assert_eq!(shown["templateID"], "app:v1");
        let two = world.create(body).await;
        assert_eq!(world.value(&two, json!({"code": "x"})).await, "41");
        let three = world.create(json!({"templateID": plain})).await;
        assert_eq!(world.value(&three, json!({"code": "x"})).await, "41");

        // A name belongs to its newest snapshot.
        world.run(&two, json!({"code": "x = 5"})).await;
        assert_eq!(world.snapshot(&two, json!({"name": "app:v1"})).await, named);
        assert_eq!(world.snapshots("").await, [&*named, &*plain]);
        let four = world.create(json!({"templateID": "app:v1"})).await;
        assert_eq!(world.value(&four, json!({"code": "x"})).await, "5");

        assert_eq!(world.delete(&format!("/templates/{named}")).await, 204);
        assert_eq!(world.delete(&format!("/templates/{named}")).await, 404);
        assert_eq!(world.delete("/templates/base").await, 501);
        let gone = world
            .api(Method::POST, "/v2/sandboxes")
            .json(&json!({"templateID": named}));
        refused(gone.sent().await, 404).await;
        assert_eq!(world.snapshots("").await, [plain]);
    });
}

#[test]
fn a_key_cannot_see_copy_or_delete_what_belongs_to_another_key() {
    require!(UserNamespaces);
    block_on(async {
        let world = E2bFixture::start().await;
        let source = world.create(json!({"timeout": 120})).await;
        let snapshot = world.snapshot(&source, json!({"name": "app"})).await;
        let other = |method, path: &str| {
            let request = world.http.request(method, world.url(path));
            request.header("x-api-key", "e2b_ff")
        };
        let listed: Value = other(Method::GET, "/snapshots").read().await;
        assert_eq!(listed, json!([]));
        let path = format!("/sandboxes/{}", source.id);
        for name in ["fork", "snapshots", "pause"] {
            refused(other(Method::POST, &format!("{path}/{name}")).sent().await, 404).await;
        }
        refused(
            other(Method::DELETE, &format!("/templates/{snapshot}"))
                .sent()
                .await,
            404,
        )
        .await;
        refused(other(Method::GET, "/templates/aliases/app").sent().await, 404).await;
        let create = other(Method::POST, "/v2/sandboxes").json(&json!({"templateID": snapshot}));
        refused(create.sent().await, 404).await;
        for (method, path) in [
            (Method::GET, "/snapshots".to_owned()),
            (Method::POST, format!("{path}/fork")),
            (Method::DELETE, format!("/templates/{snapshot}")),
        ] {
            let keyless = world.http.request(method, world.url(&path));
            refused(keyless.sent().await, 401).await;
        }
        assert_eq!(world.snapshots("").await, [snapshot]);
    });
}

#[test]
fn a_snapshot_without_memory_has_files_alone() {
    require!(UserNamespaces);
    block_on(async {
        let world = E2bFixture::start().await;
        let source = world.create(json!({"timeout": 120, "envVars": {"A": "1"}})).await;
        world.run(&source, json!({"code": "x = 41"})).await;
        world.write(&source, "a", "kept").await;
        let snapshot = world.snapshot(&source, json!({"memory": false})).await;
        let state = "import os; ('x' in globals(), os.environ['A'], open('a').read())";
        for _ in 0..2 {
            let made = world.create(json!({"templateID": snapshot, "timeout": 60})).await;
            assert_eq!(
                world.value(&made, json!({"code": state})).await,
                "(False, '1', 'kept')"
            );
            world.write(&made, "a", "changed").await;
        }
        assert_eq!(world.value(&source, json!({"code": "x"})).await, "41");
    });
}

#[test]
fn a_sandbox_that_is_paused_or_resumed_without_memory_starts_anew_with_its_files() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world.create(json!({"timeout": 120, "envVars": {"A": "1"}})).await;
        world.write(&sandbox, "a", "kept").await;
        let start = json!({"process": {"cmd": "/bin/sleep", "args": ["600"]}, "stdin": false});
        let _events = world.stream(&sandbox, "/process.Process/Start", &start).await;
        let state = "import os; ('x' in globals(), os.environ['A'], open('a').read())";
        for (pause, connect, kept) in [
            (json!({"memory": false}), json!({}), false),
            (json!({"memory": true}), json!({"memory": false}), false),
            (json!({"memory": false}), json!({"memory": false}), false),
            (json!({"memory": true}), json!({"memory": true}), true),
        ] {
            world.run(&sandbox, json!({"code": "x = 1"})).await;
            // One that runs is not resumed.
            let again = world.at(&sandbox, "connect", json!({"memory": false})).await;
            assert_eq!(again.status(), 200);
            assert_eq!(world.value(&sandbox, json!({"code": "x"})).await, "1");
            assert_eq!(world.at(&sandbox, "pause", pause.clone()).await.status(), 204);
            refused(world.at(&sandbox, "pause", pause).await, 409).await;
            assert_eq!(world.at(&sandbox, "connect", connect).await.status(), 201);
            let lines = world.run(&sandbox, json!({"code": state})).await;
            let found = lines
                .iter()
                .find(|it| it["is_main_result"] == json!(true))
                .unwrap();
            let expected = if kept {
                "(True, '1', 'kept')"
            } else {
                "(False, '1', 'kept')"
            };
            assert_eq!(found["text"], expected);
            assert!(lines.iter().all(|it| it["type"] != "stderr"), "{lines:?}");
        }
        let listed = world.call(&sandbox, "/process.Process/List", json!({})).await;
        let listed: Value = listed.json().await.unwrap();
        assert_eq!(listed["processes"], json!([]));
    });
}

#[test]
fn a_timeout_can_pause_a_sandbox_without_its_memory() {
    block_on(async {
        let world = E2bFixture::start().await;
        let body = json!({"templateID": "base", "autoPause": true, "autoPauseMemory": false,
                          "autoResume": {"enabled": true}});
        let both = world.api(Method::POST, "/v2/sandboxes").json(&body);
        assert!(
            refused(both.sent().await, 400)
                .await
                .contains("`autoPauseMemory`")
        );
        let body = json!({"timeout": 60, "autoPause": true, "autoPauseMemory": false});
        let sandbox = world.create(body).await;
        world.run(&sandbox, json!({"code": "x = 1"})).await;
        assert_eq!(
            world
                .at(&sandbox, "timeout", json!({"timeout": 0}))
                .await
                .status(),
            204
        );
        until_ok(async || {
            let found: Value = world
                .api(Method::GET, &format!("/sandboxes/{}", sandbox.id))
                .read()
                .await;
            (found["state"] == "paused").then_some(()).ok_or(found)
        })
        .await;
        assert_eq!(world.at(&sandbox, "connect", json!({})).await.status(), 201);
        assert_eq!(
            world.value(&sandbox, json!({"code": "'x' in globals()"})).await,
            "False"
        );
    });
}
