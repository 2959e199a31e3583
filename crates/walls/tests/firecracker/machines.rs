//! Templates, snapshots and restored machines.

use std::collections::BTreeSet;
use std::fs;

use cellblock_protocol::Scalar;
use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::Backend;
use cellblock_sandbox::pool::create;
use cellblock_testkit::require;
use cellblock_walls::microvm;
use serde_json::json;

use crate::support::{Fake, block_on, execute, shows};

const NAME: &str = "import socket\nsocket.gethostname()";

#[test]
fn eight_machines_of_one_snapshot_have_seeds_and_names_of_their_own() {
    require!(Root);
    block_on(async {
        let fake = Fake::new(json!({})).await;
        let backend = microvm::start(fake.config()).await.unwrap();
        let wall = backend.wall().unwrap_or_default().to_owned();
        assert!(
            wall.starts_with("Firecracker 1.16.1, in its jailer, KVM, kernel "),
            "{wall}"
        );
        let mut names = BTreeSet::new();
        for round in 0..8 {
            let mut lease = create(&backend, &Limits::default()).await.unwrap();
            assert_eq!(
                execute(&mut lease.kernel, &format!("{round} + 1")).await,
                shows(round + 1)
            );
            let (_, shown) = execute(&mut lease.kernel, NAME).await;
            let [Scalar::Text(name)] = &shown[..] else {
                panic!("{shown:?}")
            };
            names.insert(name.clone());
            lease.sandbox.destroy().await.unwrap();
        }
        assert_eq!(names.len(), 8, "{names:?}");
        let wakes = fake.log("wake");
        for field in ["seed", "identity", "time_ns"] {
            let different: BTreeSet<_> = wakes.iter().map(|it| it["wake"][field].to_string()).collect();
            assert_eq!(different.len(), 8, "{wakes:?}");
        }
        let mut expected = vec![
            "PUT /machine-config",
            "PUT /boot-source",
            "PUT /drives/disk",
            "PUT /vsock",
            "PUT /actions",
            "PATCH /vm",
            "PUT /snapshot/create",
        ];
        expected.resize(expected.len() + 8, "PUT /snapshot/load");
        assert_eq!(fake.requests(), expected);
        drop(backend);
        fake.leaves_nothing().await;
    });
}

#[test]
fn a_truncated_snapshot_is_made_again_once_and_its_machines_take_layers() {
    require!(Root);
    block_on(async {
        let fake = Fake::new(json!({})).await;
        drop(microvm::start(fake.config()).await.unwrap());
        let [snapshot] = &fake.snapshots()[..] else {
            panic!("{:?}", fake.snapshots())
        };
        let memory = snapshot.join("memory");
        let whole = fs::metadata(&memory).unwrap().len();
        fs::File::options()
            .write(true)
            .open(&memory)
            .unwrap()
            .set_len(whole / 2)
            .unwrap();
        let backend = microvm::start(fake.config()).await.unwrap();
        assert_eq!(fs::metadata(&memory).unwrap().len(), whole);
        let made = fake
            .requests()
            .iter()
            .filter(|it| *it == "PUT /snapshot/create")
            .count();
        assert_eq!(made, 2);
        // Its machines do not see this computer's layers.
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("sent.py"), "answer = 42\n").unwrap();
        let id = "0a".repeat(32);
        let mut lease = create(&backend, &Limits::default()).await.unwrap();
        lease.sandbox.show_layer(&id, folder.path()).await.unwrap();
        let code = format!("import sys\nsys.path.append('/opt/layers/{id}')\nimport sent\nsent.answer");
        assert_eq!(execute(&mut lease.kernel, &code).await, shows(42));
        let wrong = lease.sandbox.show_layer("../images", folder.path()).await;
        let wrong = wrong.unwrap_err().to_string();
        assert!(wrong.contains("not the id of a layer"), "{wrong}");
        lease.sandbox.destroy().await.unwrap();
        drop(backend);
        fake.leaves_nothing().await;
    });
}

#[test]
fn a_machine_that_goes_on_is_paused_while_its_state_is_written_and_others_are_restored_from_it() {
    require!(Root);
    block_on(async {
        let fake = Fake::new(json!({})).await;
        let backend = microvm::start(fake.config()).await.unwrap();
        let before = fake.requests().len();
        let mut lease = create(&backend, &Limits::default()).await.unwrap();
        execute(&mut lease.kernel, "x = 41").await;
        let branched = lease.sandbox.branch(lease.kernel, 1).await.unwrap();
        // The state of a process of this computer is in no file: what is restored here begins anew,
        // without a sandbox.
        let error = branched.branches.unwrap_err().to_string();
        assert!(error.contains("no sandbox was suspended"), "{error}");
        let mut own = branched.own;
        assert_eq!(execute(&mut own.kernel, "x + 1").await, shows(42));
        let asked = fake.log("request").split_off(before);
        let last = |name: &str, body: &str| {
            let found = asked.iter().rfind(|it| it["request"] == name).unwrap();
            found["body"][body].clone()
        };
        assert_eq!(last("PATCH /vm", "state"), "Resumed");
        assert_eq!(last("PUT /snapshot/create", "mem_file_path"), "/state/memory");
        assert_eq!(last("PUT /snapshot/load", "snapshot_path"), "/saved/state");
        own.sandbox.destroy().await.unwrap();
        drop(backend);
        fake.leaves_nothing().await;
    });
}
