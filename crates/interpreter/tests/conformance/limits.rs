//! Cells that run into a limit: which one, its value, the actual one, and a session that goes on.

use cellblock_interpreter::error::Blame;
use cellblock_interpreter::execution::{LimitExcess, Outcome, Resource};
use cellblock_testkit::require;

use crate::limited::{MIB, limited, unrescued};
use crate::support::{block_on, exception, goes_on, run, value};

pub(crate) fn exceeded(outcome: &Outcome) -> &LimitExcess {
    match outcome {
        Outcome::LimitExceeded(exceeded) => exceeded,
        other => panic!("not a limit: {other:?}"),
    }
}

#[test]
fn memory_beyond_the_limit_kills_the_kernel_and_says_how_much_there_was() {
    needs!(ExactMemoryLimit);
    require!(CgroupV1);
    block_on(async {
        let session = unrescued(|limits| limits.memory_bytes = 256 * MIB).await;
        run(&session, "kept = 1").await;
        let ended = run(&session, "block = b'x' * (1 << 30)").await;
        assert_eq!(
            ended.outcome,
            Outcome::LimitExceeded(LimitExcess {
                which: Resource::Memory,
                limit: 256 * MIB,
                actual: 256 * MIB,
                kernel_lost: true,
            })
        );
        assert_eq!(
            ended.note.unwrap(),
            "the cell exceeded the limit on memory: limit 256.0 MiB, actual 256.0 MiB; all variables are \
             gone; files in /workspace are kept. Run what defines your variables again. Work on less data \
             at a time: select columns, read in chunks, delete what is no longer needed"
        );
        assert!(!goes_on(&session, "kept").await);
        let again = run(&session, "block = b'x' * (1 << 30)").await;
        assert_eq!(exceeded(&again.outcome).which, Resource::Memory);
        assert!(!goes_on(&session, "block").await);
    });
}

#[test]
fn a_fork_bomb_hits_the_process_limit_and_the_next_cell_works() {
    require!(CgroupV1);
    block_on(async {
        let session = limited(|limits| limits.processes = 64).await;
        run(&session, "kept = 1").await;
        let ended = run(&session, "import os\nwhile True:\n    os.fork()").await;
        let exceeded = exceeded(&ended.outcome);
        assert_eq!(
            (exceeded.which, exceeded.limit, exceeded.actual),
            (Resource::Processes, 64, 65)
        );
        let note = ended.note.unwrap();
        assert!(
            note.starts_with("the cell exceeded the limit on number of processes: limit 64, actual 65; "),
            "{note}"
        );
        assert!(
            note.ends_with("Start fewer processes and threads, and wait for those that you started"),
            "{note}"
        );
        assert_eq!(value(&session, "6 * 7").await, 42);
        // The bomb's own processes end one by one, as each of them is refused a child too.
        let child = "import subprocess, time\nsaid = ''\nwhile not said:\n    try:\n        \
                     said = subprocess.run(['echo', 'room again'], capture_output=True).stdout.decode()\n    \
                     except BlockingIOError:\n        time.sleep(0.05)\nsaid";
        assert_eq!(value(&session, child).await, "room again\n");
        assert!(goes_on(&session, "kept").await);
    });
}

#[test]
fn threads_beyond_the_limit_are_reported_as_processes() {
    require!(CgroupV1);
    block_on(async {
        let session = limited(|limits| limits.processes = 64).await;
        let code = "import threading\nkept = 1\nstop = threading.Event()\n\
                    for _ in range(100):\n    threading.Thread(target=stop.wait, daemon=True).start()";
        let ended = run(&session, code).await;
        assert_eq!(exceeded(&ended.outcome).which, Resource::Processes);
        run(&session, "stop.set()").await;
        assert!(goes_on(&session, "kept").await);
    });
}

#[test]
fn a_full_workspace_is_reported_as_the_disk_limit() {
    block_on(async {
        let session = limited(|limits| limits.disk_bytes = 16 * MIB).await;
        let ended = run(
            &session,
            "kept = 1\nopen('/workspace/big', 'wb').write(bytes(64 << 20))",
        )
        .await;
        assert_eq!(
            ended.outcome,
            Outcome::LimitExceeded(LimitExcess {
                which: Resource::Disk,
                limit: 16 * MIB,
                actual: 16 * MIB,
                kernel_lost: false,
            })
        );
        assert_eq!(exception(&ended).exception, "OSError");
        assert_eq!(
            ended.note.unwrap(),
            "the cell exceeded the limit on disk space: limit 16.0 MiB, actual 16.0 MiB; variables are kept. \
             Remove files that are no longer needed, or write less"
        );
        assert!(goes_on(&session, "kept").await);
        let code =
            "import os\nos.remove('/workspace/big')\nopen('/workspace/small', 'wb').write(bytes(1 << 20))";
        assert_eq!(value(&session, code).await, 1 << 20);
    });
}

/// The three places that user code may write to.
const PLACES: [&str; 3] = ["/workspace", "/tmp", "/dev/shm"];

#[test]
fn bytes_of_every_writable_place_are_bounded() {
    block_on(async {
        for place in PLACES {
            let session =
                limited(|limits| (limits.disk_bytes, limits.shm_bytes) = (16 * MIB, 16 * MIB)).await;
            let code = format!("open('{place}/big', 'wb').write(bytes(32 << 20))");
            let ended = run(&session, &code).await;
            let exceeded = exceeded(&ended.outcome);
            assert_eq!(
                (exceeded.which, exceeded.limit, exceeded.actual),
                (Resource::Disk, 16 * MIB, 16 * MIB),
                "{place}"
            );
            let left = format!("import os\nos.path.getsize('{place}/big') <= 16 << 20");
            assert_eq!(value(&session, &left).await, true, "{place}");
        }
    });
}

#[test]
fn files_of_every_writable_place_are_counted() {
    needs!(FileLimit);
    block_on(async {
        for place in PLACES {
            let session = limited(|limits| limits.inodes = 100).await;
            let code = format!("import os\nfor n in range(200):\n    os.mkdir(f'{place}/{{n}}')");
            let ended = run(&session, &code).await;
            let exceeded = exceeded(&ended.outcome);
            assert_eq!(
                (exceeded.which, exceeded.limit, exceeded.actual),
                (Resource::Inodes, 100, 100),
                "{place}"
            );
        }
    });
}

#[test]
fn shared_memory_counts_as_memory() {
    needs!(HigherLimits);
    require!(CgroupV1);
    block_on(async {
        let session = limited(|limits| {
            limits.memory_bytes = 256 * MIB;
            limits.shm_bytes = 1024 * MIB;
            limits.disk_bytes = 1024 * MIB;
        })
        .await;
        let code = "file = open('/dev/shm/big', 'wb')\nfor _ in range(64):\n    file.write(bytes(8 << 20))";
        let ended = run(&session, code).await;
        assert_eq!(exceeded(&ended.outcome).which, Resource::Memory);
    });
}

#[test]
fn a_file_of_the_host_that_does_not_fit_is_rejected_and_leaves_nothing_behind() {
    block_on(async {
        let session = limited(|limits| limits.disk_bytes = 2 * MIB).await;
        let error = session
            .write_file("/workspace/big", vec![1; 1 << 22])
            .await
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "write `/workspace/big` in the sandbox: No space left on device (os error 28) (disk_full)"
        );
        assert_eq!(error.blame(), Blame::Caller);
        assert_eq!(value(&session, "6 * 7").await, 42);
        let code = "import os\nstr(os.listdir('/workspace'))";
        assert_eq!(value(&session, code).await, "[]");
        session
            .write_file("/workspace/small", vec![1; 1 << 20])
            .await
            .unwrap();
    });
}

#[test]
fn too_many_files_are_told_as_the_file_limit() {
    needs!(FileLimit);
    block_on(async {
        let session = limited(|limits| limits.inodes = 100).await;
        let ended = run(
            &session,
            "kept = 1\nfor n in range(200):\n    open(f'/workspace/{n}', 'w').close()",
        )
        .await;
        let exceeded = exceeded(&ended.outcome);
        assert_eq!(
            (exceeded.which, exceeded.limit, exceeded.actual),
            (Resource::Inodes, 100, 100)
        );
        assert!(goes_on(&session, "kept").await);
    });
}

#[test]
fn a_file_beyond_its_limit_is_reported_with_that_limit() {
    block_on(async {
        let session = limited(|limits| limits.file_bytes = 4 * MIB).await;
        let ended = run(
            &session,
            "kept = 1\nopen('/workspace/big', 'wb').write(bytes(8 << 20))",
        )
        .await;
        let exceeded = exceeded(&ended.outcome);
        assert_eq!((exceeded.which, exceeded.limit), (Resource::FileBytes, 4 * MIB));
        assert!(goes_on(&session, "kept").await);
    });
}

#[test]
fn too_many_open_files_are_reported_with_that_limit() {
    block_on(async {
        let session = limited(|limits| limits.open_files = 128).await;
        let ended = run(
            &session,
            "kept = 1\nfiles = [open('/dev/null') for _ in range(200)]",
        )
        .await;
        let exceeded = exceeded(&ended.outcome);
        assert_eq!((exceeded.which, exceeded.limit), (Resource::OpenFiles, 128));
        assert!(goes_on(&session, "kept").await);
    });
}
