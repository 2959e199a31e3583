//! Values of statements, and of the rows that they return.

use std::fmt::Display;

use rusqlite::types::{ToSqlOutput, ValueRef};

use super::DatabaseResult;
use super::postgres::{FromPostgres, PostgresIndex, PostgresRow};

/// A value of a statement's placeholder.
#[derive(Clone, Copy, Debug)]
pub enum DatabaseValue<'a> {
    /// Text, or null.
    Text(Option<&'a str>),
    /// An integer, or null. A boolean is 0 or 1.
    Integer(Option<i64>),
    /// Bytes.
    Bytes(&'a [u8]),
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
    Postgres(&'a PostgresRow),
}

impl DatabaseRow<'_> {
    /// Reads the value of a column, which has a place or a name: text, a 64-bit integer, bytes, or
    /// `None` for null.
    pub fn get<T>(&self, column: impl rusqlite::RowIndex + PostgresIndex + Display) -> DatabaseResult<T>
    where
        T: rusqlite::types::FromSql + FromPostgres,
    {
        match self {
            Self::Sqlite(row) => Ok(row.get(column)?),
            Self::Postgres(row) => Ok(row.try_get(column)?),
        }
    }

    /// Reads a boolean.
    pub fn is(&self, column: impl rusqlite::RowIndex + PostgresIndex + Display) -> DatabaseResult<bool> {
        Ok(self.get::<i64>(column)? != 0)
    }
}
