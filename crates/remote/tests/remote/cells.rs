//! Kernels of a server: cells, signals, ends, standbys, datasets, limits.

use std::io::Write;
use std::time::Duration;

use cellblock_protocol::{FromKernel, KernelOutcome, OutputLimits, Rescue, ToKernel};
use cellblock_remote::{RemoteBackend, http_status};
use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::{Backend, Kernel, ProcessEnd, read_now};
use cellblock_sandbox::channel::write_frame;
use cellblock_sandbox::error::{Blame, Retry};
use cellblock_sandbox::jail::protection::{Demand, Demands, Protection};
use cellblock_sandbox::pool::create;
use cellblock_testkit::require;

use crate::support::{
    End, MIB, backend, block_on, config, ended, execute, finish, lease, limits, reads, shows, start, until,
};

#[test]
fn a_kernel_runs_cells_and_reports_its_exit() {
    block_on(async {
        let pair = backend().await;
        let mut lease = lease(&pair).await;
        assert_eq!(execute(&mut lease.kernel, "x = 6").await.1, []);
        assert_eq!(execute(&mut lease.kernel, "x * 7").await, shows(42));
        let (end, _) = execute(&mut lease.kernel, "import os\nos._exit(7)").await;
        assert_eq!(end, End::Lost(ProcessEnd::Exited(7)));
        let mut next = lease.sandbox.start_kernel().await.unwrap();
        let (end, _) = execute(&mut next, "import os\nos.kill(os.getpid(), 11)").await;
        assert_eq!(end, End::Lost(ProcessEnd::Signaled(11)));
        lease.sandbox.destroy().await.unwrap();
        assert!(pair.site.lent.lock().is_empty());
    });
}

#[test]
fn interrupt_and_kill_reach_a_kernel() {
    block_on(async {
        let pair = backend().await;
        let mut lease = lease(&pair).await;
        start(&mut lease.kernel, "print('on', flush=True)\nwhile True: pass").await;
        assert_eq!(reads(&lease.kernel, |all| all.len() >= 3).await, b"on\n");
        lease.kernel.interrupt();
        let (end, _) = finish(&mut lease.kernel).await;
        assert_eq!(end, End::Done(KernelOutcome::Interrupted));
        lease.kernel.kill();
        assert_eq!(ended(&lease.kernel).await, ProcessEnd::Signaled(9));
    });
}

#[test]
fn output_before_a_frame_arrives_before_it() {
    block_on(async {
        let pair = backend().await;
        let mut lease = lease(&pair).await;
        for round in 0..20 {
            let code = format!("import os\nos.write(1, b'round {round}')\nos.write(2, b'trouble {round}');");
            assert_eq!(
                execute(&mut lease.kernel, &code).await.0,
                End::Done(KernelOutcome::Completed)
            );
            let mut buffer = [0; 100];
            let length = read_now(&lease.kernel.stdout, &mut buffer).unwrap();
            assert_eq!(&buffer[..length], format!("round {round}").as_bytes());
            let length = read_now(&lease.kernel.stderr, &mut buffer).unwrap();
            assert_eq!(&buffer[..length], format!("trouble {round}").as_bytes());
        }
    });
}

#[test]
fn unread_output_stays_in_the_sandbox_and_arrives_complete() {
    block_on(async {
        let pair = backend().await;
        let mut lease = lease(&pair).await;
        // The window and the buffers on the way hold far less than the output.
        let code = "import os\nfor _ in range(4096):\n    os.write(1, b'x' * 1024);\n1";
        start(&mut lease.kernel, code).await;
        let finished = tokio::time::timeout(Duration::from_millis(500), finish(&mut lease.kernel)).await;
        assert!(
            finished.is_err(),
            "the cell ended though nobody read what it wrote"
        );
        let all = reads(&lease.kernel, |all| all.len() == 4 << 20).await;
        assert!(all.iter().all(|byte| *byte == b'x'));
        assert_eq!(finish(&mut lease.kernel).await, shows(1));
    });
}

#[test]
fn memory_is_counted_at_the_server() {
    require!(CgroupV1);
    block_on(async {
        let pair = backend().await;
        let limits = limits(|limits| limits.memory_bytes = 256 * MIB);
        let mut lease = create(&pair, &limits).await.unwrap();
        execute(&mut lease.kernel, "block = b'x' * (64 << 20)").await;
        let used = lease.sandbox.usage().await.unwrap();
        assert!(
            used.memory_bytes > 64 * MIB && used.memory_bytes < 256 * MIB,
            "{used:?}"
        );
        let (end, _) = execute(&mut lease.kernel, "block = b'x' * (1 << 30)").await;
        assert_eq!(end, End::Lost(ProcessEnd::Signaled(9)));
        assert_eq!(lease.sandbox.usage().await.unwrap().memory_kills, 1);
    });
}

#[test]
fn killing_a_sandbox_kills_its_kernel() {
    block_on(async {
        let pair = backend().await;
        let lease = lease(&pair).await;
        lease.sandbox.kill();
        assert_eq!(ended(&lease.kernel).await, ProcessEnd::Signaled(9));
        assert!(lease.sandbox.guest().disks().await.is_err());
        assert!(lease.sandbox.start_kernel().await.is_err());
        lease.sandbox.destroy().await.unwrap();
    });
}

/// Waits for the kernel's report of its standby.
async fn standby(kernel: &mut Kernel) -> u32 {
    loop {
        let frame = tokio::time::timeout(Duration::from_secs(20), kernel.frames.next());
        if let FromKernel::Standby { pid: Some(pid), .. } = frame.await.unwrap().unwrap().unwrap().message {
            return pid;
        }
    }
}

#[test]
fn a_standby_takes_over_and_unread_output_is_dropped() {
    block_on(async {
        let pair = backend().await;
        let mut lease = create(&pair, &Limits::default()).await.unwrap();
        let configure = ToKernel::Configure {
            prelude: Vec::new(),
            guard: cellblock_protocol::Guard::Off,
            limits: OutputLimits {
                outputs: 8,
                output_bytes: 1 << 20,
                text_chars: 1000,
                rows_preview: 5,
                result_bytes: 1 << 20,
            },
            sys_path: Vec::new(),
            rescue: Rescue::On,
            connectors: Vec::new(),
            outputs: std::collections::BTreeMap::new(),
        };
        write_frame(&mut lease.kernel.writer, &configure, &[])
            .await
            .unwrap();
        execute(&mut lease.kernel, "x = 41").await;
        start(
            &mut lease.kernel,
            "import os\nos.write(1, b'last words')\nx = 0\nos._exit(3)",
        )
        .await;
        let pid = standby(&mut lease.kernel).await;
        assert_eq!(ended(&lease.kernel).await, ProcessEnd::Exited(3));
        let mut kernel = lease.sandbox.rescue(lease.kernel, pid, &[]).await.unwrap();
        assert_eq!(kernel.pid, pid);
        let mut buffer = [0; 100];
        assert!(
            read_now(&kernel.stdout, &mut buffer).is_err(),
            "last words were kept"
        );
        assert_eq!(execute(&mut kernel, "x + 1").await, shows(42));
        lease.sandbox.destroy().await.unwrap();
    });
}

#[test]
fn a_dataset_is_sent_once_and_mounted() {
    block_on(async {
        let pair = backend().await;
        let mut lease = lease(&pair).await;
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let line = b"0123456789abcdef";
        for _ in 0..100_000 {
            file.write_all(line).unwrap();
        }
        let guest = lease.sandbox.guest();
        guest
            .write("/tmp/data/numbers", 0o644, std::io::empty())
            .await
            .unwrap();
        let shown = lease
            .sandbox
            .mount_data("numbers", file.as_file(), file.path())
            .await;
        shown.unwrap();
        let code =
            "data = open('/tmp/data/numbers', 'rb').read()\nint(data == b'0123456789abcdef' * 100_000)";
        assert_eq!(execute(&mut lease.kernel, code).await, shows(1));
        lease.sandbox.destroy().await.unwrap();
    });
}

#[test]
fn limits_beyond_the_servers_maximum_are_rejected_by_name() {
    block_on(async {
        let pair = backend().await;
        let error = pair
            .create(&limits(|limits| limits.memory_bytes *= 2))
            .await
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "the remote could not make a sandbox: the requested limits exceed the maximum: \
             `memory_bytes` is 4294967296; the maximum is 2147483648"
        );
        assert_eq!((error.blame(), error.retry()), (Blame::Caller, Retry::Never));
        assert!(pair.site.lent.lock().is_empty());
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"12345").unwrap();
        let small = pair
            .create(&limits(|limits| limits.data_bytes = 4))
            .await
            .unwrap();
        let shown = small.mount_data("numbers", file.as_file(), file.path()).await;
        assert_eq!(
            shown.unwrap_err().to_string(),
            "the remote could not take a file: datasets would have 5 bytes, the limit is \
             4; raise `data_bytes`"
        );
        assert!(small.guest().disks().await.is_ok());
    });
}

#[test]
fn a_server_without_a_required_protection_is_not_used() {
    block_on(async {
        let pair = backend().await;
        let mut demands = Demands::default();
        for protection in Protection::ALL {
            demands.0.insert(protection, Demand::Strict);
        }
        let lacking = pair
            .report()
            .0
            .iter()
            .any(|(_, state)| *state != cellblock_sandbox::jail::protection::ProtectionStatus::Active);
        let started = RemoteBackend::start(config(&pair.server.url()), demands).await;
        match (lacking, started) {
            (true, Err(error)) => {
                assert!(
                    error.to_string().contains("is not active at the remote: "),
                    "{error}"
                );
                assert_eq!(error.blame(), Blame::Policy);
            }
            (false, Ok(_)) => {}
            (lacking, started) => panic!("lacking: {lacking}, {started:?}"),
        }
    });
}

#[test]
fn a_wrong_key_is_rejected_without_a_retry() {
    block_on(async {
        let pair = backend().await;
        let config = cellblock_remote::RemoteConfig::new(&pair.server.url())
            .unwrap()
            .with_key("another")
            .unwrap();
        let error = RemoteBackend::start(config, Demands::default())
            .await
            .unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("it returned HTTP status 401: it requires another key"),
            "{error}"
        );
        assert_eq!((error.blame(), error.retry()), (Blame::Policy, Retry::Never));
        assert_eq!(http_status(&error), Some(401));
        let url = pair.server.url().replace("/v1/sandbox", "/v1/nothing");
        let config = crate::support::config(&url);
        let error = RemoteBackend::start(config, Demands::default())
            .await
            .unwrap_err();
        assert_eq!(http_status(&error), Some(404));
    });
}

#[test]
fn thirty_rounds_leave_no_sandbox_and_no_connection() {
    block_on(async {
        let pair = backend().await;
        for round in 0..30 {
            let mut lease = lease(&pair).await;
            match round % 5 {
                0 => lease.sandbox.destroy().await.unwrap(),
                1 => {
                    let code =
                        "import subprocess\nsubprocess.Popen(['sleep', '1000'], start_new_session=True);";
                    execute(&mut lease.kernel, code).await;
                    lease.sandbox.destroy().await.unwrap();
                }
                2 => {
                    let (end, _) = execute(&mut lease.kernel, "import os\nos._exit(1)").await;
                    assert_eq!(end, End::Lost(ProcessEnd::Exited(1)));
                    lease.sandbox.destroy().await.unwrap();
                }
                3 => drop(lease),
                _ => {
                    lease.sandbox.kill();
                    drop(lease);
                }
            }
        }
        until("ended", || {
            pair.site.lent.lock().is_empty() && pair.server.connections() == 0
        })
        .await;
        assert_eq!(*pair.site.cuts.lock(), [""; 0]);
    });
}
