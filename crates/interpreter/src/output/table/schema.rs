//! The schema of a table: checked as a flatbuffer, then converted, then stripped of its annotations.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::{Endianness, KeyValue, Type};
use arrow_schema::{
    DECIMAL32_MAX_PRECISION, DECIMAL64_MAX_PRECISION, DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION,
    DataType, Field, FieldRef, Schema, SchemaRef,
};

use super::message::Raw;
use crate::output::{DecodingLimits, OutputError};

/// The annotation by which pandas restores its index.
pub(super) const PANDAS: &str = "pandas";
/// The longest name of a time zone that is one.
const ZONE: usize = 64;
const SHOWN: usize = 100;

/// A schema that is sound, and that can be stored or not.
pub(super) enum SchemaCheck {
    Plain(SchemaRef),
    Unsupported(String),
}

/// State of a walk over a schema.
struct SchemaWalk<'a> {
    limits: &'a DecodingLimits,
    fields: usize,
    text: u64,
    unsupported: Option<String>,
}

/// Checks the first message of a stream.
pub(super) fn check(raw: &Raw, limits: &DecodingLimits) -> Result<SchemaCheck, OutputError> {
    let message = raw.message()?;
    let schema = message
        .header_as_schema()
        .ok_or_else(|| OutputError::table("its stream does not begin with a schema"))?;
    if schema.endianness() != Endianness::Little {
        return Err(OutputError::table("its numbers are big-endian"));
    }
    let mut met = SchemaWalk {
        limits,
        fields: 0,
        text: 0,
        unsupported: None,
    };
    for field in schema.fields().into_iter().flatten() {
        met.field(field, 0)?;
    }
    met.annotations(schema.custom_metadata())?;
    if let Some(unsupported) = met.unsupported {
        return Ok(SchemaCheck::Unsupported(unsupported));
    }
    let schema = try_fb_to_schema(schema)?;
    for field in schema.fields() {
        if let Err(what) = sound(field.data_type()) {
            let name: String = field.name().chars().take(SHOWN).collect();
            return Err(OutputError::table(format!(
                "the type of its column {name:?} {what}"
            )));
        }
    }
    let fields: Vec<FieldRef> = schema.fields().iter().map(|field| strip(field, true)).collect();
    let kept = schema
        .metadata()
        .get(PANDAS)
        .map(|value| (PANDAS.to_owned(), value.clone()));
    let kept: HashMap<_, _> = kept.into_iter().collect();
    Ok(SchemaCheck::Plain(Arc::new(Schema::new_with_metadata(
        fields, kept,
    ))))
}

impl SchemaWalk<'_> {
    fn field(&mut self, field: arrow_ipc::Field<'_>, depth: usize) -> Result<(), OutputError> {
        let over = |what, limit: usize, actual: usize| {
            Err(OutputError::Limit {
                what,
                limit: limit as u64,
                actual: actual as u64,
            })
        };
        self.fields += 1;
        if self.fields > self.limits.columns {
            return over("table in columns", self.limits.columns, self.fields);
        }
        if depth >= self.limits.depth {
            return over("nesting of a column's type", self.limits.depth, depth + 1);
        }
        self.text(field.name().unwrap_or_default())?;
        self.annotations(field.custom_metadata())?;
        if field.dictionary().is_some() {
            self.refuse(field, "a dictionary");
        }
        let name = match field.type_type() {
            Type::Null
            | Type::Int
            | Type::FloatingPoint
            | Type::Binary
            | Type::Utf8
            | Type::Bool
            | Type::Decimal
            | Type::Date
            | Type::Time
            | Type::Timestamp
            | Type::List
            | Type::FixedSizeBinary
            | Type::FixedSizeList
            | Type::Map
            | Type::Duration
            | Type::LargeBinary
            | Type::LargeUtf8
            | Type::LargeList => None,
            Type::Struct_ => field
                .children()
                .is_none_or(|fields| fields.is_empty())
                .then_some("an empty struct"),
            Type::Interval => Some("an interval"),
            Type::Union => Some("a union"),
            Type::RunEndEncoded => Some("run ends"),
            Type::BinaryView | Type::Utf8View | Type::ListView | Type::LargeListView => Some("a view"),
            _ => return Err(OutputError::table("a column has a type that Arrow does not know")),
        };
        if let Some(name) = name {
            self.refuse(field, name);
        }
        if let Some(zone) = field.type_as_timestamp().and_then(|kind| kind.timezone())
            && zone.len() > ZONE
        {
            return over("name of a time zone in bytes", ZONE, zone.len());
        }
        field
            .children()
            .into_iter()
            .flatten()
            .try_for_each(|child| self.field(child, depth + 1))
    }

    fn refuse(&mut self, field: arrow_ipc::Field<'_>, what: &str) {
        let name: String = field.name().unwrap_or_default().chars().take(SHOWN).collect();
        self.unsupported.get_or_insert_with(|| {
            format!(
                "column {name:?} holds {what}, which can not be stored: convert it to strings or \
                 plain numbers"
            )
        });
    }

    /// Flatbuffers may share one string among many fields; each conversion copies it.
    fn text(&mut self, text: &str) -> Result<(), OutputError> {
        self.text += text.len() as u64;
        let limit = self.limits.description_bytes;
        if self.text > limit {
            return Err(OutputError::Limit {
                what: "names of a table in bytes",
                limit,
                actual: self.text,
            });
        }
        Ok(())
    }

    fn annotations<'b>(
        &mut self,
        pairs: Option<impl IntoIterator<Item = KeyValue<'b>>>,
    ) -> Result<(), OutputError> {
        for pair in pairs.into_iter().flatten() {
            self.text(pair.key().unwrap_or_default())?;
            self.text(pair.value().unwrap_or_default())?;
        }
        Ok(())
    }
}

/// Finds what the flatbuffer allows but Arrow's own code takes for granted.
fn sound(data_type: &DataType) -> Result<(), &'static str> {
    match data_type {
        DataType::FixedSizeBinary(size) if *size <= 0 => Err("has values without bytes"),
        DataType::FixedSizeList(item, size) => {
            if *size <= 0 {
                Err("has lists without items")
            } else {
                sound(item.data_type())
            }
        }
        DataType::List(item) | DataType::LargeList(item) => sound(item.data_type()),
        DataType::Struct(fields) => fields.iter().try_for_each(|field| sound(field.data_type())),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 => {
                pair.iter().try_for_each(|field| sound(field.data_type()))
            }
            _ => Err("is a map whose entries are not pairs"),
        },
        DataType::Decimal32(precision, scale) => decimal(*precision, *scale, DECIMAL32_MAX_PRECISION),
        DataType::Decimal64(precision, scale) => decimal(*precision, *scale, DECIMAL64_MAX_PRECISION),
        DataType::Decimal128(precision, scale) => decimal(*precision, *scale, DECIMAL128_MAX_PRECISION),
        DataType::Decimal256(precision, scale) => decimal(*precision, *scale, DECIMAL256_MAX_PRECISION),
        _ => Ok(()),
    }
}

fn decimal(precision: u8, scale: i8, most: u8) -> Result<(), &'static str> {
    if precision > most {
        return Err("is a decimal of more digits than its bytes hold");
    }
    let fits = scale.unsigned_abs() <= precision && precision > 0 && scale >= 0;
    if fits {
        Ok(())
    } else {
        Err("is a decimal whose scale does not fit its precision")
    }
}

/// Drops annotations, which other readers may act on: extension types name code.
fn strip(field: &FieldRef, nullable: bool) -> FieldRef {
    let keep = |field: &FieldRef| strip(field, field.is_nullable());
    let data_type = match field.data_type() {
        DataType::List(item) => DataType::List(keep(item)),
        DataType::LargeList(item) => DataType::LargeList(keep(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(keep(item), *size),
        DataType::Map(entries, sorted) => DataType::Map(keep(entries), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(keep).collect()),
        plain => plain.clone(),
    };
    Arc::new(Field::new(field.name(), data_type, nullable).with_metadata(HashMap::new()))
}
