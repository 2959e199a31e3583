//! Sessions whose limits or rescue differ from the default ones.

use cellblock_interpreter::Session;
use cellblock_interpreter::cell::Rescue;
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::session::SessionOptions;

use crate::backend::limits;
use crate::support::interpreter;

pub(crate) const MIB: u64 = 1 << 20;

/// A session whose variables are lost with its kernel.
pub(crate) async fn unrescued(change: impl FnOnce(&mut Limits)) -> Session {
    with(Rescue::Off, change).await
}

/// A session with a standby before every cell.
pub(crate) async fn rescuing(change: impl FnOnce(&mut Limits)) -> Session {
    with(Rescue::On, change).await
}

async fn with(rescue: Rescue, change: impl FnOnce(&mut Limits)) -> Session {
    let mut limits = limits();
    change(&mut limits);
    let options = SessionOptions {
        limits: Some(limits),
        rescue,
        ..SessionOptions::default()
    };
    interpreter().await.session(options)
}

/// A session whose limits differ from the default ones.
pub(crate) async fn limited(change: impl FnOnce(&mut Limits)) -> Session {
    with(SessionOptions::default().rescue, change).await
}
