//! Quotas of an owner, and the used part of each.

use serde::Serialize;

use super::{Quota, Quotas};
use crate::records::RecordsError;

/// A quota of an owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub(crate) struct QuotaStanding {
    /// Name of the quota.
    #[schemars(with = "String")]
    pub(crate) quota: Quota,
    /// Its limit; absent if it is unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<u64>,
    /// Used amount now or today (UTC); absent if it is not counted in one place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) used: Option<u64>,
}

impl Quotas {
    /// Returns every quota of an owner with what is used of it.
    pub(crate) async fn standing(&self, owner: &str) -> Result<Vec<QuotaStanding>, RecordsError> {
        self.load(owner).await?;
        // Several gateways count what there is at once in the records, each its own part.
        let alone = !self.inner.records.is_shared();
        let mut ledger = self.ledger();
        let account = ledger.account(owner);
        let all = Quota::ALL.into_iter().map(|quota| {
            let most = account.most(quota);
            QuotaStanding {
                quota,
                limit: (most != u64::MAX).then_some(most),
                used: account.standing(quota, alone),
            }
        });
        Ok(all.collect())
    }
}
