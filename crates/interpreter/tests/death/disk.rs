//! Disks of the host that are full, read-only or missing. The host of such a disk is this test, started again in a mount namespace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::{Error, Session};
use cellblock_testkit::require;

use crate::world::{alone, answer, block_on, image, interpreter};

/// Set in the second run: the mount point of the small disk.
const SMALL: &str = "CELLBLOCK_TEST_SMALL_DISK";

/// Runs a test again with a small disk of its own at `/mnt`, and with what a shell does to the mount namespace before.
fn again(name: &str, prepare: &str, temporary: &str) {
    let script = format!("set -e; mount -t tmpfs -o size=24m none /mnt; {prepare} exec \"$0\" \"$@\"");
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", &script])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(SMALL, "/mnt")
        .env("TMPDIR", temporary)
        .output()
        .unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

fn small_disk() -> Option<PathBuf> {
    std::env::var_os(SMALL).map(PathBuf::from)
}

/// Fills a disk but for some bytes.
fn fill(disk: &Path, but: usize) {
    let filler = disk.join("filler");
    let _ = fs::write(&filler, vec![1; 64 << 20]);
    let left = fs::metadata(&filler).unwrap().len() - but as u64;
    fs::File::options()
        .write(true)
        .open(filler)
        .unwrap()
        .set_len(left)
        .unwrap();
}

fn empty(disk: &Path) {
    fs::remove_file(disk.join("filler")).unwrap();
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| {
            if entry.file_type().unwrap().is_dir() {
                files(&entry.path())
            } else {
                vec![entry.path()]
            }
        })
        .collect()
}

fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}

async fn fails(session: &Session, code: &str, wanted: &[&str]) {
    let error = session.execute(code).await.unwrap_err();
    let told = chain(&error);
    for part in wanted {
        assert!(told.contains(part), "`{part}` is not in: {told}");
    }
    let next = answer(session).await;
    assert_eq!(next.note, None, "nothing was lost");
    assert!(crate::world::has_kept(session).await);
}

const LARGE: &str = "class Large:\n    def _repr_mimebundle_(self, **_):\n        \
                     return {'application/octet-stream': bytes(8 << 20)}\nLarge()";
const FILE: &str = "with open('/workspace/large', 'wb') as file:\n    file.write(bytes(8 << 20))";

#[test]
fn a_full_disk_fails_the_cell_whose_outputs_it_cannot_hold_and_no_later_one() {
    let Some(disk) = small_disk() else {
        require!(Root);
        let _alone = alone();
        return again(
            "disk::a_full_disk_fails_the_cell_whose_outputs_it_cannot_hold_and_no_later_one",
            "",
            "/mnt",
        );
    };
    block_on(async {
        let artifacts = disk.join("artifacts");
        let interpreter = interpreter(image().await, &artifacts).await;
        let session = interpreter.session(SessionOptions {
            prelude: Vec::new(),
            ..SessionOptions::default()
        });
        session.execute("kept = 1").await.unwrap();
        fill(&disk, 1 << 20);
        // The frame does not fit into its temporary file.
        fails(
            &session,
            LARGE,
            &[
                "keep a large frame of the kernel in a temporary file below `/mnt`",
                "No space left",
            ],
        )
        .await;
        empty(&disk);
        // It fits there, and its copy in the store does not.
        fill(&disk, 12 << 20);
        fails(
            &session,
            LARGE,
            &[
                "decode an output of the kernel",
                "could not store an output",
                "could not write an artifact",
            ],
        )
        .await;
        assert_eq!(files(&artifacts), Vec::<PathBuf>::new(), "nothing half made");
        empty(&disk);
        fill(&disk, 1 << 20);
        let error = session.execute(FILE).await.unwrap_err();
        let told = chain(&error);
        for part in [
            "keep a file from the sandbox",
            "copy `/workspace/large` into a file below `/mnt`",
            "No space left",
        ] {
            assert!(told.contains(part), "{told}");
        }
        empty(&disk);
        let collected = answer(&session).await;
        assert_eq!(
            collected.files.len(),
            1,
            "the file of the cell that failed: {:?}",
            collected.files
        );
        assert!(crate::world::has_kept(&session).await);
        session.close().await.unwrap();
    });
}

#[test]
fn a_host_without_tmp_works_and_says_what_it_cannot_keep() {
    if small_disk().is_none() {
        require!(Root);
        let _alone = alone();
        return again(
            "disk::a_host_without_tmp_works_and_says_what_it_cannot_keep",
            "",
            "/nonexistent/tmp",
        );
    }
    block_on(async {
        let artifacts = Path::new("/mnt/artifacts");
        let interpreter = interpreter(image().await, artifacts).await;
        let session = interpreter.session(SessionOptions {
            prelude: Vec::new(),
            ..SessionOptions::default()
        });
        session.execute("kept = 1").await.unwrap();
        fails(
            &session,
            LARGE,
            &[
                "in a temporary file below `/nonexistent/tmp`",
                "No such file or directory",
            ],
        )
        .await;
        session.close().await.unwrap();
    });
}
