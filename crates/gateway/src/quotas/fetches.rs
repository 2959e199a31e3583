//! Requests of connectors, and packages that are installed, for code of sessions and containers.

use std::time::Duration;

use cellblock_agent::wire::ApiError;
use cellblock_interpreter::connector::{ConnectorError, ConnectorErrorKind, FetchAllowance};
use futures_util::future::BoxFuture;

use super::{ExceededQuota, Quota, Quotas, until_tomorrow};
use crate::records::RecordsError;
use crate::records::usage::DailyUsage;

/// Fetches that the code of one owner may make. All sessions of the owner share the quotas.
#[derive(Debug)]
pub(crate) struct OwnerFetches {
    quotas: Quotas,
    owner: String,
}

impl OwnerFetches {
    pub(crate) const fn new(quotas: Quotas, owner: String) -> Self {
        Self { quotas, owner }
    }
}

impl FetchAllowance for OwnerFetches {
    fn owner(&self) -> &str {
        &self.owner
    }

    fn begin(&self) -> BoxFuture<'_, Result<(), ConnectorError>> {
        Box::pin(async move {
            match self.quotas.try_fetch(&self.owner).await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(exceeded)) => Err(exceeded.of_fetch(&self.quotas, &self.owner)),
                Err(error) => {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        "could not check the quotas of a fetch"
                    );
                    Err(ConnectorError::new(
                        ConnectorErrorKind::Provider { status: None },
                        "the request was not made: the host could not check this key's quotas; its \
                         operator's log has the reason",
                    ))
                }
            }
        })
    }

    fn fetched(&self, bytes: u64) {
        self.quotas.ledger().account(&self.owner).add(DailyUsage {
            fetched_bytes: bytes,
            ..DailyUsage::default()
        });
    }

    fn install(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let counted = self.quotas.install(&self.owner).await;
            counted.map_err(|error| error.message)
        })
    }
}

impl ExceededQuota {
    fn of_fetch(self, quotas: &Quotas, owner: &str) -> ConnectorError {
        let retry_after = Some(Duration::from_secs(self.seconds));
        let ApiError { message, .. } = self.of(quotas, owner);
        let kind = ConnectorErrorKind::RateLimit { retry_after };
        ConnectorError::new(kind, format!("the request was not made: {message}"))
    }
}

impl Quotas {
    /// Counts a layer of packages that is about to be installed.
    async fn install(&self, owner: &str) -> Result<(), ApiError> {
        self.load(owner).await?;
        let mut ledger = self.ledger();
        let account = ledger.account(owner);
        let most = account.most(Quota::LayersPerDay);
        if account.used.layers >= most {
            return Err(self.refuse(owner, Quota::LayersPerDay, most, until_tomorrow()));
        }
        account.add(DailyUsage {
            layers: 1,
            ..DailyUsage::default()
        });
        Ok(())
    }

    /// Counts a request, if its owner may make one now. Answers are counted when they are there, so
    /// that requests at the same time can exceed the day's bytes by their answers.
    async fn try_fetch(&self, owner: &str) -> Result<Result<(), ExceededQuota>, RecordsError> {
        let (quota, used) = (Quota::FetchedBytesPerDay, self.used(owner).await?);
        let most = self.ledger().account(owner).most(quota);
        if used.fetched_bytes >= most {
            let seconds = until_tomorrow();
            return Ok(Err(ExceededQuota { quota, most, seconds }));
        }
        if let Err(refused) = self.pace(owner, Quota::FetchesPerMinute).await? {
            return Ok(Err(refused));
        }
        self.ledger().account(owner).add(DailyUsage {
            fetches: 1,
            ..DailyUsage::default()
        });
        Ok(Ok(()))
    }
}
