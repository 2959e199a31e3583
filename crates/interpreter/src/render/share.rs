//! Sharing a budget.

/// Gives each what it needs, or, where that is not to be had, equal parts of what those who need less leave.
pub(super) fn fairly(needs: &[usize], total: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..needs.len()).collect();
    order.sort_by_key(|index| needs[*index]);
    let (mut left, mut shares) = (total, vec![0; needs.len()]);
    for (done, index) in order.into_iter().enumerate() {
        shares[index] = needs[index].min(left / (needs.len() - done));
        left -= shares[index];
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_needs_are_met_and_large_ones_get_equal_parts() {
        assert_eq!(fairly(&[10, 500, 30, 400], 240), [10, 100, 30, 100]);
        assert_eq!(fairly(&[10, 20], 100), [10, 20]);
        assert_eq!(fairly(&[], 100), Vec::<usize>::new());
        assert_eq!(fairly(&[5, 5], 0), [0, 0]);
    }
}
