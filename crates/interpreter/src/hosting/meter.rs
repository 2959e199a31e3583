//! Meter of what an owner may have and run.

use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use cellblock_sandbox::limits::NetworkPolicy;

use super::Owner;
use super::uploads::UploadAllowance;
use crate::connector::Connector;
use crate::session::SessionOptions;
use crate::skill::SessionSkill;

/// The requested resource, if it is known.
pub type Admission<'a, T> = Pin<Box<dyn Future<Output = Result<T, MeterDenial>> + Send + 'a>>;

/// Says how much an owner may have and run. It is asked before something begins; what it gives is
/// dropped when that has ended.
pub trait Meter: fmt::Debug + Send + Sync {
    /// Asked before a session is made.
    fn session<'a>(&'a self, owner: &'a Owner) -> Admission<'a, Permit>;

    /// Asked before a cell or a command runs, when it is its turn.
    fn cell<'a>(&'a self, owner: &'a Owner) -> Admission<'a, Permit>;

    /// Selects from the connectors of the server those that code of this owner may call; all by default.
    fn connectors<'a>(
        &'a self,
        _owner: &'a Owner,
        offered: &'a [Arc<dyn Connector>],
    ) -> Admission<'a, Vec<Arc<dyn Connector>>> {
        Box::pin(async { Ok(offered.to_vec()) })
    }

    /// Returns the network that code of this owner may use, if `offered` is the server's; that one
    /// by default.
    fn network<'a>(&'a self, _owner: &'a Owner, offered: NetworkPolicy) -> Admission<'a, NetworkPolicy> {
        Box::pin(async move { Ok(offered) })
    }

    /// Returns the options of a session of this owner, as far as they follow from who it is: how
    /// much its code may fetch, and what takes records of its runs and of its requests to hosts. By
    /// default, any amount and nothing.
    fn granted(&self, _owner: &Owner) -> SessionOptions {
        SessionOptions::default()
    }

    /// Returns the skills that a session of this owner has if its client cannot choose any; none by
    /// default.
    fn skills<'a>(&'a self, _owner: &'a Owner) -> Admission<'a, Vec<SessionSkill>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Asked before an upload of at least this many bytes is received, whose pieces are then taken
    /// from what it returns.
    fn upload<'a>(&'a self, owner: &'a Owner, bytes: u64) -> Admission<'a, Box<dyn UploadAllowance>>;

    /// Counts an upload that is in memory, as part of a JSON document.
    fn uploaded<'a>(&'a self, owner: &'a Owner, bytes: u64) -> Admission<'a, ()> {
        Box::pin(async move {
            let mut allowance = self.upload(owner, bytes).await?;
            allowance.take(bytes)?;
            allowance.keep();
            Ok(())
        })
    }
}

/// Leave to have or run something, given back when it is dropped.
pub struct Permit(#[expect(dead_code, reason = "held for what its end does")] Box<dyn Any + Send + Sync>);

impl Permit {
    /// One that is given back when this is dropped.
    pub fn new(held: impl Any + Send + Sync) -> Self {
        Self(Box::new(held))
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").finish_non_exhaustive()
    }
}

/// Reason of a denial: which limit it is, and when to try again, as a fragment that a model reads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MeterDenial(pub String);

/// Anything, for callers who are limited by nothing but the options.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnlimitedMeter;

impl Meter for UnlimitedMeter {
    fn session<'a>(&'a self, _: &'a Owner) -> Admission<'a, Permit> {
        Box::pin(async { Ok(Permit::new(())) })
    }

    fn cell<'a>(&'a self, _: &'a Owner) -> Admission<'a, Permit> {
        Box::pin(async { Ok(Permit::new(())) })
    }

    fn upload<'a>(&'a self, _: &'a Owner, _: u64) -> Admission<'a, Box<dyn UploadAllowance>> {
        Box::pin(async { Ok(Box::new(()) as _) })
    }
}
