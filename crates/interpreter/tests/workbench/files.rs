//! Writing and editing: what arrives, what is refused, and that nothing outside is touched.

use serde_json::json;

use crate::support::{bench, block_on, hint};

const INVALID: &str = "Invalid path: must be /tmp/* or /workspace/*";

#[test]
fn a_written_file_is_there_with_its_folders() {
    block_on(async {
        let bench = bench().await;
        let written = bench.write("/tmp/a/b/c.txt", "é\r\nx").await;
        assert_eq!(
            written,
            json!({
                "success": true,
                "file_path": "/tmp/a/b/c.txt",
                "bytes_written": 5,
                "hint": {
                    "code": "file_written",
                    "message": "File written successfully. Use sandbox_exec to run it.",
                },
            })
        );
        assert_eq!(
            bench.session.read_file("/tmp/a/b/c.txt").await.unwrap(),
            "é\r\nx".as_bytes()
        );
        let encoded = json!({"file_path": "/workspace/raw", "content": "AAH/", "encoding": "base64"});
        assert_eq!(
            bench.call("sandbox_write_file", encoded).await["bytes_written"],
            json!(3)
        );
        assert_eq!(
            bench.session.read_file("/workspace/raw").await.unwrap(),
            [0, 1, 255]
        );
        assert_eq!(bench.write("/tmp/empty", "").await["bytes_written"], json!(0));
    });
}

#[test]
fn five_mebibytes_fit_and_one_byte_more_does_not() {
    block_on(async {
        let bench = bench().await;
        let limit = 5 << 20;
        assert_eq!(
            bench.write("/tmp/big", &"x".repeat(limit)).await["bytes_written"],
            json!(limit)
        );
        assert_eq!(bench.stdout(["wc", "-c", "/tmp/big"]).await, "5242880 /tmp/big\n");
        let refused = bench.write("/tmp/big", &"y".repeat(limit + 1)).await;
        assert_eq!(
            refused["error"],
            json!("Content too large: 5242881 bytes (max 5242880)")
        );
        assert_eq!(bench.stdout(["head", "-c1", "/tmp/big"]).await, "x");
        let edited = bench.edit("/tmp/big", &"x".repeat(limit), "y").await;
        assert_eq!(edited["success"], json!(true), "{edited}");
    });
}

#[test]
fn overwriting_keeps_the_mode_and_never_shows_half_a_file() {
    block_on(async {
        let bench = bench().await;
        bench.put("/tmp/run.sh", "#!/bin/sh\necho one\n").await;
        bench.stdout(["chmod", "750", "/tmp/run.sh"]).await;
        bench.put("/tmp/run.sh", "#!/bin/sh\necho two\n").await;
        assert_eq!(bench.stdout(["/tmp/run.sh"]).await, "two\n");
        assert_eq!(
            bench.edit("/tmp/run.sh", "two", "three").await["success"],
            json!(true)
        );
        assert_eq!(bench.stdout(["stat", "-c", "%a", "/tmp/run.sh"]).await, "750\n");
        assert_eq!(bench.stdout(["/tmp/run.sh"]).await, "three\n");
        // A reader in a kernel's thread sees one whole content after the other.
        let watch = "import threading, time\nseen = set()\n\
                     def look():\n    global going\n    while going:\n        \
                     seen.add(open('/tmp/flip').read())\ngoing = True\n\
                     open('/tmp/flip', 'w').write('a' * 200000)\n\
                     thread = threading.Thread(target=look, daemon=True)\nthread.start()";
        bench.session.execute(watch).await.unwrap();
        for letter in ["b", "c", "d", "e", "f"] {
            bench.put("/tmp/flip", &letter.repeat(200_000)).await;
        }
        let ended = bench
            .session
            .execute("going = False\nthread.join()\nprint({(len(text), len(set(text))) for text in seen})")
            .await
            .unwrap();
        assert_eq!(ended.stdout.text, "{(200000, 1)}\n");
        assert_eq!(
            bench.stdout(["ls", "-A", "/tmp"]).await,
            "data\nflip\noutput\nrun.sh\n",
            "nothing half done is left"
        );
    });
}

#[test]
fn an_invalid_edit_is_explained() {
    block_on(async {
        let bench = bench().await;
        bench.put("/tmp/a.py", "x = 1\ny = 1\r\nz = 1").await;
        assert_eq!(
            bench.edit("/tmp/a.py", "= 1", "= 2").await,
            json!({
                "success": false,
                "error": "old_string found 3 times - not unique. Include more context.",
                "file_path": "/tmp/a.py",
                "occurrences": 3,
                "lines": [1, 2, 3],
                "hint": {
                    "code": "not_unique",
                    "message": "Edit failed - old_string not unique. Include more surrounding context.",
                },
            })
        );
        for (old, new, error, code) in [
            ("absent", "x", "old_string not found in file", "not_found"),
            (
                "",
                "x",
                "old_string is empty. Give the exact text to replace.",
                "invalid_call",
            ),
            (
                "x",
                "x",
                "old_string and new_string are equal: nothing would change.",
                "invalid_call",
            ),
        ] {
            let answer = bench.edit("/tmp/a.py", old, new).await;
            assert_eq!((&answer["error"], hint(&answer)), (&json!(error), code));
        }
        let missing = bench.edit("/tmp/missing.py", "a", "b").await;
        assert_eq!(
            missing["error"],
            json!("Cannot read file: No such file or directory (os error 2)")
        );
        bench.stdout(["sh", "-c", "printf 'a\\0b' > /tmp/binary"]).await;
        assert_eq!(
            bench.edit("/tmp/binary", "a", "b").await["error"],
            json!("Cannot edit a binary file: it holds NUL bytes.")
        );
        bench.stdout(["truncate", "-s", "6M", "/tmp/large"]).await;
        assert_eq!(
            bench.edit("/tmp/large", "a", "b").await["error"],
            json!("File too large: 6291456 bytes (max 5242880)")
        );
        assert_eq!(bench.edit("/tmp/output", "a", "b").await["success"], json!(false));
        assert_eq!(
            bench.session.read_file("/tmp/a.py").await.unwrap(),
            b"x = 1\ny = 1\r\nz = 1"
        );
        assert_eq!(
            bench.edit("/tmp/a.py", "y = 1", "y = 22").await,
            json!({
                "success": true,
                "file_path": "/tmp/a.py",
                "hint": {"code": "file_edited",
                    "message": "File edited successfully. Re-run with sandbox_exec."},
            })
        );
        assert_eq!(
            bench.session.read_file("/tmp/a.py").await.unwrap(),
            b"x = 1\ny = 22\r\nz = 1"
        );
    });
}

#[test]
fn paths_elsewhere_are_rejected_by_both_tools() {
    block_on(async {
        let bench = bench().await;
        let (long, longer) = (format!("/tmp/{}", "x".repeat(300)), "/tmp/x".repeat(2000));
        for path in [
            concat!("/home", "/bad.py"),
            "/etc/passwd",
            "bad.py",
            "",
            "/tmp/../etc/passwd",
            "/workspace/../etc/x",
            "/proc/self/root/tmp/x",
            "/tmp/a\0b",
            "/tmp",
            &long,
            &longer,
        ] {
            for answer in [bench.write(path, "x").await, bench.edit(path, "x", "y").await] {
                assert_eq!(
                    (&answer["success"], &answer["error"], hint(&answer)),
                    (&json!(false), &json!(INVALID), "invalid_path"),
                    "{path:?}"
                );
            }
        }
        for path in ["/tmp/data/x.csv", "/tmp/x/../data/x.csv"] {
            let answer = bench.write(path, "x").await;
            assert_eq!(answer["error"], json!("Invalid path: /tmp/data/* is read-only"));
        }
        assert_eq!(
            bench.write("/tmp/a/../b.py", "x").await["file_path"],
            json!("/tmp/b.py")
        );
    });
}

#[test]
fn links_are_rejected_wherever_they_lead() {
    block_on(async {
        let bench = bench().await;
        bench
            .stdout([
                "sh",
                "-c",
                "cd /tmp; echo keep > target; ln -s target near; ln -s /etc/passwd far; \
                 ln -s / root; ln -s . here; ln -s /tmp/data inputs; ln -s loop loop; \
                 mkfifo pipe",
            ])
            .await;
        for path in [
            "/tmp/near",
            "/tmp/far",
            "/tmp/root/tmp/x",
            "/tmp/here/x",
            "/tmp/inputs/x",
            "/tmp/loop",
        ] {
            for answer in [bench.write(path, "x").await, bench.edit(path, "keep", "y").await] {
                assert_eq!(answer["error"], json!(INVALID), "{path}: {answer:#}");
            }
        }
        for answer in [
            bench.write("/tmp/pipe", "x").await,
            bench.edit("/tmp/pipe", "x", "y").await,
        ] {
            assert!(
                answer["error"]
                    .as_str()
                    .unwrap()
                    .ends_with("is a FIFO, not a regular file"),
                "{answer:#}"
            );
        }
        assert_eq!(bench.stdout(["cat", "/tmp/target"]).await, "keep\n");
    });
}

#[test]
fn links_that_are_swapped_in_meanwhile_lead_nowhere() {
    block_on(async {
        let bench = bench().await;
        let swap = "import os, threading\n\
                    os.makedirs('/tmp/w/real', exist_ok=True)\n\
                    os.makedirs('/tmp/bait', exist_ok=True)\n\
                    open('/tmp/bait/f', 'w').write('bait')\n\
                    open('/tmp/w/g', 'w').write('old')\n\
                    going = True\n\
                    def swap():\n\
                    \x20   n = 0\n\
                    \x20   while going:\n\
                    \x20       n += 1\n\
                    \x20       for make, name in ((lambda p: os.symlink('/tmp/bait', p), 'd'), (lambda p: \
                    os.mkdir(p), 'd'), (lambda p: os.symlink('/tmp/bait/f', p), 'g'), (lambda p: open(p, \
                    'w').write('old'), 'g')):\n\
                    \x20           try:\n\
                    \x20               make(f'/tmp/w/n{n}')\n\
                    \x20               try: os.rename(f'/tmp/w/n{n}', f'/tmp/w/{name}')\n\
                    \x20               except OSError:\n\
                    \x20                   os.rename(f'/tmp/w/{name}', f'/tmp/w/real/{n}{name}')\n\
                    \x20                   os.rename(f'/tmp/w/n{n}', f'/tmp/w/{name}')\n\
                    \x20           except OSError: pass\n\
                    threading.Thread(target=swap, daemon=True).start()";
        let started = bench.session.execute(swap).await.unwrap();
        assert_eq!(
            started.outcome,
            cellblock_interpreter::execution::Outcome::Completed,
            "{started:#?}"
        );
        let mut refused = 0;
        for round in 0..150 {
            for answer in [
                bench.write("/tmp/w/d/f", "x").await,
                bench.edit("/tmp/w/g", "old", &format!("new{round}")).await,
                bench.write("/tmp/w/g", "old").await,
            ] {
                refused += u32::from(answer["success"] == json!(false));
            }
        }
        bench.session.execute("going = False").await.unwrap();
        assert_eq!(bench.session.read_file("/tmp/bait/f").await.unwrap(), b"bait");
        assert!(refused > 0, "the swaps were never met");
        assert_eq!(bench.stdout(["sh", "-c", "ls /tmp/bait"]).await, "f\n");
    });
}

#[test]
fn an_edit_meets_a_writer_and_neither_leaves_a_mixture() {
    block_on(async {
        let bench = bench().await;
        // Each of the writer's contents has the piece once, and says at both ends which it is.
        let write = "import os, threading\ngoing = True\n\
                     def rewrite():\n    n = 0\n    while going:\n        n += 1\n        \
                     open('/tmp/next', 'w').write(f'{n}\\n' + 'x' * 100_000 + f' piece \
                     \\n{n}\\n')\n        os.rename('/tmp/next', '/tmp/log')\n\
                     threading.Thread(target=rewrite, daemon=True).start()\nimport time\n\
                     while not os.path.exists('/tmp/log'): time.sleep(0.01)";
        bench.session.execute(write).await.unwrap();
        let mut edited = 0;
        for _ in 0..60 {
            let answer = bench.edit("/tmp/log", " piece ", " edited ").await;
            match answer["error"].as_str() {
                None => edited += 1,
                // The writer was faster each time, or has not come back since the last edit.
                Some("Edit failed: the file was changed meanwhile" | "old_string not found in file") => {}
                Some(other) => panic!("{other}"),
            }
            let content = String::from_utf8(bench.session.read_file("/tmp/log").await.unwrap()).unwrap();
            let lines: Vec<_> = content.lines().collect();
            assert_eq!((lines.len(), lines[0]), (3, lines[2]), "two contents are mixed");
        }
        bench.session.execute("going = False").await.unwrap();
        assert!(edited > 0);
    });
}

#[test]
fn a_full_disk_does_not_change_the_file() {
    block_on(async {
        let bench = crate::support::limited(|limits| limits.disk_bytes = 4 << 20).await;
        bench.put("/tmp/a.txt", "before").await;
        let refused = bench.write("/tmp/a.txt", &"x".repeat(5 << 20)).await;
        assert_eq!(
            refused["error"],
            json!("Write failed: No space left on device (os error 28)")
        );
        assert_eq!(hint(&refused), "file_refused");
        assert_eq!(bench.stdout(["cat", "/tmp/a.txt"]).await, "before");
        bench.put("/tmp/b.txt", "there is room again").await;
    });
}
