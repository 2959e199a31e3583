//! The pool: ready kernels, refilled, never one that has ended.

use std::sync::Arc;
use std::time::Duration;

use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::process::ProcessBackend;
use cellblock_sandbox::backend::{Backend, ProcessEnd};
use cellblock_sandbox::error::Shortage;
use cellblock_sandbox::limits::NetworkPolicy;
use cellblock_sandbox::pool::{Pool, PoolConfig, create};

use crate::support::{
    End, MIB, backend, block_on, descendants, execute, kill, limits, shows, template, until,
};

async fn pool(ready: usize) -> (ProcessBackend, Pool) {
    let backend = backend().await;
    let config = PoolConfig {
        ready,
        ..PoolConfig::default()
    };
    let pool = Pool::start(Arc::new(backend.clone()), Limits::default(), config);
    until("filled", || pool.ready() == ready).await;
    (backend, pool)
}

#[test]
fn a_ready_kernel_is_handed_out_and_replaced() {
    block_on(async {
        let (_backend, pool) = pool(2).await;
        let mut names = Vec::new();
        for _ in 0..5 {
            let mut lease = pool.acquire(&Limits::default()).await.unwrap();
            assert_eq!(execute(&mut lease.kernel, "6 * 7").await, shows(42));
            names.push(lease.sandbox.id().to_owned());
            lease.sandbox.destroy().await.unwrap();
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 5, "a sandbox was handed out twice");
        until("filled again", || pool.ready() == 2).await;
    });
}

#[test]
fn more_callers_than_ready_kernels_all_get_one() {
    block_on(async {
        let (_backend, pool) = pool(2).await;
        let pool = Arc::new(pool);
        let tasks: Vec<_> = (0..10)
            .map(|_| {
                let pool = Arc::clone(&pool);
                tokio::spawn(async move {
                    let mut lease = pool.acquire(&Limits::default()).await.unwrap();
                    execute(&mut lease.kernel, "6 * 7").await
                })
            })
            .collect();
        for task in tasks {
            assert_eq!(task.await.unwrap(), shows(42));
        }
    });
}

#[test]
fn other_limits_are_served_on_demand_and_hold() {
    block_on(async {
        let (_backend, pool) = pool(1).await;
        let small = limits(|limits| limits.disk_bytes = 8 * MIB);
        let lease = pool.acquire(&small).await.unwrap();
        let disks = lease.sandbox.guest().disks().await.unwrap();
        let workspace = disks.iter().find(|disk| disk.path == "/workspace").unwrap();
        assert_eq!(workspace.bytes_limit, 8 * MIB);
        assert_eq!(pool.ready(), 1);
    });
}

#[test]
fn the_pool_keeps_sandboxes_for_each_network_policy_in_use() {
    block_on(async {
        let (_backend, pool) = pool(1).await;
        let with_loopback = limits(|limits| limits.network = NetworkPolicy::Loopback);
        let made = "import socket\ntry:\n    socket.socket().close()\n    n = 1\n\
                    except PermissionError:\n    n = 0\nn";
        for _ in 0..2 {
            let mut lease = pool.acquire(&with_loopback).await.unwrap();
            assert_eq!(execute(&mut lease.kernel, made).await, shows(1));
            until("filled with both", || pool.ready() == 2).await;
        }
        let mut lease = pool.acquire(&Limits::default()).await.unwrap();
        assert_eq!(execute(&mut lease.kernel, made).await, shows(0));
        let small = limits(|limits| limits.disk_bytes = 8 * MIB);
        drop(pool.acquire(&small).await.unwrap());
        until("filled again", || pool.ready() == 2).await;
    });
}

#[test]
fn an_empty_pool_creates_sandboxes_on_demand() {
    block_on(async {
        let (_backend, pool) = pool(0).await;
        let mut lease = pool.acquire(&Limits::default()).await.unwrap();
        assert_eq!(execute(&mut lease.kernel, "6 * 7").await, shows(42));
        assert_eq!(pool.ready(), 0);
    });
}

#[test]
fn an_ended_kernel_is_never_provided() {
    block_on(async {
        let (backend, pool) = pool(2).await;
        let launcher = backend.launcher_pid().unwrap();
        let template = template(launcher);
        let kernels: Vec<_> = descendants(launcher)
            .into_iter()
            .filter(|it| it.parent == template.pid)
            .collect();
        assert_eq!(kernels.len(), 2, "{kernels:#?}");
        for kernel in &kernels {
            kill(kernel.pid);
        }
        until("gone", || {
            descendants(launcher)
                .iter()
                .all(|it| kernels.iter().all(|dead| dead.pid != it.pid))
        })
        .await;
        // The launcher's notification may still be on its way; it has arrived once a later kernel's
        // has.
        let mut later = create(&backend, &Limits::default()).await.unwrap();
        let (end, _) = execute(&mut later.kernel, "import os\nos._exit(3)").await;
        assert_eq!(end, End::Lost(ProcessEnd::Exited(3)));
        let mut lease = pool.acquire(&Limits::default()).await.unwrap();
        assert_eq!(execute(&mut lease.kernel, "6 * 7").await, shows(42));
    });
}

#[test]
fn a_caller_waits_no_longer_than_the_limit() {
    block_on(async {
        let backend = backend().await;
        let config = PoolConfig {
            ready: 0,
            acquire_timeout: Duration::ZERO,
        };
        let pool = Pool::start(Arc::new(backend), Limits::default(), config);
        let error = pool.acquire(&Limits::default()).await.unwrap_err();
        let shortage = error.shortage().unwrap();
        assert!(
            matches!(shortage, Shortage::Processors | Shortage::Memory),
            "{shortage:?}"
        );
        assert_eq!(
            error.to_string(),
            format!("a sandbox was not ready within 0 s: {shortage}")
        );
        assert_eq!(error.blame(), cellblock_sandbox::error::Blame::Capacity);
        assert_eq!(
            error.retry(),
            cellblock_sandbox::error::Retry::After(Duration::from_secs(1))
        );
    });
}

#[test]
fn a_dropped_pool_releases_its_rooms() {
    block_on(async {
        let (backend, pool) = pool(3).await;
        let launcher = backend.launcher_pid().unwrap();
        let with_rooms = descendants(launcher).len();
        assert!(with_rooms >= 8, "{with_rooms}");
        drop(pool);
        // The keep, the template and the backend's spare room stay.
        until("empty", || descendants(launcher).len() <= 3).await;
        backend.warmed().await.unwrap();
    });
}
