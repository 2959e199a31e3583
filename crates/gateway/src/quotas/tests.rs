//! Quotas as they are used up, given back and remembered.

use std::time::Duration;

use cellblock_interpreter::connector::{ConnectorErrorKind, FetchAllowance as _};

use super::ledger::Rate;
use super::*;
use crate::keys::KeyTerms;
use crate::options::QuotaOptions;
use crate::records::conformance::over_each_database;

fn quotas(per_key: Allowance) -> Quotas {
    Quotas::new(per_key, Records::in_memory().unwrap(), "one")
}

fn used_up<T>(refused: Result<T, ApiError>) -> String {
    let error = refused.err().unwrap();
    assert_eq!(error.status(), 429);
    assert_eq!(error.code.as_deref(), Some("rate_limit_exceeded"));
    error.message
}

#[tokio::test]
async fn a_place_is_free_again_when_its_permit_is_dropped() {
    let quotas = quotas(
        Allowance::default()
            .with(Quota::ConcurrentCells, Some(1))
            .with(Quota::Sandboxes, Some(1)),
    );
    let cell = quotas.cell("key_1").await.unwrap();
    assert_eq!(
        used_up(quotas.cell("key_1").await),
        "the quota `concurrent_cells` of this key is used up: its limit is 1; a place is free when one of \
         its cells or commands ends; try again in 1 s"
    );
    drop(quotas.cell("key_2").await.unwrap());
    cell.done(Duration::from_secs(1));
    drop(quotas.cell("key_1").await.unwrap());

    let sandbox = quotas.sandbox("key_1").await.unwrap();
    used_up(quotas.sandbox("key_1").await);
    drop(sandbox);
    drop(quotas.sandbox("key_1").await.unwrap());
}

#[tokio::test]
async fn the_default_quotas_have_room_for_background_commands_and_a_workflow_of_many_commands() {
    let quotas = quotas(Allowance::from(&QuotaOptions::default()));
    let mut held = Vec::new();
    for _ in 0..8 {
        held.push((
            quotas.sandbox("key_1").await.unwrap(),
            quotas.cell("key_1").await.unwrap(),
        ));
    }
    let sandbox = quotas.sandbox("key_1").await.unwrap();
    for _ in 0..31 {
        quotas
            .cell("key_1")
            .await
            .unwrap()
            .done(Duration::from_millis(10));
    }
    drop((held, sandbox));
}

over_each_database! {
    async fn a_day_has_so_many_seconds_and_bytes_also_after_a_restart(records: Records) {
        let per_key = Allowance::default()
            .with(Quota::CellSecondsPerDay, Some(10))
            .with(Quota::UploadBytesPerDay, Some(100));
        let quotas = Quotas::new(per_key.clone(), records.clone(), "one");
        quotas.cell("key_1").await.unwrap().done(Duration::from_secs(9));
        quotas.cell("key_1").await.unwrap().done(Duration::from_secs(9));
        used_up(quotas.cell("key_1").await);
        quotas.uploaded("key_1", 60).await.unwrap();
        used_up(quotas.uploaded("key_1", 60).await);
        quotas.uploaded("key_1", 40).await.unwrap();
        quotas.flush().await.unwrap();
        quotas.flush().await.unwrap();

        let quotas = Quotas::new(per_key, records, "one");
        let used = DailyUsage {
            cells: 2,
            cell_millis: 18_000,
            upload_bytes: 100,
            ..DailyUsage::default()
        };
        assert_eq!(quotas.used("key_1").await.unwrap(), used);
        used_up(quotas.cell("key_1").await);
        used_up(quotas.uploaded("key_1", 1).await);
        assert_eq!(quotas.used("key_2").await.unwrap(), DailyUsage::default());
    }

    async fn gateways_that_share_records_count_the_use_of_a_day_together(records: Records) {
        let per_key = Allowance::default().with(Quota::UploadBytesPerDay, Some(100));
        let [one, two] = [(); 2].map(|()| Quotas::new(per_key.clone(), records.clone(), "one"));
        one.uploaded("key_1", 1).await.unwrap();
        two.uploaded("key_1", 60).await.unwrap();
        two.flush().await.unwrap();
        one.uploaded("key_1", 9).await.unwrap();
        one.flush().await.unwrap();
        assert_eq!(one.used("key_1").await.unwrap().upload_bytes, 70);
        used_up(one.uploaded("key_1", 31).await);
        one.uploaded("key_1", 30).await.unwrap();
    }

    async fn a_key_may_have_quotas_of_its_own_and_the_local_owner_has_none(records: Records) {
        let own = Allowance::default()
            .with(Quota::ConcurrentCells, None)
            .with(Quota::StoredBytes, Some(5));
        let keys = crate::keys::Keys::new(records.clone());
        let (key, _) = keys
            .create(
                "ci",
                KeyTerms {
                    allowance: own,
                    ..KeyTerms::default()
                },
            )
            .await
            .unwrap();
        let per_key = Allowance::default()
            .with(Quota::ConcurrentCells, Some(1))
            .with(Quota::StoredBytes, Some(50));
        let quotas = Quotas::new(per_key, records, "one");
        let _one = quotas.cell(&key.id).await.unwrap();
        let _two = quotas.cell(&key.id).await.unwrap();
        quotas.store(&key.id, 3, 2).await.unwrap();
        used_up(quotas.store(&key.id, 3, 3).await);
        quotas.store("key_other", 3, 3).await.unwrap();
        let _three = quotas.cell(LOCAL).await.unwrap();
        let _four = quotas.cell(LOCAL).await.unwrap();
    }
}

#[test]
fn a_rate_lets_a_burst_through_and_says_when_there_is_more() {
    let begin = Instant::now();
    let at = |millis| begin + Duration::from_millis(millis);
    let mut rate = Rate::default();
    assert_eq!(rate.take(2, begin), Ok(()));
    assert_eq!(rate.take(2, begin), Ok(()));
    assert_eq!(rate.take(2, begin), Err(30));
    assert_eq!(rate.take(2, at(10_500)), Err(20));
    assert_eq!(rate.take(2, at(30_000)), Ok(()));
    assert_eq!(rate.take(2, at(30_001)), Err(30));
    let mut none = Rate::default();
    assert_eq!(none.take(0, begin), Err(60));
}

over_each_database! {
    async fn the_use_of_a_key_is_remembered(records: Records) {
        let keys = crate::keys::Keys::new(records.clone());
        let (key, _) = keys.create("ci", KeyTerms::default()).await.unwrap();
        let quotas = Quotas::new(Allowance::default(), records, "one");
        quotas.seen(&key.id);
        quotas.flush().await.unwrap();
        let seen = keys.list().await.unwrap()[0].last_used_at.unwrap();
        assert!(seen >= key.created_at);
    }

    async fn fetches_of_all_sessions_of_a_key_count_together_also_after_a_restart(records: Records) {
        let per_key = Allowance::default()
            .with(Quota::FetchesPerMinute, Some(3))
            .with(Quota::FetchedBytesPerDay, Some(100))
            .with(Quota::LayersPerDay, Some(2));
        let quotas = Quotas::new(per_key.clone(), records.clone(), "one");
        let fetches = |quotas: &Quotas| OwnerFetches::new(quotas.clone(), "key_1".to_owned());
        let (one, two) = (fetches(&quotas), fetches(&quotas));
        for session in [&one, &two, &one] {
            session.begin().await.unwrap();
        }
        let refused = two.begin().await.unwrap_err();
        let retry_after = Some(Duration::from_secs(20));
        assert_eq!(refused.kind(), ConnectorErrorKind::RateLimit { retry_after });
        assert_eq!(
            refused.to_string(),
            "the request was not made: the quota `fetches_per_minute` of this key is used up: its limit \
             is 3; try again in 20 s"
        );
        two.fetched(120);
        quotas.flush().await.unwrap();

        let quotas = Quotas::new(per_key, records, "one");
        let refused = fetches(&quotas).begin().await.unwrap_err().to_string();
        assert!(
            refused.contains("the quota `fetched_bytes_per_day` of this key is used up: its limit is 100"),
            "{refused}"
        );
        let used = quotas.used("key_1").await.unwrap();
        assert_eq!((used.fetches, used.fetched_bytes), (3, 120));
        fetches(&quotas).install().await.unwrap();
        fetches(&quotas).install().await.unwrap();
        let refused = fetches(&quotas).install().await.unwrap_err();
        assert!(
            refused.starts_with("the quota `layers_per_day` of this key is used up: its limit is 2"),
            "{refused}"
        );
        quotas.flush().await.unwrap();
        assert_eq!(quotas.used("key_1").await.unwrap().layers, 2);
        let other = OwnerFetches::new(quotas, "key_2".to_owned());
        other.begin().await.unwrap();
    }
}
