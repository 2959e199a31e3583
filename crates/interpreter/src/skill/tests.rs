//! Tests of packing, with archives as hostile senders make them.

use std::fs;
use std::io::{Cursor, Write as _};
use std::sync::Arc;

use cellblock_artifact::Store;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::*;

const MANIFEST: &str = "---\nname: report\ndescription: Writes reports.\n---\n# Report\n";

/// An archive of a skill with further files.
fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    archive_of(MANIFEST, files)
}

fn archive_of(manifest: &str, files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let all = [("SKILL.md", manifest.as_bytes())];
    for (path, content) in all.iter().chain(files) {
        archive.start_file(*path, SimpleFileOptions::default()).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn packed(archive: Vec<u8>) -> Result<SkillPackage, String> {
    SkillPackage::from_archive(Cursor::new(archive)).map_err(|error| {
        assert!(error.is_callers(), "{error:?}");
        error.to_string()
    })
}

fn replaced(mut bytes: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    let places: Vec<_> = memchr::memmem::find_iter(&bytes, from).collect();
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
    bytes
}

#[tokio::test]
async fn equal_files_make_one_artifact_whatever_they_came_in() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::local(folder.path().join("store")).unwrap();
    let skill = folder.path().join("skill");
    fs::create_dir_all(skill.join("scripts")).unwrap();
    fs::write(skill.join("SKILL.md"), MANIFEST).unwrap();
    fs::write(skill.join("scripts/x.py"), "print(1)").unwrap();
    let spool = Cursor::new(["print(1)", MANIFEST].concat());
    let end = 8 + MANIFEST.len() as u64;
    let files = vec![
        ("top/scripts/x.py".to_owned(), 0..8),
        ("top/SKILL.md".to_owned(), 8..end),
    ];
    let mut ids = Vec::new();
    for package in [
        packed(archive(&[("scripts/x.py", b"print(1)")])).unwrap(),
        SkillPackage::from_files(spool, files).unwrap(),
        SkillPackage::from_folder(&skill).unwrap(),
    ] {
        assert_eq!(package.metadata().description, "Writes reports.");
        let bytes = package.bytes();
        let bundle = SkillBundle::store(&store, package).await.unwrap();
        assert_eq!(bytes, store.get(bundle.sha256).await.unwrap().len() as u64);
        ids.push(bundle.sha256);
    }
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let again = SkillBundle::open(&store, ids[0]).await.unwrap();
    let paths: Vec<_> = again
        .files
        .iter()
        .map(|file| (&*file.path, file.mode, file.bytes))
        .collect();
    assert_eq!(
        paths,
        [
            ("SKILL.md", 0o644, MANIFEST.len() as u64),
            ("scripts/x.py", 0o644, 8)
        ]
    );
    assert_eq!(again.read("scripts/x.py").await.unwrap(), b"print(1)");
    assert_eq!(again.instructions().await.unwrap(), MANIFEST);
}

#[tokio::test]
async fn a_skill_can_be_read_after_its_artifact_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::local(folder.path()).unwrap();
    let bundle = SkillBundle::store(&store, packed(archive(&[("a", b"1")])).unwrap())
        .await
        .unwrap();
    assert!(store.remove(bundle.sha256).await.unwrap());
    assert_eq!(bundle.clone().read("a").await.unwrap(), b"1");
}

#[tokio::test]
async fn the_description_of_a_sessions_own_skill_has_the_limits_of_front_matter() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::local(folder.path()).unwrap();
    let bundle = SkillBundle::store(&store, packed(archive(&[])).unwrap())
        .await
        .unwrap();
    let skill = SessionSkill::inline(Some("own".to_owned()), Arc::new(bundle)).unwrap();
    assert_eq!(skill.description, "Writes reports.");
    for (length, is_valid) in [(0, false), (1, true), (1024, true), (1025, false)] {
        let described = skill.clone().described("x".repeat(length));
        assert_eq!(described.is_ok(), is_valid, "{length}");
    }
}

#[test]
fn hostile_archives_are_rejected_with_what_is_wrong() {
    let twice = replaced(
        archive(&[("a1.txt", b"1"), ("a2.txt", b"2")]),
        b"a2.txt",
        b"a1.txt",
    );
    let mut linked = ZipWriter::new_append(Cursor::new(archive(&[]))).unwrap();
    linked
        .add_symlink("link", "/etc/passwd", SimpleFileOptions::default())
        .unwrap();
    let linked = linked.finish().unwrap().into_inner();
    let many: Vec<_> = (0..600).map(|number| format!("f{number}")).collect();
    let many: Vec<_> = many.iter().map(|name| (&**name, &b""[..])).collect();
    for (bytes, reason) in [
        (b"not a zip".to_vec(), "cannot be read"),
        (Vec::new(), "cannot be read"),
        (twice, "twice"),
        (linked, "`link` is not a regular file"),
        (archive(&[("../x", b"")]), "invalid path"),
        (archive(&[("/etc/x", b"")]), "invalid path"),
        (archive(&[("a\\", b"x")]), "backslash"),
        (archive(&[("a/", b"x")]), "invalid path"),
        (archive(&[("a/SKILL.md", b"")]), "there are 2 files"),
        (archive(&many), "has 601 files"),
        (
            archive_of(&MANIFEST.replace("name: report", "name: Report"), &[]),
            "invalid name `Report`",
        ),
    ] {
        let error = packed(bytes).unwrap_err();
        assert!(error.contains(reason), "{reason}: {error}");
    }
}

#[test]
fn bombs_end_at_the_limits_of_what_is_unpacked() {
    let large = vec![0; 25 << 20];
    assert!(packed(archive(&[("a", &large)])).is_ok());
    let larger = vec![0; (25 << 20) + 1];
    let error = packed(archive(&[("a", &larger)])).unwrap_err();
    assert!(error.contains("too large at `a`"), "{error}");
    let some = ["a", "b", "c", "d", "e"].map(|name| (name, &large[..]));
    let error = packed(archive(&some)).unwrap_err();
    assert!(error.contains("too large at `d`"), "{error}");
}

#[test]
fn an_archive_with_too_many_entries_is_rejected_before_it_is_read() {
    let mut bytes = b"PK\x01\x02".repeat(5000);
    bytes.extend(archive(&[]));
    let error = packed(bytes).unwrap_err();
    assert!(error.contains("more than 4096 entries"), "{error}");
}

#[test]
fn an_entry_that_hides_its_size_is_read_no_further_than_the_limit() {
    // The directory says that the file has 1 byte; its content has more than a file can have.
    let larger = vec![0; (25 << 20) + 1];
    let size = u32::try_from(larger.len()).unwrap().to_le_bytes();
    let bytes = replaced(archive(&[("a", &larger)]), &size, &1_u32.to_le_bytes());
    packed(bytes).unwrap_err();
}

#[test]
fn links_in_a_folder_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("SKILL.md"), MANIFEST).unwrap();
    fs::create_dir(folder.path().join(".git")).unwrap();
    fs::write(folder.path().join(".git/config"), "").unwrap();
    assert!(SkillPackage::from_folder(folder.path()).is_ok());
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("x")).unwrap();
    let error = SkillPackage::from_folder(folder.path()).unwrap_err();
    assert!(error.to_string().contains("`x` is not a regular file"), "{error}");
}
