//! The backend of a run, by name.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cellblock_image::{DEFAULT_IMAGE, Home, ImageStore, Sink};
use cellblock_interpreter::builder::{BackendKind, InterpreterBuilder};
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::pool::PoolConfig;
use cellblock_interpreter::walls::WallOptions;

use crate::machine_image::machine_image;

/// Modules that the template of machines imports. Tests of all programs have the same, so that one snapshot
/// is enough. It draws, because what drawing leaves open is part of what containment tries.
const PRELOAD: [&str; 4] = ["numpy", "pandas", "pyarrow.parquet", "matplotlib.pyplot"];

/// Names the backend of a run.
const VARIABLE: &str = "CELLBLOCK_TEST_BACKEND";

/// Returns the name of the backend in executions.
pub(crate) fn backend() -> String {
    std::env::var(VARIABLE).unwrap_or_else(|_| BackendKind::Process.name().to_owned())
}

/// Whether each sandbox is a machine with a kernel of its own.
pub(crate) fn is_machine() -> bool {
    matches!(backend().parse(), Ok(BackendKind::Gvisor | BackendKind::Microvm))
}

/// Factor by which code may take longer: in a machine beside other test programs it does.
pub(crate) fn slowness() -> u32 {
    match backend().parse() {
        Ok(BackendKind::Microvm) => 10,
        Ok(BackendKind::Gvisor) => 3,
        _ => 1,
    }
}

/// The limits of a run's sessions, unless a test is about one of them.
pub(crate) fn limits() -> Limits {
    let usual = Limits::default();
    Limits {
        cell_timeout: usual.cell_timeout * slowness(),
        grace: usual.grace * slowness(),
        ..usual
    }
}

/// The home of a run's sandboxes.
pub(crate) fn home() -> PathBuf {
    if is_machine() {
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("machines-interpreter")
    } else {
        cellblock_testkit::home().unwrap()
    }
}

/// Sets the backend of this run, if it is one of this machine.
pub(crate) async fn over_backend(builder: InterpreterBuilder) -> InterpreterBuilder {
    if !is_machine() {
        return builder;
    }
    let images = ImageStore::new(Home::at(&cellblock_testkit::home().unwrap()).unwrap());
    let image = images.open(DEFAULT_IMAGE, Sink::silent()).await.unwrap();
    let mut walls = WallOptions::default();
    // Machines with KVM are rare among those that run tests.
    walls.microvm.emulation = true;
    let pool = PoolConfig {
        // An emulated machine beside other test programs needs longer than any user would wait.
        acquire_timeout: Duration::from_mins(3),
        ..PoolConfig::default()
    };
    builder
        .image(machine_image(&image, &home(), &PRELOAD))
        .pool(pool)
        .backend(backend().parse().unwrap())
        .walls(walls)
        .launcher(cellblock_testkit::binary().unwrap())
        .limits(limits())
}
