//! Machines that fail: errors say why, and nothing is left.

use cellblock_testkit::require;
use cellblock_walls::microvm;
use serde_json::json;

use crate::full_disk::SmallDisk;
use crate::support::{Fake, block_on};

/// Starts a backend that cannot be started, and returns the error.
async fn failure(fake: &Fake) -> String {
    let error = microvm::start(fake.impatient()).await.unwrap_err().to_string();
    fake.leaves_nothing().await;
    error
}

#[test]
fn a_machine_that_never_answers_is_an_error_within_the_limit() {
    require!(Root);
    block_on(async {
        for (behavior, expected) in [
            (
                json!({"silent": true}),
                "nothing in the machine accepted a connection within 3 s",
            ),
            // It accepts a connection, and then nothing serves it.
            (
                json!({"guest": null}),
                "a restored machine was not ready within 3",
            ),
        ] {
            let fake = Fake::new(behavior).await;
            let error = failure(&fake).await;
            assert!(error.contains(expected), "{error}");
            let loads = fake
                .requests()
                .iter()
                .filter(|it| *it == "PUT /snapshot/load")
                .count();
            assert_eq!(loads, 3, "twice, and once from a new snapshot");
        }
    });
}

#[test]
fn a_program_that_is_killed_between_load_and_hello_is_an_error() {
    require!(Root);
    block_on(async {
        let fake = Fake::new(json!({"dies_after_load": true})).await;
        let error = failure(&fake).await;
        assert!(error.contains("restore a machine: "), "{error}");
        assert!(
            error.contains("PUT /snapshot/load") || error.contains("the machine ended"),
            "{error}"
        );
    });
}

#[test]
fn an_error_of_the_api_is_shown_with_its_reason() {
    require!(Root);
    block_on(async {
        for (request, action) in [
            ("PUT /drives/disk", "make a snapshot"),
            ("PUT /snapshot/create", "make a snapshot"),
        ] {
            let fake = Fake::new(json!({"faults": {request: "the reason of the VMM"}})).await;
            let error = failure(&fake).await;
            let expected =
                format!("Firecracker rejected `{request}` with 400 Bad Request: the reason of the VMM");
            assert!(error.contains(&expected) && error.contains(action), "{error}");
        }
    });
}

#[test]
fn a_disk_that_is_full_while_the_snapshot_is_written_is_an_error_that_says_so() {
    require!(Root);
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let small = tempfile::tempdir().unwrap();
        let home = small.path().join("home");
        let _mounted = SmallDisk::new(&home, 1 << 30);
        let fake = Fake::at(folder, home.clone(), json!({"memory_mib": 2048})).await;
        let error = failure(&fake).await;
        assert!(error.contains("No space left on device"), "{error}");
        assert!(error.contains("MiB free"), "{error}");
    });
}
