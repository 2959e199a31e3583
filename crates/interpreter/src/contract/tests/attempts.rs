//! Failures in a row.

use super::*;

#[test]
fn five_failures_in_a_row_use_the_attempts_up() {
    let mut attempts = Attempts::default();
    for left in [4, 3, 2, 1, 0] {
        assert_eq!(attempts.refusal(), None);
        attempts.fail();
        assert_eq!(attempts.left(), left);
    }
    assert_eq!(attempts.refusal().unwrap().code, "attempts_exhausted");
    for _ in 0..9 {
        attempts.fail();
    }
    assert_eq!(attempts.left(), 0);
    let told = attempts.refusal().unwrap().message;
    assert!(
        told.starts_with("5 attempts in a row failed, which is the limit"),
        "{told}"
    );
    attempts.renew();
    assert_eq!((attempts.left(), attempts.refusal()), (5, None));
}

#[test]
fn a_success_gives_them_all_back() {
    let mut attempts = Attempts::new(2);
    attempts.fail();
    attempts.renew();
    assert_eq!(attempts.left(), 2);
}

#[test]
fn a_failure_says_how_many_are_left() {
    let mut attempts = Attempts::new(3);
    let notices = [(); 3].map(|()| {
        attempts.fail();
        attempts.notice()
    });
    assert_eq!(
        notices,
        [
            "2 attempts left; repair the call and try again",
            "1 attempt left; repair the call and try again",
            "no attempts left: do not call this tool again, answer with what there is",
        ]
    );
}

#[test]
fn a_turn_without_attempts_runs_nothing() {
    assert_eq!(Attempts::new(0).refusal().unwrap().code, "attempts_exhausted");
}
