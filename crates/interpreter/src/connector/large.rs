//! Limits of large answers in memory: the host reads and converts only so many bytes of them at the
//! same time, for a session and for all sessions together. Others wait in files.

use std::sync::{Arc, LazyLock, OnceLock};

use cellblock_settings::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::memory;

/// Size of an answer in bytes from which it counts.
pub const LARGE_ANSWER: usize = 4 << 20;
/// Bytes of a permit.
const UNIT: u64 = 1 << 10;

static OPTIONS: OnceLock<FetchOptions> = OnceLock::new();
static HOST: LazyLock<AnswerBudget> = LazyLock::new(|| AnswerBudget::new(options().max_in_flight));

tokio::task_local! {
    static SESSION: Arc<AnswerBudget>;
}

/// Answers of connectors over 4 MiB, which the server reads and converts for code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FetchOptions {
    /// Maximum size of such answers that are in memory at the same time, for all sessions together,
    /// in bytes as they were received. Others wait in files; one over the limit is read alone. Its
    /// values take several times as much memory while they are converted.
    #[serde(with = "Size")]
    pub max_in_flight: u64,
    /// Maximum size of those of one session.
    #[serde(with = "Size")]
    pub max_in_flight_per_session: u64,
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self {
            max_in_flight: 128 << 20,
            max_in_flight_per_session: 64 << 20,
        }
    }
}

/// Sets the limits of this process, before its first session has connectors.
pub fn limit_answers(options: FetchOptions) {
    // Only the first call counts: budgets that are in use do not change.
    let _ = OPTIONS.set(options);
}

fn options() -> FetchOptions {
    *OPTIONS.get_or_init(FetchOptions::default)
}

/// Bytes that may be in memory.
#[derive(Debug)]
pub(super) struct AnswerBudget {
    free: Arc<Semaphore>,
    units: u32,
}

impl AnswerBudget {
    /// The budget of a session.
    pub(super) fn of_session() -> Arc<Self> {
        Arc::new(Self::new(options().max_in_flight_per_session))
    }

    fn new(bytes: u64) -> Self {
        let units = units(bytes);
        // A semaphore has fewer permits than this on machines with 32 bits only.
        let free = Arc::new(Semaphore::new(units as usize));
        Self { free, units }
    }

    /// Waits for so many bytes, or for all if they are fewer. First in, first out.
    async fn take(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        let units = units(bytes).min(self.units);
        // The semaphore is never closed.
        Arc::clone(&self.free).acquire_many_owned(units).await.ok()
    }

    /// Does the work of a session whose answers count against this budget, too.
    pub(super) async fn scope<T>(self: Arc<Self>, work: impl Future<Output = T>) -> T {
        SESSION.scope(self, work).await
    }
}

fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT).max(1))
        .unwrap_or(u32::MAX >> 3)
        .min(u32::MAX >> 3)
}

/// Bytes of a large answer that count against the limits of its session and of the host, until the
/// host no longer has them in memory.
#[derive(Debug)]
pub struct LargeAnswer(Vec<OwnedSemaphorePermit>);

impl LargeAnswer {
    /// Waits until an answer of so many bytes may be in memory. Its holder must not wait for
    /// another: a call that has bytes of the host waits for nothing, so that all get theirs.
    pub async fn reserve(bytes: u64) -> Self {
        let mut held = Vec::new();
        if let Ok(session) = SESSION.try_with(Arc::clone) {
            held.extend(session.take(bytes).await);
        }
        held.extend(HOST.take(bytes).await);
        Self(held)
    }
}

impl Drop for LargeAnswer {
    fn drop(&mut self) {
        self.0.clear();
        memory::settle();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[tokio::test]
    async fn answers_share_the_bytes_of_a_budget_and_one_over_the_limit_has_all_of_them() {
        let budget = AnswerBudget::new(10 * MIB);
        let short = Duration::from_millis(10);
        let one = budget.take(6 * MIB).await;
        let two = budget.take(4 * MIB).await;
        assert!(timeout(short, budget.take(1)).await.is_err());
        drop(two);
        let two = budget.take(3 * MIB).await;
        assert!(timeout(short, budget.take(2 * MIB)).await.is_err());
        drop((one, two));
        let all = budget.take(100 * MIB).await;
        assert!(timeout(short, budget.take(1)).await.is_err());
        drop(all);
        drop(budget.take(10 * MIB).await.unwrap());
    }

    #[tokio::test]
    async fn a_session_has_its_own_limit_within_that_of_the_host() {
        let session = Arc::new(AnswerBudget::new(5 * MIB));
        let short = Duration::from_millis(10);
        let reserve = || Arc::clone(&session).scope(LargeAnswer::reserve(5 * MIB));
        let held = reserve().await;
        assert_eq!(held.0.len(), 2);
        assert!(timeout(short, reserve()).await.is_err());
        // Another session does not wait for it.
        let other = Arc::new(AnswerBudget::new(5 * MIB));
        other.scope(LargeAnswer::reserve(5 * MIB)).await;
        drop(held);
        reserve().await;
    }
}
