//! Fetches that count toward an allowance.

use std::sync::atomic::AtomicU64;

use super::*;

/// Allows an owner this many requests.
#[derive(Debug, Default)]
pub(super) struct RequestAllowance {
    pub(super) owner: &'static str,
    pub(super) left: AtomicUsize,
    pub(super) bytes: AtomicU64,
}

impl FetchAllowance for RequestAllowance {
    fn owner(&self) -> &'static str {
        self.owner
    }

    fn begin(&self) -> BoxFuture<'_, Result<(), ConnectorError>> {
        let less = |left: usize| left.checked_sub(1);
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        let retry_after = Some(Duration::from_secs(7));
        let exceeded = ConnectorError::new(
            ConnectorErrorKind::RateLimit { retry_after },
            "the quota is used up; try again in 7 s",
        );
        async move { taken.map(drop).map_err(|_| exceeded) }.boxed()
    }

    fn fetched(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn only_requests_that_are_made_and_their_answers_count() {
    let counted = Arc::new(RequestAllowance {
        owner: "key_1",
        left: AtomicUsize::new(2),
        ..RequestAllowance::default()
    });
    let fixture = Fixture::under(GrantTerms {
        allowance: Some(Arc::clone(&counted) as _),
        ..GrantTerms::default()
    });
    let kyiv = || json!({"city": "Kyiv"});
    for cached in [false, true, true] {
        assert_eq!(
            fixture.get("echo", kyiv()).await.unwrap(),
            (json!("Kyiv"), cached)
        );
    }
    assert_eq!(counted.bytes.load(Ordering::Relaxed), "\"Kyiv\"".len() as u64);
    // What is invalid is never sent.
    assert!(fixture.get("typed", json!({"city": 1})).await.is_err());
    assert!(fixture.get("nothing", kyiv()).await.is_err());
    assert_eq!(counted.left.load(Ordering::Relaxed), 1);
    fixture.get("fail", kyiv()).await.unwrap_err();
    let refused = fixture.get("echo", json!({"city": "Lviv"})).await.unwrap_err();
    assert_eq!(
        (&*refused.code, &*refused.message),
        (
            "rate_limit",
            "weather.echo: the quota is used up; try again in 7 s"
        )
    );
    assert_eq!(refused.details, json!({"retry_after": 7.0}));
    assert_eq!(fixture.requests(), 2);
    assert!(
        fixture.get("echo", kyiv()).await.unwrap().1,
        "an earlier answer is still there"
    );
}
