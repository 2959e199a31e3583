//! The same protections without root: this test runs itself again as an ordinary user.

use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::process::ProcessBackend;
use cellblock_sandbox::backend::{Backend, ProcessEnd};
use cellblock_sandbox::jail::protection::Protection;
use cellblock_sandbox::limits::NetworkPolicy;
use cellblock_sandbox::pool::create;
use cellblock_testkit::{as_ordinary_user, require, with_subordinate_ids};

use crate::support::{End, block_on, config, descendants, execute, limits, shows, with_python};

/// Set in the second run: the image's `python` directory and its interpreter.
const PYTHON: &str = "CELLBLOCK_TEST_PYTHON";
const INTERPRETER: &str = "CELLBLOCK_TEST_INTERPRETER";

#[test]
fn an_ordinary_user_has_sandboxes_with_the_same_protections() {
    if let (Some(python), Ok(interpreter)) = (std::env::var_os(PYTHON), std::env::var(INTERPRETER)) {
        block_on(works(python.into(), &interpreter));
    } else {
        require!(OrdinaryUser);
        again(
            "an_ordinary_user_has_sandboxes_with_the_same_protections",
            &as_ordinary_user,
        );
    }
}

#[test]
fn a_user_with_subordinate_ids_has_sandboxes_with_user_ids_of_their_own() {
    if let (Some(python), Ok(interpreter)) = (std::env::var_os(PYTHON), std::env::var(INTERPRETER)) {
        block_on(async {
            has_own_ids(python.clone().into(), &interpreter).await;
            works(python.into(), &interpreter).await;
        });
    } else {
        require!(SubordinateIds);
        again(
            "a_user_with_subordinate_ids_has_sandboxes_with_user_ids_of_their_own",
            &with_subordinate_ids,
        );
    }
}

fn again(name: &str, starting: &dyn Fn(PathBuf) -> std::process::Command) {
    let config = block_on(config());
    // Other users may be unable to enter the target directory; they can read a copy elsewhere.
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let copy = |from: PathBuf, name: &str| {
        let to = folder.path().join(name);
        std::fs::copy(from, &to).unwrap();
        std::fs::set_permissions(&to, PermissionsExt::from_mode(0o755)).unwrap();
        to
    };
    let test = copy(std::env::current_exe().unwrap(), "test");
    let started = || {
        starting(test.clone())
            .args(["--exact", &format!("ordinary_user::{name}")])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env(PYTHON, &config.image.directory)
            .env(INTERPRETER, &config.image.interpreter)
            .output()
    };
    // A process that another test was starting meanwhile may still have the copy open to write.
    let busy =
        |ran: &std::io::Result<_>| matches!(ran, Err(error) if error.kind() == ErrorKind::ExecutableFileBusy);
    let output = std::iter::repeat_with(started)
        .find(|ran| !busy(ran))
        .unwrap()
        .unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

/// The host ids of the keep and of each sandbox differ from the caller's, and no two launchers
/// share any.
async fn has_own_ids(python: PathBuf, interpreter: &str) {
    let caller = rustix::process::geteuid().as_raw();
    let config = with_python(python, interpreter);
    let (one, other) = tokio::join!(ProcessBackend::start(&config), ProcessBackend::start(&config));
    let mut users = std::collections::BTreeSet::from([caller]);
    for backend in [one.unwrap(), other.unwrap()] {
        backend.warmed().await.unwrap();
        assert!(backend.report().is_active(Protection::OwnUserId));
        let leases = tokio::join!(
            async { create(&backend, &Limits::default()).await.unwrap() },
            async { create(&backend, &Limits::default()).await.unwrap() }
        );
        let owner = |pid: u32| std::fs::metadata(format!("/proc/{pid}")).unwrap().uid();
        let launcher = backend.launcher_pid().unwrap();
        let keep = descendants(launcher)
            .into_iter()
            .find(|it| it.parent == launcher)
            .unwrap();
        let kernels: Vec<u32> = descendants(launcher)
            .into_iter()
            .filter(|it| it.parent == crate::support::template(launcher).pid)
            .map(|it| it.pid)
            .collect();
        assert_eq!(kernels.len(), 2);
        for process in std::iter::once(keep.pid).chain(kernels) {
            assert!(users.insert(owner(process)), "{users:?}");
        }
        drop(leases);
    }
    assert_eq!(users.len(), 7);
}

async fn works(python: PathBuf, interpreter: &str) {
    assert!(!rustix::process::geteuid().is_root());
    let backend = ProcessBackend::start(&with_python(python, interpreter))
        .await
        .unwrap();
    backend.warmed().await.unwrap();
    let report = backend.report();
    for protection in Protection::ALL {
        if protection.default_demand() == cellblock_sandbox::jail::protection::Demand::Strict {
            assert!(report.is_active(protection), "{protection:?}: {report:?}");
        }
    }
    let (mut one, mut two) = tokio::join!(
        async { create(&backend, &Limits::default()).await.unwrap() },
        async { create(&backend, &Limits::default()).await.unwrap() }
    );
    assert_eq!(
        execute(&mut one.kernel, "open('/workspace/a', 'w').write('abc')").await,
        shows(3)
    );
    assert_eq!(
        execute(&mut two.kernel, "import os\nlen(os.listdir('/workspace'))").await,
        shows(0)
    );
    assert_eq!(
        execute(
            &mut two.kernel,
            "len([p for p in os.listdir('/proc') if p.isdigit()])"
        )
        .await,
        shows(1)
    );
    assert_eq!(
        execute(
            &mut one.kernel,
            "import multiprocessing\nwith multiprocessing.Pool(2) as p: total = sum(p.map(abs, [-40, -2]))\n\
             total"
        )
        .await,
        shows(42)
    );
    let reached = "import socket\ntry:\n    socket.create_connection(('192.0.2.1', 80), timeout=2)\n    n \
                   = 1\nexcept OSError:\n    n = 0\nn";
    assert_eq!(execute(&mut one.kernel, reached).await, shows(0));
    let with_loopback = crate::support::limits(|limits| limits.network = NetworkPolicy::Loopback);
    let mut three = create(&backend, &with_loopback).await.unwrap();
    let echo = "import socket\nlistener = socket.create_server(('127.0.0.1', 0))\n\
                client = socket.create_connection(listener.getsockname())\n\
                client.send(b'x') + len(listener.accept()[0].recv(9))";
    assert_eq!(execute(&mut three.kernel, echo).await, shows(2));
    assert_eq!(execute(&mut three.kernel, reached).await, shows(0));
    let output = "open('/dev/stdout', 'w').write('x')";
    assert_eq!(execute(&mut one.kernel, output).await, shows(1));
    // V8 reserves far more addresses than any memory limit.
    let chart = "import vl_convert\nspec = \
                 {'data': {'values': [{'a': 1}]}, 'mark': 'bar', 'encoding': {'x': {'field': 'a'}}}\n\
                 int(vl_convert.vegalite_to_png(spec).startswith(b'\\x89PNG'))";
    assert_eq!(execute(&mut one.kernel, chart).await, shows(1));
    let (end, _) = execute(&mut one.kernel, "os = __import__('os')\nos._exit(7)").await;
    assert_eq!(end, End::Lost(ProcessEnd::Exited(7)));
    let mut next = one.sandbox.start_kernel().await.unwrap();
    assert_eq!(
        execute(&mut next, "len(open('/workspace/a').read())").await,
        shows(3)
    );

    // Without a cgroup, a per-process limit applies; either way this much is not available.
    let small = limits(|limits| limits.memory_bytes = 256 << 20);
    let mut lease = create(&backend, &small).await.unwrap();
    let (end, _) = execute(&mut lease.kernel, "block = b'x' * (5 << 30)").await;
    assert!(
        matches!(
            end,
            End::Done(cellblock_protocol::KernelOutcome::Raised) | End::Lost(ProcessEnd::Signaled(9))
        ),
        "{end:?}"
    );
    lease.sandbox.destroy().await.unwrap();
    two.sandbox.destroy().await.unwrap();
}
