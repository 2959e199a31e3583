//! Sandboxes that owners have at once: counted in memory, and together with those in other gateways if these share the records.

use std::time::Duration;

use cellblock_agent::wire::ApiError;
use tokio::runtime::Handle;

use super::ledger::Account;
use super::{ExceededQuota, LATER, Quota, Quotas, SandboxPermit};
use crate::records::RecordsError;
use crate::records::places::{self, OwnerPlace};

/// How long to wait before what could not be written is written again.
const AGAIN: Duration = Duration::from_secs(5);

impl Quotas {
    /// Asks for a session or a container, for as long as the permit is held.
    pub async fn sandbox(&self, owner: &str) -> Result<SandboxPermit, ApiError> {
        self.try_sandbox(owner)
            .await?
            .map_err(|refused| refused.of(owner))
    }

    /// The same for one that can wait: nothing is logged or counted where there is none.
    pub(crate) async fn try_sandbox(
        &self,
        owner: &str,
    ) -> Result<Result<SandboxPermit, ExceededQuota>, RecordsError> {
        self.load(owner).await?;
        let (place, most) = {
            let mut ledger = self.ledger();
            let account = ledger.account(owner);
            let most = account.most(Quota::Sandboxes);
            if u64::from(account.sandboxes) >= most {
                return Ok(Err(no_sandbox(most)));
            }
            let Some(place) = self.place(owner, most) else {
                return Ok(Ok(self.admit(owner, account)));
            };
            (place, most)
        };
        let quotas = self.clone();
        let entered = self.0.records.with(move |database| {
            let mut permit = None;
            let own = || quotas.sandboxes(&place.owner);
            places::enter(database, &place, most, own, || {
                let mut ledger = quotas.ledger();
                permit = Some(quotas.admit(&place.owner, ledger.account(&place.owner)));
            })?;
            // If it could not be entered, or nobody waits for it any more, it is dropped, and the number entered again.
            Ok(permit)
        });
        Ok(entered.await?.ok_or_else(|| no_sandbox(most)))
    }

    /// Counts a sandbox here.
    fn admit(&self, owner: &str, account: &mut Account) -> SandboxPermit {
        account.sandboxes += 1;
        SandboxPermit::new(self.clone(), owner.to_owned())
    }

    /// Where the sandboxes of an owner are counted together with those in other gateways, if they are limited.
    fn place(&self, owner: &str, most: u64) -> Option<OwnerPlace> {
        (most < u64::MAX && self.0.records.is_shared()).then(|| OwnerPlace {
            owner: owner.to_owned(),
            gateway: self.0.gateway.clone(),
        })
    }

    fn sandboxes(&self, owner: &str) -> u64 {
        self.ledger().account(owner).sandboxes.into()
    }

    /// Tells the other gateways that an owner has fewer sandboxes here.
    pub(super) fn leave(&self, owner: &str) {
        let most = self.ledger().account(owner).most(Quota::Sandboxes);
        let (Some(place), Ok(runtime)) = (self.place(owner, most), Handle::try_current()) else {
            return;
        };
        let quotas = self.clone();
        runtime.spawn(async move {
            // The last one counts the sandboxes that there are then.
            loop {
                let (own, place) = (quotas.clone(), place.clone());
                let left = quotas
                    .0
                    .records
                    .with(move |database| places::leave(database, &place, || own.sandboxes(&place.owner)));
                match left.await {
                    Ok(()) => return,
                    Err(error) => tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "count the sandboxes of a key"
                    ),
                }
                tokio::time::sleep(AGAIN).await;
            }
        });
    }
}

const fn no_sandbox(most: u64) -> ExceededQuota {
    ExceededQuota {
        quota: Quota::Sandboxes,
        most,
        seconds: LATER,
    }
}
