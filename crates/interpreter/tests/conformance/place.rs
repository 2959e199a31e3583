//! Location of the sandboxes of these tests.

use cellblock_interpreter::Interpreter;
use cellblock_interpreter::builder::{BackendKind, InterpreterBuilder, Lack};
use cellblock_interpreter::limits::{Limits, NetworkPolicy};
use cellblock_sandbox::pool::PoolConfig;

use crate::backend::{backend, is_machine, over_backend};
use crate::remote::{client, serve};
use crate::support::store;

/// Returns from a test, and records it, where the backend of this run lacks one of these.
macro_rules! needs {
    ($($lack:ident),+) => {
        $(if crate::place::lacks(cellblock_interpreter::builder::Lack::$lack, module_path!()) {
            return;
        })+
    };
}

/// Whether the backend declares that it lacks this; a test in `module` does not run then.
pub(crate) fn lacks(lack: Lack, module: &str) -> bool {
    let lacks = declared().contains(&lack);
    if lacks {
        cellblock_testkit::lacking(&backend(), lack.name(), module);
    }
    lacks
}

/// Whether a test in `module` does not run, because each sandbox is a machine, which lacks this.
pub(crate) fn machine_lacks(what: &str, module: &str) -> bool {
    let lacks = is_machine();
    if lacks {
        cellblock_testkit::lacking(&backend(), what, module);
    }
    lacks
}

/// Returns the features that the backend declares to lack.
pub(crate) fn declared() -> &'static [Lack] {
    // The sandboxes at the other end of the connection are those of the process backend, and kept
    // kernels cannot be reached over it.
    backend()
        .parse()
        .map_or(&[Lack::Checkpoints, Lack::Forks], BackendKind::lacks)
}

/// Starts what `builder` describes, with its sandboxes in the backend of this run.
pub(crate) async fn interpreter(builder: InterpreterBuilder) -> Interpreter {
    match &*backend() {
        "remote" => remote(builder).await,
        _ => over_backend(builder).await.build().await.unwrap(),
    }
}

/// Starts it with its sandboxes at the other end of connections.
async fn remote(builder: InterpreterBuilder) -> Interpreter {
    // Some tests ask for more than the default.
    let most = Limits {
        memory_bytes: 64 << 30,
        disk_bytes: 64 << 30,
        data_bytes: 64 << 30,
        file_bytes: 64 << 30,
        processes: 10_000,
        open_files: 100_000,
        inodes: 10_000_000,
        shm_bytes: 64 << 30,
        network: NetworkPolicy::Egress,
        ..Limits::default()
    };
    let server = serve(builder.build().await.unwrap(), most).await;
    server.interpreter.warmed().await.unwrap();
    // It lives as long as the tests.
    let server = Box::leak(Box::new(server));
    client(server, PoolConfig::default(), store()).await
}
