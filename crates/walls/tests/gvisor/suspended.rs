//! Machines that are written to disk and restored, and what is on the disk meanwhile, in gVisor and
//! in microVMs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::{DormantSandbox, Suspension};
use cellblock_sandbox::pool::{Lease, create};
use cellblock_testkit::require;
use cellblock_testkit::wait::until;
use tokio::sync::Mutex;

use crate::full_disk::SmallDisk;
use crate::support::{
    self, NAME, block_on, config, execute, home, image_in, lease, share_snapshot, shows, start_backend,
};

/// One test at a time writes states in the shared home, so that it knows which are its own.
static ALONE: Mutex<()> = Mutex::const_new(());

/// The directories of machines (m…) or of their states (s…) of this process.
fn directories(home: &Path, kind: char) -> Vec<PathBuf> {
    let own = format!("cellblock-{}-", std::process::id());
    let entries = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten();
    let places = entries(home.join(NAME)).filter(|it| it.file_name().to_string_lossy().starts_with(&own));
    let inside = places.flat_map(|place| entries(place.path()));
    let found = inside.filter(|it| it.file_name().to_string_lossy().starts_with(kind));
    found
        .map(|it| it.path())
        .filter(|it| !it.ends_with("shared"))
        .collect()
}

async fn dormant(lease: Lease) -> Box<dyn DormantSandbox> {
    match lease.sandbox.suspend(lease.kernel).await.unwrap() {
        Suspension::Dormant(dormant) => dormant,
        Suspension::Refused(_, error) => panic!("{error}"),
    }
}

/// A machine that cannot be written goes on; returns why.
async fn refused(mut lease: Lease) -> String {
    execute(&mut lease.kernel, "x = 41").await;
    let Suspension::Refused(lease, error) = lease.sandbox.suspend(lease.kernel).await.unwrap() else {
        panic!("it was written");
    };
    let mut lease = *lease;
    assert_eq!(execute(&mut lease.kernel, "x + 1").await, shows(42));
    error.to_string()
}

#[test]
fn a_suspended_machine_is_in_a_private_directory_until_it_is_restored() {
    require!(support::CAPABILITY);
    block_on(async {
        let _alone = ALONE.lock().await;
        let home = home();
        let mut lease = lease().await;
        execute(&mut lease.kernel, "x = 41").await;
        let before = directories(&home, 's');
        let dormant_machine = dormant(lease).await;
        let saved: Vec<_> = directories(&home, 's')
            .into_iter()
            .filter(|it| !before.contains(it))
            .collect();
        let [directory] = &saved[..] else {
            panic!("not one directory: {saved:?}");
        };
        assert_eq!(
            fs::metadata(directory).unwrap().permissions().mode() & 0o777,
            0o700
        );
        let files = fs::read_dir(directory).unwrap().flatten();
        let bytes: u64 = files.map(|file| file.metadata().unwrap().len()).sum();
        assert_eq!(dormant_machine.bytes(), bytes);
        let mut lease = dormant_machine.wake().await.unwrap();
        assert!(!directory.exists());
        assert_eq!(execute(&mut lease.kernel, "x + 1").await, shows(42));
        // What was changed is not restored, and goes.
        let dormant_machine = dormant(lease).await;
        let after = directories(&home, 's');
        let directory = after.iter().find(|it| !before.contains(it)).unwrap();
        let file = fs::read_dir(directory).unwrap().next().unwrap().unwrap();
        fs::write(file.path(), "nothing").unwrap();
        let error = dormant_machine.wake().await.unwrap_err().to_string();
        assert!(error.contains("is not what was written"), "{error}");
        assert!(!directory.exists());
    });
}

#[test]
fn machines_that_branch_have_the_same_state_and_other_names() {
    require!(support::CAPABILITY);
    block_on(async {
        let _alone = ALONE.lock().await;
        let mut lease = lease().await;
        execute(&mut lease.kernel, "import os, socket\nx = [41]").await;
        let branched = lease.sandbox.branch(lease.kernel, 2).await.unwrap();
        let mut all = vec![branched.own];
        all.extend(branched.branches.unwrap());
        let mut names = Vec::new();
        for lease in &mut all {
            assert_eq!(execute(&mut lease.kernel, "x.append(1)\nsum(x)").await, shows(42));
            names.push(format!(
                "{:?}",
                execute(&mut lease.kernel, "socket.gethostname()").await
            ));
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 3, "{names:?}");
    });
}

#[test]
fn a_machine_that_is_too_large_or_has_no_room_on_disk_goes_on() {
    require!(support::CAPABILITY);
    require!(Root);
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let image = image_in(folder.path()).await;
        share_snapshot(folder.path()).await;
        let mut small = config(image.clone());
        small.options.suspended_bytes = Some(1 << 20);
        let small = start_backend(small).await.unwrap();
        let error = refused(create(&small, &Limits::default()).await.unwrap()).await;
        assert!(error.contains("the limit is 1048576"), "{error}");
        assert!(directories(folder.path(), 's').is_empty());
        drop(small);
        until("its machines are gone", || {
            directories(folder.path(), 'm').is_empty()
        })
        .await;

        let place = folder.path().join(NAME);
        let disk = SmallDisk::new(&place, 300 << 20);
        let full = start_backend(config(image)).await.unwrap();
        let mut lease = create(&full, &Limits::default()).await.unwrap();
        execute(&mut lease.kernel, "import os\nmuch = os.urandom(200 << 20)").await;
        let error = refused(lease).await;
        assert!(
            error.contains("has only") && error.contains("MiB free"),
            "{error}"
        );
        assert!(directories(folder.path(), 's').is_empty());
        drop(full);
        until("its machines are gone", || {
            directories(folder.path(), 'm').is_empty()
        })
        .await;
        drop(disk);
    });
}
