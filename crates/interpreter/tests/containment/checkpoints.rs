//! Checkpoints: what the guest keeps for them is out of reach of code, and code that attacks the
//! copies of its kernel harms only its own session.

use std::time::Duration;

use cellblock_interpreter::Cell;
use cellblock_interpreter::execution::Outcome;
use cellblock_testkit::require;

use crate::support::{block_on, session};

/// Looks for bytes everywhere that code can read. The pattern is not in the code itself.
const SEARCH: &str = r"
import ctypes, os
pattern = bytes(range(200, 216)) * 4
found = []
def look(path):
    try:
        with open(path, 'rb') as file:
            if pattern in file.read(1 << 24):
                found.append(path)
    except OSError:
        pass
for pid in filter(str.isdigit, os.listdir('/proc')):
    try:
        for name in os.listdir(f'/proc/{pid}/fd'):
            path = f'/proc/{pid}/fd/{name}'
            if os.path.isfile(path):
                look(path)
    except OSError:
        pass
for root in ('/workspace', '/tmp', '/dev/shm'):
    for folder, _, names in os.walk(root):
        for name in names:
            look(os.path.join(folder, name))
libc = ctypes.CDLL(None, use_errno=True)
attached = libc.ptrace(16, 1, None, None) == 0
for reach in (lambda: open('/proc/1/mem', 'rb').close(), lambda: os.listdir('/proc/1/fd')):
    try:
        reach()
        attached = True
    except OSError:
        pass
f'{len(found)} {attached}'
";

#[test]
fn files_of_a_checkpoint_are_out_of_reach_of_code() {
    require!(UserNamespaces);
    block_on(async {
        let session = session(None, "").await;
        let content: Vec<u8> = (200..216).collect::<Vec<u8>>().repeat(1000);
        session
            .write_file("/workspace/kept", content.clone())
            .await
            .unwrap();
        session.checkpoint(None).await.unwrap();
        let searched = |expected: &'static str| {
            let session = session.clone();
            async move {
                let ran = session.execute(SEARCH).await.unwrap();
                assert_eq!(ran.outcome, Outcome::Completed, "{ran:#?}");
                let shown = format!("{:?}", ran.outputs);
                assert!(shown.contains(expected), "{shown}");
            }
        };
        searched("1 False").await;
        session.remove_file("/workspace/kept").await.unwrap();
        searched("0 False").await;
        session.roll_back("c1").await.unwrap();
        assert_eq!(session.read_file("/workspace/kept").await.unwrap(), content);
    });
}

/// Ends, stops or sends to whatever is beside the kernel.
const ATTACK: &str = r"
import os, signal
for pid in map(int, filter(str.isdigit, os.listdir('/proc'))):
    if pid not in (1, os.getpid()):
        for number in (signal.SIGCONT, signal.SIGTERM, signal.SIGUSR1, SIGNAL):
            try:
                os.kill(pid, number)
            except OSError:
                pass
";

#[test]
fn code_that_attacks_the_copies_of_its_kernel_harms_only_its_own_session() {
    require!(UserNamespaces);
    block_on(async {
        let neighbor = session(None, "").await;
        neighbor.execute("x = 'neighbor'").await.unwrap();
        neighbor.checkpoint(None).await.unwrap();
        for attack in ["signal.SIGKILL", "signal.SIGSTOP"] {
            let session = session(None, "").await;
            session.checkpoint(None).await.unwrap();
            session.execute(ATTACK.replace("SIGNAL", attack)).await.unwrap();
            let back = session.roll_back("c1").await;
            let error = back.unwrap_err().to_string();
            assert!(error.contains("ended or stopped the process"), "{error}");
            let next = session.execute("1").await.unwrap();
            assert_eq!(next.outcome, Outcome::Completed);
        }
        neighbor.execute("x = 2").await.unwrap();
        neighbor.roll_back("c1").await.unwrap();
        let shown = format!("{:?}", neighbor.execute("x").await.unwrap().outputs);
        assert!(shown.contains("neighbor"), "{shown}");
    });
}

/// Leaves behind what would go on after the try: processes, a thread, and a signal that is blocked.
const STAY: &str = r"
import os, signal, threading, time
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
def spoil():
    while True:
        try:
            open('/workspace/spoiled', 'w').write('spoiled')
        except OSError:
            pass
        time.sleep(0.001)
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            spoil()
        os._exit(0)
threading.Thread(target=spoil, daemon=True).start()
";

#[test]
fn nothing_that_the_code_of_a_try_starts_outlives_its_discard() {
    require!(UserNamespaces);
    block_on(async {
        let session = session(None, "").await;
        session.execute("x = 'before'").await.unwrap();
        for _ in 0..3 {
            let tried = session.try_run(STAY).await.unwrap();
            assert_eq!(tried.execution.outcome, Outcome::Completed, "{tried:#?}");
            session.discard_try().await.unwrap();
            // Whoever was left would write again at once.
            let ran = session
                .execute("import os, time\ntime.sleep(0.05)\nf\"{x} {os.path.exists('/workspace/spoiled')}\"")
                .await
                .unwrap();
            let shown = format!("{:?}", ran.outputs);
            assert!(shown.contains("before False"), "{shown}");
        }
    });
}

/// Attacks of code on its own process; most of them end the kernel.
const SELF: [&str; 7] = [
    "import os\nos.closerange(0, 1000)",
    "import ctypes\nfor line in open('/proc/self/maps').read().splitlines():\n    if \
     line.endswith(('[vdso]', '[vvar]')):\n        start, end = (int(part, 16) for part in \
     line.split()[0].split('-'))\n        ctypes.CDLL(None).munmap(ctypes.c_void_p(start), \
     ctypes.c_size_t(end - start))\nimport time\ntime.time()",
    "import ctypes, signal\n[signal.signal(n, signal.SIG_IGN) for n in signal.valid_signals() - \
     {signal.SIGKILL, signal.SIGSTOP}]\nctypes.string_at(0)",
    "import ctypes\nlibc = ctypes.CDLL(None)\n\
     [libc.prctl(option, 0, 0, 0, 0) for option in (1, 3, 4, 36, 41)]\nlibc.abort()",
    "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.mmap.restype = ctypes.c_void_p\n\
     at = [int(line.split('-')[0], 16) for line in open('/proc/self/maps') if '[stack]' in line or \
     '[heap]' in line]\n[libc.mmap(ctypes.c_void_p(start), ctypes.c_size_t(1 << 20), 3, 0x32, -1, 0) for \
     start in at]",
    "from cellblock_kernel.cell import channel\nown = channel.Channel.send\n\
     channel.Channel.send = lambda self, header, blobs=None: own(self, \
     {'type': 'kept', 'cell': 0, 'pid': 1})",
    "import resource\n[resource.setrlimit(kind, (0, 0)) for kind in (resource.RLIMIT_NPROC, \
     resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_AS)]",
];

#[test]
fn code_that_spoils_its_own_process_in_a_try_does_not_spoil_the_state_before_it() {
    require!(UserNamespaces);
    block_on(async {
        let session = session(None, "").await;
        session
            .execute("x = 'before'\nopen('/workspace/f', 'w').write('before')")
            .await
            .unwrap();
        for attack in SELF {
            let code = format!("x = 'after'\nopen('/workspace/f', 'w').write('after')\n{attack}");
            // However it ends, it can be undone.
            if let Ok(tried) = session
                .try_run(Cell::new(code.as_str()).with_timeout(Duration::from_secs(1)))
                .await
            {
                assert!(tried.undecided, "{attack}: {tried:#?}");
                session.discard_try().await.unwrap();
            }
            let ran = session
                .execute("f\"{x} {open('/workspace/f').read()}\"")
                .await
                .unwrap();
            let shown = format!("{:?}", ran.outputs);
            assert!(shown.contains("before before"), "{attack}: {shown}");
        }
    });
}
