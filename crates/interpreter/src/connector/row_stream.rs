//! Rows of a JSON document, one at a time: a large list is never in memory as a whole.

use std::fmt;
use std::io::BufReader;

use cellblock_protocol::Blob;
use cellblock_settings::json::ARRAY;
use serde::de::{DeserializeSeed, Deserializer as _, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Deserializer, Value};

/// Calls back with each item of the list under a key of the document's object, or of the document
/// itself. The error is one of the document or of the callback.
pub(super) fn each_row(
    document: &Blob,
    key: Option<&str>,
    mut visit: impl FnMut(Value) -> Result<(), String>,
) -> Result<(), String> {
    let mut from = Deserializer::from_reader(BufReader::with_capacity(64 << 10, document.reader()));
    let items = Items(&mut visit);
    let read = match key {
        None => items.deserialize(&mut from),
        Some(key) => from.deserialize_map(RowFields { key, items }),
    };
    read.and_then(|()| from.end()).map_err(|error| error.to_string())
}

/// The items of a list.
struct Items<'a, F>(&'a mut F);

impl<'de, F: FnMut(Value) -> Result<(), String>> DeserializeSeed<'de> for Items<'_, F> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de, F: FnMut(Value) -> Result<(), String>> Visitor<'de> for Items<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ARRAY)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(item) = list.next_element()? {
            (self.0)(item).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

/// An object with such a list.
struct RowFields<'a, F> {
    key: &'a str,
    items: Items<'a, F>,
}

impl<'de, F: FnMut(Value) -> Result<(), String>> Visitor<'de> for RowFields<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with `{}`", self.key)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut is_found = false;
        while let Some(key) = fields.next_key::<String>()? {
            if key == self.key {
                fields.next_value_seed(Items(&mut *self.items.0))?;
                is_found = true;
            } else {
                fields.next_value::<IgnoredAny>()?;
            }
        }
        if is_found {
            return Ok(());
        }
        Err(A::Error::custom(format_args!("it has no `{}`", self.key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(document: &str, key: Option<&str>) -> Result<Vec<Value>, String> {
        let mut rows = Vec::new();
        let blob = Blob::from(document.as_bytes().to_vec());
        each_row(&blob, key, |row| {
            rows.push(row);
            Ok(())
        })?;
        Ok(rows)
    }

    #[test]
    fn items_of_a_list_are_read_wherever_it_is() {
        assert_eq!(
            rows("[1, {\"a\": [2]}]", None).unwrap(),
            [1.into(), serde_json::json!({"a": [2]})]
        );
        let document = r#"{"id": 1, "other": [7], "rows": ["x"], "more": {"rows": [8]}}"#;
        assert_eq!(rows(document, Some("rows")).unwrap(), ["x"]);
        for (document, key, reason) in [
            ("{}", None, ARRAY),
            ("[1", None, "EOF"),
            ("[] []", None, "trailing"),
            ("[]", Some("rows"), "an object with `rows`"),
            (r#"{"rows": 1}"#, Some("rows"), ARRAY),
            ("{}", Some("rows"), "no `rows`"),
        ] {
            let error = rows(document, key).unwrap_err();
            assert!(error.contains(reason), "{document}: {error}");
        }
        let blob = Blob::from(b"[1, 2]".to_vec());
        let error = each_row(&blob, None, |_| Err("enough".to_owned())).unwrap_err();
        assert!(error.contains("enough"), "{error}");
    }
}
