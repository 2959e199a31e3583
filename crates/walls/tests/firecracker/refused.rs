//! Programs that are not used.

use std::fs;

use cellblock_sandbox::error::Blame;
use cellblock_testkit::require;
use cellblock_walls::microvm::{self, Vmm};
use serde_json::json;

use crate::support::{Fake, block_on};

#[test]
fn versions_that_are_too_old_or_differ_and_a_missing_jailer_are_errors() {
    require!(Root);
    block_on(async {
        for (behavior, expected) in [
            (
                json!({"version": "1.12.9"}),
                "has the version 1.12.9, which is too old",
            ),
            (
                json!({"jailer": "1.15.0"}),
                "has the version 1.15.0, but Firecracker has 1.16.1: a jailer runs only its own release",
            ),
            (json!({"trial": "no guest runs"}), "KVM is unusable: "),
        ] {
            let fake = Fake::new(behavior).await;
            let error = microvm::start(fake.config()).await.unwrap_err();
            assert_eq!(error.blame(), Blame::Policy, "{error}");
            let error = error.to_string();
            assert!(error.contains(expected), "{error}");
            assert!(error.contains("`microvm: {vmm: qemu}`"), "{error}");
        }
        let fake = Fake::new(json!({})).await;
        fs::remove_file(fake.path("jailer")).unwrap();
        let error = microvm::start(fake.config()).await.unwrap_err().to_string();
        assert!(
            error.contains("root runs Firecracker only in its jailer"),
            "{error}"
        );
    });
}

#[test]
fn firecracker_that_fails_is_not_replaced_by_qemu_unless_emulation_is_allowed() {
    block_on(async {
        let fake = Fake::new(json!({"version": "1.0.0"})).await;
        let mut options = fake.config().options.microvm;
        options.vmm = Vmm::Auto;
        let error = microvm::probe(&options).await.unwrap_err().to_string();
        assert!(error.starts_with("Firecracker does not work here: "), "{error}");
        // The reason is QEMU's then, which is not there either.
        options.emulation = true;
        options.qemu = Some("/nowhere/qemu".into());
        let error = microvm::probe(&options).await.unwrap_err().to_string();
        assert!(error.contains("cannot run `/nowhere/qemu`"), "{error}");
    });
}
