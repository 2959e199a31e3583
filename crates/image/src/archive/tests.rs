//! Tests of archives, with small images that are made by hand and need no Python.

use std::fs;
use std::io::{Cursor, Read as _, Write};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use tar::{Builder, EntryType, Header};
use tempfile::TempDir;

use super::archive_name;
use crate::audit::AuditReport;
use crate::{
    ArchiveSummary, Home, ImageError, ImageStore, LAYOUT, Manifest, OpenImage, Package, PackagePolicy, Sink,
    digest,
};

/// Relative path with more than the 100 characters of a tar header.
const DEEP: &str = "lib/python3.13/site-packages/a_package_whose_name_is_long/and_a_module_below_it_whose_name_is_even_longer_than_that/data.txt";

/// A buffer that can be read after what writes to it is gone.
#[derive(Clone, Default)]
struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for SharedBuffer {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        self.0.lock().write(buffer)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub(crate) fn store() -> (TempDir, ImageStore) {
    let dir = tempfile::tempdir().unwrap();
    let store = ImageStore::new(Home::at(dir.path()).unwrap());
    (dir, store)
}

/// Makes an image of a few files in a store.
pub(crate) fn image(store: &ImageStore) -> OpenImage {
    let python = store.home().images().join("new/python");
    for (file, text) in [
        ("bin/python3.13", "program"),
        ("lib/python3.13/os.py", "import sys\n"),
        ("lib/python3.13/site-packages/six.py", "six = 6\n"),
        (DEEP, ""),
        ("lib/large.so", &"0123456789abcdef".repeat(1 << 17)),
    ] {
        let path = python.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fs::set_permissions(python.join("bin/python3.13"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("python3.13", python.join("bin/python3")).unwrap();
    let tree = digest::of(&python).unwrap();
    let mut manifest = Manifest {
        layout: LAYOUT,
        id: String::new(),
        name: "tiny".to_owned(),
        python: "3.13.0".to_owned(),
        interpreter: "bin/python3.13".to_owned(),
        stdlib: "lib/python3.13".to_owned(),
        library_path: None,
        system_libraries: vec!["libreadline.so.99".to_owned()],
        packages: vec![Package {
            name: "six".to_owned(),
            version: "1.17.0".to_owned(),
        }],
        outputs: std::collections::BTreeMap::new(),
        preload: Vec::new(),
        root: None,
        policy: PackagePolicy::default(),
        created: 1,
        size: tree.size,
        files: tree.files,
        machine: std::env::consts::ARCH.to_owned(),
        notes: Vec::new(),
        audit: AuditReport::default(),
    };
    manifest.id = manifest.address(&tree.id);
    let root = store.home().images().join(&manifest.id);
    fs::rename(store.home().images().join("new"), &root).unwrap();
    fs::write(root.join("manifest.json"), serde_json::to_vec(&manifest).unwrap()).unwrap();
    fs::write(root.join("requirements.lock"), "six==1.17.0\n").unwrap();
    fs::write(root.join("lock"), "").unwrap();
    OpenImage::open(store.home(), &manifest.id).unwrap()
}

pub(crate) async fn export(image: &OpenImage) -> (Vec<u8>, ArchiveSummary) {
    let to = SharedBuffer::default();
    let exported = image
        .export(to.clone(), Path::new("memory"), 3, Sink::silent())
        .await
        .unwrap();
    let bytes = to.0.lock().clone();
    (bytes, exported)
}

/// Imports bytes into an empty store. If that fails, nothing may be left there.
async fn import(bytes: Vec<u8>) -> Result<(TempDir, OpenImage), ImageError> {
    let (dir, store) = store();
    match store
        .import(Cursor::new(bytes), "test.tar.zst", None, Sink::silent())
        .await
    {
        Ok(image) => Ok((dir, image)),
        Err(error) => {
            for folder in ["images", "staging"] {
                let left = fs::read_dir(dir.path().join(folder)).map_or(0, Iterator::count);
                assert_eq!(left, 0, "entries left in `{folder}` after: {error}");
            }
            Err(error)
        }
    }
}

async fn rejection(bytes: Vec<u8>) -> String {
    match import(bytes).await {
        Err(ImageError::Archive { origin, problem }) => {
            assert_eq!(origin, "test.tar.zst");
            problem
        }
        other => panic!("expected a rejected archive: {other:?}"),
    }
}

/// A member of an archive: its header and its content.
type ArchiveMember = (Header, Vec<u8>);

fn members(archive: &[u8]) -> Vec<ArchiveMember> {
    let mut members = Vec::new();
    let mut archive = tar::Archive::new(zstd::Decoder::new(archive).unwrap());
    for entry in archive.entries().unwrap().raw(true) {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        members.push((entry.header().clone(), content));
    }
    members
}

fn pack(members: &[ArchiveMember]) -> Vec<u8> {
    let mut builder = Builder::new(zstd::Encoder::new(Vec::new(), 1).unwrap());
    for (header, content) in members {
        builder.append(header, &content[..]).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

fn member(kind: EntryType, path: &[u8], target: &str, content: &[u8]) -> ArchiveMember {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    // Set byte by byte: the library rejects what a hostile archive holds.
    header.as_old_mut().name[..path.len()].copy_from_slice(path);
    header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
    header.set_mode(0o644);
    header.set_size(content.len() as u64);
    header.set_cksum();
    (header, content.to_vec())
}

#[tokio::test]
async fn an_imported_image_is_the_exported_one() {
    let (_dir, store) = store();
    let image = image(&store);
    let (bytes, exported) = export(&image).await;
    assert_eq!(exported.bytes, bytes.len() as u64);
    assert_eq!(
        export(&image).await.1,
        exported,
        "equal images give equal archives"
    );
    assert_eq!(
        archive_name(image.manifest()),
        format!(
            "cellblock-image-tiny-{}-{}.tar.zst",
            std::env::consts::ARCH,
            &image.id()[..12]
        )
    );

    let (dir, imported) = import(bytes.clone()).await.unwrap();
    assert_eq!(imported.manifest(), image.manifest());
    imported.verify().await.unwrap();
    let mode = fs::metadata(imported.tree().join("bin/python3.13"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o755);
    assert_eq!(
        fs::read_to_string(imported.root().join("requirements.lock")).unwrap(),
        "six==1.17.0\n"
    );
    assert_eq!(fs::read_dir(dir.path().join("staging")).unwrap().count(), 0);
    // A second import finds it.
    let again = ImageStore::new(Home::at(dir.path()).unwrap());
    assert_eq!(
        again
            .import(Cursor::new(bytes), "again", None, Sink::silent())
            .await
            .unwrap()
            .id(),
        image.id()
    );
}

#[tokio::test]
async fn an_import_names_missing_libraries_of_modules_that_kernels_do_not_need() {
    let (_dir, from) = store();
    let (bytes, _) = export(&image(&from)).await;
    let (_dir, to) = store();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let news = Arc::clone(&heard);
    let sink = Sink::new(move |progress| news.lock().push(format!("{progress:?}")));
    to.import(Cursor::new(bytes), "it", None, sink).await.unwrap();
    let heard = heard.lock().join("\n");
    assert!(
        heard.contains("libreadline.so.99 (on Debian and Ubuntu: apt-get install libreadline99)"),
        "{heard}"
    );
}

#[tokio::test]
async fn an_image_whose_system_libraries_are_missing_is_rejected_with_their_names() {
    let (_dir, from) = store();
    let (bytes, _) = export(&image(&from)).await;
    let mut members = members(&bytes);
    let text = String::from_utf8(members[0].1.clone()).unwrap();
    members[0].1 = text.replace("libreadline.so.99", "libssl.so.99").into_bytes();
    let size = members[0].1.len() as u64;
    members[0].0.set_size(size);
    members[0].0.set_cksum();
    let problem = rejection(pack(&members)).await;
    assert!(
        problem.contains(
            "the image needs system libraries that this machine lacks: libssl.so.99 \
             (on Debian and Ubuntu: apt-get install libssl99)"
        ),
        "{problem}"
    );
}

#[tokio::test]
async fn an_archive_with_another_hash_than_expected_is_rejected() {
    let (_dir, from) = store();
    let (bytes, exported) = export(&image(&from)).await;
    let (dir, to) = store();
    let wrong = "0".repeat(64);
    let import = |sha256| to.import(Cursor::new(bytes.clone()), "it", sha256, Sink::silent());
    let error = import(Some(wrong.as_str())).await.unwrap_err().to_string();
    assert!(
        error.contains(&format!("its SHA-256 is {}, and 0000", exported.sha256)),
        "{error}"
    );
    assert_eq!(fs::read_dir(dir.path().join("staging")).unwrap().count(), 0);
    assert!(to.list().unwrap().is_empty());
    import(Some(exported.sha256.to_uppercase().as_str()))
        .await
        .unwrap();
}

#[tokio::test]
async fn an_imported_image_serves_the_specification_that_it_was_built_from() {
    let (_dir, store) = store();
    let image = image(&store);
    let folder = TempDir::new().unwrap();
    let written = |lock: &str| {
        fs::write(folder.path().join("lock"), lock).unwrap();
        let text = "name = \"tiny\"\npackages = [\"six\"]\nlock = \"lock\"\n";
        fs::write(folder.path().join("image.toml"), text).unwrap();
        crate::ImageSpec::load(&folder.path().join("image.toml")).unwrap()
    };
    let spec = written("six==1.17.0 \\\n    --hash=sha256:00\n");
    let found = store.build(&spec, false, Sink::silent()).await.unwrap();
    assert_eq!(found.id(), image.id());
    assert!(!written("six==1.16.0 \\\n    --hash=sha256:00\n").describes(image.manifest()));
    assert!(!written("six==1.17.0\nnumpy==2.0\n").describes(image.manifest()));
}

#[tokio::test]
async fn a_changed_image_is_not_exported() {
    let (_dir, store) = store();
    let image = image(&store);
    fs::write(image.tree().join("lib/python3.13/os.py"), "import evil\n").unwrap();
    let failed = image
        .export(std::io::sink(), Path::new("nowhere"), 1, Sink::silent())
        .await;
    assert!(matches!(failed, Err(ImageError::Damaged { .. })), "{failed:?}");
}

#[tokio::test]
async fn an_archive_that_is_cut_short_is_rejected_wherever_it_ends() {
    let (_dir, store) = store();
    let (bytes, _) = export(&image(&store)).await;
    for end in (0..bytes.len()).step_by(bytes.len() / 40 + 1) {
        rejection(bytes[..end].to_vec()).await;
    }
    assert_eq!(
        rejection(b"PK\x03\x04 is a zip".to_vec()).await.split(':').next(),
        Some("it cannot be read")
    );
}

#[tokio::test]
async fn a_damaged_archive_is_rejected_wherever_it_is_damaged() {
    let (_dir, store) = store();
    let (bytes, _) = export(&image(&store)).await;
    for at in (0..bytes.len()).step_by(bytes.len() / 40 + 1) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        rejection(damaged).await;
    }
}

#[tokio::test]
async fn a_hostile_member_is_rejected_and_nothing_is_kept() {
    let (_dir, store) = store();
    let (bytes, _) = export(&image(&store)).await;
    let genuine = members(&bytes);
    let out = TempDir::new().unwrap();
    let outside = out.path().to_str().unwrap();
    let large = vec![b'a'; 5000];
    let cases: Vec<(&str, Vec<ArchiveMember>)> = vec![
        (
            "outside",
            vec![member(EntryType::Regular, b"python/../../evil", "", b"evil")],
        ),
        (
            "outside",
            vec![member(EntryType::Regular, b"/etc/evil", "", b"evil")],
        ),
        ("outside", vec![member(EntryType::Regular, b"evil", "", b"evil")]),
        (
            "outside",
            vec![member(EntryType::Regular, b"python", "", b"evil")],
        ),
        (
            "leads out of it",
            vec![member(EntryType::Symlink, b"python/out", "/etc/passwd", b"")],
        ),
        (
            "leads out of it",
            vec![member(EntryType::Symlink, b"python/out", "../manifest.json", b"")],
        ),
        (
            "leads out of it",
            vec![member(
                EntryType::Symlink,
                b"python/bin/out",
                "../../../../x",
                b"",
            )],
        ),
        (
            "neither a file nor",
            vec![member(EntryType::Link, b"python/hard", "python/bin/python3", b"")],
        ),
        (
            "neither a file nor",
            vec![member(EntryType::Char, b"python/null", "", b"")],
        ),
        (
            "neither a file nor",
            vec![member(EntryType::Fifo, b"python/pipe", "", b"")],
        ),
        (
            "neither a file nor",
            vec![member(EntryType::XHeader, b"python/pax", "", b"11 path=aa\n")],
        ),
        (
            "has 5000 bytes, the limit is 4096",
            vec![member(EntryType::GNULongName, b"././@LongLink", "", &large)],
        ),
        (
            "leads out of it",
            vec![
                member(EntryType::Symlink, b"python/door", outside, b""),
                member(EntryType::Regular, b"python/door/evil", "", b"evil"),
            ],
        ),
    ];
    for (expected, hostile) in cases {
        // Instead of the last genuine members, so that the number of files is not what is rejected.
        let mut all = genuine.clone();
        all.truncate(all.len() - 3);
        all.splice(1..1, hostile);
        let problem = rejection(pack(&all)).await;
        assert!(problem.contains(expected), "expected {expected:?}: {problem}");
    }
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_link_and_a_file_below_it_are_rejected() {
    let (_dir, store) = store();
    let mut all = members(&export(&image(&store)).await.0);
    all.truncate(all.len() - 3);
    all.splice(
        1..1,
        [
            member(EntryType::Symlink, b"python/door", "lib", b""),
            member(EntryType::Regular, b"python/door/evil", "", b"evil"),
        ],
    );
    // The folder is made for the file, so the link cannot be.
    let failed = import(pack(&all)).await;
    assert!(
        matches!(failed, Err(ImageError::Io { action: "link", .. })),
        "{failed:?}"
    );
}

#[tokio::test]
async fn files_that_the_manifest_does_not_describe_are_rejected() {
    let (_dir, store) = store();
    let genuine = members(&export(&image(&store)).await.0);
    let with = |extra: ArchiveMember| {
        let mut all = genuine.clone();
        all.push(extra);
        pack(&all)
    };
    let one_more = with(member(EntryType::Regular, b"python/more", "", b""));
    assert!(rejection(one_more).await.contains("more than the 6 files"));
    let mut larger = genuine.clone();
    larger.pop();
    larger.push(member(EntryType::Regular, b"python/more", "", &vec![0; 3 << 20]));
    assert!(
        rejection(pack(&larger))
            .await
            .contains("bytes that its manifest names")
    );
    let mut fewer = genuine.clone();
    fewer.pop();
    assert!(rejection(pack(&fewer)).await.contains("files have the address"));
    let mut twice = genuine.clone();
    let last = twice.pop().unwrap();
    twice.pop();
    twice.extend([last.clone(), last]);
    let failed = import(pack(&twice)).await;
    assert!(failed.is_err(), "{failed:?}");
}

#[tokio::test]
async fn an_image_for_another_machine_or_of_another_layout_is_rejected() {
    let (_dir, store) = store();
    let genuine = members(&export(&image(&store)).await.0);
    for (from, to, expected) in [
        (
            std::env::consts::ARCH,
            "riscv64",
            "the image is for riscv64 machines",
        ),
        ("\"layout\":1", "\"layout\":9", "its layout is 9"),
        ("bin/python3.13", "../python3.13", "leads out of it"),
    ] {
        let mut all = genuine.clone();
        let text = String::from_utf8(all[0].1.clone()).unwrap().replacen(from, to, 1);
        all[0] = member(EntryType::Regular, b"manifest.json", "", text.as_bytes());
        let problem = rejection(pack(&all)).await;
        assert!(problem.contains(expected), "expected {expected:?}: {problem}");
    }
    let mut headless = genuine.clone();
    headless.remove(0);
    assert!(
        rejection(pack(&headless))
            .await
            .contains("does not start with `manifest.json`")
    );
    assert!(rejection(pack(&[])).await.contains("it is empty"));
}
