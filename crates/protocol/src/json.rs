//! Sizes of values as JSON.

use std::io::{self, Write};

use serde::Serialize;

/// Returns the number of bytes of a value as JSON, without building it.
pub fn json_size(value: &(impl Serialize + ?Sized)) -> serde_json::Result<usize> {
    let mut size = ByteCounter(0);
    serde_json::to_writer(&mut size, value)?;
    Ok(size.0)
}

/// Counts the written bytes.
struct ByteCounter(usize);

impl Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[test]
    fn the_size_of_a_value_is_that_of_its_json() {
        for text in ["", "a\n\t\r\"\\", "\u{0}\u{8}\u{c}\u{1f}\u{7f}", "Zürich 東京"] {
            let written = serde_json::to_string(text).unwrap();
            assert_eq!(json_size(text).unwrap(), written.len(), "{text:?}");
        }
        let value = json!({"rows": [{"x": 1.5, "y": null}], "name": "\n"});
        assert_eq!(json_size(&value).unwrap(), value.to_string().len());
    }

    #[test]
    fn a_value_that_json_does_not_express_has_no_size() {
        json_size(&BTreeMap::from([((1, 2), 3)])).unwrap_err();
    }
}
