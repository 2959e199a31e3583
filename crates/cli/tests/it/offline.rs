//! Images and packages on a machine without a network and without a Python.

use std::path::Path;

use anyhow::Result;
use cellblock_testkit::{Cli, require, target_dir};

use crate::support::{BUILD_LIMIT, export_to_mirror, folder, in_own_mounts, run, small_image};

/// Code that writes a wheel.
const WHEEL: &str = r#"
import zipfile
with zipfile.ZipFile("cellblock_probe-1.0-py3-none-any.whl", "w") as wheel:
    record = "cellblock_probe-1.0.dist-info"
    wheel.writestr("cellblock_probe.py", "ANSWER = 42\n")
    wheel.writestr(f"{record}/METADATA", "Metadata-Version: 2.1\nName: cellblock-probe\nVersion: 1.0\n")
    wheel.writestr(f"{record}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    names = [*wheel.namelist(), f"{record}/RECORD"]
    wheel.writestr(f"{record}/RECORD", "".join(f"{name},,\n" for name in names))
"#;

#[test]
fn an_image_and_a_package_come_from_one_folder_without_a_network() -> Result<()> {
    require!(Root);
    require!(UserNamespaces);
    small_image()?;
    let (_folder, path) = folder(&[])?;
    let stick = path.join("stick");
    std::fs::create_dir(&stick)?;
    let stick = stick.to_string_lossy();
    let wheel = run(["--out", &stick, "-c", WHEEL])?.run()?;
    assert_eq!(wheel.code(), 0, "{}", wheel.stderr);
    export_to_mirror(Path::new(&*stick))?;
    let script = format!(
        r#"
for uv in "$home"/cache/uv-*/uv; do if [ -x "$uv" ]; then export UV="$uv"; fi; done
export CELLBLOCK_HOME="{home}" UV_FIND_LINKS="{stick}" UV_OFFLINE=1
exec unshare --net sh -euc '
if ip link show lo up 2>/dev/null | grep -q lo; then exit 99; fi
"$cellblock" image pull cellblock-tests --from "{stick}" >&2
exec "$cellblock" run --image cellblock-tests --require cellblock-probe -c "import cellblock_probe, pandas; cellblock_probe.ANSWER"
'"#,
        home = path.join("home").display()
    );
    let ended = in_own_mounts(&script)?;
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (0, "42\n"),
        "{}",
        ended.stderr
    );
    Ok(())
}

#[test]
fn a_uv_in_the_folder_is_not_used_if_it_is_not_the_pinned_one() -> Result<()> {
    require!(Root);
    require!(UserNamespaces);
    let (_folder, path) = folder(&[("empty.toml", b"name = \"empty\"\npackages = []\n")])?;
    let pins =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../image/src/uv/wheels.toml"))?;
    for line in pins.lines() {
        if let Some(name) = line.strip_prefix("file = ") {
            std::fs::write(path.join(name.trim_matches('"')), "another")?;
        }
    }
    // A uv of the machine would be found, whatever PATH is.
    let script = format!(
        "for bin in /usr/local/bin /opt/uv/bin; do if [ -d $bin ]; then mount -t tmpfs none $bin; fi; \
         done; cd {folder}; export CELLBLOCK_HOME={folder}/home HOME={folder} UV_FIND_LINKS={folder}; \
         unset UV; PATH=/nonexistent exec \"$cellblock\" image build empty.toml",
        folder = path.display()
    );
    let built = in_own_mounts(&script)?;
    assert_eq!(built.code, 70, "{}", built.stderr);
    assert!(built.stderr.contains("has the sha256"), "{}", built.stderr);
    assert!(!path.join("home/images").exists());
    Ok(())
}

#[test]
fn without_a_suitable_python_the_error_names_every_way_to_an_image() -> Result<()> {
    let (_folder, path) = folder(&[("empty.toml", b"name = \"empty\"\npackages = []\n")])?;
    let bin = path.join("bin");
    std::fs::create_dir(&bin)?;
    let old = r#"{"program": "/nowhere/python3.9", "version": [3, 9, 18], "prefix": "/nowhere", "stdlib": "/nowhere/lib", "extensions": "/nowhere/lib", "usable": true}"#;
    let python = bin.join("python3");
    std::fs::write(&python, format!("#!/bin/sh\necho '{old}'\n"))?;
    std::fs::set_permissions(&python, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    // The cache has uv; there is no Python below the home, and nowhere to get one.
    let downloads = target_dir().join("test-downloads");
    std::fs::create_dir_all(&downloads)?;
    let home = path.join("home");
    std::fs::create_dir(&home)?;
    std::os::unix::fs::symlink(&downloads, home.join("cache"))?;
    let build = || {
        Cli::new(["image", "build", "empty.toml"])
            .folder(&path)
            .env("CELLBLOCK_HOME", &home)
            .env("HOME", &path)
            .env("PYENV_ROOT", path.join("pyenv"))
            .env("UV_PYTHON_INSTALL_DIR", path.join("pythons"))
            .env("UV_PYTHON_INSTALL_MIRROR", "file:///nowhere")
            .env("PATH", &bin)
            .limit(BUILD_LIMIT)
            .run()
    };
    let failed = build()?;
    assert_eq!(failed.code(), 70, "{}", failed.stderr);
    for part in [
        "only 3.9.18 was found, which is too old",
        "`uv python install 3.13`",
        "CELLBLOCK_IMAGE_MIRROR",
        "`cellblock image import FILE`",
    ] {
        assert!(
            failed.stderr.contains(part),
            "`{part}` is not in: {}",
            failed.stderr
        );
    }
    std::fs::remove_file(&python)?;
    let failed = build()?;
    assert_eq!(failed.code(), 70, "{}", failed.stderr);
    assert!(!failed.stderr.contains("too old"), "{}", failed.stderr);
    assert!(!home.join("images").exists());
    Ok(())
}

#[test]
fn a_kernel_compiles_no_module_of_an_image_that_compiles_little() -> Result<()> {
    let (_folder, path) = folder(&[("bare.toml", b"name = \"bare\"\npackages = []\ncompile = []\n")])?;
    let home = path.join("home");
    std::fs::create_dir(&home)?;
    let downloads = target_dir().join("test-downloads");
    std::fs::create_dir_all(&downloads)?;
    std::os::unix::fs::symlink(&downloads, home.join("cache"))?;
    let code = "import sys, os\n\
                [name for name, module in sys.modules.items() if (file := getattr(module, '__cached__', \
                None)) and file.startswith('/opt/python') and not os.path.exists(file)]";
    let ran = Cli::new(["run", "--image", "bare.toml", "-c", code])
        .folder(&path)
        .env("CELLBLOCK_HOME", &home)
        .limit(BUILD_LIMIT)
        .run()?;
    assert_eq!((ran.code(), ran.stdout.as_str()), (0, "[]\n"), "{}", ran.stderr);
    Ok(())
}
