//! Effects of machines on their snapshot, and snapshots that are damaged.

use std::fs;
use std::io::Read;

use cellblock_sandbox::Limits;
use cellblock_sandbox::pool::create;
use cellblock_testkit::require;
use cellblock_walls::microvm;
use sha2::{Digest, Sha256};

use crate::machine_image::machine_image;
use crate::support::{backend, block_on, config, execute, home, image, lease, shows, snapshots};

fn digests() -> Vec<Vec<u8>> {
    let snapshots = snapshots(&home());
    let files = snapshots
        .iter()
        .flat_map(|path| ["memory", "state", "disk.ext4"].map(|name| path.join(name)));
    files
        .map(|path| {
            let mut digest = Sha256::new();
            let mut file = fs::File::open(path).unwrap();
            let mut buffer = vec![0; 1 << 20];
            loop {
                match file.read(&mut buffer).unwrap() {
                    0 => return digest.finalize().to_vec(),
                    count => digest.update(&buffer[..count]),
                }
            }
        })
        .collect()
}

#[test]
fn machines_that_run_at_once_have_memory_of_their_own_and_change_no_snapshot() {
    require!(Qemu);
    block_on(async {
        backend().await;
        let before = digests();
        assert!(!before.is_empty());
        let mut leases = Vec::new();
        for at in 0..4 {
            let mut lease = lease().await;
            execute(
                &mut lease.kernel,
                &format!("x = {at}\nheld = bytearray(16 << 20)"),
            )
            .await;
            leases.push(lease);
        }
        for (at, lease) in (0..).zip(&mut leases) {
            assert_eq!(execute(&mut lease.kernel, "x").await, shows(at));
        }
        for lease in leases {
            lease.sandbox.destroy().await.unwrap();
        }
        assert_eq!(digests(), before);
    });
}

#[test]
fn a_damaged_snapshot_is_made_again() {
    require!(Qemu);
    block_on(async {
        let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        // Its template imports nothing: making it twice is a matter of seconds.
        let image = machine_image(&image().await, home.path(), &[]);
        drop(microvm::start(config(image.clone())).await.unwrap());
        let made = snapshots(home.path());
        assert_eq!(made.len(), 1);
        let memory = made[0].join("memory");
        fs::remove_file(&memory).unwrap();
        fs::write(&memory, "garbage").unwrap();
        let backend = microvm::start(config(image)).await.unwrap();
        assert!(fs::metadata(&memory).unwrap().len() > 1 << 20);
        let mut lease = create(&backend, &Limits::default()).await.unwrap();
        assert_eq!(execute(&mut lease.kernel, "6 * 7").await, shows(42));
        lease.sandbox.destroy().await.unwrap();
    });
}
