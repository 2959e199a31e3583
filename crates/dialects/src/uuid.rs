//! Ids in the form of Jupyter's kernels.

use cellblock_interpreter::mint;

/// Returns a random UUID of version 4.
pub(crate) fn uuid() -> String {
    let digits = mint("");
    let part = |range: std::ops::Range<usize>| digits.get(range).unwrap_or_default().to_owned();
    [
        part(0..8),
        part(8..12),
        format!("4{}", part(13..16)),
        format!("8{}", part(17..20)),
        part(20..32),
    ]
    .join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_uuid_of_version_4() {
        let id = uuid();
        let lengths: Vec<_> = id.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{id}");
        assert_eq!((&id[14..15], &id[19..20]), ("4", "8"));
        assert_ne!(id, uuid());
    }
}
