//! Backends on the default image, and kernels driven by hand.

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use cellblock_image::{DEFAULT_IMAGE, Home, ImageStore, OpenImage, Sink};
use cellblock_protocol::{CellMode, FromKernel, KernelOutcome, Output, Scalar, ToKernel};
use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::process::{ImageTree, ProcessBackend, ProcessConfig};
use cellblock_sandbox::backend::{Backend, Kernel, ProcessEnd};
use cellblock_sandbox::channel::write_frame;
use cellblock_sandbox::jail::protection::Demands;
pub(crate) use cellblock_testkit::wait::until;
use tokio::runtime::Runtime;

/// Tasks of a backend run here, so it must outlive each test.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

pub(crate) const MIB: u64 = 1 << 20;

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(future)
}

/// The default image in the home that all tests share, built if it is missing.
pub(crate) async fn image() -> OpenImage {
    let home = Home::at(&cellblock_testkit::home().unwrap()).unwrap();
    ImageStore::new(home)
        .open(DEFAULT_IMAGE, Sink::new(|_| {}))
        .await
        .unwrap()
}

pub(crate) async fn config() -> ProcessConfig {
    let image = image().await;
    with_python(image.tree(), &image.manifest().interpreter)
}

/// A template that imports next to nothing is warm immediately.
pub(crate) fn with_python(python: PathBuf, interpreter: &str) -> ProcessConfig {
    ProcessConfig {
        image: ImageTree::python(python, interpreter),
        layers: None,
        bytecode: None,
        frozen: None,
        preload: vec!["json".to_owned()],
        spare_room: true,
        demands: Demands::default(),
        launcher: None,
        walled: false,
        snapshot: false,
    }
}

pub(crate) async fn backend() -> ProcessBackend {
    let backend = ProcessBackend::start(&config().await).await.unwrap();
    backend.warmed().await.unwrap();
    backend
}

pub(crate) fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

/// Result of a cell.
#[derive(Debug, PartialEq)]
pub(crate) enum End {
    Done(KernelOutcome),
    Lost(ProcessEnd),
}

/// Runs a cell to its end and returns the scalars that it showed.
pub(crate) async fn execute(kernel: &mut Kernel, code: &str) -> (End, Vec<Scalar>) {
    start(kernel, code).await;
    finish(kernel).await
}

pub(crate) async fn start(kernel: &mut Kernel, code: &str) {
    let message = ToKernel::Execute {
        cell: 1,
        name: "<cell>".to_owned(),
        code: code.to_owned(),
        line: 1,
        language: cellblock_protocol::Language::Python,
        argv: Vec::new(),
        mode: CellMode::Exec,
        echo: true,
        store: true,
        last: false,
        references: Vec::new(),
        report_names: false,
        grace_ms: None,
    };
    write_frame(&mut kernel.writer, &message, &[]).await.unwrap();
}

pub(crate) async fn finish(kernel: &mut Kernel) -> (End, Vec<Scalar>) {
    let mut shown = Vec::new();
    while let Some(frame) = kernel.frames.next().await.unwrap() {
        match frame.message {
            FromKernel::Output {
                output: Output::Primitive(it),
                ..
            } => shown.push(it.value),
            FromKernel::Done { outcome, .. } => return (End::Done(outcome), shown),
            _ => {}
        }
    }
    (End::Lost(ended(kernel).await), shown)
}

pub(crate) async fn ended(kernel: &Kernel) -> ProcessEnd {
    let mut end = kernel.end.clone();
    let end = end.wait_for(Option::is_some);
    tokio::time::timeout(Duration::from_secs(10), end)
        .await
        .unwrap()
        .unwrap()
        .unwrap()
}

pub(crate) fn shows(value: i64) -> (End, Vec<Scalar>) {
    (End::Done(KernelOutcome::Completed), vec![Scalar::Integer(value)])
}

/// A process of the host.
#[derive(Clone, Debug)]
pub(crate) struct HostProcess {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) name: String,
}

/// Returns the descendants of a process, nearest first.
pub(crate) fn descendants(ancestor: u32) -> Vec<HostProcess> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let all: Vec<HostProcess> = pids.filter_map(process).collect();
    let mut found: Vec<HostProcess> = Vec::new();
    let mut parents = vec![ancestor];
    while !parents.is_empty() {
        let next: Vec<HostProcess> = all
            .iter()
            .filter(|it| parents.contains(&it.parent))
            .cloned()
            .collect();
        parents = next.iter().map(|it| it.pid).collect();
        found.extend(next);
    }
    found
}

fn process(pid: u32) -> Option<HostProcess> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    (fields[0] != "Z").then_some(())?;
    Some(HostProcess {
        pid,
        parent: fields[1].parse().ok()?,
        name: name.to_owned(),
    })
}

/// Returns the template of a launcher: the only Python that the keep itself has started.
pub(crate) fn template(launcher: u32) -> HostProcess {
    let all = descendants(launcher);
    let keep = all.iter().find(|it| it.parent == launcher).unwrap();
    let mut templates = all
        .iter()
        .filter(|it| it.parent == keep.pid && it.name.starts_with("python"));
    let template = templates
        .next()
        .unwrap_or_else(|| panic!("no template in {all:#?}"))
        .clone();
    assert!(templates.next().is_none(), "{all:#?}");
    template
}

pub(crate) fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}
