//! Every part but the host, killed at every step.

use std::time::Duration;

use cellblock_interpreter::error::Blame;
use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::{Error, Execution};
use cellblock_testkit::wait::until_ok;

use crate::steps::CellStep;
use crate::victim::{HostProcess, Victim};
use crate::world::{World, alone, answer, block_on, has_kept};

#[test]
fn a_killed_kernel_is_reported_as_lost_and_replaced() {
    dies(Victim::Kernel);
}

#[test]
fn a_guest_that_is_killed_is_an_error_of_the_cell_and_replaced() {
    dies(Victim::Guest);
}

#[test]
fn a_template_that_is_killed_costs_no_cell_and_is_replaced() {
    dies(Victim::Template);
}

#[test]
fn a_keep_that_is_killed_is_an_error_of_the_cell_and_replaced() {
    dies(Victim::Keep);
}

#[test]
fn a_launcher_that_is_killed_is_an_error_of_the_cell_and_replaced() {
    dies(Victim::Launcher);
}

fn dies(victim: Victim) {
    let _alone = alone();
    block_on(async {
        let mut world = World::new().await;
        for step in CellStep::ALL {
            for delay in step.delays() {
                if victim != Victim::Kernel || step.has_kernel() {
                    dies_at(&mut world, victim, step, *delay).await;
                }
            }
        }
    });
}

async fn dies_at(world: &mut World, victim: Victim, step: CellStep, delay: u64) {
    let what = format!("{victim:?} killed at {step:?} + {delay} ms");
    let session = world.session();
    if step == CellStep::Room {
        // Made in the background; until then there is a room less.
        found(Victim::Guest).await;
    }
    let before = if step.has_kernel() {
        None
    } else {
        Some(found(victim).await)
    };
    let going = step.reach(&session, world.folder()).await;
    world.owner.look();
    let process = match before {
        Some(process) => process,
        // A session that is being closed may have taken it along already.
        None => match victim.find(std::process::id()) {
            Some(process) => process,
            None if step == CellStep::Destroy => {
                going.end().await.unwrap();
                return world.is_at_rest(&what);
            }
            None => panic!("{what}: there is none"),
        },
    };
    tokio::time::sleep(Duration::from_millis(delay)).await;
    process.kill().await;
    if victim == Victim::Template && step.is_endless() {
        // The cell does not notice, so something has to end it.
        assert!(Victim::Kernel.find(std::process::id()).is_some(), "{what}");
        if step == CellStep::Grace {
            Victim::Kernel.find(std::process::id()).unwrap().kill().await;
        } else {
            session.interrupt();
        }
    }
    let ended = going.end().await;
    check(victim, step, &ended, &what);
    if step == CellStep::Destroy {
        let next = world.session();
        answer(&next).await;
        next.close().await.unwrap();
    } else {
        let told = ended
            .as_ref()
            .is_ok_and(|ended| ended.as_ref().is_some_and(Execution::kernel_lost));
        let next = session.execute("6 * 7").await;
        // The death of an idle kernel may be heard of only now.
        let next = match next {
            Ok(next) => next,
            Err(error) if !step.is_endless() && is_ours(&error) => match session.execute("6 * 7").await {
                Ok(next) => next,
                Err(again) => panic!("{what}: {error:?}, and then {again:?}; before: {ended:?}"),
            },
            Err(error) => panic!("{what}: {error:?}"),
        };
        let note = next.note.clone().unwrap_or_default();
        assert!(
            next.outcome == Outcome::Completed || (next.kernel_lost() && !step.is_endless()),
            "{what}: {next:#?}"
        );
        let told = told || next.kernel_lost() || note.contains("all variables");
        let kept = has_kept(&session).await;
        assert!(
            kept != told || !step.has_kernel(),
            "{what}: kept {kept}, told {told}: {note:?}"
        );
        if victim == Victim::Template && step != CellStep::Grace && step.has_kernel() {
            assert!(kept, "{what}");
        }
        let another = world.session();
        answer(&another).await;
        another.close().await.unwrap();
        session.close().await.unwrap();
    }
    world.is_at_rest(&what);
}

/// Whether Cellblock's own part is named as what failed.
fn is_ours(error: &Error) -> bool {
    error.blame() == Blame::Backend && matches!(error, Error::Sandbox(_))
}

fn check(victim: Victim, step: CellStep, ended: &Result<Option<Execution>, Error>, what: &str) {
    let outcome = ended
        .as_ref()
        .ok()
        .and_then(|ended| ended.as_ref().map(|ended| ended.outcome.name()));
    match (victim, step) {
        (Victim::Kernel, step) if step.is_endless() => {
            assert_eq!(outcome, Some("kernel_lost"), "{what}: {ended:#?}");
        }
        (Victim::Template, step) if step.is_endless() => {
            let name = if step == CellStep::Grace {
                "kernel_lost"
            } else {
                "interrupted"
            };
            assert_eq!(outcome, Some(name), "{what}: {ended:#?}");
        }
        (_, step) if step.is_endless() => {
            let error = ended.as_ref().expect_err(what);
            assert!(is_ours(error), "{what}: {error:?}");
        }
        // A cell that was over before has its result, whatever became of its files.
        (Victim::Kernel | Victim::Template, CellStep::Collect) => {
            assert_eq!(outcome, Some("completed"), "{what}: {ended:#?}");
        }
        (Victim::Template, CellStep::Bind | CellStep::Destroy | CellStep::Fork) => {
            assert!(ended.is_ok(), "{what}: {ended:#?}");
        }
        (_, CellStep::Destroy) => assert!(ended.is_ok(), "{what}: {ended:#?}"),
        (Victim::Kernel, CellStep::Bind) => match ended {
            Ok(_) => {}
            Err(Error::Input { reason, .. }) => assert_eq!(reason, "the kernel ended meanwhile"),
            Err(error) => panic!("{what}: {error:?}"),
        },
        _ => match ended {
            Ok(ended) => assert!(
                ended.as_ref().is_none_or(|it| it.outcome == Outcome::Completed),
                "{what}: {ended:#?}"
            ),
            Err(error) => assert!(
                is_ours(error) || matches!(error, Error::Input { .. }),
                "{what}: {error:?}"
            ),
        },
    }
}

async fn found(victim: Victim) -> HostProcess {
    until_ok(async || victim.find(std::process::id()).ok_or(format!("no {victim:?}"))).await
}
