//! Kernels in machines: cells, files, signals, ends, and what makes machines different.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cellblock_protocol::{KernelOutcome, Scalar};
use cellblock_sandbox::backend::{Backend, Ending};
use cellblock_sandbox::jail::protection::Protection;
use cellblock_testkit::require;

use crate::support::{End, backend, block_on, ended, execute, finish, lease, shows, start};

#[test]
fn a_machine_runs_cells_with_the_image_s_libraries_on_a_kernel_of_its_own() {
    require!(Qemu);
    block_on(async {
        let mut lease = lease().await;
        assert_eq!(execute(&mut lease.kernel, "x = 6").await.1, []);
        assert_eq!(execute(&mut lease.kernel, "x * 7").await, shows(42));
        let code = "import pandas as pd\nint(pd.DataFrame({'a': [1, 2, 3]})['a'].sum())";
        assert_eq!(execute(&mut lease.kernel, code).await, shows(6));
        let (_, shown) = execute(&mut lease.kernel, "import os\nos.uname().release").await;
        let host = rustix::system::uname();
        let [Scalar::Text(release)] = &shown[..] else {
            panic!("{shown:?}")
        };
        assert_ne!(release.as_str(), host.release().to_string_lossy());
        lease.sandbox.destroy().await.unwrap();
    });
}

#[test]
fn code_runs_confined_by_the_machine_s_own_kernel_without_a_network() {
    require!(Qemu);
    block_on(async {
        let backend = backend().await;
        assert_eq!(backend.name(), "microvm");
        let report = backend.report();
        for active in [
            Protection::UserNamespace,
            Protection::NetNamespace,
            Protection::Seccomp,
            Protection::Landlock,
            Protection::NoCapabilities,
            Protection::NoNewPrivs,
        ] {
            assert!(report.is_active(active), "{active}");
        }
        let mut lease = lease().await;
        let code = "import os\nint(os.getuid() == 1000 and not [it for it in os.listdir('/dev') if it.startswith('v')])";
        assert_eq!(execute(&mut lease.kernel, code).await, shows(1));
        let code = "import socket\ntry:\n    socket.create_connection(('1.1.1.1', 53), 2)\n    said = 0\nexcept OSError:\n    said = 1\nsaid";
        assert_eq!(execute(&mut lease.kernel, code).await, shows(1));
        let code = "import subprocess\nint(subprocess.run('ls /usr/bin | grep -c . && tar --version', shell=True, capture_output=True).returncode == 0)";
        assert_eq!(execute(&mut lease.kernel, code).await, shows(1));
        lease.sandbox.destroy().await.unwrap();
    });
}

#[test]
fn files_of_megabytes_go_in_and_out() {
    require!(Qemu);
    block_on(async {
        let mut lease = lease().await;
        let guest = lease.sandbox.guest();
        let content: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
        guest
            .write("/workspace/in.bin", 0o644, &content[..])
            .await
            .unwrap();
        let code = "data = open('/workspace/in.bin', 'rb').read()\nopen('/tmp/output/out.bin', 'wb').write(data[::-1])";
        execute(&mut lease.kernel, code).await;
        let mut back = Vec::new();
        loop {
            let at = back.len() as u64;
            let read = lease
                .sandbox
                .guest()
                .read("/tmp/output/out.bin", at, 4_000_000)
                .await;
            let (part, eof) = read.unwrap();
            part.reader().read_to_end(&mut back).unwrap();
            if eof {
                break;
            }
        }
        assert!(back.iter().rev().eq(content.iter()), "{} bytes", back.len());
        lease.sandbox.destroy().await.unwrap();
    });
}

#[test]
fn an_interrupt_ends_the_cell_and_a_kill_the_kernel() {
    require!(Qemu);
    block_on(async {
        let mut lease = lease().await;
        execute(&mut lease.kernel, "kept = 42").await;
        for code in ["while True: pass", "import time\ntime.sleep(1000)"] {
            start(&mut lease.kernel, code).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            lease.kernel.interrupt();
            let (end, _) = finish(&mut lease.kernel).await;
            assert_eq!(end, End::Done(KernelOutcome::Interrupted), "{code}");
        }
        assert_eq!(execute(&mut lease.kernel, "kept").await, shows(42));
        lease.kernel.kill();
        assert_eq!(ended(&lease.kernel).await, Ending::Signaled(9));
        lease.sandbox.destroy().await.unwrap();
    });
}

#[test]
fn a_kernel_that_dies_is_replaced_in_the_same_machine() {
    require!(Qemu);
    block_on(async {
        let mut lease = lease().await;
        let code = "import os\nopen('/workspace/kept', 'w').write('x')\nos._exit(7)";
        assert_eq!(
            execute(&mut lease.kernel, code).await.0,
            End::Lost(Ending::Exited(7))
        );
        let mut next = lease.sandbox.start_kernel().await.unwrap();
        let code = "import os\nint(os.path.exists('/workspace/kept'))";
        assert_eq!(execute(&mut next, code).await, shows(1));
        lease.sandbox.destroy().await.unwrap();
    });
}

const CODE: &str = "import os, random, ssl, time, uuid\nimport numpy as np\n\
    boot = open('/proc/sys/kernel/random/uuid').read().strip()\n\
    ' '.join(map(str, (os.urandom(8).hex(), random.random(), uuid.uuid4(), np.random.random(), ssl.RAND_bytes(8).hex(),\n\
    np.random.default_rng().random(), boot, os.uname().nodename, time.time())))";

#[test]
fn machines_of_one_snapshot_have_random_numbers_and_names_of_their_own_and_the_right_time() {
    require!(Qemu);
    block_on(async {
        let mut columns = vec![BTreeSet::new(); 8];
        for _ in 0..8 {
            let mut lease = lease().await;
            let (_, shown) = execute(&mut lease.kernel, CODE).await;
            let [Scalar::Text(text)] = &shown[..] else {
                panic!("{shown:?}")
            };
            let words: Vec<_> = text.split(' ').collect();
            for (column, word) in columns.iter_mut().zip(&words) {
                column.insert((*word).to_owned());
            }
            let inside: f64 = words[8].parse().unwrap();
            let here = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap()
                .as_secs_f64();
            assert!((here - inside).abs() < 10.0, "{inside} is not {here}");
            lease.sandbox.destroy().await.unwrap();
        }
        for column in columns {
            assert_eq!(column.len(), 8, "{column:?}");
        }
    });
}

#[test]
fn a_layer_is_sent_to_a_machine_and_imported_there() {
    require!(Qemu);
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("sent/below")).unwrap();
        fs::write(folder.path().join("sent/below/part.py"), "answer = 42\n").unwrap();
        fs::write(
            folder.path().join("sent/__init__.py"),
            "from .below.part import answer\n",
        )
        .unwrap();
        std::os::unix::fs::symlink("sent", folder.path().join("linked")).unwrap();
        let mut lease = lease().await;
        let id = "0a".repeat(32);
        for _ in 0..2 {
            lease.sandbox.show_layer(&id, folder.path()).await.unwrap();
        }
        let code = format!("import sys\nsys.path.append('/opt/layers/{id}')\nimport linked\nlinked.answer");
        assert_eq!(execute(&mut lease.kernel, &code).await, shows(42));
        let code = format!(
            "try:\n    open('/opt/layers/{id}/more', 'w')\n    said = 0\nexcept OSError:\n    said = 1\nsaid"
        );
        assert_eq!(execute(&mut lease.kernel, &code).await, shows(1));
        let wrong = lease
            .sandbox
            .show_layer("../images", folder.path())
            .await
            .unwrap_err();
        assert!(wrong.to_string().contains("not the id of a layer"), "{wrong}");
        lease.sandbox.destroy().await.unwrap();
    });
}
