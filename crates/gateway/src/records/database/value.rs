//! Values of statements, and of the rows that they return.

use std::error::Error;
use std::fmt::Display;

use rusqlite::types::{ToSqlOutput, ValueRef};
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use super::DatabaseResult;

/// A value of a statement's placeholder.
#[derive(Clone, Copy, Debug)]
pub enum DatabaseValue<'a> {
    /// Text, or null.
    Text(Option<&'a str>),
    /// An integer, or null. A truth value is 0 or 1.
    Integer(Option<i64>),
    /// Bytes.
    Bytes(&'a [u8]),
}

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

impl rusqlite::ToSql for DatabaseValue<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Text(Some(text)) => ValueRef::Text(text.as_bytes()),
            Self::Integer(Some(number)) => ValueRef::Integer(*number),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
            Self::Text(None) | Self::Integer(None) => ValueRef::Null,
        }))
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

/// Something that a placeholder can stand for.
pub trait ToDatabaseValue {
    /// Returns it as a value.
    fn value(&self) -> DatabaseValue<'_>;
}

impl ToDatabaseValue for str {
    fn value(&self) -> DatabaseValue<'_> {
        DatabaseValue::Text(Some(self))
    }
}

impl ToDatabaseValue for String {
    fn value(&self) -> DatabaseValue<'_> {
        DatabaseValue::Text(Some(self))
    }
}

impl ToDatabaseValue for Option<String> {
    fn value(&self) -> DatabaseValue<'_> {
        DatabaseValue::Text(self.as_deref())
    }
}

impl ToDatabaseValue for Option<&str> {
    fn value(&self) -> DatabaseValue<'_> {
        DatabaseValue::Text(*self)
    }
}

impl ToDatabaseValue for i64 {
    fn value(&self) -> DatabaseValue<'_> {
        DatabaseValue::Integer(Some(*self))
    }
}

impl ToDatabaseValue for Option<i64> {
    fn value(&self) -> DatabaseValue<'_> {
        DatabaseValue::Integer(*self)
    }
}

impl ToDatabaseValue for bool {
    fn value(&self) -> DatabaseValue<'_> {
        DatabaseValue::Integer(Some((*self).into()))
    }
}

impl ToDatabaseValue for [u8] {
    fn value(&self) -> DatabaseValue<'_> {
        DatabaseValue::Bytes(self)
    }
}

impl<const N: usize> ToDatabaseValue for [u8; N] {
    fn value(&self) -> DatabaseValue<'_> {
        DatabaseValue::Bytes(self)
    }
}

impl<T: ToDatabaseValue + ?Sized> ToDatabaseValue for &T {
    fn value(&self) -> DatabaseValue<'_> {
        (**self).value()
    }
}

/// A row that a statement returns.
#[derive(Debug)]
pub enum DatabaseRow<'a> {
    /// Of `SQLite`.
    Sqlite(&'a rusqlite::Row<'a>),
    /// Of Postgres.
    Postgres(&'a tokio_postgres::Row),
}

impl DatabaseRow<'_> {
    /// Reads the value of a column, which has a place or a name: text, a 64-bit integer, bytes, or `None` for null.
    pub fn get<T>(
        &self,
        column: impl rusqlite::RowIndex + tokio_postgres::row::RowIndex + Display,
    ) -> DatabaseResult<T>
    where
        T: rusqlite::types::FromSql + for<'row> tokio_postgres::types::FromSql<'row>,
    {
        match self {
            Self::Sqlite(row) => Ok(row.get(column)?),
            Self::Postgres(row) => Ok(row.try_get(column)?),
        }
    }

    /// Reads a truth value.
    pub fn is(
        &self,
        column: impl rusqlite::RowIndex + tokio_postgres::row::RowIndex + Display,
    ) -> DatabaseResult<bool> {
        Ok(self.get::<i64>(column)? != 0)
    }
}
