//! Numbers for people: `cargo bench -p cellblock-walls --bench machines -- gvisor microvm`.

#![expect(clippy::unwrap_used, reason = "a measurement fails by panicking")]
#![expect(clippy::print_stdout, reason = "the numbers are the result")]
#![expect(
    clippy::duplicate_mod,
    reason = "both backends build on the same support of tests"
)]

use std::fs;
use std::time::Instant;

use cellblock_remote::RemoteBackend;
use cellblock_sandbox::Limits;
use cellblock_sandbox::pool::create;
use cellblock_testkit::LeakOwner;

use gvisor::{block_on, execute};

const PANDAS: &str = "import pandas as pd\npd.DataFrame({'a': [1, 2, 3]}).describe()";
const ROUNDS: usize = 20;

#[path = "../tests/gvisor/support.rs"]
#[expect(
    dead_code,
    unused_imports,
    reason = "shared with the tests, which use all of it"
)]
mod gvisor;
#[path = "../tests/microvm/support.rs"]
#[expect(
    dead_code,
    unused_imports,
    reason = "shared with the tests, which use all of it"
)]
mod microvm;

fn main() {
    let wanted: Vec<_> = std::env::args().skip(1).collect();
    block_on(async {
        if wanted.iter().any(|name| name == "gvisor") {
            measure(gvisor::backend().await).await;
        }
        if wanted.iter().any(|name| name == "microvm") {
            measure(microvm::backend().await).await;
        }
    });
}

async fn measure(backend: &RemoteBackend) {
    let limits = Limits::default();
    println!(
        "{}",
        cellblock_sandbox::backend::Backend::wall(backend).unwrap_or_default()
    );
    drop(create(backend, &limits).await.unwrap());
    let (mut made, mut plain, mut first, mut warm) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let mut lease = create(backend, &limits).await.unwrap();
        made.push(began.elapsed());
        execute(&mut lease.kernel, "1 + 1").await;
        plain.push(began.elapsed());
        execute(&mut lease.kernel, PANDAS).await;
        first.push(began.elapsed());
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
