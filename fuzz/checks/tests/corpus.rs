//! The corpus that fuzzing has kept, replayed: every input of every target, and no target without inputs.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use cellblock_fuzz_checks::{TARGETS, run};

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

#[test]
fn every_target_has_a_check_and_a_corpus_of_its_name() {
    let expected: BTreeSet<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names(&fuzz().join("corpus")), expected);
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
        let folder = fuzz().join("corpus").join(target);
        let inputs = names(&folder);
        assert!(!inputs.is_empty(), "{target} has no inputs");
        let size = |name: &String| fs::metadata(folder.join(name)).expect("it is there").len();
        bytes += inputs.iter().map(size).sum::<u64>();
    }
    assert!(bytes <= 2 << 20, "the corpus has {bytes} bytes");
}

#[test]
fn every_input_that_fuzzing_has_kept_is_read_again() {
    for (target, _) in TARGETS {
        let folder = fuzz().join("corpus").join(target);
        for name in names(&folder) {
            let data = fs::read(folder.join(&name)).expect("it can be read");
            let ran = std::panic::catch_unwind(|| run(target, &data));
            assert!(ran.is_ok(), "corpus/{target}/{name} breaks a check");
        }
    }
}
