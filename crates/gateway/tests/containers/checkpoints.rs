//! Checkpoints of containers, rollbacks to them, and forks.

use serde_json::json;

use crate::support::{bench, block_on, logs};

#[test]
fn a_container_is_rolled_back_to_a_checkpoint() {
    block_on(async {
        let bench = bench().await.of("rob");
        let id = bench.container().await;
        let path = |rest: &str| format!("containers/{id}/{rest}");
        bench
            .upload(&path("files"), "before.csv", b"a\n1\n", &[])
            .await
            .ok();
        let kept = bench.post(&path("checkpoints"), &json!({"name": "start"})).await;
        assert_eq!(
            (kept.status, &kept.body["id"]),
            (201, &json!("c1")),
            "{}",
            kept.body
        );
        let code = "x = 2\nopen('before.csv', 'w').write('spoiled')\nopen('made', 'w').write('x')";
        bench.run(&id, code).await;
        bench
            .upload(&path("files"), "after.csv", b"b\n2\n", &[])
            .await
            .ok();
        bench.run(&id, "print(open('after.csv').read())").await;

        let back = bench
            .post(&path("rollback"), &json!({"checkpoint": "start"}))
            .await
            .ok();
        assert_eq!(back["checkpoint"]["name"], "start");
        let look = "import os\nprint('x' in globals(), open('before.csv').read().split(), \
                    os.path.exists('made'), open('after.csv').read().split())";
        let call = bench.run(&id, look).await;
        // What the user has added since is there, what code has done is not.
        assert!(
            logs(&call).contains("False ['a', '1'] False ['b', '2']"),
            "{call}"
        );

        let events = bench.get(&path("events")).await.ok();
        assert_eq!(
            (&events["data"][0]["event"], &events["data"][1]["event"]),
            (&json!("checkpoint"), &json!("rolled_back"))
        );
        let list = bench.get(&path("checkpoints")).await.ok();
        assert_eq!(list["data"].as_array().unwrap().len(), 1);
        let gone = bench.delete(&path("checkpoints/start")).await.ok();
        assert_eq!(
            gone,
            json!({"id": "start", "object": "container.checkpoint.deleted", "deleted": true})
        );
        let missing = bench
            .post(&path("rollback"), &json!({"checkpoint": "start"}))
            .await;
        assert_eq!(missing.error(), (404, "checkpoint_not_found"));
        // Those of another owner are not found.
        let other = bench.of("eve");
        for rest in ["checkpoints", "events"] {
            assert_eq!(other.get(&path(rest)).await.error(), (404, "container_not_found"));
        }
        let bodies = [
            ("checkpoints", json!({})),
            ("rollback", json!({"checkpoint": "c1"})),
        ];
        for (rest, body) in bodies {
            let refused = other.post(&path(rest), &body).await;
            assert_eq!(refused.error(), (404, "container_not_found"));
        }
    });
}

#[test]
fn a_container_is_forked_with_its_variables_and_files() {
    block_on(async {
        let bench = bench().await.of("fay");
        let id = bench.container().await;
        let path = |id: &str, rest: &str| format!("containers/{id}/{rest}");
        bench
            .upload(&path(&id, "files"), "data.csv", b"a\n1\n", &[])
            .await
            .ok();
        bench.run(&id, "x = [41]\nopen('made', 'w').write('once')").await;
        let forked = bench.post(&path(&id, "fork"), &json!({"count": 2})).await;
        assert_eq!(forked.status, 201, "{}", forked.body);
        let forked = forked.body;
        assert_eq!(
            (&forked["object"], &forked["parent"]),
            (&json!("container.fork"), &json!(id))
        );
        let ids: Vec<_> = forked["ids"].as_array().unwrap().iter().collect();
        assert_eq!(ids.len(), 2);
        // What one of them does, no other sees.
        let code = "x.append(1)\nprint(sum(x), open('data.csv').read().split(), open('made').read())\n\
                    open('made', 'w').write('changed')";
        for fork in &ids {
            let call = bench.run(fork.as_str().unwrap(), code).await;
            assert!(logs(&call).contains("42 ['a', '1'] once"), "{call}");
        }
        let call = bench.run(&id, "print(sum(x), open('made').read())").await;
        assert!(logs(&call).contains("41 once"), "{call}");
        // Their files are their own: one can be removed without the others.
        let fork = ids[0].as_str().unwrap();
        let files = bench.get(&path(fork, "files")).await.ok();
        let file = files["data"]
            .as_array()
            .unwrap()
            .iter()
            .find(|file| file["path"] == "/mnt/data/data.csv");
        let file = file.unwrap_or_else(|| panic!("{files}"));
        assert_eq!(
            (&file["container_id"], &file["source"]),
            (&json!(fork), &json!("user"))
        );
        bench.delete(&format!("containers/{fork}")).await.ok();
        let files = bench.get(&path(&id, "files")).await.ok();
        assert_eq!(files["data"].as_array().unwrap().len(), 2, "{files}");
        let events = bench.get(&path(&id, "events")).await.ok();
        assert_eq!(events["data"][0]["event"], "forked");

        let too_many = bench.post(&path(&id, "fork"), &json!({"count": 17})).await;
        assert_eq!(too_many.status, 400, "{}", too_many.body);
        bench
            .run(
                &id,
                "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), \
                 daemon=True).start()",
            )
            .await;
        let refused = bench.post(&path(&id, "fork"), &json!({})).await;
        assert_eq!(refused.status, 409, "{}", refused.body);
        let list = bench.get("containers").await.ok();
        assert_eq!(list["data"].as_array().unwrap().len(), 2, "{list}");
        let refused = bench.of("eve").post(&path(&id, "fork"), &json!({})).await;
        assert_eq!(refused.error(), (404, "container_not_found"));
    });
}
