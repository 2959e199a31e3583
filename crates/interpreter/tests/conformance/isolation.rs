//! Sessions share nothing, and nothing outlives its room.

use cellblock_interpreter::session::SessionOptions;
use cellblock_testkit::require;
use cellblock_testkit::wait::until;

use crate::place::machine_lacks;
use crate::support::{block_on, interpreter, run, scalar, session, value};

/// Code that defines `commands()`: the names of the processes that are seen in `/proc`. One may end
/// while they are read.
pub(crate) const COMMANDS: &str = "import os
def commands():
    found = []
    for process in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{process}/comm') as file:
                found.append(file.read().strip())
        except OSError:
            pass
    return found
";

#[test]
fn two_sessions_do_not_share_files_variables_or_processes() {
    needs!(HiddenProcesses);
    block_on(async {
        let (one, two) = (session().await, session().await);
        run(
            &one,
            "x = 1\nopen('/workspace/a', 'w').write('1')\nopen('/tmp/b', 'w').write('1')\n\
             open('/dev/shm/c', 'w').write('1')",
        )
        .await;
        run(
            &one,
            "import subprocess\nchild = subprocess.Popen(['sleep', '1000'])",
        )
        .await;
        let seen = "import os\n(os.listdir('/workspace'), [f for f in ('/tmp/b', '/dev/shm/c') if \
                    os.path.exists(f)], 'x' in globals()) == ([], [], False)";
        assert_eq!(value(&two, seen).await, true);
        let sleeps = format!("{COMMANDS}names = commands()\n'sleep' in names");
        assert_eq!(value(&one, &sleeps).await, true);
        assert_eq!(value(&two, &sleeps).await, false);
        // Not even its guest shows itself: there are the kernel and its standby.
        assert_eq!(
            value(&two, "set(names) == {'cellblock-py'} and len(names) <= 2").await,
            true
        );
    });
}

#[test]
fn a_session_cannot_signal_processes_outside_its_room() {
    block_on(async {
        let session = session().await;
        let host = std::process::id();
        let code = format!(
            "import os\ntry:\n    os.kill({host}, 0)\n    reached = True\n\
             except (ProcessLookupError, PermissionError):\n    reached = False\nreached"
        );
        assert_eq!(value(&session, &code).await, false);
        let code = "try:\n    os.kill(1, 9)\nexcept PermissionError:\n    pass\n'still here'";
        assert_eq!(value(&session, code).await, "still here");
        assert_eq!(value(&session, "6 * 7").await, 42);
    });
}

#[test]
fn random_generators_differ_between_sessions() {
    block_on(async {
        let code = "import random, uuid, tempfile\n\
                    f'{random.random()} {np.random.rand()} {np.random.default_rng().random()} \
                    {uuid.uuid4()} {tempfile.mktemp()}'";
        let mut drawn: Vec<Vec<String>> = Vec::new();
        for _ in 0..3 {
            let session = session().await;
            let numbers = value(&session, code).await;
            drawn.push(numbers.as_str().unwrap().split(' ').map(str::to_owned).collect());
        }
        let pairs = drawn.windows(2).flat_map(|pair| pair[0].iter().zip(&pair[1]));
        assert_eq!(pairs.clone().count(), 10);
        for (one, other) in pairs {
            assert_ne!(one, other);
        }
    });
}

#[test]
fn random_generators_differ_between_kernels_of_one_session() {
    block_on(async {
        let session = session().await;
        let code = "import random\nf'{random.random()} {np.random.rand()}'";
        let before = value(&session, code).await;
        run(&session, "import os\nos._exit(1)").await;
        let after = value(&session, code).await;
        assert_ne!(before, after);
    });
}

#[test]
fn there_is_no_network_and_nothing_of_the_host() {
    block_on(async {
        let session = session().await;
        let code =
            "import os\n[p for p in ('/root', '/etc/shadow', '/var', '/work') if os.path.exists(p)] == []";
        assert_eq!(value(&session, code).await, true);
        let code = "os.listdir('/home') == ['user'] and os.path.samefile('/home/user', '/workspace')";
        assert_eq!(value(&session, code).await, true);
        // The kernel of gVisor has one of its own.
        let code = "os.path.isdir('/sys/fs/cgroup') and os.listdir('/sys/fs/cgroup') != []";
        assert_eq!(value(&session, code).await, false);
        let code = "import socket\ntry:\n    socket.create_connection(('192.0.2.1', 80), timeout=2)\n    \
                    reached = True\nexcept OSError:\n    reached = False\nreached";
        assert_eq!(value(&session, code).await, false);
        let code = "try:\n    open('/opt/python/x', 'w')\n    wrote = True\n\
                    except OSError:\n    wrote = False\nwrote";
        assert_eq!(value(&session, code).await, false);
        assert_eq!(
            value(
                &session,
                "[n for n in os.environ if 'CELLBLOCK' in n or 'CARGO' in n] == []"
            )
            .await,
            true
        );
    });
}

/// Reason that a test is skipped that looks for processes of sandboxes among those of the host.
const ON_HOST: &str = "processes on the host";

/// Pids of processes on the host whose command line holds a text.
fn with_argument(text: &str) -> Vec<u32> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        *pid != std::process::id() && String::from_utf8_lossy(&line).contains(text)
    })
    .collect()
}

#[test]
fn processes_that_a_cell_started_die_with_the_room() {
    if machine_lacks(ON_HOST, module_path!()) {
        return;
    }
    require!(UserNamespaces);
    block_on(async {
        let session = session().await;
        let code = "import subprocess\n\
                    subprocess.Popen(['sleep', '987654.25'])\n\
                    subprocess.Popen(['setsid', 'sh', '-c', 'sleep 987654.25 & sleep 987654.25'], \
                    start_new_session=True);";
        run(&session, code).await;
        until("all have started", || with_argument("987654.25").len() >= 3).await;
        session.close().await.unwrap();
        assert_eq!(with_argument("987654.25"), [0; 0]);
    });
}

#[test]
fn processes_of_a_lost_kernel_do_not_reach_the_next_one() {
    if machine_lacks(ON_HOST, module_path!()) {
        return;
    }
    block_on(async {
        let session = session().await;
        let code = "import subprocess, os\nsubprocess.Popen(['sleep', '987655.25'])\nos._exit(1)";
        run(&session, code).await;
        run(&session, "1").await;
        assert_eq!(with_argument("987655.25"), [0; 0]);
    });
}

#[test]
fn a_session_that_is_dropped_gives_its_room_back() {
    if machine_lacks(ON_HOST, module_path!()) {
        return;
    }
    block_on(async {
        let session = session().await;
        run(
            &session,
            "import subprocess\nsubprocess.Popen(['sleep', '987656.25']);",
        )
        .await;
        until("it has started", || !with_argument("987656.25").is_empty()).await;
        drop(session);
        until("it is gone", || with_argument("987656.25").is_empty()).await;
    });
}

#[test]
fn a_session_without_the_pool_works_as_one_from_it() {
    block_on(async {
        let options = SessionOptions {
            pooled: false,
            ..SessionOptions::default()
        };
        let session = interpreter().await.session(options);
        let shown = run(&session, "int(np.arange(4).sum())").await;
        assert_eq!(scalar(&shown), 6);
        assert_eq!(shown.sandbox.backend, crate::backend::backend());
        assert_eq!(shown.sandbox.image.len(), 64);
        assert_eq!(shown.sandbox.protections, interpreter().await.report());
    });
}

#[test]
fn many_sessions_at_once_work() {
    block_on(async {
        let interpreter = interpreter().await;
        let tasks: Vec<_> = (0..12)
            .map(|n| {
                let session = interpreter.session(SessionOptions::default());
                tokio::spawn(
                    async move { value(&session, &format!("int(pd.Series([{n}] * 3).sum())")).await },
                )
            })
            .collect();
        for (n, task) in tasks.into_iter().enumerate() {
            assert_eq!(task.await.unwrap(), n * 3);
        }
    });
}
