//! The corpus that fuzzing has kept, replayed: every input of every target, and no target without
//! inputs. Some inputs are files, the others are in an archive per target.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use cellblock_fuzz_checks::{TARGETS, run};
use flate2::read::GzDecoder;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("this package lies in `fuzz`")
        .to_owned()
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("it can be listed").file_name();
    entries
        .map(|entry| name(entry).to_string_lossy().into_owned())
        .collect()
}

/// A target's inputs by their names.
fn inputs(target: &str) -> BTreeMap<String, Vec<u8>> {
    let corpus = fuzz().join("corpus");
    let folder = corpus.join(target);
    let read = |name: String| {
        let data = fs::read(folder.join(&name)).expect("it can be read");
        (name, data)
    };
    let mut inputs: BTreeMap<_, _> = names(&folder).into_iter().map(read).collect();
    let Ok(archive) = File::open(corpus.join(format!("{target}.tar.gz"))) else {
        return inputs;
    };
    let mut archive = tar::Archive::new(GzDecoder::new(archive));
    for entry in archive.entries().expect("it is an archive") {
        let mut entry = entry.expect("it is whole");
        let name = entry.path().expect("it has a name");
        let name = name
            .file_name()
            .expect("it is a file")
            .to_string_lossy()
            .into_owned();
        let mut data = Vec::new();
        entry.read_to_end(&mut data).expect("it can be read");
        let other = inputs.insert(name.clone(), data);
        assert!(other.is_none(), "corpus/{target}/{name} is also in the archive");
    }
    inputs
}

#[test]
fn every_target_has_a_check_and_a_corpus_of_its_name() {
    let expected: BTreeSet<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let corpora = names(&fuzz().join("corpus"));
    let corpora: BTreeSet<_> = corpora
        .iter()
        .map(|name| name.trim_end_matches(".tar.gz").to_owned())
        .collect();
    assert_eq!(corpora, expected);
    let targets = names(&fuzz().join("fuzz_targets"));
    let targets: BTreeSet<_> = targets
        .iter()
        .map(|file| file.trim_end_matches(".rs").to_owned())
        .collect();
    assert_eq!(targets, expected);
}

#[test]
fn the_kept_corpus_is_small() {
    let mut bytes = 0;
    for (target, _) in TARGETS {
        let inputs = inputs(target);
        assert!(!inputs.is_empty(), "{target} has no inputs");
        bytes += inputs.values().map(Vec::len).sum::<usize>();
    }
    assert!(bytes <= 2 << 20, "the corpus has {bytes} bytes");
}

#[test]
fn every_input_that_fuzzing_has_kept_is_read_again() {
    for (target, _) in TARGETS {
        for (name, data) in inputs(target) {
            let ran = std::panic::catch_unwind(|| run(target, &data));
            assert!(ran.is_ok(), "corpus/{target}/{name} breaks a check");
        }
    }
}
