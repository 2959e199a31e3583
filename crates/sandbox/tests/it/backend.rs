//! The process backend: rooms and kernels, their resource usage, and errors of starting them.

use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::process::{ImageTree, ProcessBackend, ProcessConfig};
use cellblock_sandbox::backend::{Backend, ProcessEnd};
use cellblock_sandbox::error::{Blame, Effect};
use cellblock_sandbox::jail::protection::Protection;
use cellblock_sandbox::pool::create;
use cellblock_testkit::require;

use crate::support::{
    End, HostProcess, MIB, backend, block_on, config, descendants, ended, execute, limits, shows, template,
    until,
};

#[test]
fn a_kernel_runs_cells_and_reports_its_exit() {
    block_on(async {
        let backend = backend().await;
        let mut lease = create(&backend, &Limits::default()).await.unwrap();
        assert_eq!(execute(&mut lease.kernel, "x = 6").await.1, []);
        assert_eq!(execute(&mut lease.kernel, "x * 7").await, shows(42));
        let (end, _) = execute(&mut lease.kernel, "import os\nos._exit(7)").await;
        assert_eq!(end, End::Lost(ProcessEnd::Exited(7)));
        let mut next = lease.sandbox.start_kernel().await.unwrap();
        let (end, _) = execute(&mut next, "import os\nos.kill(os.getpid(), 11)").await;
        assert_eq!(end, End::Lost(ProcessEnd::Signaled(11)));
        lease.sandbox.destroy().await.unwrap();
    });
}

#[test]
fn interrupt_and_kill_reach_a_kernel_from_outside() {
    block_on(async {
        let backend = backend().await;
        let mut lease = create(&backend, &Limits::default()).await.unwrap();
        crate::support::start(&mut lease.kernel, "print('on', flush=True)\nwhile True: pass").await;
        lease.kernel.stdout.readable().await.unwrap();
        lease.kernel.interrupt();
        let (end, _) = crate::support::finish(&mut lease.kernel).await;
        assert_eq!(end, End::Done(cellblock_protocol::KernelOutcome::Interrupted));
        lease.kernel.kill();
        assert_eq!(ended(&lease.kernel).await, ProcessEnd::Signaled(9));
    });
}

#[test]
fn use_of_memory_and_processes_is_counted() {
    require!(CgroupV1);
    block_on(async {
        let backend = backend().await;
        let limits = limits(|limits| limits.memory_bytes = 256 * MIB);
        let mut lease = create(&backend, &limits).await.unwrap();
        let code =
            "block = b'x' * (64 << 20)\nimport subprocess\nchild = subprocess.Popen(['sleep', '1000'])";
        execute(&mut lease.kernel, code).await;
        let used = lease.sandbox.usage().await.unwrap();
        assert!(
            used.memory_bytes > 64 * MIB && used.memory_bytes < 256 * MIB,
            "{used:?}"
        );
        assert!(used.memory_peak_bytes >= used.memory_bytes, "{used:?}");
        assert_eq!((used.memory_kills, used.process_refusals), (0, 0));
        // Python has used some by now, whichever tree counts it.
        assert!(used.cpu_ns > 1_000_000, "{used:?}");
        // The guest, the kernel, and its child.
        assert_eq!(used.processes, 3, "{used:?}");
        let (end, _) = execute(&mut lease.kernel, "block = b'x' * (1 << 30)").await;
        assert_eq!(end, End::Lost(ProcessEnd::Signaled(9)));
        let used = lease.sandbox.usage().await.unwrap();
        assert_eq!(used.memory_kills, 1, "{used:?}");
    });
}

#[test]
fn killing_a_room_kills_its_kernel_and_rejects_further_work() {
    block_on(async {
        let backend = backend().await;
        let lease = create(&backend, &Limits::default()).await.unwrap();
        lease.sandbox.kill();
        assert_eq!(ended(&lease.kernel).await, ProcessEnd::Signaled(9));
        let error = lease.sandbox.guest().disks().await.unwrap_err();
        assert_eq!(error.to_string(), "the guest is gone");
        assert_eq!(
            (error.blame(), error.effect()),
            (Blame::Backend, Effect::Destroys)
        );
        assert!(lease.sandbox.start_kernel().await.is_err());
        lease.sandbox.destroy().await.unwrap();
    });
}

#[test]
fn rooms_have_unique_names_and_user_ids() {
    require!(Root);
    block_on(async {
        let (one, two) = (backend().await, backend().await);
        let mut leases = Vec::new();
        for backend in [&one, &one, &two] {
            leases.push(create(backend, &Limits::default()).await.unwrap());
        }
        assert_ne!(leases[0].sandbox.id(), leases[1].sandbox.id());
        let id_of = |process: &HostProcess| {
            let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid)).unwrap();
            let line = status.lines().find(|line| line.starts_with("Uid:")).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<u32>().unwrap()
        };
        let mut ids = Vec::new();
        for backend in [&one, &two] {
            let launcher = backend.launcher_pid().unwrap();
            let template = template(launcher);
            let all = descendants(launcher);
            let kernels = all.iter().filter(|it| it.parent == template.pid);
            ids.extend(kernels.chain([&template]).map(id_of));
        }
        ids.sort_unstable();
        ids.dedup();
        // Two templates and three kernels, none under an id that the host assigns.
        assert_eq!(ids.len(), 5, "{ids:?}");
        assert!(ids.iter().all(|id| *id >= 0x6000_0000), "{ids:?}");
    });
}

#[test]
fn every_protection_that_is_never_optional_is_active() {
    block_on(async {
        let report = backend().await.report();
        for protection in Protection::ALL {
            if protection.default_demand() == cellblock_sandbox::jail::protection::Demand::Strict {
                assert!(report.is_active(protection), "{protection:?}: {report:?}");
            }
        }
    });
}

#[test]
fn kernels_start_although_a_module_cannot_be_imported() {
    block_on(async {
        let config = ProcessConfig {
            preload: vec!["json".to_owned(), "no_such_module".to_owned()],
            ..config().await
        };
        let backend = ProcessBackend::start(&config).await.unwrap();
        assert_eq!(backend.failed_modules(), [""; 0]);
        backend.warmed().await.unwrap();
        let failed = backend.failed_modules();
        assert_eq!(failed.len(), 1, "{failed:?}");
        assert!(failed[0].starts_with("no_such_module: "), "{failed:?}");
        let mut lease = create(&backend, &Limits::default()).await.unwrap();
        assert_eq!(execute(&mut lease.kernel, "6 * 7").await, shows(42));
    });
}

#[test]
fn an_executable_that_is_not_a_launcher_fails_without_a_wait() {
    block_on(async {
        for launcher in ["/nonexistent/cellblock", "/bin/true"] {
            let config = ProcessConfig {
                launcher: Some(launcher.into()),
                ..config().await
            };
            let error = ProcessBackend::start(&config).await.unwrap_err();
            assert!(error.to_string().starts_with("start the launcher"), "{error}");
        }
    });
}

#[test]
fn a_missing_image_is_an_error_that_names_it() {
    block_on(async {
        let config = ProcessConfig {
            image: ImageTree::python("/nonexistent/python".into(), "bin/python3"),
            ..config().await
        };
        let error = ProcessBackend::start(&config).await.unwrap_err();
        assert!(error.to_string().contains("/nonexistent/python"), "{error}");
        assert_eq!(error.blame(), Blame::Backend);
    });
}

#[test]
fn dropping_a_backend_ends_its_launcher_and_all_below_it() {
    block_on(async {
        let backend = backend().await;
        let launcher = backend.launcher_pid().unwrap();
        let lease = create(&backend, &Limits::default()).await.unwrap();
        let below = descendants(launcher);
        assert!(below.len() >= 4, "keep, template, guest and kernel: {below:#?}");
        drop((lease, backend));
        until("gone", || {
            !std::path::Path::new(&format!("/proc/{launcher}")).exists()
        })
        .await;
        for process in below {
            let name = std::fs::read_to_string(format!("/proc/{}/comm", process.pid)).unwrap_or_default();
            assert_ne!(name.trim(), process.name, "{process:?} is still there");
        }
    });
}
