//! The guest: files and commands of a room, and rejections with reasons.

use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;

use cellblock_protocol::Stream;
use cellblock_sandbox::backend::{Backend, Sandbox};
use cellblock_sandbox::guest::{CommandEvent, Guest, SandboxCommand};

use crate::support::{MIB, backend, block_on, execute, limits, shows};

/// Runs a test on the guest of a new room.
fn with_room(test: impl AsyncFnOnce(&dyn Sandbox)) {
    block_on(async {
        let backend = backend().await;
        let limits = limits(|limits| limits.disk_bytes = 16 * MIB);
        let room = backend.create(&limits).await.unwrap();
        test(room.as_ref()).await;
        room.destroy().await.unwrap();
    });
}

fn command<const N: usize>(argv: [&str; N]) -> SandboxCommand {
    SandboxCommand {
        argv: argv.map(str::to_owned).to_vec(),
        cwd: "/workspace".to_owned(),
        env: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        inherit: false,
        timeout: Duration::from_secs(20),
        input: false,
        keep: None,
        terminal: None,
    }
}

#[derive(Debug, Default, PartialEq)]
struct Output {
    stdout: String,
    stderr: String,
    code: Option<i32>,
    signal: Option<i32>,
    timed_out: bool,
    failed: Option<String>,
}

async fn output(guest: &Guest, command: SandboxCommand) -> Output {
    let mut events = guest.run(command).await.unwrap().events;
    let mut output = Output::default();
    while let Some(event) = events.recv().await {
        match event {
            CommandEvent::Output(Stream::Stdout, part) => output.stdout += &String::from_utf8(part).unwrap(),
            CommandEvent::Output(Stream::Stderr, part) => output.stderr += &String::from_utf8(part).unwrap(),
            CommandEvent::Exited {
                code,
                signal,
                timed_out,
                leaked,
            } => {
                assert!(!leaked);
                (output.code, output.signal, output.timed_out) = (code, signal, timed_out);
            }
            CommandEvent::Started => {}
            CommandEvent::Failed(reason) => output.failed = Some(reason),
        }
    }
    output
}

async fn read(guest: &Guest, path: &str) -> Vec<u8> {
    let (blob, eof) = guest.read(path, 0, 4 * MIB).await.unwrap();
    assert!(eof, "{path} is longer than one part");
    let mut bytes = Vec::new();
    blob.reader().read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_file_is_written_read_replaced_and_removed() {
    with_room(async |room| {
        let guest = room.guest();
        assert_eq!(
            guest
                .write("/workspace/sub/dir/a.txt", 0o644, &b"one"[..])
                .await
                .unwrap(),
            3
        );
        assert_eq!(read(guest, "/workspace/sub/dir/a.txt").await, b"one");
        assert_eq!(
            guest
                .write("/workspace/sub/dir/a.txt", 0o644, &b""[..])
                .await
                .unwrap(),
            0
        );
        assert_eq!(read(guest, "/workspace/sub/dir/a.txt").await, b"");
        guest.remove("/workspace/sub/dir/a.txt").await.unwrap();
        let error = guest.read("/workspace/sub/dir/a.txt", 0, 1).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "read `/workspace/sub/dir/a.txt` in the sandbox: No such file or directory (os \
             error 2) (not_found)"
        );
        guest.remove("/workspace/sub/dir").await.unwrap();
    });
}

#[test]
fn a_file_whose_source_fails_in_the_middle_is_not_left_half_written() {
    /// Gives a long first part, then an error.
    struct FailingReader(u64);

    impl Read for FailingReader {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            if self.0 == 0 {
                return Err(std::io::Error::other("the disk is gone"));
            }
            let length = buffer.len().min(usize::try_from(self.0).unwrap());
            buffer[..length].fill(b'x');
            self.0 -= length as u64;
            Ok(length)
        }
    }

    with_room(async |room| {
        let guest = room.guest();
        let error = guest
            .write("/workspace/half", 0o644, FailingReader(6 * MIB))
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "read an input");
        assert!(guest.read("/workspace/half", 0, 1).await.is_err());
    });
}

#[test]
fn a_file_of_many_parts_arrives_whole() {
    with_room(async |room| {
        let guest = room.guest();
        let bytes: Vec<u8> = (0..(5_u32 << 19) + 3).map(|n| (n % 253) as u8).collect();
        for path in ["/workspace/big", "/tmp/data/big"] {
            let written = guest.write(path, 0o644, &bytes[..]).await.unwrap();
            assert_eq!(written, bytes.len() as u64, "{path}");
            assert_eq!(read(guest, path).await, bytes, "{path}");
        }
        let (part, eof) = guest.read("/workspace/big", 10, 5).await.unwrap();
        let mut read = Vec::new();
        part.reader().read_to_end(&mut read).unwrap();
        assert_eq!((&read[..], eof), (&bytes[10..15], false));
        let (part, eof) = guest.read("/workspace/big", 1 << 40, 5).await.unwrap();
        assert_eq!((part.len(), eof), (0, true));
    });
}

#[test]
fn paths_outside_the_two_roots_are_rejected() {
    with_room(async |room| {
        let guest = room.guest();
        for path in [
            "/etc/passwd",
            "workspace/a",
            "",
            "/",
            "/workspace/../etc/passwd",
            "/tmp/../workspace/a",
            "/workspaces",
        ] {
            let error = guest.read(path, 0, 1).await.unwrap_err();
            assert_eq!(
                error.to_string(),
                format!(
                    "read `{path}` in the sandbox: path must be absolute, below /workspace or /tmp, and \
                     without `..` (path)"
                )
            );
            assert!(guest.write(path, 0o644, &b"x"[..]).await.is_err(), "{path}");
            assert!(guest.remove(path).await.is_err(), "{path}");
        }
        for root in ["/workspace", "/tmp", "/tmp/data"] {
            let error = guest.remove(root).await.unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("remove `{root}` in the sandbox: path names a root (path)")
            );
        }
    });
}

#[test]
fn links_are_not_followed_and_directories_are_not_files() {
    with_room(async |room| {
        let guest = room.guest();
        let made = output(
            guest,
            command([
                "sh",
                "-c",
                "ln -s /etc/passwd file; ln -s /etc dir; ln -s . loop; mkdir d; echo x > d/x",
            ]),
        )
        .await;
        assert_eq!((made.code, made.stderr.as_str()), (Some(0), ""));
        for path in ["/workspace/file", "/workspace/dir/passwd", "/workspace/loop/d/x"] {
            let error = guest.read(path, 0, 1).await.unwrap_err().to_string();
            assert!(error.ends_with("(symlink)"), "{error}");
        }
        assert!(
            guest
                .write("/workspace/dir/evil", 0o644, &b"x"[..])
                .await
                .is_err()
        );
        let error = guest.read("/workspace/d", 0, 1).await.unwrap_err().to_string();
        assert_eq!(
            error,
            "read `/workspace/d` in the sandbox: is a directory, not a regular file (not_regular)"
        );
        assert_eq!(read(guest, "/workspace/d/x").await, b"x\n");
    });
}

#[test]
fn a_listing_names_files_changed_since_a_stamp() {
    with_room(async |room| {
        let guest = room.guest();
        let names = |listing: &cellblock_sandbox::guest::DirectoryListing| {
            let mut names: Vec<_> = listing
                .files
                .iter()
                .map(|file| (file.path.clone(), file.size))
                .collect();
            names.sort();
            names
        };
        guest.write("/workspace/a", 0o600, &b"1"[..]).await.unwrap();
        guest.write("/workspace/d/b", 0o644, &b"22"[..]).await.unwrap();
        let first = guest.list("/workspace", None, 10).await.unwrap();
        assert_eq!(
            names(&first),
            [("/workspace/a".to_owned(), 1), ("/workspace/d/b".to_owned(), 2)]
        );
        assert_eq!(
            first
                .files
                .iter()
                .find(|it| it.path == "/workspace/a")
                .unwrap()
                .mode,
            0o600
        );
        // The stamp's clock is coarse: changes within its tick may be listed again, later ones must
        // be.
        tokio::time::sleep(Duration::from_millis(30)).await;
        let quiet = guest.list("/workspace", None, 10).await.unwrap().stamp;
        tokio::time::sleep(Duration::from_millis(30)).await;
        assert_eq!(
            names(&guest.list("/workspace", Some(quiet), 10).await.unwrap()),
            []
        );
        guest.write("/workspace/d/b", 0o644, &b"333"[..]).await.unwrap();
        let later = guest.list("/workspace", Some(quiet), 10).await.unwrap();
        assert_eq!(names(&later), [("/workspace/d/b".to_owned(), 3)]);
        let few = guest.list("/workspace", None, 1).await.unwrap();
        assert_eq!((few.files.len(), few.total), (1, 2));
    });
}

#[test]
fn a_command_has_its_directory_its_environment_and_nothing_more() {
    with_room(async |room| {
        let guest = room.guest();
        let mut asked = command(["sh", "-c", "pwd; env | sort; echo oops >&2; exit 3"]);
        asked.env.insert("GREETING".to_owned(), "hello you".to_owned());
        asked.cwd = "/tmp".to_owned();
        let ran = output(guest, asked).await;
        assert_eq!(
            ran.stdout,
            "/tmp\nGREETING=hello you\nPATH=/usr/bin:/bin\nPWD=/tmp\n"
        );
        assert_eq!(
            (ran.stderr.as_str(), ran.code, ran.signal, ran.timed_out),
            ("oops\n", Some(3), None, false)
        );
    });
}

#[test]
fn the_signal_that_ends_a_command_is_reported() {
    with_room(async |room| {
        let ran = output(room.guest(), command(["sh", "-c", "kill -TERM $$"])).await;
        assert_eq!((ran.code, ran.signal, ran.timed_out), (None, Some(15), false));
    });
}

#[test]
fn a_missing_command_fails_with_the_reason() {
    with_room(async |room| {
        let ran = output(room.guest(), command(["no-such-program"])).await;
        assert_ne!(ran.code, Some(0), "{ran:?}");
        assert!(format!("{ran:?}").contains("no-such-program"), "{ran:?}");
        let nothing = SandboxCommand {
            argv: Vec::new(),
            ..command(["x"])
        };
        assert_eq!(
            output(room.guest(), nothing).await.failed.as_deref(),
            Some("command is empty")
        );
    });
}

#[test]
fn a_late_command_is_killed_with_its_processes() {
    with_room(async |room| {
        let guest = room.guest();
        let late = SandboxCommand {
            timeout: Duration::from_millis(300),
            ..command(["sh", "-c", "echo before; sleep 1000 & sleep 1000"])
        };
        let ran = output(guest, late).await;
        assert_eq!(
            (ran.stdout.as_str(), ran.signal, ran.timed_out),
            ("before\n", Some(9), true)
        );
        let left = output(guest, command(["sh", "-c", "cat /proc/[0-9]*/comm"])).await;
        assert!(!left.stdout.contains("sleep"), "{left:?}");
    });
}

#[test]
fn a_command_ends_despite_a_background_process() {
    with_room(async |room| {
        let ran = output(room.guest(), command(["sh", "-c", "sleep 1000 & echo done"])).await;
        assert_eq!((ran.stdout.as_str(), ran.code), ("done\n", Some(0)));
    });
}

#[test]
fn several_commands_run_at_once_and_keep_their_outputs_apart() {
    with_room(async |room| {
        let guest = room.guest();
        let many = |name: &str| {
            command([
                "sh",
                "-c",
                &format!("for n in 1 2 3 4 5; do seq 1 2000; echo {name}; done"),
            ])
        };
        let (a, b, c) = tokio::join!(
            output(guest, many("a")),
            output(guest, many("b")),
            output(guest, many("c"))
        );
        for (ran, name) in [(a, "a"), (b, "b"), (c, "c")] {
            let block: String = (1..=2000)
                .map(|n| format!("{n}\n"))
                .chain([format!("{name}\n")])
                .collect();
            assert!(
                ran.stdout == block.repeat(5),
                "the output of {name} is not its own"
            );
            assert_eq!(ran.code, Some(0));
        }
    });
}

#[test]
fn disks_report_limits_and_usage_and_a_full_one_fails_with_its_code() {
    with_room(async |room| {
        let guest = room.guest();
        let used = |disks: &[cellblock_protocol::Disk], path: &str| {
            let disk = disks.iter().find(|disk| disk.path == path).unwrap();
            (disk.bytes_used, disk.bytes_limit)
        };
        let before = guest.disks().await.unwrap();
        assert_eq!(used(&before, "/workspace"), (0, 16 * MIB));
        guest
            .write("/workspace/a", 0o644, &vec![1; 4 << 20][..])
            .await
            .unwrap();
        let after = guest.disks().await.unwrap();
        assert_eq!(used(&after, "/workspace"), (4 * MIB, 16 * MIB));
        let error = guest
            .write("/workspace/b", 0o644, &vec![1; 14 << 20][..])
            .await
            .unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("No space left on device (os error 28) (disk_full)"),
            "{error}"
        );
    });
}

#[test]
fn kill_all_ends_the_kernel_and_every_command_and_keeps_files() {
    with_room(async |room| {
        let guest = room.guest();
        let mut kernel = room.start_kernel().await.unwrap();
        assert_eq!(
            execute(&mut kernel, "open('/workspace/a', 'w').write('kept')").await,
            shows(4)
        );
        let mut running = guest.run(command(["sleep", "1000"])).await.unwrap().events;
        guest.kill_all().await.unwrap();
        let last = running.recv().await.unwrap();
        assert_eq!(
            last,
            CommandEvent::Exited {
                code: None,
                signal: Some(9),
                timed_out: false,
                leaked: true
            }
        );
        let ending = crate::support::ended(&kernel).await;
        assert_eq!(ending, cellblock_sandbox::backend::ProcessEnd::Signaled(9));
        assert_eq!(read(guest, "/workspace/a").await, b"kept");
        let mut next = room.start_kernel().await.unwrap();
        assert_eq!(execute(&mut next, "6 * 7").await, shows(42));
    });
}

#[test]
fn an_interrupt_by_pid_reaches_a_kernel_and_never_the_guest() {
    with_room(async |room| {
        let mut kernel = room.start_kernel().await.unwrap();
        let (_, shown) = execute(&mut kernel, "import os\nos.getpid()").await;
        let [cellblock_protocol::Scalar::Integer(pid)] = shown[..] else {
            panic!("{shown:?}")
        };
        crate::support::start(
            &mut kernel,
            "open('/workspace/started', 'w').close()\nwhile True: pass",
        )
        .await;
        while room.guest().read("/workspace/started", 0, 1).await.is_err() {}
        room.guest().interrupt(1).await.unwrap();
        room.guest().interrupt(u32::try_from(pid).unwrap()).await.unwrap();
        let ended = crate::support::finish(&mut kernel).await.0;
        assert_eq!(
            ended,
            crate::support::End::Done(cellblock_protocol::KernelOutcome::Interrupted)
        );
        assert_eq!(execute(&mut kernel, "6 * 7").await, shows(42));
    });
}
