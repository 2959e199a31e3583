//! Files that cells leave: collected when new or changed, named with a reason when they cannot be.

use cellblock_interpreter::{Cell, Execution};

use crate::limited::{MIB, limited};
use crate::stored::content;
use crate::support::{block_on, run, scalar, session, value};

/// Names of the files of an execution, sorted.
fn names(execution: &Execution) -> Vec<(&str, &str, u64)> {
    let mut names: Vec<_> = execution
        .files
        .iter()
        .map(|file| (file.path.as_str(), file.name.as_str(), file.bytes))
        .collect();
    names.sort_unstable();
    names
}

fn skipped(execution: &Execution) -> Vec<(&str, &str)> {
    let mut skipped: Vec<_> = execution
        .skipped_files
        .iter()
        .map(|file| (file.path.as_str(), file.reason.as_str()))
        .collect();
    skipped.sort_unstable();
    skipped
}

#[test]
fn new_and_changed_files_are_collected_and_unchanged_ones_are_not_again() {
    block_on(async {
        let session = session().await;
        let code = "import os\nos.makedirs('/workspace/sub')\n\
                    open('/workspace/a.txt', 'w').write('one')\n\
                    open('/workspace/sub/b.txt', 'w').write('two')\n\
                    open('/tmp/output/c.txt', 'w').write('three')\n\
                    open('/tmp/elsewhere.txt', 'w').write('four')";
        let first = run(&session, code).await;
        assert_eq!(
            names(&first),
            [
                ("/tmp/output/c.txt", "c.txt", 5),
                ("/workspace/a.txt", "a.txt", 3),
                ("/workspace/sub/b.txt", "sub/b.txt", 3),
            ]
        );
        assert_eq!(skipped(&first), [("", ""); 0]);
        let a = first.files.iter().find(|file| file.name == "a.txt").unwrap();
        assert_eq!(content(&a.sha256).await, b"one");

        assert_eq!(names(&run(&session, "1").await), [("", "", 0); 0]);

        let changed = run(&session, "open('/workspace/a.txt', 'a').write(' more')").await;
        assert_eq!(names(&changed), [("/workspace/a.txt", "a.txt", 8)]);
        assert_eq!(content(&changed.files[0].sha256).await, b"one more");
    });
}

#[test]
fn files_of_a_cell_that_raised_or_lost_its_kernel_are_collected() {
    block_on(async {
        let session = session().await;
        let raised = run(&session, "open('/workspace/a.txt', 'w').write('a')\n1 / 0").await;
        assert_eq!(names(&raised), [("/workspace/a.txt", "a.txt", 1)]);
        let code =
            "import os\nfile = open('/workspace/b.txt', 'w')\nfile.write('b')\nfile.flush()\nos._exit(1)";
        let lost = run(&session, code).await;
        assert_eq!(lost.outcome.name(), "kernel_lost");
        assert_eq!(names(&lost), [("/workspace/b.txt", "b.txt", 1)]);
        assert_eq!(names(&run(&session, "1").await), [("", "", 0); 0]);
    });
}

#[test]
fn unreadable_files_are_skipped_with_a_reason() {
    block_on(async {
        let session = limited(|limits| limits.collected_file_bytes = MIB).await;
        let code = "import os, socket\nos.chdir('/tmp/output')\n\
                    os.symlink('/etc/passwd', 'link')\nos.symlink('/proc/self', 'dir_link')\n\
                    socket.socket(socket.AF_UNIX).bind('socket')\nos.mkfifo('fifo')\n\
                    open('huge', 'wb').truncate((1 << 20) + 1)\nopen('fits', 'wb').truncate(1 << 20)\n\
                    open('line\\nbreak', 'w').close()\nopen('back\\\\slash', 'w').close()\n\
                    open(b'not\\xffutf8', 'w').close()\nopen('späße 🎉.txt', 'w').write('x')";
        let ended = run(&session, code).await;
        assert_eq!(ended.outcome.name(), "completed", "{ended:#?}");
        assert_eq!(
            names(&ended),
            [
                ("/tmp/output/fits", "fits", MIB),
                ("/tmp/output/späße 🎉.txt", "späße 🎉.txt", 1),
            ]
        );
        assert_eq!(
            skipped(&ended),
            [
                (
                    "/tmp/output/back\\slash",
                    "its name cannot be used outside the sandbox"
                ),
                ("/tmp/output/dir_link", "is a symbolic link"),
                ("/tmp/output/fifo", "is a FIFO"),
                ("/tmp/output/huge", "it has 1048577 bytes, the limit is 1048576"),
                (
                    "/tmp/output/line\\nbreak",
                    "its name cannot be used outside the sandbox"
                ),
                ("/tmp/output/link", "is a symbolic link"),
                ("/tmp/output/not\u{fffd}utf8", "its name is not UTF-8"),
                ("/tmp/output/socket", "is a socket"),
            ]
        );
    });
}

#[test]
fn more_files_than_the_limit_are_counted() {
    block_on(async {
        let session = limited(|limits| limits.files = 3).await;
        let ended = run(
            &session,
            "for n in range(10): open(f'/workspace/{n}.txt', 'w').write('x')",
        )
        .await;
        assert_eq!(ended.files.len(), 3);
        assert_eq!(skipped(&ended), [("", "7 more files beyond the limit of 3")]);
    });
}

#[test]
fn an_unreadable_file_is_still_collected_or_named_and_never_an_error() {
    block_on(async {
        let session = session().await;
        let code = "import os\nopen('/workspace/secret.txt', 'w').write('x')\n\
                    os.chmod('/workspace/secret.txt', 0)\n\
                    os.makedirs('/workspace/closed')\nopen('/workspace/closed/in.txt', 'w').write('y')\n\
                    os.chmod('/workspace/closed', 0)";
        let ended = run(&session, code).await;
        assert_eq!(ended.outcome.name(), "completed");
        let told = names(&ended).iter().any(|file| file.1 == "secret.txt")
            || skipped(&ended)
                .iter()
                .any(|file| file.0 == "/workspace/secret.txt");
        assert!(told, "{ended:#?}");
        assert_eq!(value(&session, "6 * 7").await, 42);
    });
}

#[test]
fn a_cell_can_skip_collecting_and_the_next_one_catches_up() {
    block_on(async {
        let session = session().await;
        let quiet = Cell {
            collect_files: false,
            ..Cell::new("open('/workspace/a.txt', 'w').write('a')")
        };
        assert_eq!(names(&session.execute(quiet).await.unwrap()), [("", "", 0); 0]);
        assert_eq!(
            names(&run(&session, "1").await),
            [("/workspace/a.txt", "a.txt", 1)]
        );
    });
}

#[test]
fn files_are_written_and_read_by_the_host_and_links_are_not_followed() {
    block_on(async {
        let session = session().await;
        session
            .write_file("/workspace/in/data.txt", "from the host")
            .await
            .unwrap();
        assert_eq!(
            value(&session, "open('/workspace/in/data.txt').read()").await,
            "from the host"
        );
        run(
            &session,
            "import os\nos.symlink('/etc', '/workspace/etc')\nos.symlink('/etc/passwd', '/workspace/p')",
        )
        .await;
        for path in [
            "/workspace/etc/passwd",
            "/etc/passwd",
            "/workspace/../etc/passwd",
            "workspace/a",
        ] {
            let error = session.read_file(path).await.unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("read `{path}` in the sandbox: ")),
                "{error}"
            );
            let error = session.write_file(path, "x").await.unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("write `{path}` in the sandbox: ")),
                "{error}"
            );
        }
        let error = session.read_file("/workspace/p").await.unwrap_err().to_string();
        assert!(
            error.starts_with("read `/workspace/p` in the sandbox: "),
            "{error}"
        );
        // A written file takes the link's place; what the link named stays as it is.
        session.write_file("/workspace/p", "mine").await.unwrap();
        let code = "(os.path.islink('/workspace/p'), open('/workspace/p').read(), 'mine' in \
                    open('/etc/passwd').read()) == (False, 'mine', False)";
        assert_eq!(value(&session, code).await, true);
        let read = session.read_file("/workspace/in/data.txt").await.unwrap();
        assert_eq!(read, b"from the host");
    });
}

#[test]
fn a_file_of_the_host_is_found_below_mnt_data_and_handed_back_only_when_a_cell_changes_it() {
    block_on(async {
        let session = session().await;
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, b"a,b\n1,2\n").unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        session.put_file("/workspace/in.csv", file).await.unwrap();
        let code =
            "text = open('/mnt/data/in.csv').read()\nopen('/mnt/data/out.txt', 'w').write('one')\ntext";
        let read = run(&session, code).await;
        assert_eq!(scalar(&read), "a,b\n1,2\n");
        assert_eq!(names(&read), [("/workspace/out.txt", "out.txt", 3)]);

        let changed = run(&session, "open('/mnt/data/in.csv', 'a').write('3,4\\n');").await;
        assert_eq!(names(&changed), [("/workspace/in.csv", "in.csv", 12)]);

        session.remove_file("/workspace/in.csv").await.unwrap();
        let gone = run(&session, "import os; ' '.join(os.listdir('/mnt/data'))").await;
        assert_eq!(scalar(&gone), "out.txt");
        session.remove_file("/workspace/in.csv").await.unwrap_err();
    });
}
