//! Locations of an image's Python.

use std::fs;

use serde_json::json;

use super::{Layout, file, folder, link, program, tar};

fn layout(members: Vec<super::LayerMember>) -> Layout {
    let mut layout = Layout::new();
    layout.layers = vec![tar(members)];
    layout
}

#[test]
fn the_first_python_of_the_path_is_used() {
    let mut layout = layout(vec![
        program("usr/bin/python3.11", "x\x003.11.2\0"),
        link("usr/bin/python3", "python3.11"),
        file("usr/lib/python3.11/os.py", ""),
        file("usr/lib/python3/dist-packages/numpy/__init__.py", ""),
        program("usr/local/bin/python3.13", "x\x003.13.1\0"),
        link("usr/local/bin/python3", "/usr/local/bin/python3.13"),
        file("usr/local/lib/python3.13/os.py", ""),
        file("usr/local/lib/python3.13/site-packages/pandas/__init__.py", ""),
    ]);
    let (_home, image) = layout.import();
    assert_eq!(image.unwrap().manifest().python, "3.13.1");
    layout.runtime = json!({"Env": ["PATH=/usr/bin:/usr/local/bin"]});
    let (_home, image) = layout.import();
    let image = image.unwrap();
    let manifest = image.manifest();
    assert_eq!(
        (manifest.interpreter.as_str(), manifest.stdlib.as_str()),
        ("usr/bin/python3", "usr/lib/python3.11")
    );
    assert_eq!(
        manifest.root.as_ref().unwrap().sites,
        ["usr/lib/python3/dist-packages"]
    );
    // Of the default image's modules, those that are there.
    assert_eq!(manifest.preload, ["numpy"]);
}

#[test]
fn a_virtual_environment_has_its_own_packages() {
    let mut layout = layout(vec![
        program("usr/local/bin/python3.12", "x"),
        file("usr/local/lib/python3.12/os.py", ""),
        file("usr/local/lib/libpython3.12.so.1.0", "y\x003.12.7\0"),
        link("venv/bin/python3", "/usr/local/bin/python3.12"),
        file("venv/pyvenv.cfg", "home = /usr/local/bin\n"),
        file(
            "venv/lib/python3.12/site-packages/six-1.17.0.dist-info/METADATA",
            "Name: six\nVersion: 1.17.0\n",
        ),
    ]);
    layout.runtime = json!({"Env": ["PATH=/venv/bin:/usr/bin"]});
    let (_home, image) = layout.import();
    let image = image.unwrap();
    let manifest = image.manifest();
    assert_eq!(
        (manifest.python.as_str(), manifest.interpreter.as_str()),
        ("3.12.7", "venv/bin/python3")
    );
    assert_eq!(manifest.packages[0].name, "six");
}

#[test]
fn a_missing_or_old_python_is_named() {
    let error = layout(vec![folder("usr/bin")]).error();
    assert!(error.contains("no Python in /usr/local/bin, /usr/bin"), "{error}");
    assert!(error.contains("CPython 3.9 or newer"), "{error}");
    let error = layout(vec![
        program("usr/bin/python3.7", "x\x003.7.17\0"),
        link("usr/bin/python3", "python3.7"),
        file("usr/lib/python3.7/os.py", ""),
    ]);
    assert!(error.error().contains("`/usr/bin/python3` is Python 3.7.17"));
    // A link that leads to a program of this machine is none of the image's.
    let error = layout(vec![link(
        "usr/bin/python3",
        std::env::current_exe().unwrap().to_str().unwrap(),
    )])
    .error();
    assert!(error.contains("no Python"), "{error}");
}

#[test]
fn records_of_packages_that_are_links_are_not_read() {
    let outside = tempfile::NamedTempFile::new().unwrap();
    fs::write(outside.path(), "Name: stolen\nVersion: 1\n").unwrap();
    let target = outside.path().to_str().unwrap();
    let (_home, image) = Layout::new()
        .layer(vec![
            link("usr/lib/python3.11/site-packages/a-1.dist-info/METADATA", target),
            link("usr/lib/python3.11/site-packages/b-1.dist-info", "/proc/self"),
            link("usr/lib/python3.11/site-packages/c.whl", "/dev/zero"),
        ])
        .import();
    assert_eq!(image.unwrap().manifest().packages, []);
}
