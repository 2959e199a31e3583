//! Values of Postgres, in its binary form.

use std::error::Error;

use arrow_schema::{DataType, TimeUnit};
use tokio_postgres::Column;
use tokio_postgres::types::{FromSql, Kind, Type};

use crate::sql::cells::{Cell, LOCAL, decimal, unscaled, utc};

/// Days and microseconds from 1970 to 2000, from which Postgres counts.
const DAYS: i32 = 10_957;
const MICROSECONDS: i64 = 946_684_800_000_000;

/// Form in which values of a column are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Bool,
    Int2,
    Int4,
    Int8,
    Oid,
    Float4,
    Float8,
    Numeric,
    Text,
    Bytes,
    Date,
    Time,
    Timestamp,
    Jsonb,
    Uuid,
}

/// Any value.
pub(super) struct Raw<'a>(pub(super) &'a [u8]);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(raw))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Returns how a column is read, and as what. Any other type is converted to text by the server.
pub(super) fn form(column: &Column) -> Option<(Form, DataType)> {
    Some(match *column.type_() {
        Type::BOOL => (Form::Bool, DataType::Boolean),
        Type::INT2 => (Form::Int2, DataType::Int64),
        Type::INT4 => (Form::Int4, DataType::Int64),
        Type::INT8 => (Form::Int8, DataType::Int64),
        Type::OID => (Form::Oid, DataType::Int64),
        Type::FLOAT4 => (Form::Float4, DataType::Float32),
        Type::FLOAT8 => (Form::Float8, DataType::Float64),
        Type::NUMERIC => (Form::Numeric, numeric(column.type_modifier())),
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::JSON | Type::XML | Type::UNKNOWN => {
            (Form::Text, DataType::Utf8)
        }
        Type::BYTEA => (Form::Bytes, DataType::Binary),
        Type::DATE => (Form::Date, DataType::Date32),
        Type::TIME => (Form::Time, DataType::Time64(TimeUnit::Microsecond)),
        Type::TIMESTAMP => (Form::Timestamp, LOCAL),
        Type::TIMESTAMPTZ => (Form::Timestamp, utc()),
        Type::JSONB => (Form::Jsonb, DataType::Utf8),
        Type::UUID => (Form::Uuid, DataType::Utf8),
        ref other if matches!(other.kind(), Kind::Enum(_)) => (Form::Text, DataType::Utf8),
        _ => return None,
    })
}

/// Returns the type of numbers whose digits a column declares.
fn numeric(modifier: i32) -> DataType {
    let Ok(digits) = u32::try_from(modifier - 4) else {
        return DataType::Utf8;
    };
    decimal(digits >> 16, digits & 0x7ff)
}

impl Form {
    /// Reads a value; texts that have no bytes of their own are written to `room`.
    pub(super) fn cell<'a>(
        self,
        bytes: &'a [u8],
        kind: &DataType,
        room: &'a mut String,
    ) -> Result<Cell<'a>, String> {
        let cell = match self {
            Self::Bool => Cell::Bool(fixed::<1>(bytes)? != [0]),
            Self::Int2 => Cell::Int(i16::from_be_bytes(fixed(bytes)?).into()),
            Self::Int4 => Cell::Int(i32::from_be_bytes(fixed(bytes)?).into()),
            Self::Int8 => Cell::Int(i64::from_be_bytes(fixed(bytes)?)),
            Self::Oid => Cell::Int(u32::from_be_bytes(fixed(bytes)?).into()),
            Self::Float4 => Cell::Float32(f32::from_be_bytes(fixed(bytes)?)),
            Self::Float8 => Cell::Float(f64::from_be_bytes(fixed(bytes)?)),
            Self::Numeric => {
                *room = number(bytes).ok_or("the value is malformed")?;
                match kind {
                    DataType::Decimal128(_, scale) => {
                        let value = unscaled(room, *scale);
                        Cell::Decimal(
                            value.ok_or_else(|| format!("the value {room} is not a decimal number"))?,
                        )
                    }
                    _ => Cell::Text(room),
                }
            }
            Self::Text => Cell::Text(text(bytes)?),
            Self::Bytes => Cell::Bytes(bytes),
            Self::Date => match i32::from_be_bytes(fixed(bytes)?) {
                i32::MIN | i32::MAX => return Err("the value is infinite".to_owned()),
                days => Cell::Date(days.checked_add(DAYS).ok_or("the value is too large")?),
            },
            Self::Time => Cell::Time(i64::from_be_bytes(fixed(bytes)?)),
            Self::Timestamp => match i64::from_be_bytes(fixed(bytes)?) {
                i64::MIN | i64::MAX => return Err("the value is infinite".to_owned()),
                time => Cell::Timestamp(time.checked_add(MICROSECONDS).ok_or("the value is too large")?),
            },
            // A version, and the text.
            Self::Jsonb => Cell::Text(text(bytes.get(1..).unwrap_or_default())?),
            Self::Uuid => {
                let hex = format!("{:032x}", u128::from_be_bytes(fixed(bytes)?));
                *room = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-");
                Cell::Text(room)
            }
        };
        Ok(cell)
    }
}

fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], String> {
    bytes.try_into().map_err(|_| "the value is malformed".to_owned())
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    str::from_utf8(bytes).map_err(|_| "the text is not UTF-8".to_owned())
}

/// Writes a number out: digits in groups of four, of which the first has the place `weight`.
fn number(bytes: &[u8]) -> Option<String> {
    let mut words = bytes
        .chunks_exact(2)
        .map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    let count = words.next()?;
    let weight = words.next()?.cast_signed();
    let sign = words.next()?;
    let scale = usize::from(words.next()?);
    let groups: Vec<u16> = words.collect();
    if groups.len() != usize::from(count) {
        return None;
    }
    let sign = match sign {
        0 => "",
        0x4000 => "-",
        0xc000 => return Some("NaN".to_owned()),
        0xd000 => return Some("Infinity".to_owned()),
        0xf000 => return Some("-Infinity".to_owned()),
        _ => return None,
    };
    let group = |place: i32| {
        let at = usize::try_from(i32::from(weight) - place).ok();
        at.and_then(|at| groups.get(at)).copied().unwrap_or_default()
    };
    let written = |places: &mut dyn Iterator<Item = i32>| {
        let groups = places.map(|place| format!("{:04}", group(place)));
        groups.collect::<Vec<_>>().concat()
    };
    let whole = written(&mut (0..=i32::from(weight).max(0)).rev());
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    let places = i32::try_from(scale.div_ceil(4)).ok()?;
    let mut part = written(&mut (1..=places).map(|place| -place));
    part.truncate(scale);
    Some(if part.is_empty() {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{part}")
    })
}
