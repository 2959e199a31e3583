//! Uploads, which count against the bytes that their owner may send on a day, and some against
//! those that it may have stored.

use cellblock_agent::wire::ApiError;
use cellblock_interpreter::hosting::MeterDenial;
use cellblock_interpreter::hosting::uploads::UploadAllowance;

use super::{LATER, Quota, Quotas, until_tomorrow};
use crate::records::usage::DailyUsage;

/// Leave to receive an upload. What was received and is not kept does not count once this is dropped.
#[derive(Debug)]
pub struct UploadPermit {
    quotas: Quotas,
    owner: String,
    /// Bytes that are received and not kept.
    taken: u64,
    /// Bytes of the upload that its owner keeps stored, together with what was stored before, if
    /// they are to be stored.
    stored: Option<u64>,
}

impl Quotas {
    /// Asks to receive an upload of at least so many bytes.
    pub async fn upload(&self, owner: &str, bytes: u64) -> Result<UploadPermit, ApiError> {
        self.load(owner).await?;
        let permit = UploadPermit {
            quotas: self.clone(),
            owner: owner.to_owned(),
            taken: 0,
            stored: None,
        };
        permit.check(bytes)?;
        Ok(permit)
    }

    /// Counts an upload that is in memory, as part of a JSON document.
    pub(crate) async fn uploaded(&self, owner: &str, bytes: u64) -> Result<(), ApiError> {
        let mut permit = self.upload(owner, bytes).await?;
        permit.add(bytes);
        permit.keep();
        Ok(())
    }
}

impl UploadPermit {
    /// The same for an upload of at least so many bytes that is stored in addition to `kept` ones.
    pub(crate) fn storing(mut self, kept: u64, bytes: u64) -> Result<Self, ApiError> {
        self.stored = Some(kept);
        self.check(bytes)?;
        Ok(self)
    }

    fn add(&mut self, bytes: u64) {
        self.quotas.ledger().account(&self.owner).uploading += bytes;
        self.taken += bytes;
        self.stored = self.stored.map(|kept| kept + bytes);
    }

    fn check(&self, more: u64) -> Result<(), ApiError> {
        let (quotas, owner) = (&self.quotas, &self.owner);
        let uses = {
            let mut ledger = quotas.ledger();
            let account = ledger.account(owner);
            let sent = account.used.upload_bytes.saturating_add(account.uploading);
            let of = |used, quota| (used, quota, account.most(quota));
            [
                Some(of(sent, Quota::UploadBytesPerDay)),
                self.stored.map(|kept| of(kept, Quota::StoredBytes)),
            ]
        };
        for (used, quota, most) in uses.into_iter().flatten() {
            if used.saturating_add(more) > most {
                let (seconds, remedy) = match quota {
                    Quota::StoredBytes => (LATER, "delete files"),
                    _ => (until_tomorrow(), "send less"),
                };
                let mut error = quotas.refuse(owner, quota, most, seconds);
                error.message = format!(
                    "the quota `{}` of this key is used up: its limit is {most} bytes, {used} are used, \
                     and {more} more were sent; {remedy}, or try again in {seconds} s",
                    quota.name()
                );
                return Err(error);
            }
        }
        Ok(())
    }
}

impl UploadAllowance for UploadPermit {
    fn take(&mut self, bytes: u64) -> Result<(), MeterDenial> {
        self.check(bytes).map_err(|error| MeterDenial(error.message))?;
        self.add(bytes);
        Ok(())
    }

    fn keep(&mut self) {
        let upload_bytes = std::mem::take(&mut self.taken);
        let mut ledger = self.quotas.ledger();
        let account = ledger.account(&self.owner);
        account.uploading -= upload_bytes;
        account.add(DailyUsage {
            upload_bytes,
            ..DailyUsage::default()
        });
    }
}

impl Drop for UploadPermit {
    fn drop(&mut self) {
        self.quotas.ledger().account(&self.owner).uploading -= self.taken;
    }
}
