//! The unit tests of the guest's Python: a program for each module of them, beside which those of
//! other modules run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, Result, bail};

use super::TestProgram;
use crate::{find_program, is_everything_required};

/// Name of these tests where others have a package.
pub(super) const PACKAGE: &str = "kernel";

/// All of them, in the order of their names, or one program for those with a text in their names: a
/// module without any would fail. None where no Python runs them, unless everything is required.
pub(super) fn programs(root: &Path, filter: Option<&str>) -> Result<Vec<TestProgram>> {
    let folder = root.join("crates/guest/python");
    let Some(executable) = interpreter(root) else {
        let missing = "no Python 3.11 or newer is on PATH, and no image was built";
        if is_everything_required() {
            bail!("the kernel's tests cannot run: {missing}");
        }
        println!("skipped: the kernel's tests, because {missing}");
        return Ok(Vec::new());
    };
    // Without bytecode, which would be written into the image.
    let program = |target: &str, which: &[&str]| TestProgram {
        package: PACKAGE.to_owned(),
        target: target.to_owned(),
        executable: executable.clone(),
        arguments: [&["-B", "-m", "unittest"], which]
            .concat()
            .into_iter()
            .map(str::to_owned)
            .collect(),
        folder: folder.clone(),
        is_unit: true,
        variant: None,
        is_whole: false,
        filter: None,
    };
    if let Some(filter) = filter {
        let which = ["discover", "--start-directory", ".", "-k", filter];
        return Ok(vec![program("discover", &which)]);
    }
    let mut modules = Vec::new();
    for entry in fs::read_dir(folder.join("tests")).context("list the kernel's tests")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let module = name.strip_suffix(".py").map(str::to_owned);
        modules.extend(module.filter(|module| module.starts_with("test_")));
    }
    modules.sort_unstable();
    let programs = modules
        .iter()
        .map(|module| program(module, &[&format!("tests.{module}")]));
    Ok(programs.collect())
}

/// Finds the interpreter: `CELLBLOCK_PYTHON`, that of an image with many libraries or at least
/// pandas, or one on PATH.
fn interpreter(root: &Path) -> Option<PathBuf> {
    let home =
        env::var_os("CELLBLOCK_HOME").map_or_else(|| root.join("target/cellblock-home"), PathBuf::from);
    let images = fs::read_dir(home.join("images")).into_iter().flatten().flatten();
    let images: Vec<_> = images
        .map(|image| image.path().join("python/bin/python3"))
        .collect();
    let having = |libraries: &str| {
        let script = format!(
            "import importlib.util as it, sys; sys.exit(any(it.find_spec(name) is None for \
             name in {libraries}))"
        );
        images.iter().find(|python| agrees(python, &script)).cloned()
    };
    let on_path = ["python3.13", "python3.12", "python3.11", "python3"]
        .into_iter()
        .filter_map(find_program);
    let new_enough = "import sys; sys.exit(sys.version_info < (3, 11))";
    env::var_os("CELLBLOCK_PYTHON")
        .map(PathBuf::from)
        .or_else(|| having("('pandas', 'polars', 'matplotlib', 'altair')"))
        .or_else(|| having("('pandas',)"))
        .or_else(|| on_path.into_iter().find(|python| agrees(python, new_enough)))
}

fn agrees(python: &Path, script: &str) -> bool {
    Command::new(python)
        .args(["-c", script])
        .output()
        .is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_of_tests_is_a_program_and_a_filter_makes_one() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let one = programs(&root, Some("names")).unwrap();
        let programs = programs(&root, None).unwrap();
        let names: Vec<_> = programs.iter().map(TestProgram::name).collect();
        assert!(names.contains(&"kernel test_cells".to_owned()), "{names:?}");
        assert!(!names.iter().any(|name| name.contains("driver")), "{names:?}");
        assert_eq!(
            programs[0].arguments.last().unwrap(),
            &format!("tests.{}", programs[0].target)
        );
        assert_eq!(
            (one.len(), &one[0].arguments[6..]),
            (1, &["-k", "names"].map(str::to_owned)[..])
        );
    }
}
