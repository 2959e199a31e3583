//! Numbers for people, printed by
//! `cargo test -p cellblock-walls --test microvm -- --ignored --nocapture measure`.

use std::fs;
use std::time::Instant;

use cellblock_sandbox::Limits;
use cellblock_sandbox::pool::create;
use cellblock_testkit::{LeakOwner, require};

use crate::support::{backend, block_on, execute, lease};

const PANDAS: &str = "import pandas as pd\npd.DataFrame({'a': [1, 2, 3]}).describe()";
const ROUNDS: usize = 10;

#[test]
#[ignore = "measures; needs an idle machine"]
#[expect(clippy::print_stdout, reason = "the numbers are the result")]
fn how_long_sandboxes_take_and_how_much_memory_they_have() {
    require!(Qemu);
    block_on(async {
        drop(lease().await);
        let mut made = Vec::new();
        let mut plain = Vec::new();
        let mut first = Vec::new();
        let mut warm = Vec::new();
        for _ in 0..ROUNDS {
            let began = Instant::now();
            let mut lease = lease().await;
            made.push(began.elapsed());
            execute(&mut lease.kernel, "1 + 1").await;
            plain.push(began.elapsed());
            execute(&mut lease.kernel, PANDAS).await;
            first.push(began.elapsed());
            execute(&mut lease.kernel, "1 + 1").await;
            for _ in 0..5 {
                let began = Instant::now();
                execute(&mut lease.kernel, "1 + 1").await;
                warm.push(began.elapsed());
            }
            lease.sandbox.destroy().await.unwrap();
        }
        for (name, mut times) in [
            ("sandbox restored", made),
            ("first 1 + 1 done", plain),
            ("first pandas cell after it done", first),
            ("warm 1 + 1", warm),
        ] {
            times.sort();
            let (least, middle, most) = (times[0], times[times.len() / 2], times[times.len() - 1]);
            println!(
                "{name}: p50 {middle:.1?}, min {least:.1?}, max {most:.1?}, {} times",
                times.len()
            );
        }
        let began = Instant::now();
        let backend = backend().await;
        let limits = Limits::default();
        let (one, two, three, four) = tokio::join!(
            create(backend, &limits),
            create(backend, &limits),
            create(backend, &limits),
            create(backend, &limits)
        );
        let mut leases = [one, two, three, four].map(Result::unwrap);
        println!("4 at once restored: {:.1?}", began.elapsed());
        for lease in &mut leases {
            execute(&mut lease.kernel, PANDAS).await;
        }
        let owner = LeakOwner::this_process();
        for (pid, name) in owner.processes() {
            if name.contains("qemu") {
                println!("{name} {pid}: {}", memory(pid));
            }
        }
    });
}

/// Returns the shares of a process' memory, in MiB.
fn memory(pid: u32) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let wanted = ["Rss", "Pss", "Private_Dirty", "Private_Clean"];
    let lines = text.lines().filter_map(|line| {
        let (name, rest) = line.split_once(':')?;
        let kib: u64 = rest.trim().strip_suffix(" kB")?.parse().ok()?;
        wanted
            .contains(&name)
            .then(|| format!("{name} {} MiB", kib >> 10))
    });
    lines.collect::<Vec<_>>().join(", ")
}
