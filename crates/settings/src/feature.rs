//! Parts of Cellblock that a build may lack: features of Cargo.

/// The error of a build that lacks what a setting or a command needs: it names the feature, which
/// has the same name in each crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this build lacks `{0}`: rebuild with `--features {0}` (or `--features full`)")]
pub struct MissingFeature(pub &'static str);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_feature_is_named_with_the_repair() {
        assert_eq!(
            MissingFeature("postgres").to_string(),
            "this build lacks `postgres`: rebuild with `--features postgres` (or `--features full`)"
        );
    }
}
