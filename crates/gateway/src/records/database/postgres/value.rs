//! Values as Postgres has them.

use std::error::Error;

use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::records::database::DatabaseValue;

/// A value that a column of Postgres can have.
pub trait FromPostgres: for<'row> FromSql<'row> {}

impl<T: for<'row> FromSql<'row>> FromPostgres for T {}

impl DatabaseValue<'_> {
    /// Its type in Postgres, which cannot always infer it from the statement.
    pub(super) const fn kind(&self) -> Type {
        match self {
            Self::Text(_) => Type::TEXT,
            Self::Integer(_) => Type::INT8,
            Self::Bytes(_) => Type::BYTEA,
        }
    }
}

impl ToSql for DatabaseValue<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Text(Some(text)) => out.extend_from_slice(text.as_bytes()),
            Self::Integer(Some(number)) => out.extend_from_slice(&number.to_be_bytes()),
            Self::Bytes(bytes) => out.extend_from_slice(bytes),
            Self::Text(None) | Self::Integer(None) => return Ok(IsNull::Yes),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        // Each value is sent as the type that `kind` declares.
        true
    }

    to_sql_checked!();
}
