//! Limited resources, and the allowed amount of each.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::options::QuotaOptions;

/// Something that is limited for each owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quota {
    /// Sessions and containers that there are at once.
    Sandboxes,
    /// Cells and commands that run at once.
    ConcurrentCells,
    /// Cells and commands that are begun in a minute; a minute's worth may come at once.
    CellsPerMinute,
    /// Seconds that cells and commands run on a day (UTC), by the clock.
    CellSecondsPerDay,
    /// Requests of connectors that code makes in a minute; a minute's worth may come at once.
    FetchesPerMinute,
    /// Bytes that code fetches with connectors on a day (UTC).
    FetchedBytesPerDay,
    /// Bytes that are uploaded on a day (UTC).
    UploadBytesPerDay,
    /// Layers of required packages that are installed on a day (UTC).
    LayersPerDay,
    /// Bytes of files, volumes, results of tools, responses and conversations that are kept.
    StoredBytes,
}

/// A name that no quota has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no quota `{0}`; there are {known}", known = Quota::ALL.map(Quota::name).join(", "))]
pub struct UnknownQuota(String);

impl Quota {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Sandboxes,
        Self::ConcurrentCells,
        Self::CellsPerMinute,
        Self::CellSecondsPerDay,
        Self::FetchesPerMinute,
        Self::FetchedBytesPerDay,
        Self::UploadBytesPerDay,
        Self::LayersPerDay,
        Self::StoredBytes,
    ];

    /// Its name in every interface.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sandboxes => "sandboxes",
            Self::ConcurrentCells => "concurrent_cells",
            Self::CellsPerMinute => "cells_per_minute",
            Self::CellSecondsPerDay => "cell_seconds_per_day",
            Self::FetchesPerMinute => "fetches_per_minute",
            Self::FetchedBytesPerDay => "fetched_bytes_per_day",
            Self::UploadBytesPerDay => "upload_bytes_per_day",
            Self::LayersPerDay => "layers_per_day",
            Self::StoredBytes => "stored_bytes",
        }
    }
}

impl FromStr for Quota {
    type Err = UnknownQuota;

    fn from_str(name: &str) -> Result<Self, UnknownQuota> {
        let found = Self::ALL.into_iter().find(|quota| quota.name() == name);
        found.ok_or_else(|| UnknownQuota(name.to_owned()))
    }
}

/// Allowed amounts by quota. What is not named is not limited, unless something below says so; `null` lifts a
/// limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Allowance(BTreeMap<Quota, Option<u64>>);

impl From<&QuotaOptions> for Allowance {
    fn from(options: &QuotaOptions) -> Self {
        Self(BTreeMap::from([
            (Quota::Sandboxes, options.sandboxes),
            (Quota::ConcurrentCells, options.concurrent_cells),
            (Quota::CellsPerMinute, options.cells_per_minute),
            (Quota::CellSecondsPerDay, options.cell_seconds_per_day),
            (Quota::FetchesPerMinute, options.fetches_per_minute),
            (Quota::FetchedBytesPerDay, options.fetched_bytes_per_day),
            (Quota::UploadBytesPerDay, options.upload_bytes_per_day),
            (Quota::StoredBytes, options.stored_bytes),
        ]))
    }
}

impl Allowance {
    /// Allows so much of something; `None` any amount.
    #[must_use]
    pub fn with(mut self, quota: Quota, most: Option<u64>) -> Self {
        self.0.insert(quota, most);
        self
    }

    /// This, where the other one says nothing else.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Returns its amounts, by quota.
    pub fn iter(&self) -> impl Iterator<Item = (Quota, Option<u64>)> {
        self.0.iter().map(|(quota, most)| (*quota, *most))
    }

    /// Returns the allowed amount.
    pub(crate) fn most(&self, quota: Quota) -> u64 {
        self.0.get(&quota).copied().flatten().unwrap_or(u64::MAX)
    }
}
