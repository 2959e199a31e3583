//! Containers come, are used, expire and go; nobody else sees them.

use std::time::Duration;

use cellblock_agent::provider::scripted::ScriptedAnswer;
use cellblock_gateway::records::Records;
use cellblock_settings::Size;
use cellblock_testkit::require;
use cellblock_testkit::wait::until;
use serde_json::{Value, json};

use crate::support::{bench, block_on, logs, paths, runs, start};

#[test]
fn a_container_is_made_told_and_deleted_in_the_form_that_clients_know() {
    block_on(async {
        let bench = bench().await.of("carl");
        let file = bench.file("in.csv", b"a\n1\n").await;
        let body = json!({
            "name": "mine", "file_ids": [file], "expires_after": {"anchor": "last_active_at", "minutes": 5},
            "memory_limit": "1g", "network_policy": {"type": "disabled"},
        });
        let made = bench.post("containers", &body).await.ok();
        let id = made["id"].as_str().unwrap();
        assert!(id.starts_with("cntr_"));
        let expected = json!({
            "id": id, "object": "container", "created_at": made["created_at"],
            "last_active_at": made["last_active_at"],
            "name": "mine", "status": "running", "expires_after": {"anchor": "last_active_at", "minutes": 5},
            "memory_limit": "1g", "network_policy": {"type": "disabled"},
        });
        assert_eq!(made, expected);
        assert!(made["created_at"].as_u64().unwrap() > 1_700_000_000);
        assert_eq!(bench.get(&format!("containers/{id}")).await.ok(), expected);

        let files = bench.get(&format!("containers/{id}/files")).await.ok();
        let file = &files["data"][0];
        let told = json!({
            "id": file["id"], "object": "container.file", "bytes": 4, "container_id": id,
            "created_at": file["created_at"],
            "path": "/mnt/data/in.csv", "source": "user",
        });
        assert_eq!(*file, told);
        assert!(file["id"].as_str().unwrap().starts_with("cfile_"));

        let gone = bench.delete(&format!("containers/{id}")).await.ok();
        assert_eq!(
            gone,
            json!({"id": id, "object": "container.deleted", "deleted": true})
        );
        for path in [format!("containers/{id}"), format!("containers/{id}/files")] {
            assert_eq!(bench.get(&path).await.error(), (404, "container_not_found"));
        }
        assert_eq!(
            bench.delete(&format!("containers/{id}")).await.error(),
            (404, "container_not_found")
        );
        let used = bench.respond("nobody", &json!("go"), &json!(id)).await;
        assert_eq!(used.error(), (404, "container_not_found"));
        assert_eq!(used.body["error"]["param"], "tools[0].container");
    });
}

#[test]
fn containers_are_listed_in_pages() {
    block_on(async {
        let bench = bench().await.of("paul");
        let mut ids = Vec::new();
        for name in ["one", "two", "one"] {
            let made = bench.post("containers", &json!({"name": name})).await.ok();
            ids.push(made["id"].clone());
        }
        let list = async |query: &str| {
            let list = bench.get(&format!("containers?{query}")).await.ok();
            let data = list["data"].as_array().unwrap().iter();
            let found: Vec<Value> = data.map(|container| container["id"].clone()).collect();
            assert_eq!(list["first_id"], found.first().cloned().unwrap_or_default());
            assert_eq!(list["last_id"], found.last().cloned().unwrap_or_default());
            (found, list["has_more"] == true)
        };
        let [one, two, three] = &ids[..] else {
            panic!("three were made")
        };
        assert_eq!(
            list("").await,
            (vec![three.clone(), two.clone(), one.clone()], false)
        );
        assert_eq!(
            list("order=asc&limit=2").await,
            (vec![one.clone(), two.clone()], true)
        );
        let after = format!("order=asc&limit=2&after={}", two.as_str().unwrap());
        assert_eq!(list(&after).await, (vec![three.clone()], false));
        assert_eq!(list("name=one").await, (vec![three.clone(), one.clone()], false));
        assert_eq!(list("name=none").await, (Vec::new(), false));
        for query in [
            "limit=0",
            "limit=101",
            "limit=x",
            "order=up",
            "after=cntr_nothing",
        ] {
            let refused = bench.get(&format!("containers?{query}")).await;
            assert_eq!(refused.error(), (400, "invalid_value"), "{query}");
        }
    });
}

#[test]
fn what_no_container_can_be_is_refused_by_name() {
    block_on(async {
        let bench = start(Records::in_memory().unwrap(), |options| {
            options.containers.max_memory = Some(Size(2 << 30));
        })
        .await;
        let anchor = |anchor: &str, minutes: u64| json!({"anchor": anchor, "minutes": minutes});
        for (field, value, why) in [
            ("memory_limit", json!("4g"), "at most 2147483648 bytes"),
            ("memory_limit", json!("2g"), "`1g`, `4g`, `16g` or `64g`"),
            ("expires_after", anchor("created_at", 5), "`last_active_at`"),
            ("expires_after", anchor("last_active_at", 0), "1 to 1440"),
            ("expires_after", anchor("last_active_at", 1441), "1 to 1440"),
            (
                "network_policy",
                json!({"type": "allowlist", "allowed_domains": ["a.example"]}),
                "max_network",
            ),
            ("skills", json!([{"type": "skill_reference"}]), "skills"),
            ("name", json!(""), "1 to 256"),
            ("file_ids", json!(["file-none"]), "`file-none`"),
        ] {
            let mut body = json!({"name": "x"});
            body[field] = value.clone();
            let refused = bench.post("containers", &body).await;
            assert!(matches!(refused.status, 400 | 404), "{field}: {value}");
            assert!(refused.message().contains(why), "{}", refused.body);
            let param = refused.body["error"]["param"].as_str().unwrap();
            assert!(param.starts_with(field), "{param}");
        }
        for body in [
            json!({}),
            json!({"name": 1}),
            json!({"name": "x", "file_ids": "file-1"}),
        ] {
            assert_eq!(bench.post("containers", &body).await.status, 400, "{body}");
        }
        assert_eq!(bench.gateway.containers.count(), 0);
        let auto = json!({"type": "auto", "memory_limit": "64g"});
        let refused = bench.respond("m", &json!("go"), &auto).await;
        assert_eq!(refused.error(), (400, "invalid_value"));
    });
}

#[test]
fn a_memory_limit_is_the_limit_of_the_sandbox() {
    require!(CgroupV1);
    block_on(async {
        let bench = bench().await;
        let made = bench
            .post("containers", &json!({"name": "small", "memory_limit": "1g"}))
            .await
            .ok();
        // A gigabyte and what Python needs is more than a gigabyte; the usual limit would allow it.
        let call = bench
            .run(
                made["id"].as_str().unwrap(),
                "block = b'x' * (1 << 30)\nlen(block)",
            )
            .await;
        let allowed = bench
            .run(&bench.container().await, "block = b'x' * (1 << 30)\nlen(block)")
            .await;
        assert!(logs(&allowed).contains("1073741824"), "{allowed}");
        assert!(!logs(&call).contains("1073741824"), "{call}");
    });
}

#[test]
fn nobody_sees_what_belongs_to_somebody_else() {
    block_on(async {
        let bench = bench().await;
        let container = bench.container().await;
        bench.run(&container, "open('secret.txt', 'w').write('x');").await;
        let list = bench.get(&format!("containers/{container}/files")).await.ok();
        let secret = list["data"][0]["id"].as_str().unwrap();
        let upload = bench.file("mine.csv", b"a").await;
        let eve = bench.of("eve");
        let inside = format!("containers/{container}/files/{secret}");
        let outside = format!("files/{upload}");
        for path in [
            format!("containers/{container}"),
            format!("containers/{container}/files"),
            inside.clone(),
            format!("{inside}/content"),
            outside.clone(),
            format!("{outside}/content"),
        ] {
            assert_eq!(eve.get(&path).await.status, 404, "{path}");
        }
        for path in [format!("containers/{container}"), inside.clone(), outside.clone()] {
            assert_eq!(eve.delete(&path).await.status, 404, "{path}");
        }
        assert_eq!(eve.get("containers").await.ok()["data"], json!([]));
        assert_eq!(eve.get("files").await.ok()["data"], json!([]));
        assert_eq!(
            eve.get(&format!("containers?after={container}")).await.status,
            400
        );
        assert_eq!(
            eve.respond("m", &json!("go"), &json!(container)).await.status,
            404
        );
        let auto = json!({"type": "auto", "file_ids": [upload]});
        assert_eq!(eve.respond("m", &json!("go"), &auto).await.status, 404);
        let attach = eve
            .post(
                &format!("containers/{container}/files"),
                &json!({"file_id": upload}),
            )
            .await;
        assert_eq!(attach.status, 404);
        // A call that somebody else made does not lead to their container.
        eve.script("eve", [runs("c", "1 + 1"), ScriptedAnswer::new().text("ok")]);
        let call =
            json!({"type": "code_interpreter_call", "id": "ci_1", "container_id": container, "code": "1"});
        let got = eve
            .respond("eve", &json!([call]), &json!({"type": "auto"}))
            .await
            .ok();
        assert_ne!(got["output"][0]["container_id"], container);
        assert_eq!(
            bench.get(&format!("containers/{container}")).await.ok()["status"],
            "running"
        );
    });
}

#[test]
fn a_container_that_nobody_uses_expires_and_leaves_its_files() {
    block_on(async {
        let bench = start(Records::in_memory().unwrap(), |options| {
            options.containers.idle_timeout = Duration::from_secs(2);
        })
        .await;
        let container = bench.container().await;
        bench
            .run(&container, "open('left.txt', 'w').write('left');")
            .await;
        let path = format!("containers/{container}");
        bench.until(&path, |got| got["status"] == "expired").await;
        assert_eq!(bench.get("containers").await.ok()["data"][0]["status"], "expired");
        let used = bench.respond("m", &json!("go"), &json!(container)).await;
        assert_eq!(used.error(), (400, "container_expired"));
        let put = bench.upload(&format!("{path}/files"), "a.txt", b"a", &[]).await;
        assert_eq!(put.error(), (400, "container_expired"));
        let files = bench.get(&format!("{path}/files")).await.ok();
        let file = files["data"][0]["id"].as_str().unwrap();
        assert_eq!(
            bench.content(&format!("{path}/files/{file}/content")).await,
            b"left"
        );
        let interpreter = bench.gateway.interpreter().unwrap();
        until("its sandbox is gone", || {
            interpreter.sandboxes_in_use().is_empty()
        })
        .await;
    });
}

#[test]
fn after_a_restart_containers_have_expired_and_their_files_are_there() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let records = folder.path().join("records.sqlite");
        let before = start(Records::open(&records).unwrap(), |_| {}).await;
        let container = before.container().await;
        before
            .run(&container, "open('kept.txt', 'w').write('kept');")
            .await;
        // Another process finds what a killed one has left: nothing is told to it but by the records.
        let after = start(Records::open(&records).unwrap(), |_| {}).await;
        let path = format!("containers/{container}");
        assert_eq!(after.get(&path).await.ok()["status"], "expired");
        let files = after.get(&format!("{path}/files")).await.ok();
        assert_eq!(paths(&files), [("/mnt/data/kept.txt", "assistant")]);
        let file = files["data"][0]["id"].as_str().unwrap();
        assert_eq!(
            after.content(&format!("{path}/files/{file}/content")).await,
            b"kept"
        );
        assert_eq!(
            after.respond("m", &json!("go"), &json!(container)).await.error(),
            (400, "container_expired")
        );
        after.delete(&path).await.ok();
    });
}

#[test]
fn a_gateway_that_stops_ends_every_sandbox() {
    block_on(async {
        let bench = start(Records::in_memory().unwrap(), |_| {}).await;
        bench.run(&bench.container().await, "1").await;
        assert_eq!(bench.gateway.interpreter().unwrap().sandboxes_in_use().len(), 1);
        bench.gateway.containers.close().await;
        assert_eq!(bench.gateway.interpreter().unwrap().sandboxes_in_use().len(), 0);
        assert_eq!(bench.gateway.containers.count(), 0);
    });
}

#[test]
fn an_owner_has_so_many_containers_and_no_more() {
    block_on(async {
        let bench = start(Records::in_memory().unwrap(), |options| {
            options.containers.max_per_key = 2;
            options.containers.wait_timeout = Duration::from_millis(200);
        })
        .await;
        let run = async |model: &str| {
            bench.script(model, [runs("c", "6 * 7"), ScriptedAnswer::new().text("ok")]);
            let response = bench
                .respond(model, &json!("go"), &json!({"type": "auto"}))
                .await
                .ok();
            response["output"][0].clone()
        };
        // Containers of responses that are over give way, the oldest first.
        let mut ids = Vec::new();
        for _ in 0..3 {
            let call = run("m").await;
            assert_eq!(logs(&call).trim(), "42");
            ids.push(call["container_id"].as_str().unwrap().to_owned());
        }
        let statuses = async |ids: &[String]| {
            let mut statuses = Vec::new();
            for id in ids {
                let status = bench.get(&format!("containers/{id}")).await.ok()["status"].clone();
                statuses.push(status.as_str().unwrap().to_owned());
            }
            statuses
        };
        assert_eq!(statuses(&ids).await, ["expired", "running", "running"]);
        // Those that a client has made do not.
        let mine = [bench.container().await, bench.container().await];
        let refused = bench.post("containers", &json!({"name": "third"})).await;
        assert_eq!(refused.error(), (429, "too_many_containers"));
        let call = run("m").await;
        assert_eq!(call["status"], "failed");
        // A model can delete none.
        assert_eq!(
            logs(&call),
            "The code was not run: all sandboxes are in use; try again later, or answer without running code."
        );
        assert_eq!(statuses(&mine).await, ["running", "running"]);
        // Others have their own.
        bench.of("bob").container().await;
        bench.delete(&format!("containers/{}", mine[0])).await.ok();
        assert_eq!(logs(&run("m").await).trim(), "42");
    });
}

#[test]
fn containers_and_uploads_count_against_the_quotas_of_their_owner() {
    block_on(async {
        let bench = start(Records::in_memory().unwrap(), |options| {
            options.quotas.sandboxes = Some(1);
            options.quotas.upload_bytes_per_day = Some(10);
        })
        .await;
        let first = bench.container().await;
        let named = json!({"name": "second"});
        let refused = bench.post("containers", &named).await;
        assert_eq!(refused.error(), (429, "rate_limit_exceeded"));
        assert_eq!(bench.of("bob").post("containers", &named).await.status, 200);
        bench.delete(&format!("containers/{first}")).await.ok();
        bench.post("containers", &named).await.ok();
        // One that a response makes for itself takes the place of an idle one of its kind.
        let cy = bench.of("cy");
        let mut used = Vec::new();
        for _ in 0..2 {
            cy.script("cy", [runs("c", "1 + 1"), ScriptedAnswer::new().text("ok")]);
            let got = cy
                .respond("cy", &json!("go"), &json!({"type": "auto"}))
                .await
                .ok();
            assert_eq!(got["output"][0]["status"], "completed", "{got}");
            used.push(got["output"][0]["container_id"].clone());
        }
        assert_ne!(used[0], used[1]);
        let purpose = [("purpose", "user_data")];
        let sent = cy.upload("files", "a.txt", b"123456", &purpose).await;
        assert_eq!(sent.status, 200, "{}", sent.body);
        let refused = cy.upload("files", "b.txt", b"123456", &purpose).await;
        assert_eq!(refused.error(), (429, "rate_limit_exceeded"));
    });
}

#[test]
fn a_response_that_goes_on_from_another_has_its_container() {
    block_on(async {
        let bench = bench().await.of("dora");
        bench.script(
            "dora",
            [
                runs("a", "x = 41"),
                ScriptedAnswer::new().text("kept"),
                runs("b", "x + 1"),
                ScriptedAnswer::new().text("there"),
            ],
        );
        let auto = json!({"type": "auto"});
        let first = bench.respond("dora", &json!("keep"), &auto).await.ok();
        let body = json!({
            "model": "dora", "input": "go on", "previous_response_id": first["id"],
            "include": ["code_interpreter_call.outputs"],
            "tools": [{"type": "code_interpreter", "container": auto}],
        });
        let second = bench.post("responses", &body).await.ok();
        assert_eq!(
            second["output"][0]["container_id"],
            first["output"][0]["container_id"]
        );
        assert!(logs(&second["output"][0]).contains("42"), "{second}");
    });
}
