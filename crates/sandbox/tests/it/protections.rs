//! Each protection, tested from inside by user code: as root, and as an ordinary user.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use cellblock_protocol::{KernelOutcome, Scalar};
use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::Backend;
use cellblock_sandbox::backend::process::{ProcessBackend, ProcessConfig};
use cellblock_sandbox::jail::protection::Protection;
use cellblock_sandbox::pool::create;
use cellblock_testkit::{as_ordinary_user, require};
use tokio::sync::OnceCell;

use crate::support::{End, block_on, config, execute, with_python};

const PYTHON: &str = "CELLBLOCK_TEST_PYTHON";
const INTERPRETER: &str = "CELLBLOCK_TEST_INTERPRETER";
/// The attempts, one function each.
const ATTEMPTS: &str = include_str!("protections.py");

static BACKEND: OnceCell<ProcessBackend> = OnceCell::const_new();

async fn backend() -> &'static ProcessBackend {
    BACKEND.get_or_init(crate::support::backend).await
}

/// Runs one function of `protections.py` in a new room; it must find nothing.
async fn finds_nothing(backend: &ProcessBackend, name: &str) {
    let mut lease = create(backend, &Limits::default()).await.unwrap();
    let code = format!("{ATTEMPTS}\nfound = {name}()\nprint(found, flush=True)\nlen(found)");
    let (end, shown) = execute(&mut lease.kernel, &code).await;
    let mut bytes = vec![0; 32 << 10];
    let mut said = String::new();
    for pipe in [&lease.kernel.stdout, &lease.kernel.stderr] {
        let length = pipe.try_read(&mut bytes).unwrap_or(0);
        said += &String::from_utf8_lossy(&bytes[..length]);
    }
    assert_eq!(
        (end, shown),
        (End::Done(KernelOutcome::Completed), vec![Scalar::Integer(0)]),
        "{name}: {said}"
    );
    lease.sandbox.destroy().await.unwrap();
}

macro_rules! protections {
    ($($test:ident: $function:ident,)*) => {
        /// Functions of `protections.py` that must find nothing for every user.
        const ALL: &[&str] = &[$(stringify!($function)),*];
        $(
            #[test]
            fn $test() {
                block_on(async { finds_nothing(backend().await, stringify!($function)).await });
            }
        )*
    };
}

protections! {
    the_room_maps_one_user_and_no_root: user_namespace,
    no_process_but_the_own_ones_can_be_seen_or_signalled: pid_namespace,
    the_tree_holds_what_a_program_needs_and_is_read_only: mount_namespace,
    there_is_no_network_device: net_namespace,
    there_is_no_ipc_of_others: ipc_namespace,
    the_host_name_is_the_rooms: uts_namespace,
    the_hosts_cgroups_are_hidden: cgroup_namespace,
    proc_hides_others_and_masks_what_is_dangerous: hidden_proc,
    there_are_five_devices_and_no_more_can_be_made: devices,
    every_capability_set_is_empty: no_capabilities,
    privileges_can_never_be_gained: no_new_privs,
    calls_that_are_not_listed_are_refused: seccomp,
    the_other_entry_to_the_kernel_is_closed: seccomp_other_abi,
    terminals_take_no_words: terminal_injection,
    only_unix_sockets_can_be_made: sockets,
    limits_of_a_process_cannot_be_raised: limits,
    crashes_leave_no_core: core_dumps,
    no_descriptor_is_inherited: descriptors,
    no_variable_of_the_environment_is_inherited: environment,
}

#[test]
fn landlock_protects_behind_the_mounts() {
    require!(Landlock);
    block_on(async { finds_nothing(backend().await, "landlock").await });
}

#[test]
fn landlock_scopes_keep_signals_inside() {
    require!(Landlock);
    block_on(async {
        let backend = backend().await;
        if backend.report().is_active(Protection::LandlockScopes) {
            finds_nothing(backend, "landlock_scopes").await;
        }
    });
}

#[test]
fn an_ordinary_user_has_every_protection() {
    if let (Some(python), Ok(interpreter)) = (std::env::var_os(PYTHON), std::env::var(INTERPRETER)) {
        assert!(!rustix::process::geteuid().is_root());
        block_on(async {
            let config: ProcessConfig = with_python(python.into(), &interpreter);
            let backend = ProcessBackend::start(&config).await.unwrap();
            for name in ALL.iter().chain(&["landlock"]) {
                finds_nothing(&backend, name).await;
            }
        });
        return;
    }
    require!(OrdinaryUser);
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
    let output = as_ordinary_user(copy(std::env::current_exe().unwrap(), "test"))
        .args(["--exact", "protections::an_ordinary_user_has_every_protection"])
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
