//! Checkpoints of containers, and rollbacks to them.

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
        let look = "import os\nprint('x' in globals(), open('before.csv').read().split(), os.path.exists('made'), open('after.csv').read().split())";
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
