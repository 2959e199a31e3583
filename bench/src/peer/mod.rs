//! Programs that people would use instead, with the image's interpreter and libraries: processes, and
//! ipykernel through `jupyter_client`, in an environment that sees the image's packages.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::driver::{Driver, SharedDriver};
use crate::note;
use crate::python::Python;

mod process;

pub(crate) use process::{bwrap, concurrent, run, runsc, throughput, time_inside};

/// The driver, which does in Python what a Jupyter front end does.
const DRIVER: &str = include_str!("../../peers/ipykernel_driver.py");

/// Installs ipykernel if it is not there yet, and starts the driver.
pub(crate) fn start_ipykernel(python: &Python) -> Result<SharedDriver> {
    let packages = python.place.join("ipykernel");
    if !packages.join("complete").exists() {
        install(python, &packages)?;
    }
    let mut command = python.command();
    command.args(["-c", DRIVER]).env("PYTHONPATH", packages);
    // The notebook's own backend draws, as it does for people.
    Driver::start(command.env_remove("MPLBACKEND"))
}

/// Installs beside the image, once, with whatever pip the machine has, and compiles as an installation does.
fn install(python: &Python, packages: &Path) -> Result<()> {
    note("installing ipykernel");
    let status = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--only-binary", ":all:"])
        .args(["--no-compile", "--python-version", &python.version])
        .arg("--target")
        .arg(packages)
        .args(["ipykernel", "jupyter_client"])
        .status()
        .context("run `python3 -m pip`")?;
    ensure!(
        status.success(),
        "`python3 -m pip install ipykernel` ended with {status}"
    );
    let compile = "import compileall, sys; compileall.compile_dir(sys.argv[1], quiet=2)";
    python.run(Some(compile), &[packages], 0)?;
    std::fs::write(packages.join("complete"), "").context("mark ipykernel as installed")
}
