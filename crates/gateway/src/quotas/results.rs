//! Results of tools, which count against the bytes that their owner may have stored.

use cellblock_agent::turn::EvidenceRoom;
use cellblock_agent::wire::ApiError;
use futures_util::future::BoxFuture;

use super::Quotas;
use crate::records::Records;
use cellblock_agent::turn::KeptResult;

/// The room of one owner for results.
#[derive(Debug)]
pub(crate) struct ResultRoom {
    quotas: Quotas,
    records: Records,
    owner: String,
}

impl ResultRoom {
    pub(crate) const fn new(quotas: Quotas, records: Records, owner: String) -> Self {
        Self {
            quotas,
            records,
            owner,
        }
    }
}

impl EvidenceRoom for ResultRoom {
    fn ask(&self, held: Vec<KeptResult>, new: KeptResult) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let kept = kept(&self.records, &self.owner, held, &new).await;
            let kept = kept.map_err(|error| error.to_string())?;
            // What is there already takes no room.
            let Some(kept) = kept else { return Ok(()) };
            let stored = self.quotas.store(&self.owner, kept, new.bytes).await;
            stored.map_err(|error| format!("it has {} bytes beside {kept} that are kept; {error}", new.bytes))
        })
    }
}

/// The bytes that an owner keeps, those that a turn holds included; nothing where the new result is
/// among them.
async fn kept(
    records: &Records,
    owner: &str,
    held: Vec<KeptResult>,
    new: &KeptResult,
) -> Result<Option<u64>, ApiError> {
    if held.contains(new) {
        return Ok(None);
    }
    let mut unkept = held;
    unkept.push(new.clone());
    unkept.sort_by(|one, other| one.sha256.cmp(&other.sha256));
    unkept.dedup();
    let unkept = records.not_kept(owner, unkept).await?;
    if !unkept.contains(new) {
        return Ok(None);
    }
    let held: u64 = unkept
        .iter()
        .filter(|result| *result != new)
        .map(|result| result.bytes)
        .sum();
    Ok(Some(records.stored_bytes(owner).await? + held))
}
