//! Rooms on machines without namespaces whose policy permits that: as root, each under its own user
//! id, and as an ordinary user.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use cellblock_protocol::{KernelOutcome, Scalar, Stream};
use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::process::{ProcessBackend, ProcessConfig};
use cellblock_sandbox::backend::{Backend, ProcessEnd};
use cellblock_sandbox::error::Blame;
use cellblock_sandbox::guest::{CommandEvent, SandboxCommand};
use cellblock_sandbox::jail::protection::{Demand, Demands, Protection};
use cellblock_sandbox::limits::NetworkPolicy;
use cellblock_sandbox::pool::{Lease, create};
use cellblock_testkit::{ORDINARY_UID, require, without_user_namespaces};

use crate::support::{
    End, MIB, block_on, config, descendants, ended, execute, finish, limits, shows, start, until, with_python,
};

/// Set in the second run: the image's `python` directory and its interpreter.
const PYTHON: &str = "CELLBLOCK_TEST_PYTHON";
const INTERPRETER: &str = "CELLBLOCK_TEST_INTERPRETER";

/// The policy that disables namespaces although the machine has them.
fn switched_off() -> Demands {
    let mut demands = Demands::without_namespaces();
    demands.0.insert(Protection::UserNamespace, Demand::Disabled);
    demands
}

async fn backend() -> ProcessBackend {
    let config = ProcessConfig {
        demands: switched_off(),
        ..config().await
    };
    ProcessBackend::start(&config).await.unwrap()
}

#[test]
fn root_runs_each_room_without_namespaces_as_its_own_user() {
    require!(Root);
    block_on(async {
        let backend = backend().await;
        let report = backend.report();
        assert!(report.is_active(Protection::OwnUserId));
        assert!(report.is_active(Protection::NoCapabilities));
        everything_works(&backend).await;
        let (mut one, mut two) = (lease(&backend).await, lease(&backend).await);
        let user = "import os\nos.getuid()";
        let (first, second) = (
            execute(&mut one.kernel, user).await.1,
            execute(&mut two.kernel, user).await.1,
        );
        assert_ne!(first, second);
        assert!(
            matches!(first[..], [Scalar::Integer(id)] if id >= 0x6000_0000),
            "{first:?}"
        );
    });
}

#[test]
fn a_loopback_is_refused_without_namespaces() {
    require!(Root);
    block_on(async {
        let backend = backend().await;
        let with_loopback = Limits {
            network: NetworkPolicy::Loopback,
            ..Limits::default()
        };
        let error = create(&backend, &with_loopback).await.map(drop).unwrap_err();
        let said = cellblock_sandbox::jail::error::chain(&error);
        assert!(
            said.contains("the network policy `loopback` requires namespaces"),
            "{said}"
        );
    });
}

#[test]
fn a_user_without_namespaces_needs_a_policy_that_permits_it() {
    if let (Some(python), Ok(interpreter)) = (std::env::var_os(PYTHON), std::env::var(INTERPRETER)) {
        block_on(refused_then_allowed(python.into(), &interpreter));
        return;
    }
    require!(Root);
    require!(UserNamespaces);
    let config = block_on(config());
    // Other users may be unable to enter the target directory; they can read a copy elsewhere.
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let copy = |from: PathBuf, name: &str| {
        let to = folder.path().join(name);
        fs::copy(from, &to).unwrap();
        fs::set_permissions(&to, PermissionsExt::from_mode(0o755)).unwrap();
        to
    };
    let test = copy(std::env::current_exe().unwrap(), "test");
    let name = "without_namespaces::a_user_without_namespaces_needs_a_policy_that_permits_it";
    let output = without_user_namespaces(ORDINARY_UID, test)
        .args(["--exact", name])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env(PYTHON, &config.image.directory)
        .env(INTERPRETER, &config.image.interpreter)
        .output()
        .unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

/// Runs as an ordinary user for whom the operating system creates no user namespace.
async fn refused_then_allowed(python: PathBuf, interpreter: &str) {
    assert!(!rustix::process::geteuid().is_root());
    let strict = with_python(python, interpreter);
    let error = ProcessBackend::start(&strict).await.unwrap_err();
    assert_eq!(error.blame(), Blame::Policy);
    let text = error.to_string();
    assert!(
        text.starts_with(
            "protection `user_namespace` is not available: this machine does not permit new user namespaces"
        ),
        "{text}"
    );
    assert!(
        text.ends_with("or permit running without them (`--without-namespaces`)"),
        "{text}"
    );

    let one_strict = ProcessConfig {
        demands: Demands([(Protection::UserNamespace, Demand::Degradable)].into()),
        ..strict.clone()
    };
    let error = ProcessBackend::start(&one_strict).await.unwrap_err();
    assert_eq!(error.blame(), Blame::Policy);
    assert!(error.to_string().contains("`pid_namespace`"), "{error}");

    let lenient = ProcessConfig {
        demands: Demands::without_namespaces(),
        ..strict
    };
    let backend = ProcessBackend::start(&lenient).await.unwrap();
    assert!(!backend.report().is_active(Protection::OwnUserId));
    everything_works(&backend).await;
    rlimits_hold(&backend).await;
}

async fn lease(backend: &ProcessBackend) -> Lease {
    create(backend, &Limits::default()).await.unwrap()
}

async fn everything_works(backend: &ProcessBackend) {
    what_is_not_active_is_reported(backend);
    cells_and_files_work(backend).await;
    endless_loops_end(backend).await;
    nothing_of_the_host_is_reached(backend).await;
    rooms_do_not_reach_each_other(backend).await;
    nothing_outlives(backend).await;
}

fn what_is_not_active_is_reported(backend: &ProcessBackend) {
    let report = backend.report();
    for protection in Protection::ALL.into_iter().filter(|it| it.needs_namespaces()) {
        assert!(!report.is_active(protection), "{protection}");
    }
    for protection in [Protection::Seccomp, Protection::Landlock, Protection::NoNewPrivs] {
        assert!(report.is_active(protection), "{protection}");
    }
}

async fn cells_and_files_work(backend: &ProcessBackend) {
    let mut lease = lease(backend).await;
    let kernel = &mut lease.kernel;
    let code = "import pandas as pd\nint(pd.DataFrame({'x': [1, 2, 3]}).groupby('x').size().sum())";
    assert_eq!(execute(kernel, code).await, shows(3));
    let code = "import os, tempfile\n\
                pd.DataFrame({'x': [1]}).to_csv('out.csv')\n\
                os.makedirs('deep/er')\n\
                import shutil\nshutil.copy2('out.csv', 'deep/er/copy.csv')\n\
                tempfile.NamedTemporaryFile('w').write('x')";
    assert_eq!(execute(kernel, code).await, shows(1));
    let guest = lease.sandbox.guest();
    let listing = guest.list("/workspace", None, 10).await.unwrap();
    let mut names: Vec<_> = listing.files.iter().map(|file| file.path.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["/workspace/deep/er/copy.csv", "/workspace/out.csv"]);
    let (content, _) = guest.read("/workspace/out.csv", 0, 100).await.unwrap();
    assert_eq!(content.len(), 7);
    // Inputs arrive where the kernel expects them, and stay unchanged.
    guest
        .write("/tmp/data/in.csv", 0o644, &b"a,b\n1,2\n"[..])
        .await
        .unwrap();
    let code = "from cellblock_kernel.cell import places\n\
                path = places.real('/tmp/data/in.csv')\n\
                try:\n    open(path, 'a'); wrote = 1\nexcept PermissionError:\n    wrote = 0\n\
                len(open(path).read()) * 10 + wrote";
    assert_eq!(execute(kernel, code).await, shows(80));
    assert_eq!(
        run(
            &lease,
            ["sh", "-c", "pwd | grep -c workspace; cat out.csv | wc -c"]
        )
        .await
        .0,
        "1\n7\n"
    );
    let code = "import subprocess\nlen(subprocess.run(['echo', 'hello'], capture_output=True, \
                start_new_session=True).stdout)";
    assert_eq!(execute(&mut lease.kernel, code).await, shows(6));
    lease.sandbox.destroy().await.unwrap();
}

async fn endless_loops_end(backend: &ProcessBackend) {
    let mut lease = lease(backend).await;
    start(
        &mut lease.kernel,
        "open('kept', 'w').write('x')\nprint('on', flush=True)\nwhile True: pass",
    )
    .await;
    lease.kernel.stdout.readable().await.unwrap();
    lease.kernel.interrupt();
    assert_eq!(
        finish(&mut lease.kernel).await.0,
        End::Done(KernelOutcome::Interrupted)
    );
    assert_eq!(execute(&mut lease.kernel, "6 * 7").await, shows(42));
    lease.kernel.kill();
    assert_eq!(ended(&lease.kernel).await, ProcessEnd::Signaled(9));
    let mut next = lease.sandbox.start_kernel().await.unwrap();
    assert_eq!(execute(&mut next, "len(open('kept').read())").await, shows(1));
    let (end, _) = execute(&mut next, "import os\nos._exit(7)").await;
    assert_eq!(end, End::Lost(ProcessEnd::Exited(7)));
    lease.sandbox.destroy().await.unwrap();
}

/// Python that counts the successful ones of some attempts.
fn attempts(lines: &[&str]) -> String {
    let mut code = "import os, socket, ctypes, resource\nlibc = ctypes.CDLL(None, use_errno=True)\n\
                    def check(result):\n    if result < 0: raise OSError(ctypes.get_errno())\nreached = []\n"
        .to_owned();
    for line in lines {
        let attempt = format!(
            "try:\n    {line}\n    reached.append({line:?})\n\
             except (OSError, ProcessLookupError):\n    pass\n"
        );
        code.push_str(&attempt);
    }
    code + "print(reached)\nlen(reached)"
}

async fn nothing_of_the_host_is_reached(backend: &ProcessBackend) {
    let host = tempfile::tempdir().unwrap();
    fs::set_permissions(host.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let file = host.path().join("file");
    fs::write(&file, "secret").unwrap();
    fs::set_permissions(&file, PermissionsExt::from_mode(0o666)).unwrap();
    let door = host.path().join("door");
    let _listener = std::os::unix::net::UnixListener::bind(&door).unwrap();
    fs::set_permissions(&door, PermissionsExt::from_mode(0o777)).unwrap();
    let before = fs::metadata(&file).unwrap();
    let (host, file, door) = (host.path().display(), file.display(), door.display());
    let pid = std::process::id();
    let mut lease = lease(backend).await;
    let lines = [
        "open('/etc/shadow').read()".to_owned(),
        "open('/etc/passwd').read()".to_owned(),
        "os.listdir('/')".to_owned(),
        "os.listdir('/home')".to_owned(),
        format!("open('{file}').read()"),
        format!("open('{file}', 'a')"),
        format!("os.truncate('{file}', 0)"),
        format!("os.remove('{file}')"),
        format!("open('{host}/new', 'w')"),
        format!("os.mkdir('{host}/new')"),
        format!("os.link('{file}', 'linked')"),
        format!("os.rename('{file}', 'moved')"),
        format!("os.setxattr('{file}', 'user.x', b'1')"),
        format!("os.chown('{file}', -1, os.getgid())"),
        "open('/tmp/cellblock-left', 'w')".to_owned(),
        "open('/dev/shm/cellblock-left', 'w')".to_owned(),
        format!("open('/proc/{pid}/environ').read()"),
        format!("open('/proc/{pid}/cmdline').read()"),
        format!("open('/proc/{pid}/mem')"),
        "os.listdir('/proc')".to_owned(),
        format!("os.kill({pid}, 0)"),
        format!("resource.prlimit({pid}, resource.RLIMIT_NOFILE)"),
        format!("os.sched_setaffinity({pid}, {{0}})"),
        format!("os.setpriority(os.PRIO_PROCESS, {pid}, 19)"),
        format!("check(libc.ptrace(16, {pid}, 0, 0))"),
        "socket.socket(socket.AF_INET, socket.SOCK_STREAM)".to_owned(),
        "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)".to_owned(),
        "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)".to_owned(),
        format!("socket.socket(socket.AF_UNIX).connect('{door}')"),
        format!("socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', '{door}')"),
        "check(libc.shmget(0, 4096, 0o1600))".to_owned(),
        "check(libc.semget(0, 1, 0o1600))".to_owned(),
        "check(libc.msgget(0, 0o1600))".to_owned(),
        "check(libc.mq_open(b'/left', 0o102, 0o600, None))".to_owned(),
        format!("check(libc.inotify_add_watch(libc.inotify_init1(0), b'{host}', 0xfff))"),
        "check(libc.unshare(0x10000000))".to_owned(),
        "check(libc.unshare(0x20000))".to_owned(),
        "check(libc.mount(b'none', b'.', b'tmpfs', 0, None))".to_owned(),
        "os.setuid(0)".to_owned(),
    ];
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    let (end, shown) = execute(&mut lease.kernel, &attempts(&lines)).await;
    let mut printed = [0; 4096];
    let length = lease.kernel.stdout.try_read(&mut printed).unwrap_or(0);
    let printed = String::from_utf8_lossy(&printed[..length]);
    assert_eq!((end, shown), shows(0), "{printed}");
    // Calls that pretend success have no effect.
    let code = format!(
        "for change in (lambda: os.chmod('{file}', 0), lambda: os.utime('{file}', (0, 0))):\n    \
         try:\n        change()\n    except OSError:\n        pass\n1"
    );
    assert_eq!(execute(&mut lease.kernel, &code).await, shows(1));
    let after = fs::metadata(Path::new(&file.to_string())).unwrap();
    assert_eq!(
        (after.mode(), after.mtime(), after.len()),
        (before.mode(), before.mtime(), 6)
    );
    let status = "import re\nstatus = open('/proc/self/status').read()\n\
                  fields = dict(re.findall(r'(\\w+):\\s*(\\S+)', status))\n\
                  int((fields['CapEff'], fields['CapPrm'], fields['CapInh'], fields['CapAmb']) == ('0' * \
                  16,) * 4 and fields['NoNewPrivs'] == '1' and fields['Seccomp'] == '2')";
    assert_eq!(execute(&mut lease.kernel, status).await, shows(1));
    let open = "sorted(int(n) for n in os.listdir('/proc/self/fd'))[-1]";
    let (_, shown) = execute(&mut lease.kernel, open).await;
    assert!(
        matches!(shown[..], [Scalar::Integer(last)] if last < 10),
        "{shown:?}"
    );
    // Commands have the same protections.
    let (stdout, stderr) = run(&lease, ["cat", "/etc/shadow"]).await;
    assert_eq!(
        (stdout.as_str(), stderr.contains("denied")),
        ("", true),
        "{stderr}"
    );
    lease.sandbox.destroy().await.unwrap();
}

async fn rooms_do_not_reach_each_other(backend: &ProcessBackend) {
    let (mut one, mut two) = (lease(backend).await, lease(backend).await);
    execute(
        &mut one.kernel,
        "open('secret', 'w').write('x')\nimport os\nprint(os.getcwd(), os.getpid(), flush=True)",
    )
    .await;
    one.kernel.stdout.readable().await.unwrap();
    let mut said = [0; 4096];
    let length = one.kernel.stdout.try_read(&mut said).unwrap();
    let said = String::from_utf8_lossy(&said[..length]).into_owned();
    let (dir, pid) = said.trim().split_once(' ').unwrap();
    let lines = [
        format!("open('{dir}/secret').read()"),
        format!("os.listdir('{dir}')"),
        format!("open('{dir}/planted', 'w')"),
        format!("os.kill({pid}, 9)"),
        format!("open('/proc/{pid}/environ').read()"),
    ];
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    assert_eq!(execute(&mut two.kernel, &attempts(&lines)).await, shows(0));
    assert_eq!(execute(&mut one.kernel, "len(os.listdir('.'))").await, shows(1));
    one.sandbox.destroy().await.unwrap();
    two.sandbox.destroy().await.unwrap();
}

/// Returns the processes on the host whose command line contains a text.
fn with_argument(text: &str) -> usize {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let lines = pids.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines
        .filter(|line| line.starts_with(b"sleep") && String::from_utf8_lossy(line).contains(text))
        .count()
}

async fn nothing_outlives(backend: &ProcessBackend) {
    let launcher = backend.launcher_pid().unwrap();
    let mark = format!("{}.75", 100_000 + launcher);
    let leave = format!(
        "import subprocess, time\n\
         subprocess.Popen(['setsid', 'sh', '-c', 'sleep {mark} & sleep {mark}'], start_new_session=True)\n\
         subprocess.Popen(['sh', '-c', '(setsid sleep {mark} &) &']).wait();"
    );
    // With the kernel …
    let mut ending = lease(backend).await;
    execute(&mut ending.kernel, &leave).await;
    until("all have started", || with_argument(&mark) == 3).await;
    execute(&mut ending.kernel, "import os\nos._exit(0)").await;
    assert_eq!(with_argument(&mark), 0);
    // … with its room …
    let mut next = ending.sandbox.start_kernel().await.unwrap();
    execute(&mut next, &leave).await;
    until("all have started", || with_argument(&mark) == 3).await;
    ending.sandbox.destroy().await.unwrap();
    assert_eq!(with_argument(&mark), 0);
    // … and with a room whose first process is killed.
    let mut killed = lease(backend).await;
    execute(&mut killed.kernel, &leave).await;
    until("all have started", || with_argument(&mark) == 3).await;
    killed.sandbox.kill();
    assert!(matches!(ended(&killed.kernel).await, ProcessEnd::Signaled(9)));
    until("gone", || with_argument(&mark) == 0).await;
    killed.sandbox.destroy().await.unwrap();
    // The keep, and a spare room's shepherd and guest.
    let left = descendants(launcher);
    assert!(
        left.len() <= 3 && left.iter().all(|it| it.name.starts_with("cellblock-")),
        "{left:#?}"
    );
}

/// Without cgroups, per-process limits replace them.
async fn rlimits_hold(backend: &ProcessBackend) {
    let small = limits(|limits| {
        limits.memory_bytes = 256 * MIB;
        limits.processes = 32;
        limits.open_files = 64;
        limits.file_bytes = MIB;
    });
    let mut lease = create(backend, &small).await.unwrap();
    let kinds = "import os, resource\n\
                 def kind(action):\n    try:\n        action()\n    except BaseException as \
                 error:\n        return type(error).__name__ + str(getattr(error, 'errno', ''))\n\
                 def forks():\n    for _ in range(5000):\n        if os.fork() == 0:\n            import \
                 time\n            time.sleep(1000)\n\
                 def files():\n    return [open('/dev/null') for _ in range(100)]\n\
                 def bytes_():\n    open('big', 'wb').write(bytes(2 << 20))\n\
                 print(kind(lambda: b'x' * (8 << 30)), kind(forks), kind(files), kind(bytes_), \
                 resource.getrlimit(resource.RLIMIT_CORE), flush=True)";
    assert_eq!(
        execute(&mut lease.kernel, kinds).await.0,
        End::Done(KernelOutcome::Completed)
    );
    lease.kernel.stdout.readable().await.unwrap();
    let mut said = [0; 4096];
    let length = lease.kernel.stdout.try_read(&mut said).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&said[..length]),
        "MemoryError BlockingIOError11 OSError24 OSError27 (1, 1)\n"
    );
    lease.sandbox.destroy().await.unwrap();
}

async fn run<const N: usize>(lease: &Lease, argv: [&str; N]) -> (String, String) {
    let command = SandboxCommand {
        argv: argv.map(str::to_owned).to_vec(),
        cwd: "/workspace".to_owned(),
        env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
        inherit: false,
        timeout: std::time::Duration::from_secs(20),
        input: false,
        keep: None,
        terminal: None,
    };
    let mut events = lease.sandbox.guest().run(command).await.unwrap().events;
    let (mut stdout, mut stderr) = (String::new(), String::new());
    while let Some(event) = events.recv().await {
        match event {
            CommandEvent::Output(Stream::Stdout, part) => stdout += &String::from_utf8_lossy(&part),
            CommandEvent::Output(Stream::Stderr, part) => stderr += &String::from_utf8_lossy(&part),
            CommandEvent::Started | CommandEvent::Exited { .. } => {}
            CommandEvent::Failed(reason) => panic!("{reason}"),
        }
    }
    (stdout, stderr)
}
