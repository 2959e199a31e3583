//! A full disk: a cell that has run keeps its outcome, what cannot be stored is refused with 507,
//! and `/readyz` reports it.

use std::path::{Path, PathBuf};
use std::process::Command;

use cellblock_artifact::Store;
use cellblock_gateway::records::{Database, DatabaseError, Records};
use cellblock_gateway::{Gateway, Models, Options};
use cellblock_interpreter::Interpreter;
use cellblock_testkit::require;
use reqwest::StatusCode;
use serde_json::json;

use crate::support::{Api, block_on, ending, gateway, serve, until};

/// Set in the second run of a test: the mount point of the small disk.
const SMALL: &str = "CELLBLOCK_TEST_SMALL_DISK";

const LARGE: &str = "print('said')\nwith open('large', 'wb') as file:\n    file.write(bytes(8 << 20))\n\
                     class Large:\n    def _repr_mimebundle_(self, **_):\n        \
                     return {'application/octet-stream': bytes(8 << 20)}\nLarge()";

/// Runs a test again in its own mount namespace, with a small disk at `/mnt`.
fn again(name: &str) {
    let script = "mount -t tmpfs -o size=64m none /mnt && exec \"$0\" \"$@\"";
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", script])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(SMALL, "/mnt")
        .output()
        .unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// Fills a disk, except for one MiB. Returns the file that takes up the space.
fn fill(disk: &Path) -> PathBuf {
    let filler = disk.join("filler");
    let _ = std::fs::write(&filler, vec![1; 80 << 20]);
    let file = std::fs::File::options().write(true).open(&filler).unwrap();
    let bytes = file.metadata().unwrap().len();
    file.set_len(bytes - (1 << 20)).unwrap();
    filler
}

async fn is_ready(api: &Api) -> bool {
    api.get("/readyz").await.0 == StatusCode::OK
}

#[test]
fn a_full_disk_costs_a_cell_its_artifacts_and_stops_uploads_and_readiness() {
    let Some(disk) = std::env::var_os(SMALL).map(PathBuf::from) else {
        require!(Root);
        return again("full_disk::a_full_disk_costs_a_cell_its_artifacts_and_stops_uploads_and_readiness");
    };
    block_on(async {
        let interpreter = Interpreter::builder()
            .home(cellblock_testkit::home().unwrap())
            .preload(Vec::new())
            .store(Store::local(disk.join("artifacts")).unwrap())
            .build()
            .await
            .unwrap();
        let mut options = Options::default();
        options.uploads.folder = Some(disk.join("uploads"));
        let records = Records::in_memory().unwrap();
        let gateway = Gateway::new(options, records, Models::default(), interpreter);
        let api = Api::at(serve(gateway.router()).await);
        let session = api.session(&json!({})).await;
        until("it is warm", || is_ready(&api)).await;
        let filler = fill(&disk);

        let cell = api.run(&session, LARGE).await;
        assert_eq!(
            (&cell["outcome"], &cell["stdout"]),
            (&json!("completed"), &json!("said\n"))
        );
        assert_eq!(cell["skipped_files"][0]["path"], "/workspace/large");
        let reason = cell["skipped_files"][0]["reason"].as_str().unwrap();
        let note = cell["note"].as_str().unwrap();
        for text in [reason, note] {
            assert!(text.contains("the host's disk is full"), "{cell}");
            assert!(!text.contains("/mnt"), "no path of the host: {cell}");
        }
        assert!(
            note.contains("(application/octet-stream, 8388608 bytes)"),
            "{note}"
        );
        let body = json!({"code": LARGE, "stream": true});
        let stream = api.start(&format!("{session}/cells"), &body).await;
        assert_eq!(ending((stream, String::new())).await, "completed");

        let path = format!("{session}/files/workspace/a.bin");
        let (status, error) = api.put(&path, "application/octet-stream", vec![1; 4 << 20]).await;
        assert_eq!(status, StatusCode::INSUFFICIENT_STORAGE, "{error}");
        assert_eq!(error["error"]["code"], "storage_full", "{error}");
        let message = error["error"]["message"].as_str().unwrap();
        for part in [
            "could not keep the upload",
            "`CELLBLOCK_HOME`",
            "free space there",
        ] {
            assert!(message.contains(part), "`{part}` is not in: {message}");
        }
        until("it is not ready", || async { !is_ready(&api).await }).await;
        let (_, condition) = api.get("/readyz").await;
        let reason = condition["reason"].as_str().unwrap();
        assert!(
            reason.starts_with("the disk of the data folder is full"),
            "{reason}"
        );

        std::fs::remove_file(filler).unwrap();
        until("it is ready again", || is_ready(&api)).await;
        let next = api.run(&session, "open('small', 'w').write('x')").await;
        let names = next["files"].as_array().unwrap().iter();
        let mut names: Vec<_> = names.map(|file| file["name"].as_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, ["large", "small"], "{next}");
        assert!(next.get("note").is_none(), "{next}");
        api.end(&session).await;
    });
}

#[test]
fn a_cell_whose_artifacts_cannot_be_recorded_keeps_its_outcome() {
    block_on(async {
        let gateway = gateway(Options::default()).await;
        let api = Api::at(serve(gateway.router()).await);
        let session = api.session(&json!({})).await;
        api.run(&session, "1").await;
        let fill = |database: &mut Database| -> Result<(), DatabaseError> {
            database.batch("CREATE TABLE filler (bytes BLOB)")?;
            let pages = database.first("PRAGMA page_count", &[], |row| row.get::<i64>(0))?;
            database.batch(&format!("PRAGMA max_page_count = {}", pages.unwrap()))?;
            while database
                .execute("INSERT INTO filler VALUES (zeroblob(3000))", &[])
                .is_ok()
            {}
            Ok(())
        };
        gateway.records.with(fill).await.unwrap();
        let code = "print('said')\nfor n in range(60):\n    open(f'{n}.txt', 'w').write(str(n) * 3)";
        let cell = api.run(&session, code).await;
        assert_eq!(
            (&cell["outcome"], &cell["stdout"]),
            (&json!("completed"), &json!("said\n"))
        );
        let note = cell["note"].as_str().unwrap();
        for part in [
            "cannot be read, because the server's disk is full",
            " and 52 more",
            "Do not run it again",
        ] {
            assert!(note.contains(part), "`{part}` is not in: {note}");
        }
        api.end(&session).await;
    });
}
