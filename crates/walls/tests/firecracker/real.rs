//! The real Firecracker, where `CELLBLOCK_TEST_FIRECRACKER` names one.

use std::collections::BTreeSet;

use cellblock_sandbox::Limits;
use cellblock_sandbox::pool::create;
use cellblock_testkit::require;
use cellblock_walls::microvm::{self, Vmm};
use cellblock_walls::{WallConfig, WallOptions};

use crate::support::{block_on, execute, image};

#[test]
fn firecracker_runs_cells_or_says_that_kvm_is_unusable() {
    require!(Firecracker);
    block_on(async {
        let mut options = WallOptions::default();
        options.microvm.vmm = Vmm::Firecracker;
        options.microvm.firecracker = cellblock_testkit::firecracker();
        let config = WallConfig {
            image: image().await,
            executable: cellblock_testkit::binary().unwrap(),
            limits: Limits::default(),
            demands: cellblock_sandbox::jail::protection::Demands::default(),
            options,
        };
        let backend = match microvm::start(config).await {
            Ok(backend) => backend,
            Err(error) => {
                let error = error.to_string();
                // Such a machine has a `/dev/kvm` in which guests end.
                assert!(error.contains("KVM is unusable: "), "{error}");
                return;
            }
        };
        let mut seen = BTreeSet::new();
        for _ in 0..8 {
            let mut lease = create(&backend, &Limits::default()).await.unwrap();
            let code = "import os, random\nf'{os.urandom(8).hex()} {random.random()} {os.uname().nodename}'";
            seen.insert(format!("{:?}", execute(&mut lease.kernel, code).await.1));
            lease.sandbox.destroy().await.unwrap();
        }
        assert_eq!(seen.len(), 8, "{seen:?}");
    });
}
