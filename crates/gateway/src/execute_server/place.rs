//! Location of a server: always at the same address, or in something that is started for each call, such as a
//! pod.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use reqwest::Url;

use super::address::base;
use super::error::ExecuteServerError;

/// Starts a server for one call; the error is the reason, in words for a person.
pub type StartExecuteServer =
    Arc<dyn Fn() -> BoxFuture<'static, Result<StartedExecuteServer, String>> + Send + Sync>;

/// A server for one call.
pub struct StartedExecuteServer {
    /// Its address, below which are `/execute` and `/health`.
    pub url: String,
    /// Dropped after the call: ends the server.
    pub keep: Box<dyn Send + Sync>,
}

impl std::fmt::Debug for StartedExecuteServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut started = formatter.debug_struct("StartedExecuteServer");
        started.field("url", &self.url).finish_non_exhaustive()
    }
}

/// Location of a server.
#[derive(Clone)]
pub(super) enum ExecutePlace {
    Fixed(Url),
    Started(StartExecuteServer),
}

impl std::fmt::Debug for ExecutePlace {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fixed(url) => formatter.debug_tuple("Fixed").field(&url.as_str()).finish(),
            Self::Started(_) => formatter.write_str("Started"),
        }
    }
}

impl ExecutePlace {
    /// Returns the address for one call, and what has to be kept during it.
    pub(super) async fn find(
        &self,
        allow_plain: bool,
    ) -> Result<(Url, Option<Box<dyn Send + Sync>>), ExecuteServerError> {
        match self {
            Self::Fixed(url) => Ok((url.clone(), None)),
            Self::Started(start) => {
                let started = start().await;
                let started = started.map_err(|reason| ExecuteServerError::NotReady { reason })?;
                Ok((base(&started.url, allow_plain)?, Some(started.keep)))
            }
        }
    }
}
