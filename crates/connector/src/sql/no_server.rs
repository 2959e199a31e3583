//! A kind of server that this build cannot read. Its URL is rejected, so that nothing here is called.

use std::future::{Ready, ready};
use std::time::Instant;

use cellblock_interpreter::connector::{ConnectorError, FetchAnswer};
use serde_json::{Map, Value};

use super::describe::Description;
use super::result::Limits;
use super::statement::StatementText;
use super::target::ServerTarget;

pub(super) fn query(
    _: &ServerTarget,
    _: &StatementText,
    _: &Map<String, Value>,
    _: Limits,
    _: Instant,
) -> Ready<Result<FetchAnswer, ConnectorError>> {
    ready(Err(unread()))
}

pub(super) fn check(_: &ServerTarget, _: Instant) -> Ready<Result<(), ConnectorError>> {
    ready(Err(unread()))
}

pub(super) fn describe(
    _: &ServerTarget,
    _: &[StatementText],
    _: usize,
    _: Instant,
) -> Ready<Result<Description, ConnectorError>> {
    ready(Err(unread()))
}

fn unread() -> ConnectorError {
    ConnectorError::provider("this build cannot read such a database")
}
