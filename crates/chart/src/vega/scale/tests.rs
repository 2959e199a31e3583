//! Ranges and ticks of one and of two axes.

use super::*;

#[expect(clippy::unnecessary_wraps, reason = "each axis has one or none")]
fn extent(min: f64, max: f64) -> Option<Extent> {
    Some(Extent { min, max })
}

fn one(min: f64, max: f64) -> Scale {
    let [left, _] = scales(extent(min, max), None, None);
    left.unwrap()
}

#[test]
fn ticks_are_round_numbers_around_the_values() {
    assert_eq!(
        one(100.0, 122.0).ticks,
        [100.0, 105.0, 110.0, 115.0, 120.0, 125.0]
    );
    assert_eq!(one(0.0, 4.0).ticks, [0.0, 1.0, 2.0, 3.0, 4.0]);
    assert_eq!(one(0.0, 0.7).ticks, [0.0, 0.2, 0.4, 0.6, 0.8]);
    assert_eq!(one(-3.0, 12.0).ticks, [-5.0, 0.0, 5.0, 10.0, 15.0]);
    assert_eq!(one(61_000.5, 62_400.0).domain, (61_000.0, 62_500.0));
    assert_eq!(one(0.0, 0.7).decimals, 1);
}

#[test]
fn every_range_is_held_by_at_most_seven_intervals() {
    for min in [-1e6, -7.3, -0.001, 0.0, 0.2, 99.0, 1e9] {
        for length in [1e-3, 0.7, 1.0, 9.99, 10.0, 123.0, 5e8] {
            if length < f64::abs(min) * 1e-5 {
                continue;
            }
            let scale = one(min, min + length);
            let slack = length * 1e-6;
            assert!(
                scale.domain.0 <= min + slack && scale.domain.1 >= min + length - slack,
                "{min} {length} {scale:?}"
            );
            assert!((2..=8).contains(&scale.ticks.len()), "{min} {length} {scale:?}");
            assert!(
                scale.domain.1 - scale.domain.0 <= length * 2.6,
                "{min} {length} {scale:?}"
            );
        }
    }
}

#[test]
fn a_range_without_length_has_one_and_a_hopeless_one_has_no_ticks() {
    let same = one(5.0, 5.0);
    assert!(same.domain.0 < 5.0 && same.domain.1 > 5.0, "{same:?}");
    assert_eq!(one(0.0, 0.0).domain, (0.0, 1.0));
    for (min, max) in [
        (-f64::MAX, f64::MAX),
        (1e300, 1e300 + 1e280),
        (1.0, 1.0 + f64::EPSILON),
        (0.0, 5e-324),
    ] {
        assert_eq!(scales(extent(min, max), None, None), [None, None], "{min} {max}");
    }
}

#[test]
fn two_axes_have_their_ticks_at_the_same_heights() {
    for (left, right) in [
        (extent(100.0, 122.0), extent(0.0, 3700.0)),
        (extent(0.0, 1.0), extent(17.0, 19.0)),
        (extent(-40.0, 12.0), extent(0.0, 9.0)),
        (extent(-40.0, 12.0), extent(-1.0, 9.0)),
        (extent(95.0, 99.0), extent(-3.0, 8.0)),
    ] {
        let [Some(one), Some(other)] = scales(left, right, None) else {
            panic!()
        };
        let heights = |scale: &Scale| -> Vec<i64> {
            let (min, max) = scale.domain;
            #[expect(clippy::cast_possible_truncation, reason = "a share of a thousand")]
            scale
                .ticks
                .iter()
                .map(|tick| ((tick - min) / (max - min) * 1000.0).round() as i64)
                .collect()
        };
        assert_eq!(heights(&one), heights(&other), "{one:?} {other:?}");
        let zero = |scale: &Scale| scale.ticks.iter().position(|tick| *tick == 0.0);
        let has_zero = |extent: Option<Extent>| extent.is_some_and(|it| it.min <= 0.0 && it.max >= 0.0);
        if has_zero(left) && has_zero(right) {
            assert_eq!(zero(&one), zero(&other), "{one:?} {other:?}");
        }
    }
}

#[test]
fn bars_in_a_band_are_below_what_is_above() {
    let [Some(price), Some(volume)] = scales(extent(100.0, 122.0), extent(0.0, 3700.0), Some(Side::Right))
    else {
        panic!()
    };
    let height = |value: f64, scale: &Scale| (value - scale.domain.0) / (scale.domain.1 - scale.domain.0);
    assert!(height(3700.0, &volume) < height(100.0, &price));
    assert_eq!(price.ticks.first(), Some(&100.0));
    assert_eq!(volume.ticks, [0.0, 2000.0, 4000.0]);
}
