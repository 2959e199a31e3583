//! Decodes types from the tree; errors name the key and its position.

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;

use super::mistake::Mistake;
use super::node::{Key, Node, Origin, Value};

/// Reads a type.
pub(super) fn decode<'de, T: Deserialize<'de>>(node: &'de Node) -> Result<T, Mistake> {
    T::deserialize(ConfigReader(node))
}

/// Reads a part of the tree, also several times.
#[derive(Clone, Copy)]
pub(super) struct ConfigReader<'de>(pub(super) &'de Node);

impl<'de> ConfigReader<'de> {
    fn any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        match &self.0.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Integer(value) => integer(*value, visitor),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::Text(value) => visitor.visit_borrowed_str(value),
            Value::List(items) => visitor.visit_seq(Items { items, next: 0 }),
            Value::Map(entries) => visitor.visit_map(Entries { entries, next: 0 }),
        }
    }
}

fn integer<'de, V: Visitor<'de>>(value: i128, visitor: V) -> Result<V::Value, Mistake> {
    if let Ok(value) = u64::try_from(value) {
        return visitor.visit_u64(value);
    }
    match i64::try_from(value) {
        Ok(value) => visitor.visit_i64(value),
        Err(_) => Err(Mistake::custom(format_args!("the number {value} is too large"))),
    }
}

impl<'de> Deserializer<'de> for ConfigReader<'de> {
    type Error = Mistake;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        self.any(visitor)
            .map_err(|mistake| mistake.somewhere(&self.0.origin))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        match self.0.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    /// Variables have no quotes: where text is wanted, a number or a boolean is the text that
    /// was written.
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        let text = match (&self.0.origin, &self.0.value) {
            (Origin::Variable(_), Value::Bool(value)) => value.to_string(),
            (Origin::Variable(_), Value::Integer(value)) => value.to_string(),
            (Origin::Variable(_), Value::Float(value)) => value.to_string(),
            _ => return self.deserialize_any(visitor),
        };
        visitor
            .visit_string(text)
            .map_err(|mistake: Mistake| mistake.somewhere(&self.0.origin))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        self.deserialize_str(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        visitor
            .visit_newtype_struct(self)
            .map_err(|mistake: Mistake| mistake.somewhere(&self.0.origin))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        let read = match &self.0.value {
            Value::Text(text) => {
                let text: StrDeserializer<'_, Mistake> = text.as_str().into_deserializer();
                visitor.visit_enum(text)
            }
            Value::Map(entries) if entries.len() == 1 => {
                visitor.visit_enum(MapAccessDeserializer::new(Entries { entries, next: 0 }))
            }
            _ => Err(Mistake::invalid_type(self.found(), &"a name")),
        };
        read.map_err(|mistake| mistake.somewhere(&self.0.origin))
    }

    /// A section of which only the key was written is one without keys.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        self.deserialize_map(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        let read = match &self.0.value {
            Value::Null => visitor.visit_map(Entries {
                entries: &[],
                next: 0,
            }),
            Value::Map(entries) => visitor.visit_map(Entries { entries, next: 0 }),
            _ => Err(Mistake::invalid_type(self.found(), &"a mapping of keys")),
        };
        read.map_err(|mistake| mistake.somewhere(&self.0.origin))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct seq
        tuple tuple_struct identifier ignored_any
    }
}

impl ConfigReader<'_> {
    fn found(&self) -> Unexpected<'_> {
        match &self.0.value {
            Value::Null => Unexpected::Unit,
            Value::Bool(value) => Unexpected::Bool(*value),
            Value::Integer(value) => {
                i64::try_from(*value).map_or(Unexpected::Other("a number"), Unexpected::Signed)
            }
            Value::Float(value) => Unexpected::Float(*value),
            Value::Text(text) => Unexpected::Str(text),
            Value::List(_) => Unexpected::Seq,
            Value::Map(_) => Unexpected::Map,
        }
    }
}

struct Items<'de> {
    items: &'de [Node],
    next: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Mistake;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Mistake> {
        let Some(item) = self.items.get(self.next) else {
            return Ok(None);
        };
        let place = self.next.to_string();
        self.next += 1;
        let read = seed.deserialize(ConfigReader(item));
        read.map(Some)
            .map_err(|mistake| mistake.within(&place, &item.origin))
    }
}

struct Entries<'de> {
    entries: &'de [(Key, Node)],
    next: usize,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Mistake;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Mistake> {
        let Some((key, _)) = self.entries.get(self.next) else {
            return Ok(None);
        };
        let name: StrDeserializer<'_, Mistake> = key.name.as_str().into_deserializer();
        let read = seed.deserialize(name);
        read.map(Some)
            .map_err(|mistake| mistake.within(&key.name, &key.origin))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Mistake> {
        let Some((key, node)) = self.entries.get(self.next) else {
            return Err(Mistake::custom("a value was asked for before its key"));
        };
        self.next += 1;
        let read = seed.deserialize(ConfigReader(node));
        read.map_err(|mistake| mistake.within(&key.name, &node.origin))
    }
}
