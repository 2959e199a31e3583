//! Files of a frozen template that others could have written are neither mapped nor replaced.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::PathBuf;

use cellblock_artifact::Store;
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::builder::{FrozenState, InterpreterBuilder};
use cellblock_interpreter::session::SessionOptions;
use cellblock_testkit::require;

use crate::backend::is_machine;
use crate::seeds::printed;
use crate::support::{block_on, image};

#[test]
fn a_frozen_template_that_others_can_write_is_neither_used_nor_replaced() {
    require!(UserNamespaces);
    if is_machine() || !cfg!(target_arch = "x86_64") {
        return;
    }
    block_on(async {
        let image = image().await;
        let home = tempfile::tempdir().unwrap();
        for part in ["bytecode", "images", "layers", "refs"] {
            let shared = cellblock_testkit::home().unwrap().join(part);
            symlink(shared, home.path().join(part)).unwrap();
        }
        let builder = || -> InterpreterBuilder {
            Interpreter::builder()
                .home(home.path())
                .store(Store::local(home.path().join("artifacts")).unwrap())
                .single_session()
        };
        assert_eq!(builder().freeze().await.unwrap(), FrozenState::Ready);
        assert_eq!(mapped(builder()).await, "True\n");
        let folder = home.path().join("frozen").join(image.id());
        let files: Vec<PathBuf> = fs::read_dir(&folder)
            .unwrap()
            .map(|it| it.unwrap().path())
            .collect();
        let memory = files
            .iter()
            .find(|it| it.extension().is_some_and(|it| it == "memory"));
        let memory = memory.unwrap();
        for path in [&folder, memory] {
            let mode = fs::metadata(path).unwrap().permissions().mode();
            fs::set_permissions(path, Permissions::from_mode(mode | 0o022)).unwrap();
            let state = builder().frozen().await.unwrap();
            let (FrozenState::Refused(reason) | FrozenState::Damaged(reason)) = &state else {
                panic!("{}: {state:?}", path.display());
            };
            assert!(reason.contains("nobody else"), "{reason}");
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        // Once more, as the mode of the memory was changed.
        assert_eq!(builder().freeze().await.unwrap(), FrozenState::Ready);
        if rustix::process::geteuid().is_root() {
            chown(&folder, Some(65_534), None).unwrap();
            let state = builder().freeze().await.unwrap();
            assert!(
                matches!(&state, FrozenState::Refused(reason) if reason.contains("nobody else")),
                "{state:?}"
            );
            assert_eq!(mapped(builder()).await, "False\n");
            chown(&folder, Some(0), None).unwrap();
            assert_eq!(mapped(builder()).await, "True\n");
        }
    });
}

/// Starts anew; prints whether the kernel's memory comes from a file.
async fn mapped(builder: InterpreterBuilder) -> String {
    let interpreter = builder.build().await.unwrap();
    let session = interpreter.session(SessionOptions {
        pooled: false,
        ..SessionOptions::default()
    });
    let mapped = printed(
        &session,
        "print('/opt/frozen/' in open('/proc/self/maps').read())",
    )
    .await;
    session.close().await.unwrap();
    mapped
}
