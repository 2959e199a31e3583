//! The artifact store of this machine's user.

use cellblock_artifact::{ArtifactError, Store};
use cellblock_image::Home;

use crate::env_vars::REMOTE_STORE;
use crate::error::{Error, Result};

/// Opens the store in the data directory, in front of a remote one if the environment names one.
pub(crate) async fn open(home: &Home) -> Result<Store> {
    let failed = |source: ArtifactError| Error::Store {
        action: "open the store of artifacts",
        source,
    };
    let local = Store::local(home.root().join("artifacts")).map_err(failed)?;
    match REMOTE_STORE.get() {
        Some(address) => {
            let remote = Store::open(&address).await.map_err(failed)?;
            Ok(Store::tiered(local, remote))
        }
        None => Ok(local),
    }
}
