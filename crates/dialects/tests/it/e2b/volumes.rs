//! Volumes of E2B's clients.

use cellblock_dialects::E2bOptions;
use reqwest::Method;
use serde_json::{Value, json};

use super::envd::text;
use super::shelf::MemoryShelf;
use super::{E2bFixture, refused};
use crate::support::{RequestExt, block_on};

#[test]
fn a_volume_outlives_the_sandboxes_that_mount_it() {
    block_on(async {
        let shelf = MemoryShelf::default();
        let world = E2bFixture::on(E2bOptions::default(), |terms| {
            terms.volumes = Some(shelf.shared());
        })
        .await;
        let create = |name: &str| world.api(Method::POST, "/volumes").json(&json!({ "name": name }));
        let made: Value = create("data").read().await;
        assert_eq!(made["volumeID"], "data");
        refused(create("data").sent().await, 409).await;
        refused(create("e2b-template-x").sent().await, 404).await;
        let listed: Vec<Value> = world.api(Method::GET, "/volumes").read().await;
        assert_eq!(listed, [json!({"volumeID": "data", "name": "data"})]);
        let mount = |path: &str| json!({"volumeMounts": [{"name": "data", "path": path}], "timeout": 120});
        let first = world.create(mount("/home/user/shared")).await;
        world
            .command(&first, "echo kept > shared/notes; readlink shared")
            .await;
        let info: Value = world
            .api(Method::GET, &format!("/sandboxes/{}", first.id))
            .read()
            .await;
        assert_eq!(info["volumeMounts"][0]["name"], "data");
        let mut second = mount("/home/user/volume");
        second["templateID"] = json!("base");
        let request = world.api(Method::POST, "/v2/sandboxes").json(&second);
        refused(request.sent().await, 409).await;
        refused(world.api(Method::DELETE, "/volumes/data").sent().await, 409).await;
        let kill = world.api(Method::DELETE, &format!("/sandboxes/{}", first.id));
        assert_eq!(kill.status().await, 204);
        let again = world.create(mount("/home/user/volume")).await;
        let (events, _) = world.command(&again, "cat volume/notes").await;
        assert_eq!(text(&events, "stdout"), "kept\n");
        let kill = world.api(Method::DELETE, &format!("/sandboxes/{}", again.id));
        assert_eq!(kill.status().await, 204);
        let other = world.http.delete(world.url("/volumes/data"));
        refused(other.header("x-api-key", "e2b_other").sent().await, 404).await;
        assert_eq!(world.api(Method::DELETE, "/volumes/data").status().await, 204);
        refused(world.api(Method::GET, "/volumes/data").sent().await, 404).await;
        assert!(shelf.is_empty());
    });
}

#[test]
fn mounts_that_a_sandbox_would_not_have_are_refused_and_leave_the_volume_free() {
    block_on(async {
        let shelf = MemoryShelf::default();
        let world = E2bFixture::on(E2bOptions::default(), |terms| {
            terms.volumes = Some(shelf.shared());
        })
        .await;
        let made = world.api(Method::POST, "/volumes").json(&json!({"name": "data"}));
        assert_eq!(made.status().await, 201);
        let mount = |name: &str, path: &str| json!({"name": name, "path": path});
        for (mounts, status, words) in [
            (json!([mount("data", "/data")]), 400, "`volumeMounts.path`"),
            (json!([mount("data", "/home/user")]), 400, "`volumeMounts.path`"),
            (
                json!([mount("data", "/home/user/a"), mount("data", "/home/user/b")]),
                400,
                "one volume",
            ),
            (json!([mount("other", "/home/user/volume")]), 404, "other"),
            (
                json!([mount("e2b-template-x", "/home/user/volume")]),
                404,
                "is a template",
            ),
            (
                json!([mount("data", "volume/x/../y")]),
                400,
                "`volumeMounts.path`",
            ),
        ] {
            let body = json!({"templateID": "base", "volumeMounts": mounts});
            let request = world.api(Method::POST, "/v2/sandboxes").json(&body);
            let message = refused(request.sent().await, status).await;
            assert!(message.contains(words), "{message}");
        }
        let mounts = json!([mount("data", "/tmp/../home/user/volume")]);
        world.create(json!({"volumeMounts": mounts, "timeout": 60})).await;
    });
}
