//! Numbers for people, printed by
//! `cargo test -p cellblock-walls --test gvisor -- --ignored --nocapture measure`.

use std::fs;
use std::time::Instant;

use cellblock_sandbox::Limits;
use cellblock_sandbox::pool::create;
use cellblock_testkit::{LeakOwner, require};

use crate::support::{backend, block_on, execute, lease};

const PANDAS: &str = "import pandas as pd\npd.DataFrame({'a': [1, 2, 3]}).describe()";
const ROUNDS: usize = 20;

#[test]
#[ignore = "measures; needs an idle machine"]
#[expect(clippy::print_stdout, reason = "the numbers are the result")]
fn how_long_sandboxes_take_and_how_much_memory_they_have() {
    require!(Runsc);
    block_on(async {
        drop(lease().await);
        let mut made = Vec::new();
        let mut first = Vec::new();
        let mut warm = Vec::new();
        for _ in 0..ROUNDS {
            let began = Instant::now();
            let mut lease = lease().await;
            made.push(began.elapsed());
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
            ("first pandas cell done", first),
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
        // gVisor's processes share address spaces, so that their own figures count memory several times.
        let owners = LeakOwner::this_process();
        let owners = owners
            .processes()
            .into_iter()
            .filter(|(_, name)| name == "cellblock-mach");
        for (pid, _) in owners {
            for stat in groups(pid) {
                println!("machine {pid}: {stat}");
            }
        }
    });
}

/// Returns the memory of the cgroups of a machine's owner, of either version.
fn groups(owner: u32) -> Vec<String> {
    let mut found = Vec::new();
    let mut ahead = vec![std::path::PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = ahead.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let own = entry
                .file_name()
                .to_string_lossy()
                .starts_with(&format!("cellblock-{owner}-"));
            if own {
                let stat = fs::read_to_string(entry.path().join("machine/memory.stat")).unwrap_or_default();
                let wanted = [
                    "total_rss ",
                    "total_cache ",
                    "total_mapped_file ",
                    "anon ",
                    "file ",
                    "shmem ",
                ];
                let lines = stat
                    .lines()
                    .filter(|line| wanted.iter().any(|it| line.starts_with(it)));
                found.extend(lines.map(|line| {
                    let (name, bytes) = line.split_once(' ').unwrap_or_default();
                    format!("{name} {} MiB", bytes.parse::<u64>().unwrap_or_default() >> 20)
                }));
            } else {
                ahead.push(entry.path());
            }
        }
    }
    found
}
