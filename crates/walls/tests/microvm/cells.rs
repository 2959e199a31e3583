//! Machines: what confines code in them, and what makes them different. What cells do is in the
//! conformance tests.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use cellblock_protocol::Scalar;
use cellblock_sandbox::backend::Backend;
use cellblock_sandbox::jail::protection::Protection;
use cellblock_testkit::require;

use crate::support::{backend, block_on, execute, lease, shows};

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
            Protection::MemoryCgroup,
            Protection::ProcessCgroup,
            Protection::CpuCgroup,
        ] {
            assert!(report.is_active(active), "{active}");
        }
        let mut lease = lease().await;
        let code = "import os\nint(os.getuid() == 1000 and not [it for it in os.listdir('/dev') if \
                    it.startswith('v')])";
        assert_eq!(execute(&mut lease.kernel, code).await, shows(1));
        let code = "import socket\ntry:\n    socket.create_connection(('1.1.1.1', 53), 2)\n    said = 0\n\
                    except OSError:\n    said = 1\nsaid";
        assert_eq!(execute(&mut lease.kernel, code).await, shows(1));
        let code = "import subprocess\nint(subprocess.run('ls /usr/bin | grep -c . && tar --version', \
                    shell=True, capture_output=True).returncode == 0)";
        assert_eq!(execute(&mut lease.kernel, code).await, shows(1));
        lease.sandbox.destroy().await.unwrap();
    });
}

const CODE: &str = "import os, random, ssl, time, uuid\nimport numpy as np\n\
                    boot = open('/proc/sys/kernel/random/uuid').read().strip()\n\
                    ' '.join(map(str, (os.urandom(8).hex(), random.random(), uuid.uuid4(), \
                    np.random.random(), ssl.RAND_bytes(8).hex(),\n\
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
