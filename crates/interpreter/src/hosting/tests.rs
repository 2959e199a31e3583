//! Sessions that are held, over something that only counts what happens to it.

use std::collections::HashMap;
use std::future::{pending, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::FutureExt;
use proptest::prelude::*;
use tokio::sync::Notify;
use tokio::time::{advance, sleep, timeout};

use super::*;

const IDLE: Duration = Duration::from_mins(1);

#[derive(Debug, Default)]
struct FakeSession {
    interrupted: Notify,
    interrupts: AtomicUsize,
    closed: Arc<AtomicBool>,
}

impl ResidentSession for FakeSession {
    fn idle_timeout(&self) -> Duration {
        IDLE
    }

    fn interrupt(&self) {
        self.interrupts.fetch_add(1, Ordering::Relaxed);
        self.interrupted.notify_waiters();
    }

    async fn close(&self) -> Result<()> {
        self.closed.store(true, Ordering::Relaxed);
        Ok(())
    }
}

fn registry(limits: HostingLimits) -> Registry<FakeSession> {
    Registry::new(limits)
}

fn unlimited() -> Registry<FakeSession> {
    registry(HostingLimits::default())
}

fn resident(registry: &Registry<FakeSession>, owner: &str, id: &str) -> Arc<Resident<FakeSession>> {
    Arc::clone(&registry.host(owner, id, FakeSession::default()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_session_of_another_owner_does_not_exist() {
    let registry = unlimited();
    let own = resident(&registry, "ann", "s1");
    assert!(registry.get("bob", "s1").is_none());
    assert!(registry.hold("bob", "s1").is_none());
    assert!(registry.of("bob").is_empty());
    assert!(Arc::ptr_eq(&registry.get("ann", "s1").unwrap(), &own));
}

#[tokio::test(start_paused = true)]
async fn a_session_expires_when_nobody_has_held_it_for_its_idle_timeout() {
    let registry = unlimited();
    let _idle = resident(&registry, "ann", "s1");
    let held = registry.hold("ann", "s1").unwrap();
    assert_eq!(
        timeout(IDLE * 3, registry.expired())
            .await
            .map(|it| it.len())
            .ok(),
        None
    );
    drop(held);
    assert_eq!(registry.get("ann", "s1").unwrap().idle(), Duration::ZERO);
    advance(IDLE / 2).await;
    drop(registry.hold("ann", "s1"));
    let again = tokio::time::Instant::now();
    let expired = registry.expired().await;
    assert_eq!((expired.len(), again.elapsed().as_secs()), (1, IDLE.as_secs()));
    assert!(expired[0].hold().is_none(), "it was taken out");
    assert_eq!(registry.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_only_looked_at_expires_all_the_same() {
    let registry = unlimited();
    let idle = resident(&registry, "ann", "s1");
    advance(IDLE / 2).await;
    let seen = idle.peek().unwrap();
    advance(IDLE).await;
    assert!(!idle.is_expired());
    drop(seen);
    assert!(idle.is_expired() && idle.peek().is_none());
    assert_eq!(registry.expired().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_expired_session_is_not_found_even_before_it_is_closed() {
    let registry = unlimited();
    let expired = resident(&registry, "ann", "s1");
    advance(IDLE).await;
    assert!(registry.get("ann", "s1").is_none());
    assert_eq!(expired.turn().await.unwrap_err(), HostingError::Ended);
}

#[tokio::test(start_paused = true)]
async fn a_sweep_closes_what_expires_until_its_end() {
    let registry = unlimited();
    let closed = Arc::clone(&resident(&registry, "ann", "s1").closed);
    registry.sweep(sleep(IDLE / 2)).await;
    assert!(!closed.load(Ordering::Relaxed));
    registry.sweep(sleep(IDLE)).await;
    assert!(closed.load(Ordering::Relaxed));
}

#[tokio::test(start_paused = true)]
async fn calls_use_a_session_one_after_the_other_in_the_order_in_which_they_came() {
    let registry = unlimited();
    let session = resident(&registry, "ann", "s1");
    let first = session.turn().await.unwrap();
    let mut second = Box::pin(session.turn());
    let mut third = Box::pin(session.turn());
    assert!((&mut second).now_or_never().is_none());
    assert!((&mut third).now_or_never().is_none());
    drop(first);
    assert!((&mut third).now_or_never().is_none());
    drop(second.await.unwrap());
    drop(third.await.unwrap());
    assert_eq!(session.holds(), 0);
}

#[tokio::test(start_paused = true)]
async fn no_more_calls_wait_for_a_session_than_may() {
    let registry = registry(HostingLimits {
        waiting: 1,
        ..HostingLimits::default()
    });
    let session = resident(&registry, "ann", "s1");
    let _first = session.turn().await.unwrap();
    let mut second = Box::pin(session.turn());
    assert!((&mut second).now_or_never().is_none());
    assert_eq!(
        session.turn().await.unwrap_err(),
        HostingError::Busy { waiting: 1 }
    );
    drop(second);
    assert!(
        session.turn().now_or_never().is_none(),
        "a call that left waits no more"
    );
}

#[tokio::test(start_paused = true)]
async fn closing_interrupts_what_runs_and_turns_away_who_waits() {
    let registry = Arc::new(unlimited());
    let session = resident(&registry, "ann", "s1");
    let turn = session.turn().await.unwrap();
    let running = tokio::spawn(async move {
        let interrupted = async {
            turn.interrupted.notified().await;
            assert!(!turn.closed.load(Ordering::Relaxed), "closed under what runs");
        };
        turn.until(pending(), interrupted).await;
    });
    let waiting = tokio::spawn({
        let session = Arc::clone(&session);
        async move { session.turn().await.map(drop) }
    });
    tokio::task::yield_now().await;
    registry.close(&session).await.unwrap();
    running.await.unwrap();
    assert_eq!(waiting.await.unwrap(), Err(HostingError::Ended));
    assert!(session.closed.load(Ordering::Relaxed));
    assert!(registry.get("ann", "s1").is_none());
}

#[tokio::test(start_paused = true)]
async fn closing_all_waits_for_what_runs_until_it_may_not_any_more() {
    for patience in [Duration::from_secs(1), Duration::from_secs(10)] {
        let registry = Arc::new(unlimited());
        let idle = Arc::clone(&resident(&registry, "ann", "idle").closed);
        let session = resident(&registry, "ann", "busy");
        let turn = session.turn().await.unwrap();
        let running = tokio::spawn(async move {
            let work = async {
                tokio::select! {
                    () = sleep(Duration::from_secs(5)) => true,
                    () = turn.interrupted.notified() => false,
                }
            };
            turn.until(pending(), work).await
        });
        registry.close_all(sleep(patience)).await;
        let came_to_its_end = patience > Duration::from_secs(5);
        assert_eq!(running.await.unwrap(), came_to_its_end);
        assert!(idle.load(Ordering::Relaxed) && session.closed.load(Ordering::Relaxed));
        let refused = registry.host("ann", "late", FakeSession::default());
        assert_eq!(refused.unwrap_err(), HostingError::Closed);
        assert_eq!(registry.count(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_closed_twice_is_closed() {
    let registry = unlimited();
    let session = resident(&registry, "ann", "s1");
    registry.close(&session).await.unwrap();
    // Another one under its id is left alone.
    let _other = resident(&registry, "ann", "s1");
    registry.close(&session).await.unwrap();
    assert_eq!(registry.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_session_gives_way_unless_it_is_held() {
    let registry = unlimited();
    for id in ["s1", "s2", "s3"] {
        resident(&registry, "ann", id);
        advance(Duration::from_secs(1)).await;
    }
    drop(registry.hold("ann", "s1"));
    let _held = registry.hold("ann", "s2").unwrap();
    let idle = registry.idle_by(|it| Some(it.last_used()));
    assert_eq!(idle.iter().map(|it| &*it.id).collect::<Vec<_>>(), ["s3", "s1"]);
    assert!(registry.take_idle(&idle[0]));
    assert!(!registry.take_idle(&idle[0]), "it was taken already");
    let _held_again = idle[1].hold().unwrap();
    assert!(!registry.take_idle(&idle[1]));
    assert_eq!(registry.count(), 2);
}

#[test]
fn handles_are_long_and_never_the_same() {
    let (one, other) = (crate::mint("sess_"), crate::mint("sess_"));
    assert_ne!(one, other);
    let digits = one.strip_prefix("sess_").unwrap();
    assert!(
        digits.len() == 40 && digits.bytes().all(|it| it.is_ascii_hexdigit()),
        "{one}"
    );
}

#[derive(Clone, Debug)]
enum RegistryStep {
    Reserve(u8),
    Fill(usize),
    GiveUp(usize),
    Close(usize),
}

fn steps() -> impl Strategy<Value = Vec<RegistryStep>> {
    let step = prop_oneof![
        3 => (0..3_u8).prop_map(RegistryStep::Reserve),
        2 => any::<usize>().prop_map(RegistryStep::Fill),
        1 => any::<usize>().prop_map(RegistryStep::GiveUp),
        1 => any::<usize>().prop_map(RegistryStep::Close),
    ];
    proptest::collection::vec(step, 0..60)
}

proptest! {
    /// Whatever is reserved, filled, given up and closed: no limit is exceeded, and a place that is
    /// given up is free again.
    #[test]
    fn limits_hold_over_every_sequence_of_steps(steps in steps()) {
        const LIMITS: HostingLimits = HostingLimits { sessions: 5, per_owner: 3, waiting: 0 };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let registry = registry(LIMITS);
        let owners = ["a", "b", "c"];
        let ids: Vec<_> = (0..steps.len()).map(|at| at.to_string()).collect();
        let mut reserved = Vec::new();
        let mut there: Vec<Arc<Resident<FakeSession>>> = Vec::new();
        for (step, id) in steps.into_iter().zip(&ids) {
            match step {
                RegistryStep::Reserve(owner) => {
                    let owner = owners[usize::from(owner)];
                    let mut counts: HashMap<&str, usize> = HashMap::new();
                    let waiting = reserved.iter().map(|(owner, _)| *owner);
                    for taken in waiting.chain(there.iter().map(|it| &*it.owner)) {
                        *counts.entry(taken).or_default() += 1;
                    }
                    let own = counts.get(owner).copied().unwrap_or_default();
                    let all = reserved.len() + there.len();
                    match registry.reserve(owner, id) {
                        Ok(place) => {
                            prop_assert!(own < LIMITS.per_owner && all < LIMITS.sessions);
                            reserved.push((owner, place));
                        }
                        Err(HostingError::OwnerFull { held, limit }) => {
                            prop_assert_eq!((held, limit), (own, LIMITS.per_owner));
                            prop_assert_eq!(own, limit);
                        }
                        Err(error) => {
                            prop_assert_eq!(error, HostingError::Full { limit: LIMITS.sessions });
                            prop_assert_eq!(all, LIMITS.sessions);
                        }
                    }
                }
                RegistryStep::Fill(at) if !reserved.is_empty() => {
                    let (_, place) = reserved.swap_remove(at % reserved.len());
                    there.push(Arc::clone(&place.fill(FakeSession::default()).unwrap()));
                }
                RegistryStep::GiveUp(at) if !reserved.is_empty() => drop(reserved.swap_remove(at % reserved.len())),
                RegistryStep::Close(at) if !there.is_empty() => {
                    let gone = there.swap_remove(at % there.len());
                    runtime.block_on(registry.close(&gone)).unwrap();
                }
                RegistryStep::Fill(_) | RegistryStep::GiveUp(_) | RegistryStep::Close(_) => {}
            }
            prop_assert_eq!(registry.count(), there.len());
        }
        drop(reserved);
        runtime.block_on(registry.close_all(ready(())));
        prop_assert!(there.iter().all(|it| it.closed.load(Ordering::Relaxed)));
        prop_assert_eq!(registry.count(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_is_reserved_once_until_its_session_has_expired() {
    let registry = unlimited();
    let place = registry.reserve("ann", "s1").unwrap();
    assert_eq!(registry.reserve("ann", "s1").unwrap_err(), HostingError::Exists);
    drop(place.fill(FakeSession::default()).unwrap());
    assert_eq!(registry.reserve("bob", "s1").unwrap_err(), HostingError::Exists);
    advance(IDLE).await;
    drop(registry.reserve("ann", "s1").unwrap());
}
