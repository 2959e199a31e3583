//! Forks: code that prepares its kernel for the move reaches nothing beyond its own session and the
//! forks of it, which have the same walls as any other session.

use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::session::fork::ForkOptions;
use cellblock_testkit::require;

use crate::support::{block_on, session};

/// Lets the kernel answer on a stack of its own from then on.
const STACK: &str = "\
import ctypes
libc = ctypes.CDLL(None)
from cellblock_kernel.rescue import checkpoint
size = 8 << 20
held, main, other = (ctypes.create_string_buffer(n) for n in (size, 4096, 4096))
keep = checkpoint.Checkpoints.keep
def kept(self, cell):
    @ctypes.CFUNCTYPE(None)
    def elsewhere():
        keep(self, cell)
    libc.getcontext(other)
    # `uc_stack` and `uc_link` of `ucontext_t` on x86-64.
    at = ctypes.addressof(other)
    ctypes.c_uint64.from_address(at + 8).value = ctypes.addressof(main)
    ctypes.c_uint64.from_address(at + 16).value = ctypes.addressof(held)
    ctypes.c_uint64.from_address(at + 32).value = size
    libc.makecontext(other, elsewhere, 0)
    libc.swapcontext(main, other)
checkpoint.Checkpoints.keep = kept
1";

/// Unmaps `[vdso]` and `[vvar]` once the kernel is to be copied.
const UNMAPPED: &str = "\
import ctypes
libc = ctypes.CDLL(None)
from cellblock_kernel.rescue import checkpoint
keep = checkpoint.Checkpoints.keep
def kept(self, cell):
    for line in open('/proc/self/maps').read().splitlines():
        if line.endswith(('[vdso]', '[vvar]', '[vvar_vclock]')):
            start, end = (int(part, 16) for part in line.split()[0].split('-'))
            libc.munmap(ctypes.c_void_p(start), ctypes.c_size_t(end - start))
    keep(self, cell)
checkpoint.Checkpoints.keep = kept
1";

/// Attacks of a kernel on the process that reads it. Each ends with a value.
const ATTACKS: [&str; 13] = [
    // Mappings with hostile names and unusual shapes.
    "import mmap, os\nname = '/workspace/a\\n7f0000000000-7fffffffffff rwxp 00000000 00:00 0 [vdso]'\n\
     open(name, 'wb').write(bytes(4096))\n\
     held = mmap.mmap(os.open(name, os.O_RDONLY), 4096, prot=mmap.PROT_READ)\n1",
    "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.mmap.restype = ctypes.c_void_p\n\
     held = [libc.mmap(ctypes.c_void_p((1 << 46) + (n << 20)), 4096, n % 8, 0x100022, -1, 0) for n in \
     range(2000)]\n1",
    // `prctl` games, and another signal stack.
    "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.prctl(4, 0, 0, 0, 0)\n\
     libc.prctl(15, b'cellblock-keep', 0, 0, 0)\n1",
    "import faulthandler, signal\nfaulthandler.enable()\n\
     [signal.signal(n, lambda *_: None) for n in (10, 12, 14, 15)]\n1",
    // Another stack for signals, and one for the program itself: the copy waits on it.
    "import ctypes\nlibc = ctypes.CDLL(None)\nheld = ctypes.create_string_buffer(1 << 16)\n\
     class Stack(ctypes.Structure):\n    _fields_ = [('at', ctypes.c_void_p), ('flags', ctypes.c_int), \
     ('size', ctypes.c_size_t)]\nassert libc.sigaltstack(ctypes.byref(Stack(ctypes.addressof(held), 0, 1 \
     << 16)), None) == 0\n1",
    STACK,
    // Mappings over addresses that every kernel uses: the stack's end, and the page after the heap.
    "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.mmap.restype = ctypes.c_void_p\n\
     lines = [line.split() for line in open('/proc/self/maps')]\n\
     end = lambda name: [int(line[0].split('-')[1], 16) for line in lines if line[-1] == name][-1]\n\
     start = [int(line[0].split('-')[0], 16) for line in lines if line[-1] == '[stack]'][0]\n\
     held = [libc.mmap(ctypes.c_void_p(at), 4096, 3, 0x32, -1, 0) for at in (start, end('[heap]'), start \
     - (1 << 20))]\n1",
    // No functions of Linux in its memory any more, just before it is copied.
    UNMAPPED,
    // The processor is in a state of its own: flags, and another mode of the floating-point unit.
    "import ctypes\nlibm = ctypes.CDLL('libm.so.6')\nlibm.fesetround(0xc00)\nlibm.feenableexcept(0)\n1",
    // Every descriptor that it has but its channels is closed, or the number of another.
    "import os\nfor n in os.listdir('/proc/self/fd'):\n    if int(n) > 4:\n        try:\n            \
     os.close(int(n))\n        except OSError:\n            pass\nos.close(0)\n\
     held = os.open('/dev/null', os.O_RDONLY)\nfor n in (0, 100, 899):\n    os.dup2(held, n)\n1",
    // Limits that leave no room for what the move needs.
    "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))\n\
     resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))\n1",
    // A lie about the state: the copy says that it waits on its output.
    "from cellblock_kernel.rescue import checkpoint\n\
     checkpoint.Checkpoints._wait = lambda self, descriptor, before: __import__('os')._exit(0)\n1",
    "from cellblock_kernel.cell import channel\nown = channel.Channel.send\n\
     channel.Channel.send = lambda self, header, blobs=None: own(self, {**header, 'socket': 1, 'pid': 1} \
     if header.get('type') == 'kept' else header, blobs)\n1",
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
keys = ('Uid', 'Gid', 'CapEff', 'CapBnd', 'NoNewPrivs', 'Seccomp', 'Seccomp_filters')
str((reached, [status[key].split() for key in keys],
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
            // A kernel that has harmed itself may end with its next cell, but not its session.
            let _ = session.execute("1").await.unwrap();
            let next = session.execute("1").await.unwrap();
            assert_eq!(next.outcome, Outcome::Completed, "{attack}");
            session.close().await.unwrap();
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
