//! Root filesystems as images: made of the machine's own Python, imported, and run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use cellblock_testkit::{Cli, require};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Prints what a root filesystem with this Python needs: the program, its libraries, and its
/// standard library.
const FACTS: &str = r"
import glob, json, os, sys, sysconfig
dynamic = sysconfig.get_path('platstdlib') + '/lib-dynload'
print(json.dumps({
    'program': os.path.realpath(sys.executable),
    'version': '.'.join(map(str, sys.version_info[:2])),
    'stdlib': sysconfig.get_path('stdlib'),
    'files': [os.path.realpath(sys.executable), *glob.glob(dynamic + '/*.so')],
}))
";
/// Code that the image's Python runs first, before anything of ours.
const FIRST: &str = r"
import sys
with open('/proc/self/status') as status:
    sys.filters_at_start = [line.split()[1] for line in status if line.startswith('Seccomp:')]
";
/// Programs of the image that cells call.
const PROGRAMS: [&str; 4] = ["/bin/sh", "/bin/cat", "/bin/ls", "/usr/bin/id"];

/// Copies a file or tree to the same path below a root.
fn copy(from: &Path, root: &Path) -> Result<()> {
    let to = root.join(from.strip_prefix("/")?);
    fs::create_dir_all(to.parent().context("a path has a parent")?)?;
    let status = Command::new("cp")
        .args(["-aL", "--"])
        .arg(from)
        .arg(&to)
        .status()?;
    ensure!(status.success(), "copy {}", from.display());
    Ok(())
}

/// Makes a root filesystem of the machine's Python in a folder.
fn root_of_machine(root: &Path) -> Result<String> {
    let output = Command::new("/usr/bin/python3")
        .args(["-I", "-c", FACTS])
        .output()?;
    let facts: Value =
        serde_json::from_slice(&output.stdout).context("the machine's Python describes itself")?;
    let text = |key: &str| facts[key].as_str().unwrap_or_default().to_owned();
    let mut files: Vec<PathBuf> = PROGRAMS.iter().map(PathBuf::from).collect();
    files.extend(
        facts["files"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(PathBuf::from),
    );
    let listed = Command::new("ldd").args(&files).output()?;
    let listed = String::from_utf8(listed.stdout)?;
    let libraries: BTreeSet<_> = listed
        .split_whitespace()
        .filter(|word| word.starts_with('/') && word.contains(".so") && !word.ends_with(':'))
        .collect();
    for path in libraries
        .into_iter()
        .map(Path::new)
        .chain(files.iter().take(PROGRAMS.len()).map(PathBuf::as_path))
    {
        copy(path, root)?;
    }
    copy(Path::new(&text("program")), root)?;
    copy(Path::new(&text("stdlib")), root)?;
    let first = root
        .join(text("stdlib").trim_start_matches('/'))
        .join("sitecustomize.py");
    fs::write(first, FIRST)?;
    // As in most images, `python3` is a link.
    let name = format!("python{}", text("version"));
    fs::create_dir_all(root.join("usr/bin"))?;
    let link = root.join("usr/bin/python3");
    if !link.exists() {
        std::os::unix::fs::symlink(text("program"), &link)?;
    }
    fs::create_dir_all(root.join("srv/data"))?;
    fs::write(root.join("srv/data/only_here.txt"), "of the image")?;
    fs::create_dir_all(root.join("etc"))?;
    fs::write(root.join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n")?;
    Ok(name)
}

/// A home with the image `mine`.
struct ImageHome {
    home: TempDir,
    root: TempDir,
}

fn imported() -> Result<ImageHome> {
    let (root, home) = (tempfile::tempdir()?, tempfile::tempdir()?);
    root_of_machine(root.path())?;
    let imported = ImageHome { home, root };
    let path = imported.root.path().to_str().context("the path is text")?;
    let done = imported
        .cli(["image", "import", "directory", path, "--name", "mine", "--json"])
        .run()?;
    ensure!(done.code() == 0, "{}", done.stderr);
    let manifest: Value = serde_json::from_str(&done.stdout)?;
    ensure!(manifest["name"] == json!("mine"), "{manifest}");
    Ok(imported)
}

impl ImageHome {
    fn cli<const N: usize>(&self, args: [&str; N]) -> Cli {
        Cli::new(args).env("CELLBLOCK_HOME", self.home.path())
    }

    /// Runs the expressions in a session of a backend, and compares what they show.
    fn shows(&self, backend: &[&str], expressions: &[(&str, &str)]) -> Result<()> {
        let code: Vec<_> = expressions
            .iter()
            .map(|(code, _)| format!("print({code})"))
            .collect();
        let code = code.join("\n");
        let args = [&["run", "--image", "mine", "-c", &code][..], backend].concat();
        let cli = Cli::new(args).env("CELLBLOCK_HOME", self.home.path());
        let ran = cli.limit(Duration::from_mins(10)).run()?;
        let wanted: Vec<_> = expressions.iter().map(|(_, wanted)| *wanted).collect();
        assert_eq!(ran.stdout.trim_end(), wanted.join("\n"), "{}", ran.stderr);
        assert_eq!(ran.code(), 0, "{}", ran.stderr);
        Ok(())
    }
}

/// Facts that cells see of the image, whatever is around them.
const SEEN: [(&str, &str); 13] = [
    ("open('/srv/data/only_here.txt').read()", "of the image"),
    ("__import__('sys').executable", "/usr/bin/python3"),
    ("sorted(__import__('os').listdir('/srv'))", "['data']"),
    ("__import__('os').getcwd()", "/workspace"),
    ("__import__('os').environ['HOME']", "/workspace"),
    (
        "__import__('pwd').getpwuid(__import__('os').getuid()).pw_name",
        "user",
    ),
    (
        "__import__('subprocess').run(['cat', '/srv/data/only_here.txt'], capture_output=True).stdout",
        "b'of the image'",
    ),
    // It cannot leave the filters out.
    ("__import__('sys').filters_at_start", "['2']"),
    // What the image does not have, it does not get from this machine.
    ("__import__('shutil').which('grep')", "None"),
    ("__import__('os').path.exists('/opt/python')", "False"),
    ("open('/tmp/x', 'w').write('abc')", "3"),
    (
        "__import__('os').access('/srv/data', __import__('os').W_OK)",
        "False",
    ),
    (
        "[it for it in open('/proc/self/status').read().split('\\n') if it.startswith('Seccomp:')]",
        "['Seccomp:\\t2']",
    ),
];

#[test]
fn cells_run_in_an_importedroot_filesystem_with_every_protection() -> Result<()> {
    require!(UserNamespaces);
    require!(SystemPython);
    let image = imported()?;
    image.shows(&["--backend", "process"], &SEEN)?;
    let code = "import os\ntry:\n    os.mkdir('/srv/new')\n\
                except OSError as error:\n    print(error.strerror)\n\
                for line in open('/proc/self/status'):\n    if line.startswith(('Cap', \
                'NoNewPrivs')):\n        print(line.split()[1])";
    let ran = image.cli(["run", "--image", "mine", "-c", code]).run()?;
    let none = "0".repeat(16);
    let wanted = ["Read-only file system"]
        .into_iter()
        .chain([none.as_str(); 5])
        .chain(["1"])
        .collect::<Vec<_>>();
    assert_eq!(ran.stdout.lines().collect::<Vec<_>>(), wanted, "{}", ran.stderr);
    for (args, code, problem) in [
        (&["--require", "six"][..], 2, "is a root filesystem"),
        (
            &["--without-namespaces", "--protection", "user_namespace=disabled"][..],
            78,
            "needs a mount namespace",
        ),
    ] {
        let ran = Cli::new([&["run", "--image", "mine", "-c", "1"][..], args].concat());
        let ran = ran.env("CELLBLOCK_HOME", image.home.path()).run()?;
        assert_eq!(ran.code(), code, "{}", ran.stderr);
        assert!(ran.stderr.contains(problem), "{}", ran.stderr);
    }
    Ok(())
}

#[test]
fn cells_run_in_an_importedroot_filesystem_inside_gvisor() -> Result<()> {
    require!(Runsc);
    require!(SystemPython);
    imported()?.shows(&["--backend", "gvisor"], &SEEN)
}

#[test]
fn cells_run_in_an_importedroot_filesystem_inside_a_microvm() -> Result<()> {
    require!(Qemu);
    require!(SystemPython);
    imported()?.shows(
        &["--backend", "microvm", "--emulation", "--timeout", "300"],
        &SEEN,
    )
}

#[test]
fn an_import_that_fails_names_the_reason_and_leaves_nothing() -> Result<()> {
    let (root, home) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let path = root.path().to_str().context("the path is text")?;
    let import = |args: &[&str]| {
        Cli::new([&["image", "import"][..], args].concat())
            .env("CELLBLOCK_HOME", home.path())
            .run()
    };
    let ran = import(&[path])?;
    assert_eq!(ran.code(), 2, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("cells need CPython 3.9 or newer"),
        "{}",
        ran.stderr
    );
    let ran = import(&["directory", "/nonexistent"])?;
    assert_eq!(ran.code(), 2, "{}", ran.stderr);
    let ran = import(&["tarball", path])?;
    assert_eq!(ran.code(), 2, "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("`docker-archive`, `oci-layout` or `directory`"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        fs::read_dir(home.path().join("images"))
            .into_iter()
            .flatten()
            .count(),
        0
    );
    Ok(())
}
