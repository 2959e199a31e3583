//! Two sandboxes at once: what one leaves, the other does not find, though a second process in the
//! same sandbox does.
//!
//! Each file of `tests/containment/pairs/` names one thing that could be shared, with a way to
//! leave something there and a way to find it.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use cellblock_interpreter::Session;
use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::output::Output;
use cellblock_testkit::require;
use serde_json::{Value, json};

use crate::probe::{folder, header, python_files};
use crate::support::{block_on, image, python, session};

/// Runs `find` in another process of the same sandbox.
const CONTROL: &str = "
import os
def another(token):
    try:
        child = os.fork()
    except BlockingIOError:
        # There may be no further process: this one looks itself.
        return find(token)
    if child == 0:
        try:
            os._exit(10 if find(token) else 11)
        finally:
            os._exit(12)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 10
";

/// Makes a test of each pair, and one that none was forgotten.
macro_rules! pairs {
    ($($name:ident,)*) => {
        $(
            #[test]
            fn $name() {
                require!(UserNamespaces);
                require!(CgroupV1);
                block_on(share_nothing(stringify!($name)));
            }
        )*

        #[test]
        fn every_pair_has_a_test() {
            let tested: BTreeSet<_> = [$(stringify!($name)),*].map(str::to_owned).into();
            let there: BTreeSet<_> = python_files(&folder().join("pairs"))
                .iter()
                .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
                .collect();
            assert_eq!(tested, there);
        }
    };
}

pairs! {
    abstract_sockets,
    files_in_shared_memory,
    files_of_the_workspace,
    flags_of_standard_input,
    interpreter,
    keyrings,
    limit_on_processes,
    locks,
    locks_on_the_image,
    loopback,
    mapped_memory,
    named_pipes,
    outputs,
    own_loopback,
    own_loopback_datagrams,
    own_loopback_ipv6,
    own_table_of_connections,
    owner_of_standard_input,
    pids,
    posix_message_queues,
    posix_semaphores,
    posix_shared_memory,
    processes,
    system_v_memory,
    system_v_messages,
    system_v_semaphores,
    table_of_sockets,
    temporary_files,
    timers,
    unix_sockets,
}

async fn share_nothing(name: &str) {
    let code = fs::read_to_string(folder().join(format!("pairs/{name}.py"))).unwrap();
    let (writer, reader) = tokio::join!(ready(&code), ready(&code));
    let token = token();
    assert_eq!(
        value(&reader, &format!("find({token:?})")).await,
        false,
        "before anything was left"
    );
    let left = writer.execute(format!("left = leave({token:?})")).await.unwrap();
    if left.outcome == Outcome::Completed {
        assert_eq!(
            value(&writer, &format!("{CONTROL}\nanother({token:?})")).await,
            true,
            "another process of the same sandbox does not find it, so this test could not fail"
        );
    } else {
        // It cannot even be left in a sandbox, so that the control takes place outside.
        assert!(code.contains("\nOUTSIDE = "), "{left:#?}");
        let Some(Output::Exception(exception)) = left.outputs.last() else {
            panic!("{left:#?}");
        };
        assert_eq!(exception.exception, "PermissionError");
        outside(&code, &token).await;
    }
    // A known residue is asserted as well, so that it is struck when somebody repairs it.
    assert_eq!(
        value(&reader, &format!("find({token:?})")).await,
        code.contains("\nRESIDUE = "),
        "whether the other sandbox found it"
    );
    drop((writer, reader));
}

/// Asserts that another process finds what is left outside a sandbox.
async fn outside(code: &str, token: &str) {
    let python = python(&image().await);
    let code = format!("{code}{CONTROL}\nleft = leave({token:?})\nassert another({token:?})\n");
    let ran = Command::new(python)
        .args(["-B", "-c", &code])
        .env("PYTHONPATH", folder().join("shared"))
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

async fn ready(code: &str) -> Session {
    let limits = header("pair", code).remove("limits");
    let limits = limits.map(|text| serde_json::from_str(&text).unwrap());
    let session = session(limits, "{}").await;
    let ended = session.execute(code).await.unwrap();
    assert_eq!(ended.outcome, Outcome::Completed, "{ended:#?}");
    session
}

/// Runs a cell that must complete and show one scalar, which is given.
async fn value(session: &Session, code: &str) -> Value {
    let ended = session.execute(code).await.unwrap();
    assert_eq!(ended.outcome, Outcome::Completed, "{ended:#?}");
    match &ended.outputs[..] {
        [Output::Primitive(shown)] => json!(shown.value),
        other => panic!("not one scalar: {other:#?}"),
    }
}

/// A name that nothing else has.
fn token() -> String {
    let unique = tempfile::NamedTempFile::new().unwrap();
    let name = unique.path().file_name().unwrap().to_string_lossy().into_owned();
    let digits = name.bytes().fold(0_u64, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(u64::from(byte))
    });
    format!("pair{digits:016x}")
}

/// Defines what names all namespaces of the process that asks.
const NAMES: &str = "\"\"\"Names namespaces.\"\"\"\nimport os\n\
                     names = lambda: ' '.join(os.readlink(f'/proc/self/ns/{kind}') for kind in ('user', \
                     'pid', 'mnt', 'net', 'ipc', 'uts', 'cgroup'))\n";

#[test]
fn every_namespace_is_another_in_each_sandbox_and_the_same_within_one() {
    require!(UserNamespaces);
    require!(CgroupV1);
    block_on(async {
        let (one, two) = tokio::join!(ready(NAMES), ready(NAMES));
        let (first, second) = (value(&one, "names()").await, value(&two, "names()").await);
        let inside = "import subprocess, sys\nsubprocess.run(['readlink', *(f'/proc/self/ns/{kind}' for \
                      kind in ('user', 'pid', 'mnt', 'net', 'ipc', 'uts', 'cgroup'))], \
                      capture_output=True, text=True).stdout.strip().replace('\\n', ' ')";
        assert_eq!(value(&one, inside).await, first);
        let split = |names: &Value| -> Vec<String> {
            names.as_str().unwrap().split(' ').map(str::to_owned).collect()
        };
        let (first, second) = (split(&first), split(&second));
        assert_eq!((first.len(), second.len()), (7, 7));
        for (mine, theirs) in first.iter().zip(&second) {
            assert_ne!(mine, theirs);
        }
    });
}
