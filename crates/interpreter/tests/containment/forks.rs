//! Forks: code that prepares its kernel for the move reaches nothing beyond its own session and the forks of it, which have the same
//! walls as any other session.

use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::session::fork::ForkOptions;
use cellblock_testkit::require;

use crate::support::{block_on, session};

/// What a kernel does to disturb the process that reads it. Each ends with a value.
const ATTACKS: [&str; 6] = [
    // Mappings with hostile names and unusual shapes.
    "import mmap, os\nname = '/workspace/a\\n7f0000000000-7fffffffffff rwxp 00000000 00:00 0 [vdso]'\nopen(name, 'wb').write(bytes(4096))\nheld = mmap.mmap(os.open(name, os.O_RDONLY), 4096, prot=mmap.PROT_READ)\n1",
    "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.mmap.restype = ctypes.c_void_p\nheld = [libc.mmap(ctypes.c_void_p((1 << 46) + (n << 20)), 4096, n % 8, 0x100022, -1, 0) for n in range(2000)]\n1",
    // `prctl` games, and another signal stack.
    "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.prctl(4, 0, 0, 0, 0)\nlibc.prctl(15, b'cellblock-keep', 0, 0, 0)\n1",
    "import faulthandler, signal\nfaulthandler.enable()\n[signal.signal(n, lambda *_: None) for n in (10, 12, 14, 15)]\n1",
    // A lie about the state: the copy says that it waits on its output.
    "from cellblock_kernel.rescue import checkpoint\ncheckpoint.Checkpoints._wait = lambda self, descriptor, before: __import__('os')._exit(0)\n1",
    "from cellblock_kernel.cell import channel\nown = channel.Channel.send\nchannel.Channel.send = lambda self, header, blobs=None: own(self, {**header, 'socket': 1, 'pid': 1} if header.get('type') == 'kept' else header, blobs)\n1",
];

/// The walls of a kernel: its filters, rules, capabilities, ids and limits.
const WALLS: &str = "\
import os, resource
status = dict(line.split(':', 1) for line in open('/proc/self/status').read().splitlines() if ':' in line)
reached = []
for path in ('/proc/1/mem', '/proc/1/environ', '/opt/cellblock/x', '/etc/x'):
    try:
        open(path, 'r+b' if 'proc' in path else 'wb').close()
        reached.append(path)
    except OSError:
        pass
str((reached, [status[key].split() for key in ('Uid', 'Gid', 'CapEff', 'CapBnd', 'NoNewPrivs', 'Seccomp', 'Seccomp_filters')],
     [resource.getrlimit(kind) for kind in range(16)], sorted(os.listdir('/proc/self/fd'))[:3]))";

#[test]
fn a_hostile_kernel_spoils_only_its_own_forks() {
    require!(UserNamespaces);
    block_on(async {
        let neighbor = session(None, "").await;
        neighbor.execute("x = 'neighbor'").await.unwrap();
        for attack in ATTACKS {
            let session = session(None, "").await;
            session.execute(attack).await.unwrap();
            // It may succeed or fail, and whatever came of it is a session like any other.
            if let Ok(forks) = session.fork(ForkOptions::new(1)).await {
                let _ = forks[0].execute("1").await.unwrap();
                forks[0].close().await.unwrap();
            }
            let next = session.execute("1").await.unwrap();
            assert_eq!(next.outcome, Outcome::Completed, "{attack}");
        }
        let fork = neighbor.fork(ForkOptions::new(1)).await.unwrap().remove(0);
        let shown = format!("{:?}", fork.execute("x").await.unwrap().outputs);
        assert!(shown.contains("neighbor"), "{shown}");
    });
}

#[test]
fn a_fork_has_the_walls_of_every_other_session() {
    require!(UserNamespaces);
    block_on(async {
        let session = session(None, "").await;
        session.execute("secret = 'forked'").await.unwrap();
        let fork = session.fork(ForkOptions::new(1)).await.unwrap().remove(0);
        let walls = |session: cellblock_interpreter::Session| async move {
            let ran = session.execute(WALLS).await.unwrap();
            assert_eq!(ran.outcome, Outcome::Completed, "{ran:#?}");
            format!("{:?}", ran.outputs)
        };
        let own = walls(session.clone()).await;
        assert!(own.contains("([], "), "{own}");
        assert_eq!(walls(fork).await, own);
    });
}
