//! Patches of several files in real sandboxes: all files change, or none.

use serde_json::{Value, json};

use crate::support::{Bench, bench, block_on, hint};

const INVALID: &str = "Invalid path: must be /tmp/* or /workspace/*";

async fn patch(bench: &Bench, lines: &str) -> Value {
    let patch = format!("*** Begin Patch\n{lines}\n*** End Patch\n");
    bench.call("sandbox_apply_patch", json!({"patch": patch})).await
}

#[test]
fn files_are_created_changed_and_deleted_in_one_step() {
    block_on(async {
        let bench = bench().await;
        bench.put("/workspace/a.py", "def f():\n    return 0\n").await;
        bench.put("/workspace/old.txt", "old").await;
        bench.sh("chmod 755 /workspace/a.py").await;
        let lines = "*** Update File: a.py\n@@ def f():\n-    return 0\n+    return 1\n\
                     *** Add File: /tmp/made/b.txt\n+one\n+two\n*** Delete File: /workspace/old.txt";
        let patched = patch(&bench, lines).await;
        assert_eq!(
            (&patched["success"], hint(&patched), &patched["files"]),
            (
                &json!(true),
                "files_patched",
                &json!([
                    {"file_path": "/workspace/a.py", "change": "updated"},
                    {"file_path": "/tmp/made/b.txt", "change": "created"},
                    {"file_path": "/workspace/old.txt", "change": "deleted"},
                ])
            ),
            "{patched:#}"
        );
        let seen = "cat /workspace/a.py /tmp/made/b.txt; ls /workspace; stat -c %a /workspace/a.py";
        assert_eq!(
            bench.stdout(["sh", "-c", seen]).await,
            "def f():\n    return 1\none\ntwo\na.py\n755\n"
        );
    });
}

#[test]
fn a_patch_that_does_not_fit_changes_nothing_and_says_where() {
    block_on(async {
        let bench = bench().await;
        bench.put("/workspace/a.txt", "one\ntwo\n").await;
        bench.put("/workspace/b.txt", "x\ny\n").await;
        bench.put("/workspace/nul", "a\0b").await;
        let good = "*** Add File: new.txt\n+new\n*** Update File: a.txt\n-one\n+1\n";
        for (wrong, path, words) in [
            (
                "*** Update File: b.txt\n x\n-z",
                "b.txt",
                "section 1 (line 8 of the patch): its lines are not in the file; the nearest place begins at \
                 line 1, but instead of `z` line 2 of the file is `y`",
            ),
            ("*** Delete File: gone.txt", "gone.txt", "there is no such file"),
            ("*** Add File: b.txt\n+x", "b.txt", "exists already"),
            ("*** Update File: nul\n-a\n+b", "nul", "not text in UTF-8"),
            (
                "*** Update File: /workspace\n-a\n+b",
                "/workspace",
                "Invalid path",
            ),
            ("*** Delete File: /tmp", "/tmp", "Invalid path"),
        ] {
            let refused = patch(&bench, &format!("{good}{wrong}")).await;
            assert_eq!(
                (&refused["success"], &refused["file_path"]),
                (&json!(false), &json!(path)),
                "{refused:#}"
            );
            let error = refused["error"].as_str().unwrap();
            assert!(error.contains(words), "{error}");
        }
        assert_eq!(
            bench
                .stdout(["sh", "-c", "cd /workspace; cat a.txt b.txt; ls"])
                .await,
            "one\ntwo\nx\ny\na.txt\nb.txt\nnul\n"
        );
    });
}

#[test]
fn files_that_were_written_are_put_back_when_a_later_one_is_refused() {
    block_on(async {
        let bench = bench().await;
        bench.put("/workspace/a.txt", "one\n").await;
        // The second new file has the first one as its folder.
        let lines = "*** Update File: a.txt\n-one\n+1\n*** Add File: new\n+x\n*** Add File: new/b.txt\n+y";
        let refused = patch(&bench, lines).await;
        assert_eq!(
            (&refused["success"], &refused["file_path"]),
            (&json!(false), &json!("new/b.txt")),
            "{refused:#}"
        );
        assert!(
            !refused["error"].as_str().unwrap().contains("put back"),
            "{refused:#}"
        );
        assert_eq!(
            bench.stdout(["sh", "-c", "cd /workspace; cat a.txt; ls"]).await,
            "one\na.txt\n"
        );
    });
}

#[test]
fn a_patch_follows_no_link() {
    block_on(async {
        let bench = bench().await;
        bench
            .stdout([
                "sh",
                "-c",
                "cd /workspace; echo keep > target; ln -s target near; ln -s /etc/passwd far; ln -s / root; \
                 mkfifo pipe",
            ])
            .await;
        for path in ["near", "far", "root/tmp/x"] {
            for change in [
                "Add File: {}\n+x",
                "Update File: {}\n-keep\n+x",
                "Delete File: {}",
            ] {
                let refused = patch(&bench, &format!("*** {}", change.replace("{}", path))).await;
                assert_eq!(refused["error"], json!(INVALID), "{change} {path}: {refused:#}");
            }
        }
        let refused = patch(&bench, "*** Update File: pipe\n-x\n+y").await;
        let error = refused["error"].as_str().unwrap();
        assert!(error.ends_with("is a FIFO, not a regular file"), "{error}");
        assert_eq!(bench.stdout(["cat", "/workspace/target"]).await, "keep\n");
    });
}

#[test]
fn a_patch_has_a_maximum_size() {
    block_on(async {
        let bench = bench().await;
        let large = patch(&bench, &format!("*** Add File: a\n+{}", "x".repeat(1 << 20))).await;
        assert!(
            large["error"].as_str().unwrap().contains("(max 1048576)"),
            "{large:#}"
        );
        bench
            .sh("head -c 5242870 /dev/zero | tr '\\0' x > /workspace/a")
            .await;
        let grown = patch(&bench, "*** Update File: a\n+a line that is too much").await;
        let error = grown["error"].as_str().unwrap();
        assert!(
            error.contains("File too large") && error.contains("(max 5242880)"),
            "{error}"
        );
        bench
            .sh("rm a; for n in 1 2 3 4 5 6 7; do head -c 5242880 /dev/zero > $n; done")
            .await;
        let deleted: Vec<_> = (1..8).map(|name| format!("*** Delete File: {name}")).collect();
        let much = patch(&bench, &deleted.join("\n")).await;
        assert!(
            much["error"]
                .as_str()
                .unwrap()
                .contains("33554432 bytes together"),
            "{much:#}"
        );
        assert_eq!(bench.stdout(["sh", "-c", "ls | wc -l"]).await, "7\n");
    });
}
