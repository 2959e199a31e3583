//! The kernel's bytecode: compiled once per image, used by every later start, and never needed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cellblock_protocol::Stream;
use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::Backend as _;
use cellblock_sandbox::backend::process::{ProcessBackend, ProcessConfig};
use cellblock_sandbox::guest::{CommandEvent, SandboxCommand};
use cellblock_sandbox::jail::protection::{Demand, Demands, Protection};
use cellblock_sandbox::pool::create;

use crate::support::{block_on, config, execute, shows};

async fn with_bytecode(directory: &Path) -> ProcessConfig {
    ProcessConfig {
        bytecode: Some(directory.to_owned()),
        ..config().await
    }
}

/// Imports the kernel in a new sandbox; returns where Python says that it found the code of its modules.
async fn origins(config: &ProcessConfig) -> Vec<String> {
    let backend = ProcessBackend::start(config).await.unwrap();
    let sandbox = backend.create(&Limits::default()).await.unwrap();
    let import = "import os, sys; sys.path.insert(0, os.environ['PATH'].split('/bin:')[0]); import \
                  cellblock_kernel.boot.template";
    let command = SandboxCommand {
        argv: [&*config.image.command().to_string_lossy(), "-v", "-c", import]
            .map(str::to_owned)
            .to_vec(),
        cwd: "/workspace".to_owned(),
        env: BTreeMap::new(),
        inherit: true,
        timeout: Duration::from_mins(1),
        input: false,
        keep: None,
        terminal: None,
    };
    let mut events = sandbox.guest().run(command).await.unwrap().events;
    let mut log = Vec::new();
    while let Some(event) = events.recv().await {
        if let CommandEvent::Output(Stream::Stderr, part) = event {
            log.extend(part);
        }
    }
    sandbox.destroy().await.unwrap();
    let log = String::from_utf8(log).unwrap();
    let origins: Vec<_> = log
        .lines()
        .filter_map(|line| line.strip_prefix("# code object from "))
        .map(|path| path.trim_matches('\'').to_owned())
        .filter(|path| path.contains("/cellblock_kernel/"))
        .collect();
    assert!(origins.len() > 20, "{log}");
    origins
}

/// Runs a cell with a new backend.
async fn works(config: &ProcessConfig) {
    let backend = ProcessBackend::start(config).await.unwrap();
    let mut lease = create(&backend, &Limits::default()).await.unwrap();
    assert_eq!(execute(&mut lease.kernel, "6 * 7").await, shows(42));
    lease.sandbox.destroy().await.unwrap();
}

fn only_file(directory: &Path) -> PathBuf {
    let files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    let [file] = &files[..] else {
        panic!("not one file: {files:?}");
    };
    file.clone()
}

fn is_compiled(path: impl AsRef<Path>) -> bool {
    path.as_ref().extension().is_some_and(|it| it == "pyc")
}

#[test]
fn a_start_with_bytecode_compiles_nothing() {
    block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let with = with_bytecode(directory.path()).await;
        let origins_with = origins(&with).await;
        assert!(origins_with.iter().all(is_compiled), "{origins_with:?}");
        let compiled = fs::metadata(only_file(directory.path())).unwrap();
        works(&with).await;
        let again = fs::metadata(only_file(directory.path())).unwrap();
        assert_eq!(
            (compiled.ino(), compiled.mtime_nsec()),
            (again.ino(), again.mtime_nsec())
        );
        let without = origins(&config().await).await;
        assert!(!without.iter().any(is_compiled), "{without:?}");
    });
}

#[test]
fn sandboxes_without_namespaces_use_bytecode_too() {
    block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let mut demands = Demands::without_namespaces();
        demands.0.insert(Protection::UserNamespace, Demand::Disabled);
        let config = ProcessConfig {
            demands,
            ..with_bytecode(directory.path()).await
        };
        let origins = origins(&config).await;
        assert!(origins.iter().all(is_compiled), "{origins:?}");
        works(&config).await;
    });
}

#[test]
fn damaged_bytecode_is_compiled_again() {
    block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let config = with_bytecode(directory.path()).await;
        works(&config).await;
        let file = only_file(directory.path());
        let whole = fs::read(&file).unwrap();
        fs::write(&file, &whole[..whole.len() / 2]).unwrap();
        works(&config).await;
        works(&config).await;
        assert_eq!(fs::read(only_file(directory.path())).unwrap().len(), whole.len());
        let origins = origins(&config).await;
        assert!(origins.iter().all(is_compiled), "{origins:?}");
    });
}

#[test]
fn bytecode_of_another_version_is_neither_used_nor_removed() {
    block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let config = with_bytecode(directory.path()).await;
        let other = directory.path().join("0123456789abcdef");
        fs::write(&other, "of another version").unwrap();
        works(&config).await;
        assert_eq!(fs::read(&other).unwrap(), b"of another version");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    });
}

#[test]
fn sandboxes_start_where_no_bytecode_can_be_kept() {
    block_on(async {
        let file = tempfile::NamedTempFile::new().unwrap();
        // Nobody can create a directory in either: a file, and a file system of the kernel.
        for directory in [file.path().join("bytecode"), "/proc/self/fdinfo/bytecode".into()] {
            works(&with_bytecode(&directory).await).await;
            assert!(!directory.exists());
        }
    });
}

#[test]
fn two_first_starts_at_once_leave_one_file() {
    block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let config = with_bytecode(directory.path()).await;
        tokio::join!(works(&config), works(&config));
        only_file(directory.path());
        let origins = origins(&config).await;
        assert!(origins.iter().all(is_compiled), "{origins:?}");
    });
}
