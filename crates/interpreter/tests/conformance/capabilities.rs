//! A backend lacks exactly what it declares to lack: this fails when it lacks more, and when it lacks less.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use cellblock_interpreter::builder::{BackendKind, Lack};
use cellblock_interpreter::execution::{Outcome, Resource, VariablesState};
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::session::checkpoints::CheckpointError;
use cellblock_interpreter::session::fork::{ForkError, ForkOptions};
use cellblock_interpreter::{Cell, Error};
use cellblock_testkit::workspace_root;

use crate::backend::backend;
use crate::isolation::COMMANDS;
use crate::limited::{MIB, limited, rescuing, unrescued};
use crate::limits::exceeded;
use crate::place::declared;
use crate::support::{block_on, run, session, value};
use crate::terminals;

#[test]
fn a_backend_lacks_what_it_declares_to_lack_and_no_more() {
    block_on(async {
        let mut found = BTreeSet::new();
        for lack in Lack::ALL {
            if !Box::pin(has(lack)).await {
                found.insert(lack);
            }
        }
        assert_eq!(found, declared().iter().copied().collect(), "{}", backend());
        let hibernated = session().await;
        run(&hibernated, "x = 1").await;
        let keeps = hibernated.hibernate().await.unwrap().kept_bytes.is_some();
        let declares = backend().parse().is_ok_and(BackendKind::suspends);
        assert_eq!(keeps, declares, "{}", backend());
        let execution = run(&session().await, "1").await;
        assert_eq!(execution.sandbox.lacks, declared());
    });
}

#[test]
fn the_table_of_the_documentation_is_what_the_backends_declare() {
    let mut table = String::from("| | `process` | `gvisor` | `microvm` |\n|---|---|---|---|\n");
    for lack in Lack::ALL {
        let of = |kind: BackendKind| if kind.lacks().contains(&lack) { "no" } else { "yes" };
        let [process, gvisor, microvm] = BackendKind::ALL.map(of);
        let (name, does) = (lack.name(), lack.otherwise());
        writeln!(table, "| {does} (`{name}`) | {process} | {gvisor} | {microvm} |").unwrap();
    }
    let of = |kind: BackendKind| if kind.suspends() { "yes" } else { "no" };
    let [process, gvisor, microvm] = BackendKind::ALL.map(of);
    let hibernation =
        format!("| a hibernated session keeps its variables | {process} | {gvisor} | {microvm} |\n");
    let _ = std::io::Write::write_all(&mut std::io::stderr(), (table.clone() + &hibernation).as_bytes());
    let docs = std::fs::read_to_string(workspace_root().join("docs/backends.md")).unwrap();
    assert!(
        docs.contains(&table) && docs.contains(&hibernation),
        "docs/backends.md shows another table than\n{table}{hibernation}"
    );
}

/// Tries out whether sandboxes do what a backend may lack.
async fn has(lack: Lack) -> bool {
    match lack {
        Lack::Rescue => {
            let session = rescuing(|_| {}).await;
            run(&session, "kept = 1").await;
            run(&session, "import os\nos._exit(1)").await.state == VariablesState::Rescued
        }
        Lack::Checkpoints => {
            let session = session().await;
            let kept = session.checkpoint(None).await;
            let unavailable = matches!(&kept, Err(Error::Checkpoint(CheckpointError::Unsupported { .. })));
            assert!(unavailable || kept.is_ok(), "{kept:?}");
            kept.is_ok()
        }
        Lack::Forks => {
            let forks = session().await.fork(ForkOptions::new(1)).await;
            let unavailable = matches!(&forks, Err(Error::Fork(ForkError::Unsupported { .. })));
            assert!(unavailable || forks.is_ok(), "{forks:?}");
            forks.is_ok()
        }
        Lack::Requirements => {
            let cell = Cell::new("import tabulate").with_requirements(["tabulate"]);
            let ended = session().await.execute(cell).await;
            ended.is_ok_and(|ended| ended.outcome == Outcome::Completed)
        }
        Lack::HigherLimits => {
            let more = Limits::default().memory_bytes + 512 * MIB;
            let session = limited(|limits| limits.memory_bytes = more).await;
            session.execute("1").await.is_ok()
        }
        Lack::WarmOtherLimits => {
            let session = limited(|limits| limits.open_files -= 1).await;
            value(&session, "import sys\n'pandas' in sys.modules").await == true
        }
        Lack::ExactMemoryLimit => {
            let session = unrescued(|limits| limits.memory_bytes = 256 * MIB).await;
            let ended = run(&session, "block = b'x' * (1 << 30)").await;
            let exceeded = exceeded(&ended.outcome);
            assert_eq!((exceeded.which, exceeded.limit), (Resource::Memory, 256 * MIB));
            exceeded.actual == exceeded.limit
        }
        Lack::FileLimit => {
            let session = limited(|limits| limits.inodes = 100).await;
            let many = "for n in range(200):\n    open(f'/workspace/{n}', 'w').close()";
            run(&session, many).await.outcome != Outcome::Completed
        }
        Lack::HiddenProcesses => {
            let serving = format!("{COMMANDS}sum(name != 'cellblock-py' for name in commands())");
            value(&session().await, &serving).await == 0
        }
        Lack::FullTerminals => terminals::are_full(&session().await).await,
    }
}
