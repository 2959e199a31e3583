//! The volume of a new session.

use cellblock_interpreter::Session;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::toolset::ToolsetKind;

use crate::problem::Problem;
use crate::state::sessions::{VolumeAccess, VolumeOfSession};
use crate::state::{Caller, Gateway};
use crate::volumes::{self, VolumeRequest};

/// Returns the volume that a request names, and the access to it.
pub(super) fn named(
    toolset: ToolsetKind,
    name: Option<String>,
    access: Option<VolumeAccess>,
) -> Result<Option<(String, VolumeAccess)>, Problem> {
    match name {
        Some(_) if toolset.on_results => {
            let message = "a derivation uses only the results that its contract names; leave the volume out";
            Err(Problem::invalid("volume", message))
        }
        Some(name) => Ok(Some((name, access.unwrap_or_default()))),
        None if access.is_none() => Ok(None),
        None => Err(Problem::invalid(
            "volume_access",
            "it is the access to a volume; give `volume`, too, or leave it out",
        )),
    }
}

/// Creates a session with its volume, which the session releases at its end.
pub(super) async fn begin(
    gateway: &Gateway,
    caller: &Caller,
    volume: Option<(String, VolumeAccess)>,
    disk: u64,
    mut options: SessionOptions,
) -> Result<(Session, Option<VolumeOfSession>), Problem> {
    let Some((name, access)) = volume else {
        return Ok((gateway.interpreter()?.session(options), None));
    };
    let (gateway, caller) = (gateway.clone(), caller.clone());
    // In a task of its own: if the client goes away while the volume is opened, there still is a
    // session that releases it.
    let tasks = gateway.tasks.clone();
    let beginning = tasks.spawn(async move {
        let request = VolumeRequest {
            name: &name,
            access,
            session: options.id.as_deref().unwrap_or_default(),
            disk,
        };
        let opened = volumes::open(&gateway, &caller, &request).await?;
        let of_session = VolumeOfSession {
            name: name.clone(),
            access,
            revision: opened.revision,
        };
        options.volume = Some(opened);
        Ok((gateway.interpreter()?.session(options), Some(of_session)))
    });
    let begun = beginning.await;
    begun.unwrap_or_else(|error| Err(Problem::internal("open the volume", &error)))
}
