//! Processes beside cells: the probes as such processes, floods of output, and programs that try to
//! outlive their session.

use std::collections::BTreeMap;
use std::time::Duration;

use cellblock_interpreter::Session;
use cellblock_interpreter::session::processes::{MAX_OUTPUT, MAX_WAIT, ProcessOrder, ProcessState};
use cellblock_testkit::require;

use crate::scripts::{SCRIPT, ScriptOutput, Scripts, complaints};
use crate::support::{block_on, session};

fn order(command: &[&str]) -> ProcessOrder {
    ProcessOrder {
        command: command.iter().map(|&it| it.to_owned()).collect(),
        ..ProcessOrder::default()
    }
}

#[test]
fn no_probe_reaches_anything_as_a_process_beside_cells() {
    require!(UserNamespaces);
    require!(CgroupV1);
    let complaints = block_on(complaints::<Session>());
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

impl Scripts for Session {
    fn of(session: Session) -> Self {
        session
    }

    async fn run(&self, code: &str) -> ScriptOutput {
        self.write_file(SCRIPT, code.as_bytes()).await.unwrap();
        let mut attempt = order(&["python", SCRIPT]);
        attempt.env = BTreeMap::from([("PYTHONPATH".to_owned(), "/tmp/shared".to_owned())]);
        let processes = self.processes();
        let id = processes.start(attempt).await.unwrap().id;
        let ended = processes.wait(&id, MAX_WAIT).await.unwrap();
        let output = processes
            .output(&id, 0, MAX_OUTPUT, Duration::ZERO)
            .await
            .unwrap();
        let (stdout, _) = output.into_text();
        ScriptOutput {
            all: format!("{ended:?} {stdout}"),
            stdout,
        }
    }

    async fn end(self) {
        self.close().await.unwrap();
    }
}

/// Counts processes of this machine that have an argument.
fn count(argument: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let with = |line: &Vec<u8>| line.split(|byte| *byte == 0).any(|it| it == argument.as_bytes());
    lines.filter(with).count()
}

#[test]
fn programs_that_flee_from_their_process_end_with_the_session() {
    require!(UserNamespaces);
    block_on(async {
        let session = session(None, "").await;
        let mark = format!("{}.25", 86_000 + std::process::id());
        let script = format!("setsid sh -c 'setsid sleep {mark} & sleep {mark}' & echo ready; sleep {mark}");
        let processes = session.processes();
        let id = processes.start(order(&["sh", "-c", &script])).await.unwrap().id;
        cellblock_testkit::wait::until("all of them run", || count(&mark) == 3).await;
        assert_eq!(
            processes.wait(&id, Duration::ZERO).await.unwrap().state,
            ProcessState::Running
        );
        session.close().await.unwrap();
        assert_eq!(count(&mark), 0);
    });
}

#[test]
fn floods_of_output_stay_in_their_sandbox() {
    block_on(async {
        let (flooded, neighbor) = (session(None, "").await, session(None, "").await);
        let processes = flooded.processes();
        let mut ids = Vec::new();
        for _ in 0..4 {
            ids.push(processes.start(order(&["yes"])).await.unwrap().id);
        }
        for id in &ids {
            // More than memory and the file keep.
            let mut read = processes.output(id, 20 << 20, 10, MAX_WAIT).await.unwrap();
            while read.total < 20 << 20 {
                read = processes.output(id, read.next, 10, MAX_WAIT).await.unwrap();
            }
        }
        for session in [&neighbor, &flooded] {
            let ended = session.execute("6 * 7").await.unwrap();
            assert_eq!(ended.outcome.name(), "completed", "{ended:?}");
        }
        let last = processes.output(&ids[0], u64::MAX, 10, Duration::ZERO).await;
        let back = last.unwrap().total - 100_000;
        let kept = processes
            .output(&ids[0], back, MAX_OUTPUT, Duration::ZERO)
            .await
            .unwrap();
        assert!(kept.bytes.len() <= 256 * 1024, "{}", kept.bytes.len());
        flooded.close().await.unwrap();
        neighbor.close().await.unwrap();
    });
}
