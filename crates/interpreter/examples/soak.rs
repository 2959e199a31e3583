//! Many sessions one after the other with the whole default image, and what is left of them: `cargo
//! xtask soak --rounds 1000`.
//!
//! Fails if anything is left, or if a process of Cellblock has grown by a kibibyte per round.

use std::io::Write;
use std::time::{Duration, Instant};

use cellblock_interpreter::Interpreter;
use cellblock_interpreter::session::SessionOptions;
use cellblock_testkit::{Count, LeakOwner};

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// Rounds before the first measurement: caches and allocators fill.
const WARM_UP: u64 = 100;
const PATIENCE: Duration = Duration::from_secs(30);
/// Growth per round that is a leak.
const BOUND: u64 = 1024;

fn main() -> Result<()> {
    let mut arguments = std::env::args()
        .skip_while(|argument| argument != "--rounds")
        .skip(1);
    let rounds = arguments.next().map_or(Ok(1000), |rounds| rounds.parse())?;
    tokio::runtime::Runtime::new()?.block_on(soak(rounds))
}

async fn soak(rounds: u64) -> Result<()> {
    let mut owner = LeakOwner::this_process();
    let interpreter = Interpreter::builder().build().await?;
    interpreter.warmed().await?;
    run(&interpreter, WARM_UP).await?;
    let rest = settled(&mut owner).await;
    let before = memory(&owner);
    let started = Instant::now();
    run(&interpreter, rounds).await?;
    let took = started.elapsed();
    let left = owner.until(&rest, PATIENCE);
    let after = memory(&owner);
    let mut out = std::io::stdout();
    writeln!(out, "{rounds} rounds in {:.1} s", took.as_secs_f64())?;
    writeln!(out, "before: {rest:?}\nafter:  {:?}", owner.count())?;
    let mut grown = Vec::new();
    for (id, name, now) in after {
        let Some((_, _, then)) = before.iter().find(|(known, _, _)| *known == id) else {
            continue;
        };
        writeln!(
            out,
            "{name} ({id}): {} KiB before, {} KiB after",
            then / 1024,
            now / 1024
        )?;
        if now.saturating_sub(*then) >= BOUND * rounds {
            grown.push(name);
        }
    }
    left?;
    drop(interpreter);
    let nothing = Count {
        descriptors: owner.count().descriptors,
        ..Count::default()
    };
    let deadline = Instant::now() + PATIENCE;
    while (owner.count().processes, owner.count().cgroups) != (0, 0) && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let end = owner.count();
    writeln!(out, "after the interpreter: {end:?}")?;
    if (end.processes, end.cgroups, end.namespaces)
        != (nothing.processes, nothing.cgroups, nothing.namespaces)
    {
        return Err("something outlives the interpreter".into());
    }
    if grown.is_empty() {
        writeln!(out, "nothing is left, and nothing grew by {BOUND} bytes a round")?;
        Ok(())
    } else {
        Err(format!("grown by more than {BOUND} bytes a round: {}", grown.join(", ")).into())
    }
}

async fn run(interpreter: &Interpreter, rounds: u64) -> Result<()> {
    for _ in 0..rounds {
        let session = interpreter.session(SessionOptions::default());
        let execution = session.execute("6 * 7").await?;
        if execution.outcome.name() != "completed" || execution.outputs.len() != 1 {
            return Err(format!("a round went wrong: {execution:?}").into());
        }
        session.close().await?;
    }
    Ok(())
}

/// The count once the pool is full and rooms that end have ended.
async fn settled(owner: &mut LeakOwner) -> Count {
    let mut before = owner.count();
    let mut same = 0;
    while same < 20 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = owner.count();
        same = if now == before { same + 1 } else { 0 };
        before = now;
    }
    before
}

/// Resident bytes of the host, and of what lives below it.
fn memory(owner: &LeakOwner) -> Vec<(u32, String, u64)> {
    let resident = |id: u32| {
        let statm = std::fs::read_to_string(format!("/proc/{id}/statm")).ok()?;
        Some(statm.split(' ').nth(1)?.parse::<u64>().ok()? * 4096)
    };
    owner
        .processes()
        .into_iter()
        .chain([(std::process::id(), "host".to_owned())])
        .filter_map(|(id, name)| Some((id, name, resident(id)?)))
        .collect()
}
