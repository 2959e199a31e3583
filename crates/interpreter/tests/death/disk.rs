//! Disks of the host that are full, read-only or missing. The host of such a disk is this test,
//! started again in a mount namespace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::output::Output;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::{Execution, Session};
use cellblock_testkit::require;

use crate::world::{alone, answer, block_on, image, interpreter};

/// Set in the second run: the mount point of the small disk.
const SMALL: &str = "CELLBLOCK_TEST_SMALL_DISK";

/// Runs a test again with a small disk of its own at `/mnt`, and with what a shell does to the
/// mount namespace before.
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

/// Runs code whose output the host cannot keep: the cell has its outcome and its text, and a note
/// that names the output.
async fn loses(session: &Session, wanted: &[&str]) -> Execution {
    let ran = session.execute(LARGE).await.unwrap();
    assert_eq!(ran.outcome, Outcome::Completed);
    assert_eq!(ran.stdout.text, "said\n");
    let note = ran.note.clone().unwrap();
    for part in ["the code ran", "Do not run the code again"].iter().chain(wanted) {
        assert!(note.contains(part), "`{part}` is not in: {note}");
    }
    assert!(!note.contains("/mnt"), "no path of the host: {note}");
    let next = answer(session).await;
    assert_eq!(next.note, None, "nothing was lost");
    assert!(crate::world::has_kept(session).await);
    ran
}

const LARGE: &str = "print('said')\nclass Large:\n    def _repr_mimebundle_(self, **_):\n        \
                     return {'application/octet-stream': bytes(8 << 20)}\nLarge()";
const FILE: &str = "with open('/workspace/large', 'wb') as file:\n    file.write(bytes(8 << 20))";

#[test]
fn a_full_disk_costs_a_cell_its_large_outputs_and_files_and_nothing_else() {
    let Some(disk) = small_disk() else {
        require!(Root);
        let _alone = alone();
        return again(
            "disk::a_full_disk_costs_a_cell_its_large_outputs_and_files_and_nothing_else",
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
        let ran = loses(&session, &["a large output", "the host's disk is full"]).await;
        assert!(ran.outputs.is_empty(), "{:?}", ran.outputs);
        empty(&disk);
        // It fits there, and its copy in the store does not.
        fill(&disk, 12 << 20);
        let wanted = [
            "(application/octet-stream, 8388608 bytes)",
            "the host's disk is full",
        ];
        let ran = loses(&session, &wanted).await;
        let [Output::Rich(value)] = &*ran.outputs else {
            panic!("{:?}", ran.outputs)
        };
        assert!(value.bundle.is_empty() && value.truncated, "{value:?}");
        assert_eq!(files(&artifacts), Vec::<PathBuf>::new(), "nothing half made");
        empty(&disk);
        fill(&disk, 1 << 20);
        let ran = session.execute(FILE).await.unwrap();
        assert_eq!((ran.outcome, ran.files.len()), (Outcome::Completed, 0));
        let skipped = &ran.skipped_files[0];
        assert_eq!(skipped.path, "/workspace/large");
        for part in ["8388608 bytes", "the host's disk is full", "still in the sandbox"] {
            assert!(skipped.reason.contains(part), "{skipped:?}");
        }
        empty(&disk);
        let collected = answer(&session).await;
        assert_eq!(
            collected.files.len(),
            1,
            "the file that did not fit before: {:?}",
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
        loses(
            &session,
            &["a large output", "the host cannot write to its temporary folder"],
        )
        .await;
        session.close().await.unwrap();
    });
}
