//! Tests of whole builds, with an image that holds one small package. They need a Python and the
//! package index.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use parking_lot::Mutex;

use super::*;
use crate::layer::{LayerError, find_layer, resolve_layer};

/// A separate home behind a link, like many home directories, whose downloads are shared with other
/// runs.
fn store() -> (tempfile::TempDir, ImageStore) {
    let downloads = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-downloads");
    fs::create_dir_all(&downloads).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (real, link) = (dir.path().join("real"), dir.path().join("home"));
    fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    std::os::unix::fs::symlink(downloads.canonicalize().unwrap(), real.join("cache")).unwrap();
    let store = ImageStore::new(Home::at(&link).unwrap());
    (dir, store)
}

fn spec(text: &str) -> ImageSpec {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image.toml");
    fs::write(&path, text).unwrap();
    ImageSpec::load(&path).unwrap()
}

/// Returns a sink and the reports that it received.
fn listener() -> (Sink, Arc<Mutex<Vec<Progress>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let to = Arc::clone(&heard);
    (Sink::new(move |it| to.lock().push(it)), heard)
}

fn count(heard: &Mutex<Vec<Progress>>, fits: impl Fn(&Progress) -> bool) -> usize {
    heard.lock().iter().filter(|it| fits(it)).count()
}

/// Runs code with an interpreter without environment variables.
fn python(program: &Path, code: &str) -> String {
    let mut command = Command::new(program);
    command
        .args(["-I", "-B", "-c", code])
        .env_clear()
        .current_dir("/");
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn files(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    digest::walk(root, &mut |path, _| {
        files.push(path.to_owned());
        Ok(())
    })
    .unwrap();
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tiny_image_is_built_used_and_removed() {
    let (dir, store) = store();
    let tiny = spec("name = \"tiny\"\npackages = [\"six\"]\npreload = [\"six\"]");
    // Remains of a killed builder.
    let left = store.home().staging(&tiny.key());
    fs::create_dir_all(left.join("image/python/bin")).unwrap();
    fs::write(left.join("interpreter.done"), "{\"half").unwrap();
    fs::write(left.join("packages.done"), "null").unwrap();

    let ((one, heard_one), (other, heard_other)) = (listener(), listener());
    let (built, same) = tokio::join!(store.build(&tiny, false, one), store.build(&tiny, false, other));
    let (built, same) = (built.unwrap(), same.unwrap());
    assert_eq!(built.id(), same.id());
    for what in [
        |it: &Progress| matches!(it, Progress::Waiting { .. }),
        |it: &Progress| matches!(it, Progress::Stage { name } if name == "installing packages"),
    ] {
        assert_eq!(count(&heard_one, what) + count(&heard_other, what), 1);
    }
    drop(same);

    it_is_self_contained(dir.path(), &built);
    assert_eq!(
        built
            .manifest()
            .packages
            .iter()
            .map(|it| it.name.as_str())
            .collect::<Vec<_>>(),
        ["six"]
    );
    assert_eq!(built.audit().await.unwrap().findings, []);
    built.verify().await.unwrap();
    let staging: Vec<_> = fs::read_dir(store.home().root().join("staging"))
        .unwrap()
        .collect();
    assert!(staging.is_empty(), "{staging:?}");
    layers_go_on_top(&built).await;

    let id = built.id().to_owned();
    for reference in ["tiny", &id, &id[..12]] {
        assert_eq!(store.resolve(reference).unwrap().id(), id);
    }
    assert_eq!(
        store.list().unwrap().iter().map(|it| &it.id).collect::<Vec<_>>(),
        [&id]
    );
    assert!(matches!(store.resolve("other"), Err(ImageError::NotFound { .. })));

    fs::write(
        built.tree().join(&built.manifest().stdlib).join("this.py"),
        "changed",
    )
    .unwrap();
    assert!(matches!(built.verify().await, Err(ImageError::Damaged { .. })));
    fs::write(built.root().join("manifest.json"), "{").unwrap();
    let error = store.resolve(&id).unwrap_err().to_string();
    assert!(
        error.contains("is damaged: its manifest cannot be read"),
        "{error}"
    );
    assert!(error.contains("cellblock image build --force"), "{error}");
    let (sink, heard) = listener();
    let rebuilt = store.build(&tiny, true, sink).await.unwrap();
    assert_eq!(rebuilt.id(), id, "the same request gives the same bytes");
    assert_eq!(count(&heard, |it| matches!(it, Progress::Stage { .. })), 6);
    rebuilt.verify().await.unwrap();

    drop(built);
    let error = store.remove("tiny").await.unwrap_err();
    assert!(matches!(&error, ImageError::InUse { .. }), "{error}");
    let bytecode = rebuilt.bytecode();
    let frozen = rebuilt.frozen();
    fs::create_dir_all(&bytecode).unwrap();
    fs::create_dir_all(&frozen).unwrap();
    drop(rebuilt);
    assert_eq!(store.remove("tiny").await.unwrap(), id);
    assert!(!bytecode.exists());
    assert!(!frozen.exists());
    assert_eq!(store.list().unwrap(), []);
    for empty in ["images", "refs/images", "refs/layers", "layers", "staging"] {
        assert_eq!(
            files(&store.home().root().join(empty)),
            Vec::<PathBuf>::new(),
            "{empty}"
        );
    }
}

/// Returns the interpreter that images are made from.
fn host_python(home: &Home) -> interpreter::HostInterpreter {
    let lock = lock::Lock::exclusive(&home.lock("test"), || ()).unwrap();
    let uv = uv::Uv::find_or_fetch(home, &lock, &Sink::silent()).unwrap();
    let wanted = PythonVersion { major: 3, minor: 13 };
    interpreter::find(wanted, &uv, &Sink::silent()).unwrap().0
}

/// It runs elsewhere, reveals nothing about the builder's paths, and every user can read it.
fn it_is_self_contained(home: &Path, image: &OpenImage) {
    let moved = tempfile::tempdir().unwrap();
    let place = moved.path().join("python");
    let copied = Command::new("cp")
        .arg("-a")
        .arg(image.tree())
        .arg(&place)
        .status()
        .unwrap();
    assert!(copied.success());
    let program = place.join(&image.manifest().interpreter);
    let asked = python(
        &program,
        "import sys, six, ssl, sqlite3, ctypes, json\n\
         maps = open('/proc/self/maps').read()\n\
         own = [line.split(None, 5)[5] for line in maps.splitlines() if '.so' in line and '/usr/lib' not \
         in line and '/lib/' != line[:5]]\n\
         print(json.dumps([sys.prefix, six.__file__, \
         sorted({it for it in own if not it.startswith((sys.prefix, '/lib'))})]))",
    );
    let stdlib = place.join(&image.manifest().stdlib);
    let expected = serde_json::json!([place, stdlib.join("site-packages/six.py"), []]);
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&asked).unwrap(),
        expected
    );

    let prefix = host_python(image.home()).prefix.to_string_lossy().into_owned();
    let user = format!("{}/", std::env::var("HOME").unwrap_or("/nonexistent".to_owned()));
    let sought = [home.to_string_lossy().into_owned(), prefix, user];
    for path in files(&image.tree()) {
        let bytes = fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        // Python's own tests parse documents with elements named `root`.
        let is_test = path.components().any(|it| it.as_os_str() == "test");
        for host in sought
            .iter()
            .filter(|it| !(it.starts_with("/usr") || is_test && it.len() < 8))
        {
            assert!(!text.contains(host.as_str()), "{} holds {host}", path.display());
        }
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert!(
            mode == 0o644 || mode == 0o755,
            "{} has mode {mode:o}",
            path.display()
        );
    }
}

async fn layers_go_on_top(image: &OpenImage) {
    let ask = async |all: &[&str]| {
        let all: Vec<_> = all.iter().map(|it| (*it).to_owned()).collect();
        resolve_layer(image, &all, u64::MAX, Sink::silent()).await
    };
    let layer = ask(&["attrs>=23", "six"]).await.unwrap();
    assert_eq!(
        layer
            .packages
            .iter()
            .map(|it| it.name.as_str())
            .collect::<Vec<_>>(),
        ["attrs"]
    );
    assert_eq!(
        fs::metadata(&layer.dir).unwrap().permissions().mode() & 0o777,
        0o755
    );
    let code = format!(
        "import sys; sys.path.append({:?}); import attrs; print(attrs.__file__)",
        layer.dir
    );
    let file = python(&image.tree().join(&image.manifest().interpreter), &code);
    assert_eq!(Path::new(&file), layer.dir.join("attrs/__init__.py"));

    let (sink, heard) = listener();
    let requirements = ["six".to_owned(), "Attrs >= 23".to_owned()];
    let again = resolve_layer(image, &requirements, u64::MAX, sink).await.unwrap();
    assert_eq!(again.id, layer.id);
    assert!(find_layer(image, &requirements).await.unwrap().is_some());
    assert!(
        find_layer(image, &["attrs<25".to_owned()])
            .await
            .unwrap()
            .is_none()
    );
    let small = resolve_layer(image, &["attrs<25".to_owned()], 1000, Sink::silent()).await;
    assert!(
        matches!(small, Err(LayerError::TooLarge { limit: 1000, .. })),
        "{small:?}"
    );
    assert_eq!(*heard.lock(), [], "the second use does nothing");

    let nothing_new = ask(&["six"]).await.unwrap();
    assert_eq!(nothing_new.packages, []);
    assert_eq!(files(&nothing_new.dir), Vec::<PathBuf>::new());

    let version = &image.manifest().packages[0].version;
    let failures = [
        ("six<1.5", format!("already installed: `six=={version}`")),
        (
            "cellblock-no-such-package-zz",
            "has no package `cellblock-no-such-package-zz`".to_owned(),
        ),
        ("pycairo", "no ready-made build of `pycairo`".to_owned()),
        ("attrs==0.0.1", "there is no version of attrs==0.0.1".to_owned()),
        ("h2", "bring in `h2 (HTTP/2 protocol)`".to_owned()),
        (
            "six @ file:///x",
            "`six @ file:///x` is not a usable requirement".to_owned(),
        ),
    ];
    for (requirement, expected) in failures {
        let error = ask(&[requirement]).await.unwrap_err();
        assert!(error.is_callers(), "{error:?}");
        assert!(error.to_string().contains(&expected), "{error}");
    }
    assert!(matches!(ask(&[]).await, Err(LayerError::Count { actual: 0, .. })));
}

#[tokio::test]
async fn an_image_with_a_network_client_is_rejected_without_leftovers() {
    let (_dir, store) = store();
    let forbidden = spec("name = \"net\"\npackages = [\"h2\"]");
    let ImageError::Audit { report } = store.build(&forbidden, false, Sink::silent()).await.unwrap_err()
    else {
        panic!("another failure")
    };
    let found: Vec<_> = report
        .findings
        .iter()
        .map(|it| (it.client.as_str(), it.how))
        .collect();
    assert_eq!(
        found,
        [("h2", Detection::Installed), ("h2", Detection::Importable)]
    );
    assert!(!store.home().root().join("images").exists());

    let (sink, heard) = listener();
    store.build(&forbidden, false, sink).await.unwrap_err();
    let kept = |it: &Progress| matches!(it, Progress::Line(line) if line.ends_with("from an earlier build"));
    assert_eq!(
        count(&heard, kept),
        2,
        "the next build starts where this one ended"
    );
}

/// Imports these modules, which compiles them, and returns the bytecode of `second`.
fn second_compiled(modules: &[&str], python: &Path) -> Vec<u8> {
    let tree = tempfile::tempdir().unwrap();
    for (name, text) in [
        (
            "first.py",
            "KEPT = [{\"alpha_word\", \"beta_word\"}, \"gamma_word\"]\n",
        ),
        (
            "second.py",
            "ONE = {\"alpha_word\", \"beta_word\", \"gamma_word\"}\n\
             class Two:\n    three = {\"alpha_word\", \"beta_word\", \"gamma_word\"}\n",
        ),
    ] {
        fs::write(tree.path().join(name), text).unwrap();
    }
    let mut command = install::compile_command(python, "imported", tree.path(), "/opt/python");
    let output = command
        .args(modules)
        .env("PYTHONPATH", tree.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let answer: serde_json::Value = serde_json::from_str(text.trim()).unwrap();
    assert_eq!(answer["failed"], serde_json::json!([]));
    let compiled: Vec<PathBuf> = serde_json::from_value(answer["compiled"].clone()).unwrap();
    fs::read(compiled.last().unwrap()).unwrap()
}

#[test]
fn bytecode_does_not_depend_on_what_was_imported_before() {
    let (_dir, store) = store();
    let python = host_python(store.home()).program;
    let alone = second_compiled(&["second"], &python);
    // `first` is first in both directions, in which two processes import.
    assert_eq!(second_compiled(&["first", "second", "first"], &python), alone);
}

#[test]
fn hostile_manifests_are_rejected() {
    let cases: [(&[u8], &str); 4] = [
        (b"", "cannot be read"),
        (b"{}", "missing field"),
        (b"\xff\xfe", "cannot be read"),
        (&vec![b'['; 5 << 20], "the limit is 4194304"),
    ];
    for (bytes, expected) in cases {
        let error = Manifest::parse(bytes).unwrap_err();
        assert!(error.contains(expected), "{error}");
        fuzz_manifest(bytes);
    }
}
