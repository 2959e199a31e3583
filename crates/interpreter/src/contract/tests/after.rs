//! Outputs of a cell in addition to those that it had declared.

use super::ArtifactKind::{Chart, Image};
use super::*;

#[test]
fn declared_artifacts_may_be_emitted_several_times() {
    assert_eq!(check_after(&declaring(&[]), &[], 0, 4), []);
    assert_eq!(check_after(&declaring(&[Image]), &[Image, Image], 0, 4), []);
    assert_eq!(
        check_after(&declaring(&[Chart, Image]), &[Image, Chart], 0, 4),
        []
    );
}

#[test]
fn every_combination_has_its_own_code() {
    let sets: [&[ArtifactKind]; 4] = [&[], &[Image], &[Chart], &[Image, Chart]];
    for declared in sets {
        for emitted in sets {
            let missing = declared.iter().any(|kind| !emitted.contains(kind));
            let extra = emitted.iter().any(|kind| !declared.contains(kind));
            let expected: &[_] = match (missing, extra) {
                (false, false) => &[],
                (true, false) => &[("artifact_not_emitted", "expectedArtifacts")],
                (false, true) => &[("artifact_not_declared", "expectedArtifacts")],
                (true, true) => &[("wrong_artifact_kind", "expectedArtifacts")],
            };
            let found = check_after(&declaring(declared), emitted, 0, 4);
            assert_eq!(codes(&found), expected, "{declared:?} {emitted:?}");
        }
    }
}

#[test]
fn listed_valid_values_are_accepted() {
    let sets: [&[ArtifactKind]; 4] = [&[], &[Image], &[Chart], &[Image, Chart]];
    for declared in sets {
        for emitted in sets {
            for rejection in check_after(&declaring(declared), emitted, 0, 4) {
                let valid: Vec<_> = rejection
                    .valid
                    .iter()
                    .map(|name| ArtifactKind::of_name(name).unwrap())
                    .collect();
                assert_eq!(check_after(&declaring(&valid), emitted, 0, 4), []);
            }
        }
    }
}

#[test]
fn a_figure_that_was_drawn_and_not_saved_is_named() {
    let message = &check_after(&declaring(&[Image]), &[], 1, 4)[0].message;
    assert!(
        message.contains(
            "1 figure was drawn but not saved: call `save_figure(alt, title)` before the cell ends"
        ),
        "{message}"
    );
    let message = &check_after(&declaring(&[Chart]), &[], 1, 4)[0].message;
    assert!(
        !message.contains("drawn"),
        "a saved figure is no chart: {message}"
    );
}

#[test]
fn the_limit_itself_is_allowed_and_one_more_is_not() {
    assert_eq!(check_after(&declaring(&[Image]), &[Image; 4], 0, 4), []);
    let found = check_after(&declaring(&[Image]), &[Image; 5], 0, 4);
    assert_eq!(codes(&found), [("too_many_artifacts", "expectedArtifacts")]);
    assert!(found[0].message.contains("emitted 5 artifacts, the limit is 4"));
}

#[test]
fn too_many_of_another_kind_are_two_mistakes() {
    let found = check_after(&declaring(&[Image]), &[Chart; 5], 0, 4);
    assert_eq!(
        codes(&found),
        [
            ("wrong_artifact_kind", "expectedArtifacts"),
            ("too_many_artifacts", "expectedArtifacts"),
        ]
    );
}
