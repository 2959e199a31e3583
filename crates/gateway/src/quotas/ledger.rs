//! Possessions and usage of owners, in memory, and the part of it that is not in the records yet.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use super::{Allowance, ExceededQuota, Quota, until_tomorrow};
use crate::records::places::PlaceKind;
use crate::records::usage::{self, DailyUsage};
use crate::records::{Database, DatabaseError};

/// State of all owners.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    accounts: HashMap<String, Account>,
    /// Times at which keys were last used, since they were last written.
    pub(super) seen: BTreeMap<String, u64>,
}

/// State of an owner.
#[derive(Debug, Default)]
pub(super) struct Account {
    allowance: Allowance,
    day: u64,
    /// Usage of that day.
    pub(super) used: DailyUsage,
    /// The part of it that is not written.
    unwritten: DailyUsage,
    /// Bytes of uploads that are being received, which are not used yet.
    pub(super) uploading: u64,
    cells: u32,
    sandboxes: u32,
    rate: Rate,
    fetch_rate: Rate,
    /// Cells that wait for their turn, one after the other.
    pub(super) line: Arc<tokio::sync::Mutex<()>>,
}

/// Usage that is not in the records yet.
#[derive(Clone, Debug)]
pub(super) struct UnwrittenUsage {
    used: Vec<(String, u64, DailyUsage)>,
    seen: BTreeMap<String, u64>,
}

/// Rate of recent actions: a bucket that fills itself.
#[derive(Debug, Default)]
pub(super) struct Rate {
    /// Amount by which the bucket is emptied.
    taken: f64,
    since: Option<Instant>,
}

impl Ledger {
    pub(super) fn account(&mut self, owner: &str) -> &mut Account {
        self.accounts.entry(owner.to_owned()).or_default()
    }

    pub(super) fn knows(&self, owner: &str, day: u64) -> bool {
        self.accounts.get(owner).is_some_and(|account| account.day == day)
    }

    /// Whether no owner has anything at once.
    pub(super) fn is_idle(&self) -> bool {
        let mut accounts = self.accounts.values();
        accounts.all(|account| account.cells == 0 && account.sandboxes == 0)
    }

    /// Takes over what the records say. What was used meanwhile is added to it.
    pub(super) fn learn(&mut self, owner: &str, day: u64, allowance: Allowance, used: DailyUsage) {
        let account = self.account(owner);
        if account.day == day {
            return;
        }
        account.day = day;
        account.allowance = allowance;
        account.used = sum(used, account.unwritten);
    }

    pub(super) fn take_unwritten(&mut self) -> UnwrittenUsage {
        let changed = self.accounts.iter_mut();
        let changed = changed.filter(|(_, account)| account.unwritten != DailyUsage::default());
        let used = changed
            .map(|(owner, account)| (owner.clone(), account.day, std::mem::take(&mut account.unwritten)));
        let mut used: Vec<_> = used.collect();
        // Gateways that write the same rows at the same time do it in the same order.
        used.sort_by(|(one, ..), (other, ..)| one.cmp(other));
        UnwrittenUsage {
            used,
            seen: std::mem::take(&mut self.seen),
        }
    }

    /// Takes over what owners have used in all gateways.
    pub(super) fn settle(&mut self, totals: Vec<(String, u64, DailyUsage)>) {
        for (owner, day, total) in totals {
            let account = self.account(&owner);
            if account.day == day {
                account.used = sum(total, account.unwritten);
            }
        }
    }

    pub(super) fn put_back(&mut self, unwritten: UnwrittenUsage) {
        for (owner, day, used) in unwritten.used {
            let account = self.account(&owner);
            if account.day == day {
                account.unwritten = sum(account.unwritten, used);
            }
        }
        for (owner, at) in unwritten.seen {
            self.seen.entry(owner).or_insert(at);
        }
    }
}

impl Account {
    pub(super) fn most(&self, quota: Quota) -> u64 {
        self.allowance.most(quota)
    }

    /// Returns how much of a quota is used, if that is known; `alone` if no other gateway has a part of it.
    pub(super) fn standing(&self, quota: Quota, alone: bool) -> Option<u64> {
        match quota {
            Quota::Sandboxes => alone.then(|| self.sandboxes.into()),
            Quota::ConcurrentCells => alone.then(|| self.cells.into()),
            Quota::CellSecondsPerDay => Some(self.used.cell_millis / 1000),
            Quota::FetchedBytesPerDay => Some(self.used.fetched_bytes),
            Quota::UploadBytesPerDay => Some(self.used.upload_bytes),
            Quota::LayersPerDay => Some(self.used.layers),
            Quota::CellsPerMinute | Quota::FetchesPerMinute | Quota::StoredBytes => None,
        }
    }

    /// Returns the number of those that exist here at once.
    pub(super) fn at_once(&mut self, kind: PlaceKind) -> &mut u32 {
        match kind {
            PlaceKind::Sandboxes => &mut self.sandboxes,
            PlaceKind::Cells => &mut self.cells,
        }
    }

    /// Counts one less.
    pub(super) fn free(&mut self, kind: PlaceKind) {
        let count = self.at_once(kind);
        *count = count.saturating_sub(1);
    }

    /// Whether the day has time left for a cell.
    pub(super) fn has_time(&self) -> Result<(), ExceededQuota> {
        let (quota, most) = (Quota::CellSecondsPerDay, self.most(Quota::CellSecondsPerDay));
        if self.used.cell_millis / 1000 >= most {
            let seconds = until_tomorrow();
            return Err(ExceededQuota { quota, most, seconds });
        }
        Ok(())
    }

    /// Returns the rate of recent starts, by its quota per minute.
    pub(super) fn rate(&mut self, quota: Quota) -> &mut Rate {
        match quota {
            Quota::FetchesPerMinute => &mut self.fetch_rate,
            _ => &mut self.rate,
        }
    }

    pub(super) fn add(&mut self, more: DailyUsage) {
        self.used = sum(self.used, more);
        self.unwritten = sum(self.unwritten, more);
    }
}

impl UnwrittenUsage {
    pub(super) fn is_empty(&self) -> bool {
        self.used.is_empty() && self.seen.is_empty()
    }

    /// Writes all of it or nothing, and returns what these owners have used in all gateways.
    pub(super) fn write(
        &self,
        database: &mut Database,
    ) -> Result<Vec<(String, u64, DailyUsage)>, DatabaseError> {
        let transaction = database.transaction()?;
        let mut totals = Vec::new();
        for (owner, day, used) in &self.used {
            usage::add(&transaction, owner, *day, *used)?;
            totals.push((owner.clone(), *day, usage::used(&transaction, owner, *day)?));
        }
        for (owner, at) in &self.seen {
            crate::records::keys::used(&transaction, owner, *at)?;
        }
        transaction.commit()?;
        Ok(totals)
    }
}

impl Rate {
    /// Takes one of so many per minute, or says after how many seconds there is one.
    pub(super) fn take(&mut self, per_minute: u64, now: Instant) -> Result<(), u64> {
        #[expect(clippy::cast_precision_loss, reason = "a limit that large is none")]
        let most = per_minute as f64;
        let passed = self.since.map_or(0.0, |since| (now - since).as_secs_f64());
        self.since = Some(now);
        self.taken = (self.taken - passed * most / 60.0).max(0.0);
        let missing = self.taken + 1.0 - most;
        if missing <= 0.0 {
            self.taken += 1.0;
            return Ok(());
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1 and 60"
        )]
        let seconds = (missing * 60.0 / most).ceil().clamp(1.0, 60.0) as u64;
        Err(seconds)
    }
}

const fn sum(one: DailyUsage, other: DailyUsage) -> DailyUsage {
    DailyUsage {
        cells: one.cells.saturating_add(other.cells),
        cell_millis: one.cell_millis.saturating_add(other.cell_millis),
        upload_bytes: one.upload_bytes.saturating_add(other.upload_bytes),
        fetches: one.fetches.saturating_add(other.fetches),
        fetched_bytes: one.fetched_bytes.saturating_add(other.fetched_bytes),
        layers: one.layers.saturating_add(other.layers),
    }
}
