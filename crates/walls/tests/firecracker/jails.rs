//! Jails, and what Firecracker sees in one.

use std::fs;
use std::os::unix::fs::MetadataExt;

use cellblock_testkit::require;
use cellblock_walls::microvm;
use serde_json::json;

use crate::support::{Fake, block_on};

#[test]
fn root_runs_firecracker_as_users_of_their_own_in_jails_that_can_only_read_the_snapshot() {
    require!(Root);
    block_on(async {
        let fake = Fake::new(json!({"version": "1.13.0"})).await;
        let backend = microvm::start(fake.config()).await.unwrap();
        let jails = fake.log("jailer");
        assert_eq!(jails.len(), 2, "{jails:?}");
        let mut users = Vec::new();
        for jail in &jails {
            let words: Vec<_> = jail["jailer"]
                .as_array()
                .unwrap()
                .iter()
                .map(|it| it.as_str().unwrap())
                .collect();
            let [
                "--id",
                id,
                "--exec-file",
                program,
                "--uid",
                user,
                "--gid",
                group,
                "--chroot-base-dir",
                base,
                "--",
                "--api-sock",
                "/api",
            ] = words[..]
            else {
                panic!("{words:?}")
            };
            assert_eq!(program, fake.path("firecracker").to_str().unwrap());
            assert_eq!(user, group);
            assert!(user.parse::<u32>().unwrap() >= 0x7100_0000, "{user}");
            assert!(
                base.ends_with(&format!("/{id}/jail")) && base.starts_with(fake.home().to_str().unwrap()),
                "{base}"
            );
            users.push(user.to_owned());
        }
        assert_ne!(users[0], users[1]);
        let load = fake.log("body").pop().unwrap();
        // Before 1.16, the path cannot be overridden: the jail makes it the machine's own.
        assert_eq!(
            load["body"],
            json!({
                "snapshot_path": "/snapshot/state",
                "mem_backend": {"backend_type": "File", "backend_path": "/snapshot/memory"},
                "resume_vm": true,
            })
        );
        let snapshot = &fake.snapshots()[0];
        for entry in fs::read_dir(snapshot).unwrap().flatten() {
            let metadata = entry.metadata().unwrap();
            assert_eq!(metadata.uid(), 0, "{entry:?}");
            assert_eq!(metadata.mode() & 0o222 & !0o200, 0, "{entry:?}");
        }
        drop(backend);
        fake.leaves_nothing().await;
    });
}
