//! Features of Cargo that a build may lack.

/// Each of them, and whether this build has it.
const FEATURES: &[(&str, bool)] = &[
    ("kubernetes", cfg!(feature = "kubernetes")),
    ("mysql", cfg!(feature = "mysql")),
    ("otlp", cfg!(feature = "otlp")),
    ("postgres", cfg!(feature = "postgres")),
    ("s3", cfg!(feature = "s3")),
];

/// Returns the names of those that this build has.
pub(crate) fn built() -> Vec<&'static str> {
    let built = FEATURES.iter().filter(|(_, built)| *built);
    built.map(|(name, _)| *name).collect()
}
