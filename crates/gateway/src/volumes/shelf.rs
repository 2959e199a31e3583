//! Volumes for the dialects that are mounted with the gateway's routes.

use axum::http::StatusCode;
use cellblock_interpreter::hosting::{Owner, ShelfError, VolumeShelf, VolumeSummary};
use cellblock_interpreter::volume::SessionVolume;
use futures_util::future::BoxFuture;

use super::open::{VolumeRequest, held, open};
use super::{missing, operate};
use crate::problem::Problem;
use crate::records::{Page, RecordsError, VolumeRemoval};
use crate::state::sessions::VolumeAccess;
use crate::state::{Caller, Gateway};

/// The volumes of a gateway, by their owners.
#[derive(Clone, Debug)]
pub struct OwnerVolumes(Gateway);

impl OwnerVolumes {
    /// The volumes of this gateway.
    pub fn new(gateway: &Gateway) -> Self {
        Self(gateway.clone())
    }

    async fn open(
        &self,
        owner: &Owner,
        name: &str,
        access: VolumeAccess,
        session: &str,
    ) -> Result<SessionVolume, ShelfError> {
        let caller = Caller {
            owner: owner.name().to_owned(),
        };
        let request = VolumeRequest {
            name,
            access,
            session,
            // Its files are not written into a sandbox as they are.
            disk: u64::MAX,
        };
        open(&self.0, &caller, &request).await.map_err(|it| refused(&it))
    }
}

impl VolumeShelf for OwnerVolumes {
    fn read<'a>(
        &'a self,
        owner: &'a Owner,
        name: &'a str,
    ) -> BoxFuture<'a, Result<SessionVolume, ShelfError>> {
        Box::pin(self.open(owner, name, VolumeAccess::Read, ""))
    }

    fn write<'a>(
        &'a self,
        owner: &'a Owner,
        name: &'a str,
        writer: &'a str,
    ) -> BoxFuture<'a, Result<SessionVolume, ShelfError>> {
        Box::pin(self.open(owner, name, VolumeAccess::Write, writer))
    }

    fn list<'a>(&'a self, owner: &'a Owner) -> BoxFuture<'a, Result<Vec<VolumeSummary>, ShelfError>> {
        Box::pin(async move {
            let found = self.0.records.volumes(owner.name(), Page::all()).await;
            let rows = found.map_err(failed)?.map(|page| page.rows).unwrap_or_default();
            let summary = rows.into_iter().map(|row| VolumeSummary {
                name: row.name,
                bytes: u64::try_from(row.bytes).unwrap_or(0),
            });
            Ok(summary.collect())
        })
    }

    fn remove<'a>(&'a self, owner: &'a Owner, name: &'a str) -> BoxFuture<'a, Result<(), ShelfError>> {
        Box::pin(async move {
            let removed = self.0.records.remove_volume(owner.name(), name).await;
            match removed.map_err(failed)? {
                VolumeRemoval::Removed(row) => {
                    operate::forget_contents(&self.0.store, &row.id).await;
                    Ok(())
                }
                VolumeRemoval::Writing(row) => Err(refused(&held(&row, "try again when it has ended"))),
                VolumeRemoval::Missing => Err(refused(&missing(name))),
            }
        })
    }
}

fn refused(problem: &Problem) -> ShelfError {
    let message = problem.error().message.clone();
    match problem.status() {
        StatusCode::NOT_FOUND => ShelfError::Missing(message),
        StatusCode::CONFLICT => ShelfError::Held(message),
        StatusCode::BAD_REQUEST => ShelfError::Invalid(message),
        status if status.is_server_error() => ShelfError::Failed(message),
        _ => ShelfError::Full(message),
    }
}

fn failed(error: RecordsError) -> ShelfError {
    refused(&error.into())
}
