//! Firecracker of a user without privileges, who cannot use its jailer.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};

use cellblock_testkit::{ORDINARY_UID, as_ordinary_user, binary, require};
use serde_json::json;

use crate::support::{Fake, block_on};

#[test]
fn an_ordinary_user_s_machines_see_the_same_paths_without_a_jailer() {
    require!(Qemu);
    require!(Root);
    require!(OrdinaryUser);
    // Restoring ends at the last request: a process of this computer that takes itself for root is
    // no machine.
    let fake = block_on(Fake::new(json!({"faults": {"PUT /snapshot/load": "no further"}})));
    let home = fake.home();
    fs::set_permissions(home.parent().unwrap(), fs::Permissions::from_mode(0o777)).unwrap();
    chown(home, Some(ORDINARY_UID), Some(ORDINARY_UID)).unwrap();
    let path = format!("{}:/usr/bin:/bin", home.parent().unwrap().display());
    let image = fs::read_dir(home.join("images"))
        .unwrap()
        .flatten()
        .next()
        .unwrap();
    let output = as_ordinary_user(binary().unwrap())
        .args(["run", "--backend", "microvm", "--code", "1", "--image"])
        .arg(image.file_name())
        .env("CELLBLOCK_HOME", home)
        .env("PATH", path)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let expected = "Firecracker rejected `PUT /snapshot/load` with 400 Bad Request: no further";
    assert!(!output.status.success() && errors.contains(expected), "{errors}");
    assert_eq!(fake.log("jailer").len(), 0);
    let inside = home.join("microvm/firecracker");
    let loads: Vec<_> = fake
        .log("body")
        .into_iter()
        .filter(|it| it["request"] == "PUT /snapshot/load")
        .collect();
    assert_eq!(loads.len(), 3);
    for load in loads {
        assert_eq!(
            load["body"],
            json!({
                "snapshot_path": inside.join("snapshot/state"),
                "mem_backend": {"backend_type": "File", "backend_path": inside.join("snapshot/memory")},
                "resume_vm": true,
                "vsock_override": {"uds_path": inside.join("machine/vsock")},
            })
        );
    }
    // What was mounted there was visible to Firecracker alone.
    for directory in ["snapshot", "machine"] {
        assert_eq!(fs::read_dir(inside.join(directory)).unwrap().count(), 0);
    }
    block_on(fake.leaves_nothing());
}
