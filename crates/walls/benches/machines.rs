//! Numbers for people: `cargo bench -p cellblock-walls --bench machines -- gvisor microvm`.

#![expect(clippy::unwrap_used, reason = "a measurement fails by panicking")]
#![expect(clippy::print_stdout, reason = "the numbers are the result")]
#![expect(
    clippy::duplicate_mod,
    reason = "both backends build on the same support of tests"
)]

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cellblock_protocol::{FromKernel, ToKernel};
use cellblock_remote::RemoteBackend;
use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::{Backend, Kernel};
use cellblock_sandbox::channel::write_frame;
use cellblock_sandbox::pool::{Pool, create};
use cellblock_testkit::LeakOwner;

use gvisor::{block_on, execute};

const PANDAS: &str = "import pandas as pd\npd.DataFrame({'a': [1, 2, 3]}).describe()";
const ROUNDS: usize = 20;
const MANY: usize = 8;
/// Time for which a sandbox of the pool waits before it is taken: a kernel prepares for its first cell
/// meanwhile.
const REST: Duration = Duration::from_secs(1);

#[path = "../tests/gvisor/support.rs"]
#[expect(
    dead_code,
    unused_imports,
    reason = "shared with the tests, which use all of it"
)]
mod gvisor;
#[path = "../tests/firecracker/image.rs"]
mod lean_image;
#[path = "../tests/microvm/machine_image.rs"]
mod machine_image;
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
            let config = gvisor::config(gvisor::image().await);
            measure(cellblock_walls::gvisor::start(config).await.unwrap()).await;
        }
        if wanted.iter().any(|name| name == "microvm") {
            let config = microvm::config(gvisor::image().await);
            measure(cellblock_walls::microvm::start(config).await.unwrap()).await;
        }
    });
}

async fn measure(backend: RemoteBackend) {
    let backend: Arc<dyn Backend> = Arc::new(backend);
    let limits = Limits::default();
    println!("{}", backend.wall().unwrap_or_default());
    let backend = &*machines_one_by_one(backend, &limits).await;
    memory_of_many(backend, &limits).await;
}

/// Measures machines that are restored for their caller, and machines that wait in a pool.
async fn machines_one_by_one(shared: Arc<dyn Backend>, limits: &Limits) -> Arc<dyn Backend> {
    let backend = &*shared;
    drop(create(backend, limits).await.unwrap());
    let (mut made, mut plain, mut first, mut warm) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let mut lease = create(backend, limits).await.unwrap();
        made.push(began.elapsed());
        execute(&mut lease.kernel, "1 + 1").await;
        plain.push(began.elapsed());
        execute(&mut lease.kernel, PANDAS).await;
        first.push(began.elapsed());
        for _ in 0..5 {
            timed(&mut warm, execute(&mut lease.kernel, "1 + 1")).await;
        }
        lease.sandbox.destroy().await.unwrap();
    }
    let pool = Pool::start(Arc::clone(&shared), limits.clone(), 1.into());
    let (mut pooled, mut rested, mut asked) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        wait_for_machine(&pool).await;
        let first = async {
            let mut lease = pool.acquire(limits).await.unwrap();
            execute(&mut lease.kernel, "1 + 1").await;
            lease
        };
        let mut lease = timed(&mut pooled, first).await;
        tokio::time::sleep(REST).await;
        timed(&mut rested, execute(&mut lease.kernel, "1 + 1")).await;
        lease.sandbox.destroy().await.unwrap();

        wait_for_machine(&pool).await;
        let first = async {
            let mut lease = pool.acquire(limits).await.unwrap();
            list_variables(&mut lease.kernel).await;
            lease
        };
        let lease = timed(&mut asked, first).await;
        lease.sandbox.destroy().await.unwrap();
    }
    for (name, mut times) in [
        ("sandbox restored", made),
        ("first 1 + 1 done", plain),
        ("first pandas cell after it done", first),
        ("warm 1 + 1", warm),
        ("first 1 + 1 done from the pool", pooled),
        ("1 + 1 after that and a pause", rested),
        ("first request from the pool that runs nothing", asked),
    ] {
        times.sort();
        let (least, middle, most) = (times[0], times[times.len() / 2], times[times.len() - 1]);
        println!(
            "{name}: p50 {middle:.1?}, min {least:.1?}, max {most:.1?}, {} times",
            times.len()
        );
    }
    shared
}

/// Waits until a machine is in a pool and its kernel has prepared for its first cell.
async fn wait_for_machine(pool: &Pool) {
    while pool.ready() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(REST).await;
}

/// Sends a request for which a kernel runs no code.
async fn list_variables(kernel: &mut Kernel) {
    let message = ToKernel::Variables { cell: 1 };
    write_frame(&mut kernel.writer, &message, &[]).await.unwrap();
    while !matches!(
        kernel.frames.next().await.unwrap().unwrap().message,
        FromKernel::Done { .. }
    ) {}
}

/// Adds the duration of some work to others.
async fn timed<T>(times: &mut Vec<Duration>, work: impl Future<Output = T>) -> T {
    let began = Instant::now();
    let done = work.await;
    times.push(began.elapsed());
    done
}

/// Measures the memory of machines that run at once.
async fn memory_of_many(backend: &dyn Backend, limits: &Limits) {
    let began = Instant::now();
    let made = futures_util::future::join_all((0..MANY).map(|_| create(backend, limits))).await;
    let mut leases: Vec<_> = made.into_iter().map(Result::unwrap).collect();
    println!("{MANY} at once restored: {:.1?}", began.elapsed());
    for lease in &mut leases {
        execute(&mut lease.kernel, PANDAS).await;
    }
    let processes = LeakOwner::this_process().processes();
    // The programs that hold the machines' memory; the others are small, and those of gVisor share it.
    let mut private: Vec<_> = processes
        .iter()
        .filter_map(|(pid, _)| private_dirty(*pid))
        .collect();
    private.sort_unstable();
    let largest = private.iter().rev().take(MANY);
    println!(
        "private dirty memory of each of {MANY}: {} MiB",
        largest.sum::<u64>() / MANY as u64 / 1024
    );
    let owners = processes.into_iter().filter(|(_, name)| name == "cellblock-mach");
    for (pid, _) in owners {
        for stat in groups(pid) {
            println!("machine {pid}: {stat}");
        }
    }
}

/// Returns the private dirty memory of a process in KiB.
fn private_dirty(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Private_Dirty:"))?;
    line.split_whitespace().next()?.parse().ok()
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
