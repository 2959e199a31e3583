//! The artifact store of this machine's user.

use cellblock_artifact::{ArtifactError, Store};
use cellblock_image::Home;

use crate::env_vars::REMOTE_STORE;
use crate::error::{Error, Result};

/// Opens the store in the data directory, in front of a remote one if the environment names one.
pub(crate) async fn open(home: &Home) -> Result<Store> {
    const ACTION: &str = "open the store of artifacts";
    let local = Store::local(home.root().join("artifacts")).map_err(failed(ACTION))?;
    match REMOTE_STORE.get() {
        Some(address) => {
            let remote = Store::open(&address).await.map_err(failed(ACTION))?;
            Ok(Store::tiered(local, remote))
        }
        None => Ok(local),
    }
}

/// Names the action of the store that failed.
pub(crate) fn failed(action: &'static str) -> impl FnOnce(ArtifactError) -> Error {
    move |source| Error::Store { action, source }
}
