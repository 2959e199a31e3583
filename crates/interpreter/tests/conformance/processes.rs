//! Processes beside cells: started, read, fed, signaled and waited for, and ended with their session.

use std::collections::BTreeMap;
use std::time::Duration;

use cellblock_interpreter::cell::Guard;
use cellblock_interpreter::error::{Blame, Error};
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::session::processes::{
    MAX_ENDED, MAX_RUNNING, MAX_WAIT, ProcessError, ProcessOrder, ProcessReport, ProcessSignal, ProcessState,
    ProcessStream,
};
use cellblock_interpreter::{Result, Session};
use serde_json::json;

use crate::limited::limited;
use crate::support::{block_on, goes_on, interpreter, run, session, value};

fn order<const N: usize>(command: [&str; N]) -> ProcessOrder {
    ProcessOrder {
        command: command.map(str::to_owned).to_vec(),
        ..ProcessOrder::default()
    }
}

fn shell(script: &str) -> ProcessOrder {
    order(["sh", "-c", script])
}

async fn start(session: &Session, order: ProcessOrder) -> String {
    session.processes().start(order).await.unwrap().id
}

/// Reads output from an offset, at least so many bytes of it or all.
async fn read(session: &Session, id: &str, from: u64, least: usize) -> String {
    let (mut read, mut offset) = (String::new(), from);
    while read.len() < least {
        let part = session.processes().output(id, offset, 1 << 16, MAX_WAIT);
        let part = part.await.unwrap();
        assert_eq!((part.offset, part.lost), (offset, 0));
        let eof = part.eof;
        let (text, next) = part.into_text();
        assert!(eof || !text.is_empty(), "nothing came after {read:?}");
        read += &text;
        offset = next;
        if eof {
            break;
        }
    }
    read
}

async fn all(session: &Session, id: &str) -> String {
    read(session, id, 0, usize::MAX).await
}

async fn ended(session: &Session, id: &str) -> ProcessReport {
    let report = session.processes().wait(id, MAX_WAIT).await.unwrap();
    assert_ne!(report.state, ProcessState::Running, "{report:?}");
    report
}

async fn state(session: &Session, id: &str) -> ProcessState {
    let wait = session.processes().wait(id, Duration::ZERO);
    wait.await.unwrap().state
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T>) -> ProcessError {
    match result {
        Err(Error::Process(error)) => error,
        other => panic!("not refused: {other:?}"),
    }
}

/// A script that leaves behind a program in a session of its own, which holds a FIFO.
fn leaves(fifo: &str) -> String {
    let program =
        "import subprocess; subprocess.Popen(['sleep', '1000'], start_new_session=True, close_fds=False)";
    format!("mkfifo {fifo}; exec 8<>{fifo}; python -c \"{program}\"; exec 8>&-; echo ready")
}

/// Whether a program holds this FIFO. Programs of a sandbox do not see each other in `/proc`.
async fn held(session: &Session, fifo: &str) -> bool {
    let code = format!(
        "import os\ntry:\n    os.close(os.open('/workspace/{fifo}', os.O_WRONLY | os.O_NONBLOCK))\n    \
         held = True\n\
         except OSError as error:\n    assert error.errno == 6, error\n    held = False\nheld"
    );
    value(session, &code).await == json!(true)
}

#[test]
fn a_process_runs_beside_cells_and_its_output_is_read_from_any_offset() {
    block_on(async {
        let session = session().await;
        let id = start(
            &session,
            shell("echo one; echo two >&2; while [ ! -e /workspace/go ]; do sleep 0.02; done; echo three"),
        )
        .await;
        assert_eq!(id, "p1");
        assert_eq!(read(&session, &id, 0, 8).await, "one\ntwo\n");
        assert_eq!(read(&session, &id, 4, 4).await, "two\n");
        assert_eq!(value(&session, "x = 40; x + 2").await, 42);
        assert_eq!(state(&session, &id).await, ProcessState::Running);
        run(&session, "open('/workspace/go', 'w').close()").await;
        let report = ended(&session, &id).await;
        assert_eq!((report.state, report.exit_code), (ProcessState::Exited, Some(0)));
        assert_eq!(all(&session, &id).await, "one\ntwo\nthree\n");
        let log = format!("open('{}').read()", report.output_file);
        assert_eq!(value(&session, &log).await, "one\ntwo\nthree\n");
        assert_eq!(session.processes().list(), [report]);
    });
}

#[test]
fn a_process_can_be_started_and_used_while_a_cell_runs() {
    block_on(async {
        let session = session().await;
        run(&session, "1").await;
        let code = "import os, time\nwhile not os.path.exists('/workspace/made'): time.sleep(0.01)\n'seen'";
        let cell = session.start_cell(code).await.unwrap();
        let id = start(&session, shell("echo here; cat > /workspace/made")).await;
        assert_eq!(read(&session, &id, 0, 5).await, "here\n");
        assert_eq!(ended(&session, &id).await.exit_code, Some(0));
        let ended = cell.finish().await.unwrap();
        assert_eq!(crate::support::scalar(&ended), "seen");
    });
}

#[test]
fn output_that_is_not_there_yet_is_waited_for() {
    block_on(async {
        let session = session().await;
        let mut waiting = shell("read line; echo \"got $line\"; read line");
        waiting.stdin = true;
        let id = start(&session, waiting).await;
        let processes = session.processes();
        let none = processes.output(&id, 0, 100, Duration::ZERO).await.unwrap();
        assert_eq!((none.bytes.len(), none.total, none.eof), (0, 0, false));
        let (read, sent) = tokio::join!(
            processes.output(&id, 0, 100, MAX_WAIT),
            processes.input(&id, b"it\n", false)
        );
        sent.unwrap();
        assert_eq!(read.unwrap().bytes, b"got it\n");
        let (rest, closed) = tokio::join!(
            processes.output(&id, 7, 100, MAX_WAIT),
            processes.input(&id, b"", true)
        );
        closed.unwrap();
        let rest = rest.unwrap();
        assert_eq!((rest.bytes.len(), rest.total, rest.eof), (0, 7, true));
    });
}

#[test]
fn input_arrives_in_order_and_ends_when_it_is_closed() {
    block_on(async {
        let session = session().await;
        let mut reader = shell("wc -c; echo done");
        reader.stdin = true;
        let id = start(&session, reader).await;
        let processes = session.processes();
        for _ in 0..3 {
            processes.input(&id, &vec![b'a'; 1 << 20], false).await.unwrap();
        }
        processes.input(&id, b"end", true).await.unwrap();
        let error = refused(processes.input(&id, b"more", false).await);
        assert_eq!(error.code(), "process_input_closed");
        assert_eq!(
            all(&session, &id).await.trim(),
            format!("{}\ndone", (3 << 20) + 3)
        );
        // Without an open standard input, a process reads its end.
        let id = start(&session, shell("cat; echo empty")).await;
        assert_eq!(all(&session, &id).await, "empty\n");
        let error = refused(session.processes().input(&id, b"a", false).await);
        assert_eq!(error.code(), "process_input_closed");
    });
}

#[test]
fn the_streams_of_a_process_are_told_apart_in_one_order() {
    use ProcessStream::{Stderr, Stdout};

    block_on(async {
        let session = session().await;
        let mut writer = shell("echo a; read x; echo b >&2; read x; echo c; read x; echo d >&2; echo e >&2");
        writer.stdin = true;
        let id = start(&session, writer).await;
        let (mut written, mut offset) = (Vec::new(), 0);
        loop {
            let processes = session.processes();
            let part = processes.output(&id, offset, 1 << 16, MAX_WAIT).await.unwrap();
            offset = part.next;
            for (stream, bytes) in part.parts() {
                written.push((stream, String::from_utf8(bytes.to_vec()).unwrap()));
                if written.len() <= 3 {
                    processes.input(&id, b"\n", false).await.unwrap();
                }
            }
            if part.eof {
                break;
            }
        }
        let last: String = written.split_off(3).into_iter().map(|(_, text)| text).collect();
        assert_eq!(last, "d\ne\n");
        let expected = [(Stdout, "a\n"), (Stderr, "b\n"), (Stdout, "c\n")];
        assert_eq!(written, expected.map(|(stream, text)| (stream, text.to_owned())));
        // All of it again, at once.
        let all = session
            .processes()
            .output(&id, 0, 1 << 16, Duration::ZERO)
            .await
            .unwrap();
        let streams: Vec<_> = all.parts().map(|(stream, bytes)| (stream, bytes.len())).collect();
        assert_eq!(streams, [(Stdout, 2), (Stderr, 2), (Stdout, 2), (Stderr, 4)]);
    });
}

#[test]
fn what_is_written_to_stderr_comes_after_what_was_written_to_stdout_before_it() {
    block_on(async {
        let session = session().await;
        let code = "import os\nfor _ in range(20_000): os.write(1, b'o'), os.write(2, b'e')";
        let id = start(&session, order(["python", "-c", code])).await;
        let mut ahead = 0;
        for (at, stream) in all(&session, &id).await.bytes().enumerate() {
            ahead += if stream == b'o' { 1 } else { -1 };
            assert!(ahead >= 0, "byte {at} came before what was written before it");
        }
        assert_eq!(ahead, 0);
    });
}

#[test]
fn a_signal_reaches_a_process_and_kill_also_what_it_started() {
    block_on(async {
        let session = session().await;
        let script = "import signal, sys\n\
                      signal.signal(signal.SIGHUP, lambda *_: print('hung up'))\n\
                      signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))\n\
                      print('ready')\nwhile True: signal.pause()";
        let id = start(&session, order(["python", "-u", "-c", script])).await;
        read(&session, &id, 0, 6).await;
        let processes = session.processes();
        processes.signal(&id, "hup".parse().unwrap()).await.unwrap();
        assert_eq!(read(&session, &id, 6, 8).await, "hung up\n");
        processes.signal(&id, ProcessSignal::TERM).await.unwrap();
        let report = ended(&session, &id).await;
        assert_eq!((report.state, report.exit_code), (ProcessState::Exited, Some(3)));
        let error = refused(processes.signal(&id, ProcessSignal::TERM).await);
        assert_eq!(error.code(), "process_ended");

        let id = start(&session, shell(&format!("{}; sleep 1000", leaves("fifo")))).await;
        read(&session, &id, 0, 6).await;
        assert!(held(&session, "fifo").await);
        processes.signal(&id, ProcessSignal::KILL).await.unwrap();
        let report = ended(&session, &id).await;
        assert_eq!(report.signal.as_deref(), Some("SIGKILL"));
        assert_eq!(report.state, ProcessState::Killed);
        assert!(!held(&session, "fifo").await);
    });
}

#[test]
fn what_a_process_leaves_behind_ends_with_it() {
    block_on(async {
        let session = session().await;
        let id = start(&session, shell(&format!("{}; exit 7", leaves("fifo")))).await;
        assert_eq!(ended(&session, &id).await.exit_code, Some(7));
        assert!(!held(&session, "fifo").await);
    });
}

#[test]
fn a_process_has_its_environment_and_directory_and_errors_are_told() {
    block_on(async {
        let session = session().await;
        run(&session, "import os; os.mkdir('/tmp/here')").await;
        let id = start(
            &session,
            ProcessOrder {
                env: BTreeMap::from([("GREETING".to_owned(), "hé llo".to_owned())]),
                directory: Some("/tmp/here".to_owned()),
                ..shell("echo \"$GREETING\"; pwd; python -c 'import numpy; print(1 + 1)'")
            },
        )
        .await;
        assert_eq!(all(&session, &id).await, "hé llo\n/tmp/here\n2\n");
        let id = start(&session, order(["nonesuch"])).await;
        assert_eq!(ended(&session, &id).await.exit_code, Some(127));
        assert!(all(&session, &id).await.starts_with("nonesuch: "));
        let nowhere = ProcessOrder {
            directory: Some("/nonesuch".to_owned()),
            ..shell("echo")
        };
        let error = refused(session.processes().start(nowhere).await);
        assert_eq!(error.code(), "process_not_started");
        assert!(
            error
                .to_string()
                .ends_with("its working directory `/nonesuch` does not exist"),
            "{error}"
        );
        let error = session.processes().start(order([])).await.unwrap_err();
        assert!(
            matches!(error, Error::Argument { name: "command", .. }),
            "{error}"
        );
        let error = refused(session.processes().wait("p99", Duration::ZERO).await);
        assert_eq!(error.code(), "process_not_found");
    });
}

#[test]
fn cells_that_end_their_kernel_or_are_cleaned_up_after_spare_processes() {
    block_on(async {
        let session = session().await;
        let script = format!("{}; while read name; do echo \"here $name\"; done", leaves("its"));
        let mut server = shell(&script);
        server.stdin = true;
        let id = start(&session, server).await;
        read(&session, &id, 0, 6).await;
        let code = "import os, subprocess\nos.mkfifo('cells')\nfifo = os.open('cells', os.O_RDWR)\n\
                    left = subprocess.Popen(['sleep', '1000'], pass_fds=[fifo])\nos._exit(3)";
        assert_eq!(run(&session, code).await.outcome.name(), "kernel_lost");
        goes_on(&session, "left").await;
        assert!(!held(&session, "cells").await);
        let list = session.processes().list();
        assert_eq!(list[0].state, ProcessState::Running, "{list:?}");
        assert!(held(&session, "its").await);
        session.processes().input(&id, b"you\n", false).await.unwrap();
        assert_eq!(read(&session, &id, 6, 9).await, "here you\n");
    });
}

#[test]
fn a_reset_ends_all_processes_and_forgets_them() {
    block_on(async {
        let session = session().await;
        let id = start(&session, shell(&format!("{}; sleep 1000", leaves("fifo")))).await;
        read(&session, &id, 0, 6).await;
        assert!(held(&session, "fifo").await);
        session.reset().await.unwrap();
        assert_eq!(session.processes().list(), []);
        assert!(!held(&session, "fifo").await);
        let error = refused(session.processes().output(&id, 0, 1, Duration::ZERO).await);
        assert_eq!(error.code(), "process_not_found");
        assert_eq!(start(&session, shell("exit")).await, "p2");
    });
}

#[test]
fn output_without_end_is_bounded_and_says_what_was_lost() {
    block_on(async {
        let session = session().await;
        let in_file: u64 = 16 << 20;
        let id = start(&session, shell("yes 'a line of fifteen' | head -c 40000000")).await;
        let report = ended(&session, &id).await;
        assert_eq!(report.exit_code, Some(0));
        let processes = session.processes();
        let first = processes.output(&id, 0, 18, Duration::ZERO).await.unwrap();
        assert_eq!((&first.bytes[..], first.lost), (&b"a line of fifteen\n"[..], 0));
        assert_eq!(first.total, 40_000_000);
        let middle = processes.output(&id, in_file, 100, Duration::ZERO).await.unwrap();
        assert_eq!(middle.offset, first.total - 256 * 1024);
        assert_eq!(middle.lost, middle.offset - in_file);
        let last = processes.output(&id, first.total - 5, 100, Duration::ZERO).await;
        let last = last.unwrap();
        assert_eq!((last.bytes.len(), last.eof), (5, true));
        let code = format!("os.path.getsize('{}')", report.output_file);
        assert_eq!(
            value(&session, &format!("import os\n{code}")).await,
            json!(in_file)
        );
    });
}

#[test]
fn a_session_has_so_many_processes_at_once_and_keeps_the_last_that_ended() {
    block_on(async {
        let session = session().await;
        let mut ids = Vec::new();
        for _ in 0..MAX_RUNNING {
            ids.push(start(&session, order(["sleep", "1000"])).await);
        }
        let error = refused(session.processes().start(order(["sleep", "1"])).await);
        assert_eq!(error.code(), "too_many_processes");
        let processes = session.processes();
        for id in &ids {
            processes.signal(id, ProcessSignal::TERM).await.unwrap();
            let report = ended(&session, id).await;
            assert_eq!(report.signal.as_deref(), Some("SIGTERM"));
        }
        let next = start(&session, shell("echo next")).await;
        ended(&session, &next).await;
        start(&session, shell("exit")).await;
        let listed: Vec<_> = processes.list().into_iter().map(|it| it.id).collect();
        assert!(
            !listed.contains(&ids[0]) && !listed.contains(&ids[1]),
            "{listed:?}"
        );
        assert_eq!(listed.len(), MAX_ENDED);
        assert_eq!(all(&session, &next).await, "next\n");
    });
}

#[test]
fn processes_end_with_the_sandbox_of_an_idle_session() {
    block_on(async {
        let session = interpreter().await.session(SessionOptions {
            idle: Duration::from_secs(1),
            ..SessionOptions::default()
        });
        let id = start(&session, order(["sleep", "1000"])).await;
        assert_eq!(ended(&session, &id).await.state, ProcessState::Lost);
        let error = refused(session.processes().output(&id, 0, 1, Duration::ZERO).await);
        assert_eq!(error.code(), "process_lost");
        let next = start(&session, shell("echo new")).await;
        assert_eq!(all(&session, &next).await, "new\n");
    });
}

#[test]
fn a_session_that_checks_code_starts_no_processes() {
    block_on(async {
        let session = interpreter().await.session(SessionOptions {
            guard: Guard::Standard,
            ..SessionOptions::default()
        });
        let error = refused(session.processes().start(order(["true"])).await);
        assert_eq!(error.code(), "process_in_guarded_session");
    });
}

#[test]
fn processes_count_against_the_limits_of_the_session() {
    block_on(async {
        let session = limited(|limits| limits.processes = 24).await;
        let script = "for i in $(seq 60); do sleep 1000 & done; echo started; wait";
        let id = start(&session, shell(script)).await;
        // The shell reports that it cannot fork, and ends or goes on.
        let told = read(&session, &id, 0, 16).await.to_lowercase();
        assert!(told.contains("fork") || told.contains("unavailable"), "{told}");
        let killed = session.processes().signal(&id, ProcessSignal::KILL).await;
        assert!(killed.is_ok() || refused(killed).code() == "process_ended");
        ended(&session, &id).await;
        assert_eq!(value(&session, "6 * 7").await, 42);
    });
}

#[test]
fn a_command_that_is_too_large_is_refused_and_the_session_stays_as_it_is() {
    block_on(async {
        let session = session().await;
        run(&session, "kept = 1").await;
        let large = "x".repeat(5 << 20);
        let error = session.processes().start(shell(&large)).await.unwrap_err();
        assert_eq!(error.blame(), Blame::Caller, "{error}");
        assert_eq!(value(&session, "kept").await, 1);
        let id = start(&session, shell("echo works")).await;
        assert_eq!(read(&session, &id, 0, 6).await, "works\n");
    });
}
