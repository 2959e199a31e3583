//! Quotas: how much the owner of a key may have at once and use up.
//!
//! ```text
//! let permit = gateway.quotas.cell(&caller.owner).await?;   // 429 with Retry-After if one is used up
//! let execution = session.execute(cell).await;              // the permit is held meanwhile
//! permit.done(execution.duration);                          // or dropped: the time it was held counts
//! ```
//!
//! What was used on a day is counted in the records, which are written to every few seconds.
//! Sandboxes, cells that run, and what is begun in a minute are counted in memory, and in the
//! records if several gateways share them.

mod at_once;
mod fetches;
mod ledger;
mod metered;
mod permit;
mod results;
mod standing;
#[cfg(test)]
mod tests;
mod uploads;

use std::sync::Arc;
use std::time::{Duration, Instant};

use cellblock_agent::wire::{ApiError, ErrorKind};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::decisions::{DecisionSubject, Decisions};
use crate::records::rates;
use crate::records::usage::DailyUsage;
use crate::records::{Records, RecordsError};
use crate::retry;

pub use crate::records::{Allowance, Quota, UnknownQuota};
pub(crate) use fetches::OwnerFetches;
pub(crate) use metered::QuotaRunner;
pub use permit::{CellPermit, SandboxPermit};
pub(crate) use results::ResultRoom;
pub(crate) use standing::QuotaStanding;
pub use uploads::UploadPermit;

use ledger::{Account, Ledger};

/// The one owner of a gateway without keys. Nothing is asked of it: it can stop the gateway.
pub(crate) const LOCAL: &str = "local";
/// Seconds after which a place may be free that something else has now.
const SOON: u64 = 1;
/// Seconds after which somebody may have removed something.
const LATER: u64 = 60;

/// Quotas, and what is used of them. Clones share it.
#[derive(Clone, Debug)]
pub struct Quotas {
    inner: Arc<QuotasInner>,
    /// Session that asks, if it is known.
    session: Option<Arc<str>>,
}

#[derive(Debug)]
struct QuotasInner {
    per_key: Allowance,
    records: Records,
    /// The gateway's id.
    gateway: String,
    ledger: Mutex<Ledger>,
    decisions: Decisions,
    /// Notified when a permit is given back.
    freed: Notify,
}

/// A quota that has no room now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExceededQuota {
    quota: Quota,
    most: u64,
    /// After how many seconds it may have some.
    seconds: u64,
}

impl ExceededQuota {
    /// The error that says so; it is logged and counted.
    pub(crate) fn of(self, quotas: &Quotas, owner: &str) -> ApiError {
        quotas.refuse(owner, self.quota, self.most, self.seconds)
    }
}

impl Quotas {
    /// Nothing used yet but what the records know.
    pub fn new(per_key: Allowance, records: Records, gateway: &str) -> Self {
        let inner = QuotasInner {
            per_key,
            records,
            gateway: gateway.to_owned(),
            ledger: Mutex::default(),
            decisions: Decisions::default(),
            freed: Notify::new(),
        };
        Self {
            inner: Arc::new(inner),
            session: None,
        }
    }

    /// The same quotas, for what one session asks.
    pub(crate) fn of_session(&self, id: &str) -> Self {
        Self {
            session: Some(id.into()),
            ..self.clone()
        }
    }

    /// Returns the last decisions about what owners wanted.
    pub(crate) fn decisions(&self) -> &Decisions {
        &self.inner.decisions
    }

    /// Asks to run a cell or a command.
    pub async fn cell(&self, owner: &str) -> Result<CellPermit, ApiError> {
        self.try_cell(owner)
            .await?
            .map_err(|refused| refused.of(self, owner))
    }

    /// The same for a cell that waits until its owner may run another one: first in, first out, at
    /// most so long.
    pub(crate) async fn cell_in_turn(&self, owner: &str, most: Duration) -> Result<CellPermit, ApiError> {
        let deadline = tokio::time::Instant::now() + most;
        let line = Arc::clone(&self.ledger().account(owner).line);
        let first = tokio::time::timeout_at(deadline, line.lock()).await;
        loop {
            let freed = self.freed();
            let refused = match self.try_cell(owner).await? {
                Ok(permit) => return Ok(permit),
                Err(refused) => refused,
            };
            // Nobody waits until tomorrow.
            if refused.quota == Quota::CellSecondsPerDay || first.is_err() {
                return Err(refused.of(self, owner));
            }
            tokio::select! {
                () = freed => {}
                () = tokio::time::sleep(Duration::from_secs(refused.seconds)) => {}
                () = tokio::time::sleep_until(deadline) => return Err(refused.of(self, owner)),
            }
        }
    }

    async fn try_cell(&self, owner: &str) -> Result<Result<CellPermit, ExceededQuota>, RecordsError> {
        self.load(owner).await?;
        if let Err(refused) = self.ledger().account(owner).has_time() {
            return Ok(Err(refused));
        }
        let permit = match self.enter_cell(owner).await? {
            Ok(permit) => permit,
            Err(refused) => return Ok(Err(refused)),
        };
        if let Err(refused) = self.pace(owner, Quota::CellsPerMinute).await? {
            permit.withdraw();
            return Ok(Err(refused));
        }
        self.ledger().account(owner).add(DailyUsage {
            cells: 1,
            ..DailyUsage::default()
        });
        Ok(Ok(permit))
    }

    /// Counts something that is begun, if a quota per minute has room for it.
    async fn pace(&self, owner: &str, quota: Quota) -> Result<Result<(), ExceededQuota>, RecordsError> {
        let most = self.ledger().account(owner).most(quota);
        let exceeded = |seconds| ExceededQuota { quota, most, seconds };
        if most == u64::MAX {
            return Ok(Ok(()));
        }
        let records = &self.inner.records;
        if !records.is_shared() {
            let taken = self
                .ledger()
                .account(owner)
                .rate(quota)
                .take(most, Instant::now());
            return Ok(taken.map_err(exceeded));
        }
        let asked = owner.to_owned();
        let taken = records.with(move |database| rates::take(database, &asked, quota, most));
        Ok(taken.await?.map_err(exceeded))
    }

    /// Whether nobody has a session or a container here, and no cell runs.
    pub(crate) fn is_idle(&self) -> bool {
        self.ledger().is_idle()
    }

    /// Completes when a permit of anybody has been given back since this was called.
    pub(crate) fn freed(&self) -> tokio::sync::futures::Notified<'_> {
        self.inner.freed.notified()
    }

    /// Checks that an owner may store `more` bytes in addition to the `kept` ones, which the caller counts.
    pub async fn store(&self, owner: &str, kept: u64, more: u64) -> Result<(), ApiError> {
        self.load(owner).await?;
        let most = self.ledger().account(owner).most(Quota::StoredBytes);
        if kept.saturating_add(more) > most {
            return Err(self.refuse(owner, Quota::StoredBytes, most, LATER));
        }
        Ok(())
    }

    /// Checks that an owner may store `more` bytes in addition to those in the records.
    pub(crate) async fn store_more(&self, owner: &str, more: u64) -> Result<(), ApiError> {
        let kept = self.inner.records.stored_bytes(owner).await?;
        self.store(owner, kept, more).await
    }

    /// Returns the usage of an owner today.
    pub async fn used(&self, owner: &str) -> Result<DailyUsage, RecordsError> {
        self.load(owner).await?;
        Ok(self.ledger().account(owner).used)
    }

    /// Remembers that a key was used.
    pub(crate) fn seen(&self, owner: &str) {
        self.ledger().seen.insert(owner.to_owned(), crate::now());
    }

    /// Writes what was used into the records. What cannot be written now is tried again the next time.
    pub async fn flush(&self) -> Result<(), RecordsError> {
        let written = self.ledger().take_unwritten();
        if written.is_empty() {
            return Ok(());
        }
        let rows = written.clone();
        let done = self
            .inner
            .records
            .with(move |connection| rows.write(connection))
            .await;
        match done {
            Ok(totals) => {
                self.ledger().settle(totals);
                Ok(())
            }
            Err(error) => {
                self.ledger().put_back(written);
                Err(error)
            }
        }
    }

    /// Makes sure that an owner's quotas, and what it used today, are in memory.
    async fn load(&self, owner: &str) -> Result<(), RecordsError> {
        let today = today();
        if self.ledger().knows(owner, today) {
            return Ok(());
        }
        // What is in memory alone belongs to the numbers that are read now.
        self.flush().await?;
        let asked = owner.to_owned();
        let (own, used) = self
            .inner
            .records
            .with(move |connection| {
                let own = crate::records::keys::allowance(connection, &asked)?;
                Ok((own, crate::records::usage::used(connection, &asked, today)?))
            })
            .await?;
        let allowance = if owner == LOCAL {
            Allowance::default()
        } else {
            self.inner.per_key.clone().or(own.unwrap_or_default())
        };
        self.ledger().learn(owner, today, allowance, used);
        Ok(())
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.inner.ledger.lock()
    }

    /// Changes what an owner has, who has less of it then.
    fn give_back(&self, owner: &str, change: impl FnOnce(&mut Account)) {
        change(self.ledger().account(owner));
        self.inner.freed.notify_waiters();
    }

    /// Counts, logs and notes a refusal, and returns the error that says so.
    fn refuse(&self, owner: &str, quota: Quota, most: u64, seconds: u64) -> ApiError {
        crate::metrics::quota_refused(quota);
        tracing::warn!(
            target: crate::SECURITY,
            event = "quota_exceeded",
            owner,
            quota = quota.name(),
            limit = most
        );
        let refused = DecisionSubject::Quota { quota, limit: most };
        self.inner.decisions.note(owner, self.session.as_deref(), refused);
        retry::after(seconds);
        ApiError {
            kind: ErrorKind::TooManyRequests,
            code: Some("rate_limit_exceeded".to_owned()),
            message: format!(
                "the quota `{}` of this key is used up: its limit is {most}{}; try again in {seconds} s",
                quota.name(),
                freed_by(quota)
            ),
            param: None,
        }
    }
}

/// Says when something is free of a quota that time alone does not free.
const fn freed_by(quota: Quota) -> &'static str {
    match quota {
        Quota::Sandboxes => "; a place is free when one of its sessions or containers ends",
        Quota::ConcurrentCells => "; a place is free when one of its cells or commands ends",
        _ => "",
    }
}

const DAY: u64 = 24 * 3600;

fn today() -> u64 {
    crate::now() / DAY
}

fn until_tomorrow() -> u64 {
    DAY - crate::now() % DAY
}
