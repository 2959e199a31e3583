//! Kernels in machines: cells, files, signals, ends, and what makes machines different.

use std::collections::BTreeSet;
use std::io::Read;
use std::time::Duration;

use cellblock_protocol::{KernelOutcome, Scalar};
use cellblock_sandbox::backend::{Backend, Ending};
use cellblock_sandbox::jail::protection::{Demand, Demands, Protection};
use cellblock_testkit::require;

use crate::support::{End, backend, block_on, config, ended, execute, finish, image, lease, shows, start};

#[test]
fn a_machine_runs_cells_with_the_image_s_libraries() {
    require!(Runsc);
    block_on(async {
        let mut lease = lease().await;
        assert_eq!(execute(&mut lease.kernel, "x = 6").await.1, []);
        assert_eq!(execute(&mut lease.kernel, "x * 7").await, shows(42));
        let code = "import pandas as pd\nint(pd.DataFrame({'a': [1, 2, 3]})['a'].sum())";
        assert_eq!(execute(&mut lease.kernel, code).await, shows(6));
        lease.sandbox.destroy().await.unwrap();
    });
}

#[test]
fn code_runs_as_an_own_user_without_privileges_and_sees_no_network_and_no_path_of_the_host() {
    require!(Runsc);
    block_on(async {
        let mut lease = lease().await;
        let code = "import os\nstatus = open('/proc/self/status').read()\n\
                    int(os.getuid() == 1000 and os.getgid() == 1000 and not os.getgroups()\n\
                    and all(f'Cap{it}:\\t0000000000000000' in status for it in ('Inh', 'Prm', 'Eff', 'Bnd')))";
        assert_eq!(execute(&mut lease.kernel, code).await, shows(1));
        let code = "import ctypes, os\nctypes.CDLL(None).prctl(39, 0, 0, 0, 0)";
        assert_eq!(execute(&mut lease.kernel, code).await, shows(1), "no_new_privs");
        let code = "try:\n    open('/usr/bin/new', 'w')\n    said = 0\nexcept OSError:\n    said = 1\nsaid";
        assert_eq!(execute(&mut lease.kernel, code).await, shows(1));
        let code = "import socket\ntry:\n    socket.create_connection(('1.1.1.1', 53), 2)\n    said = 0\nexcept OSError:\n    said = 1\nsaid";
        assert_eq!(execute(&mut lease.kernel, code).await, shows(1));
        let home = cellblock_testkit::home().unwrap();
        let code = format!(
            "import sys\nint(any({:?} in it for it in [*sys.path, open('/proc/self/mounts').read(), open('/proc/self/cmdline').read()]))",
            home.display().to_string()
        );
        assert_eq!(execute(&mut lease.kernel, &code).await, shows(0));
        // The socket of the host is for the machine's first process.
        let code = "import socket\ntry:\n    socket.socket(socket.AF_UNIX).connect('/run/cb/host')\n    said = 0\nexcept OSError:\n    said = 1\nsaid";
        assert_eq!(execute(&mut lease.kernel, code).await, shows(1));
        lease.sandbox.destroy().await.unwrap();
    });
}

#[test]
fn files_go_in_and_out() {
    require!(Runsc);
    block_on(async {
        let mut lease = lease().await;
        let guest = lease.sandbox.guest();
        guest.write("/workspace/in.txt", 0o644, &b"in"[..]).await.unwrap();
        let code =
            "text = open('/workspace/in.txt').read()\nopen('/tmp/output/out.txt', 'w').write(text * 2)";
        execute(&mut lease.kernel, code).await;
        let read = lease.sandbox.guest().read("/tmp/output/out.txt", 0, 100).await;
        let (content, eof) = read.unwrap();
        let mut text = String::new();
        content.reader().read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), eof), ("inin", true));
        execute(
            &mut lease.kernel,
            "import os\nos.symlink('/etc', '/workspace/link')",
        )
        .await;
        let refused = lease.sandbox.guest().read("/workspace/link/passwd", 0, 100).await;
        let error = refused.unwrap_err();
        assert_eq!(error.guest_refusal().unwrap().0, "symlink", "{error}");
        lease.sandbox.destroy().await.unwrap();
    });
}

#[test]
fn an_interrupt_ends_the_cell_and_a_kill_the_kernel() {
    require!(Runsc);
    block_on(async {
        let mut lease = lease().await;
        execute(&mut lease.kernel, "kept = 42").await;
        for code in ["while True: pass", "import time\ntime.sleep(1000)"] {
            start(&mut lease.kernel, code).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
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
fn a_kernel_that_dies_is_replaced_in_the_same_machine_and_its_children_die_with_it() {
    require!(Runsc);
    block_on(async {
        let mut lease = lease().await;
        let code = "import os, subprocess\nopen('/workspace/kept', 'w').write('x')\n\
                    child = subprocess.Popen(['sleep', '1000'], start_new_session=True)\nos._exit(7)";
        assert_eq!(
            execute(&mut lease.kernel, code).await.0,
            End::Lost(Ending::Exited(7))
        );
        let mut next = lease.sandbox.start_kernel().await.unwrap();
        let code = "import os\nint(os.path.exists('/workspace/kept'))";
        assert_eq!(execute(&mut next, code).await, shows(1));
        let code = "import os\nsum(b'sleep' in open(f'/proc/{it}/cmdline', 'rb').read() for it in os.listdir('/proc') if it.isdigit())";
        assert_eq!(execute(&mut next, code).await, shows(0));
        assert_eq!(
            execute(&mut next, "import pandas\nint(pandas.Series([20, 22]).sum())").await,
            shows(42)
        );
        lease.sandbox.destroy().await.unwrap();
    });
}

#[test]
fn machines_of_one_snapshot_have_random_numbers_and_names_of_their_own() {
    require!(Runsc);
    const CODE: &str = "import os, random, socket, ssl, uuid\nimport numpy as np\n\
        ' '.join(map(str, (os.urandom(8).hex(), random.random(), uuid.uuid4(), np.random.random(), ssl.RAND_bytes(8).hex(),\n\
        np.random.default_rng().random(), socket.gethostname())))";
    block_on(async {
        let mut columns = vec![BTreeSet::new(); 7];
        for _ in 0..8 {
            let mut lease = lease().await;
            let (_, shown) = execute(&mut lease.kernel, CODE).await;
            let [Scalar::Text(text)] = &shown[..] else {
                panic!("{shown:?}")
            };
            for (column, word) in columns.iter_mut().zip(text.split(' ')) {
                column.insert(word.to_owned());
            }
            lease.sandbox.destroy().await.unwrap();
        }
        for column in columns {
            assert_eq!(column.len(), 8, "{column:?}");
        }
    });
}

#[test]
fn the_report_says_what_the_wall_replaces_and_a_strict_demand_for_it_is_refused() {
    require!(Runsc);
    block_on(async {
        let backend = backend().await;
        assert_eq!(backend.name(), "gvisor");
        let report = backend.report();
        for active in [
            Protection::NoCapabilities,
            Protection::NoNewPrivs,
            Protection::OwnUserId,
        ] {
            assert!(report.is_active(active), "{active}");
        }
        assert!(!report.is_active(Protection::Seccomp));
        let mut strict = config(image().await);
        strict.demands = Demands([(Protection::Seccomp, Demand::Strict)].into());
        let error = cellblock_walls::gvisor::start(strict).await.unwrap_err();
        assert!(error.to_string().contains("`seccomp` is not active"), "{error}");
    });
}

#[test]
fn memory_beyond_the_limit_costs_the_kernel_but_not_the_machine() {
    require!(Runsc);
    block_on(async {
        let mut lease = lease().await;
        let code = "open('/workspace/kept', 'w').write('x')\nheld = []\nwhile True:\n    held.append(bytearray(64 << 20))";
        let (end, _) = execute(&mut lease.kernel, code).await;
        assert_eq!(end, End::Lost(Ending::Signaled(9)));
        let usage = lease.sandbox.usage().await.unwrap();
        assert!(usage.memory_kills >= 1, "{usage:?}");
        let mut next = lease.sandbox.start_kernel().await.unwrap();
        assert_eq!(
            execute(&mut next, "import os\nint(os.path.exists('/workspace/kept'))").await,
            shows(1)
        );
        lease.sandbox.destroy().await.unwrap();
    });
}

#[test]
fn files_beyond_the_limits_are_rejected_and_data_cannot_be_changed() {
    require!(Runsc);
    block_on(async {
        let mut lease = lease().await;
        let guest = lease.sandbox.guest();
        guest.write("/tmp/data/in", 0o644, &b"in"[..]).await.unwrap();
        let tried = |path: &str, bytes: u64| {
            format!(
                "try:\n    with open('{path}', 'ab') as file:\n        for _ in range({bytes} >> 20):\n            file.write(bytes(1 << 20))\n    said = 0\nexcept OSError as error:\n    said = error.errno\nsaid"
            )
        };
        for (path, megabytes, expected) in [
            ("/workspace/one", 600, 0),
            ("/workspace/two", 600, 28),
            ("/dev/shm/big", 257, 28),
            ("/tmp/data/in", 1, 30),
            ("/tmp/data/new", 1, 30),
        ] {
            let code = tried(path, megabytes << 20);
            assert_eq!(execute(&mut lease.kernel, &code).await, shows(expected), "{path}");
        }
        lease.sandbox.destroy().await.unwrap();
    });
}
