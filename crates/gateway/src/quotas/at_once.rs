//! Sandboxes that owners have, and cells that they run, at once: counted in memory, and together
//! with those in other gateways if these share the records.

use std::time::Duration;

use cellblock_agent::wire::ApiError;
use tokio::runtime::Handle;

use super::{CellPermit, ExceededQuota, LATER, Quotas, SOON, SandboxPermit};
use crate::records::RecordsError;
use crate::records::places::{self, OwnerPlace, PlaceKind};

/// Time after which a failed write is tried again.
const AGAIN: Duration = Duration::from_secs(5);

impl Quotas {
    /// Asks for a session or a container, for as long as the permit is held.
    pub async fn sandbox(&self, owner: &str) -> Result<SandboxPermit, ApiError> {
        self.try_sandbox(owner)
            .await?
            .map_err(|refused| refused.of(self, owner))
    }

    /// The same for one that can wait: nothing is logged or counted where there is none.
    pub(crate) async fn try_sandbox(
        &self,
        owner: &str,
    ) -> Result<Result<SandboxPermit, ExceededQuota>, RecordsError> {
        self.load(owner).await?;
        self.enter(owner, PlaceKind::Sandboxes, SandboxPermit::new).await
    }

    /// Asks for the place of a cell.
    pub(super) async fn enter_cell(
        &self,
        owner: &str,
    ) -> Result<Result<CellPermit, ExceededQuota>, RecordsError> {
        self.enter(owner, PlaceKind::Cells, CellPermit::new).await
    }

    /// Counts one more, if its owner may have it.
    async fn enter<P: Send + 'static>(
        &self,
        owner: &str,
        kind: PlaceKind,
        permit: fn(Self, String) -> P,
    ) -> Result<Result<P, ExceededQuota>, RecordsError> {
        let (place, most) = {
            let mut ledger = self.ledger();
            let account = ledger.account(owner);
            let most = account.most(kind.quota());
            if u64::from(*account.at_once(kind)) >= most {
                return Ok(Err(none_left(kind, most)));
            }
            let Some(place) = self.place(owner, most) else {
                *account.at_once(kind) += 1;
                return Ok(Ok(permit(self.clone(), owner.to_owned())));
            };
            (place, most)
        };
        let quotas = self.clone();
        let entered = self.inner.records.with(move |database| {
            let mut entered = None;
            let own = || quotas.held(&place.owner, kind);
            places::enter(database, &place, kind, most, own, || {
                *quotas.ledger().account(&place.owner).at_once(kind) += 1;
                entered = Some(permit(quotas.clone(), place.owner.clone()));
            })?;
            // If it could not be entered, or nobody waits for it any more, it is dropped, and the
            // number entered again.
            Ok(entered)
        });
        Ok(entered.await?.ok_or_else(|| none_left(kind, most)))
    }

    /// Returns the place in which an owner's items are counted together with those in other gateways, if they
    /// are limited.
    fn place(&self, owner: &str, most: u64) -> Option<OwnerPlace> {
        (most < u64::MAX && self.inner.records.is_shared()).then(|| OwnerPlace {
            owner: owner.to_owned(),
            gateway: self.inner.gateway.clone(),
        })
    }

    fn held(&self, owner: &str, kind: PlaceKind) -> u64 {
        (*self.ledger().account(owner).at_once(kind)).into()
    }

    /// Tells the other gateways that an owner has less here.
    pub(super) fn leave(&self, owner: &str, kind: PlaceKind) {
        let most = self.ledger().account(owner).most(kind.quota());
        let (Some(place), Ok(runtime)) = (self.place(owner, most), Handle::try_current()) else {
            return;
        };
        let quotas = self.clone();
        runtime.spawn(async move {
            // The last one counts what there is then.
            loop {
                let (own, place) = (quotas.clone(), place.clone());
                let left = quotas.inner.records.with(move |database| {
                    places::leave(database, &place, kind, || own.held(&place.owner, kind))
                });
                match left.await {
                    Ok(()) => return,
                    Err(error) => tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "count what a key has at once"
                    ),
                }
                tokio::time::sleep(AGAIN).await;
            }
        });
    }
}

const fn none_left(kind: PlaceKind, most: u64) -> ExceededQuota {
    ExceededQuota {
        quota: kind.quota(),
        most,
        seconds: match kind {
            PlaceKind::Sandboxes => LATER,
            PlaceKind::Cells => SOON,
        },
    }
}
