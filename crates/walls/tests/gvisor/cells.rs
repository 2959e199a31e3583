//! Machines: what confines code in them, and what makes them different. What cells do is in the
//! conformance tests.

use std::collections::BTreeSet;

use cellblock_protocol::Scalar;
use cellblock_sandbox::backend::{Backend, ProcessEnd};
use cellblock_sandbox::jail::protection::{Demand, Demands, Protection};
use cellblock_testkit::require;

use crate::support::{End, backend, block_on, config, execute, image, lease, shows};

#[test]
fn code_runs_as_an_own_user_without_privileges_and_sees_no_network_and_no_path_of_the_host() {
    require!(Runsc);
    block_on(async {
        let mut lease = lease().await;
        let code = "import os\nstatus = open('/proc/self/status').read()\n\
                    int(os.getuid() == 1000 and os.getgid() == 1000 and not os.getgroups()\n\
                    and all(f'Cap{it}:\\t0000000000000000' in status for it in ('Inh', \
                    'Prm', 'Eff', 'Bnd')))";
        assert_eq!(execute(&mut lease.kernel, code).await, shows(1));
        let code = "import ctypes, os\nctypes.CDLL(None).prctl(39, 0, 0, 0, 0)";
        assert_eq!(execute(&mut lease.kernel, code).await, shows(1), "no_new_privs");
        let code = "try:\n    open('/usr/bin/new', 'w')\n    said = 0\nexcept OSError:\n    said = 1\nsaid";
        assert_eq!(execute(&mut lease.kernel, code).await, shows(1));
        let code = "import socket\ntry:\n    socket.create_connection(('1.1.1.1', 53), 2)\n    said = 0\n\
                    except OSError:\n    said = 1\nsaid";
        assert_eq!(execute(&mut lease.kernel, code).await, shows(1));
        let home = cellblock_testkit::home().unwrap();
        let code = format!(
            "import sys\nint(any({:?} in it for it in [*sys.path, open('/proc/self/mounts').read(), \
             open('/proc/self/cmdline').read()]))",
            home.display().to_string()
        );
        assert_eq!(execute(&mut lease.kernel, &code).await, shows(0));
        // The socket of the host is for the machine's first process.
        let code = "import socket\ntry:\n    socket.socket(socket.AF_UNIX).connect('/run/cb/host')\n    \
                    said = 0\nexcept OSError:\n    said = 1\nsaid";
        assert_eq!(execute(&mut lease.kernel, code).await, shows(1));
        lease.sandbox.destroy().await.unwrap();
    });
}

/// Draws from every generator, and tells the host name.
const CODE: &str = "import os, random, socket, ssl, uuid\nimport numpy as np\n\
                    ' '.join(map(str, (os.urandom(8).hex(), random.random(), uuid.uuid4(), \
                    np.random.random(), ssl.RAND_bytes(8).hex(),\n\
                    np.random.default_rng().random(), socket.gethostname())))";

#[test]
fn machines_of_one_snapshot_have_random_numbers_and_names_of_their_own() {
    require!(Runsc);
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
            Protection::Seccomp,
        ] {
            assert!(report.is_active(active), "{active}");
        }
        assert!(!report.is_active(Protection::Landlock));
        let mut strict = config(image().await);
        strict.demands = Demands([(Protection::Landlock, Demand::Strict)].into());
        let error = cellblock_walls::gvisor::start(strict).await.unwrap_err();
        assert!(error.to_string().contains("`landlock` is not active"), "{error}");
    });
}

#[test]
fn memory_beyond_the_limit_costs_the_kernel_but_not_the_machine() {
    require!(Runsc);
    block_on(async {
        let mut lease = lease().await;
        let code = "open('/workspace/kept', 'w').write('x')\nheld = []\n\
                    while True:\n    held.append(bytearray(64 << 20))";
        let (end, _) = execute(&mut lease.kernel, code).await;
        assert_eq!(end, End::Lost(ProcessEnd::Signaled(9)));
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
