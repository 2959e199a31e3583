//! Reading one row, or an invalid value in its place.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use super::{CellValue, MAX_TEXT, Row, RowReader, RowValue, ValueProblem};

/// Reads one row; returns none for a value that is not an object.
pub(super) struct RowVisitor<'a>(pub(super) &'a mut RowReader);

impl<'de> DeserializeSeed<'de> for RowVisitor<'_> {
    type Value = Option<Row>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Visitor methods for everything that is not an object.
macro_rules! no_row {
    ($($visit:ident($type:ty)),*) => {
        $(fn $visit<E>(self, _: $type) -> Result<Self::Value, E> { Ok(None) })*
    };
}

impl<'de> Visitor<'de> for RowVisitor<'_> {
    type Value = Option<Row>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row")
    }

    no_row!(
        visit_bool(bool),
        visit_i64(i64),
        visit_u64(u64),
        visit_f64(f64),
        visit_str(&str)
    );

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while let Some(IgnoredAny) = list.next_element()? {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut row = Row::new();
        while let Some((key, found)) = map.next_entry()? {
            self.0.take(&mut row, key, found);
        }
        Ok(Some(row))
    }
}

impl<'de> Deserialize<'de> for CellValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = CellValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<CellValue, E> {
        Ok(CellValue::Cell(RowValue::Null))
    }

    fn visit_bool<E>(self, _: bool) -> Result<CellValue, E> {
        Ok(CellValue::Wrong(ValueProblem::Bool))
    }

    fn visit_i64<E>(self, number: i64) -> Result<CellValue, E> {
        Ok(CellValue::Cell(RowValue::Number(number.into())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<CellValue, E> {
        Ok(CellValue::Cell(RowValue::Number(number.into())))
    }

    fn visit_f64<E>(self, number: f64) -> Result<CellValue, E> {
        Ok(CellValue::Cell(
            Number::from_f64(number).map_or(RowValue::Null, RowValue::Number),
        ))
    }

    fn visit_str<E>(self, text: &str) -> Result<CellValue, E> {
        Ok(if text.chars().count() > MAX_TEXT {
            CellValue::Wrong(ValueProblem::Text)
        } else {
            CellValue::Cell(RowValue::Text(text.to_owned()))
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<CellValue, A::Error> {
        while let Some(IgnoredAny) = list.next_element()? {}
        Ok(CellValue::Wrong(ValueProblem::Nested))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<CellValue, A::Error> {
        while let Some((IgnoredAny, IgnoredAny)) = map.next_entry()? {}
        Ok(CellValue::Wrong(ValueProblem::Nested))
    }
}
