//! Calls that get the answers of others.

use super::allowance::RequestAllowance;
use super::*;

const LONG: MemoPolicy = MemoPolicy::Shared(Duration::from_hours(1));

/// A session of an owner.
fn session(owner: Option<&'static str>, memo: MemoPolicy, shared: &Arc<Memo>) -> Fixture {
    let allowance = owner.map(|owner| {
        let left = AtomicUsize::new(10);
        Arc::new(RequestAllowance {
            owner,
            left,
            ..RequestAllowance::default()
        }) as Arc<dyn FetchAllowance>
    });
    let terms = GrantTerms {
        allowance,
        shared: Arc::clone(shared),
        ..GrantTerms::default()
    };
    Fixture::remembering(memo, terms)
}

/// Makes a call that is equal each time, and returns whether it was a request.
async fn requests(session: &Fixture) -> bool {
    let before = session.requests();
    let (value, cached) = session.get("echo", json!({"city": "Kyiv"})).await.unwrap();
    assert_eq!(value, "Kyiv");
    assert_eq!(cached, session.requests() == before);
    !cached
}

#[tokio::test]
async fn sessions_of_one_owner_share_answers_and_others_do_not() {
    let shared = Arc::default();
    let first = session(Some("key_1"), LONG, &shared);
    assert!(requests(&first).await);
    assert!(!requests(&session(Some("key_1"), LONG, &shared)).await);
    assert!(requests(&session(Some("key_2"), LONG, &shared)).await);
    for _ in 0..2 {
        assert!(requests(&session(None, LONG, &shared)).await);
    }
    // A session forgets its own answers.
    first.grants.forget();
    assert!(!requests(&first).await);
}

#[tokio::test]
async fn a_connector_that_a_request_named_shares_nothing() {
    let shared = Arc::default();
    assert!(requests(&session(Some("key_1"), LONG, &shared)).await);
    let mut lent = session(Some("key_1"), LONG, &shared);
    lent.grants = lent
        .grants
        .lending(&[Arc::clone(&lent.weather) as Arc<dyn Connector>]);
    assert!(requests(&lent).await);
    assert!(!requests(&lent).await);
}

#[tokio::test]
async fn old_answers_do_not_count() {
    for owner in [None, Some("key_1")] {
        let short = MemoPolicy::Shared(Duration::from_millis(1));
        let session = session(owner, short, &Arc::default());
        for _ in 0..3 {
            assert!(requests(&session).await);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

#[tokio::test]
async fn without_a_memo_each_call_is_a_request() {
    let session = session(None, MemoPolicy::Off, &Arc::default());
    assert!(requests(&session).await);
    assert!(requests(&session).await);
}
