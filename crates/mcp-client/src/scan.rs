//! Checks the complexity of a JSON text before it is parsed: a value of two bytes can take a
//! hundred bytes of memory.

use super::failure::Failure;

/// Maximum nesting depth, the same as the parser's.
const DEPTH: usize = 100;

/// Number of bytes of a text that permit one more value: the values of 32 MiB take at most some
/// hundred MiB.
const BYTES_PER_VALUE: u64 = 8;

/// Fails for a text with too many values or levels. Does not check whether it is JSON at all.
pub(super) fn check(text: &str, most_bytes: u64) -> Result<(), Failure> {
    let limit = (most_bytes / BYTES_PER_VALUE).max(1024);
    let (mut values, mut depth) = (1_u64, 0_usize);
    let (mut inside, mut escaped) = (false, false);
    for byte in text.bytes() {
        if inside {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => inside = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => inside = true,
            b'[' | b'{' => {
                values += 1;
                depth += 1;
                if depth > DEPTH {
                    return Err(Failure::TooDeep { limit: DEPTH });
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' => values += 1,
            _ => {}
        }
        if values > limit {
            return Err(Failure::TooMany { limit });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_levels_are_counted_outside_of_text() {
        assert!(check(r#"{"a,,,[[[": [1, 2, {"b": "\"[,"}]}"#, 0).is_ok());
        let deep = |levels| "[".repeat(levels) + &"]".repeat(levels);
        assert!(check(&deep(100), 0).is_ok());
        assert!(matches!(
            check(&deep(101), 0),
            Err(Failure::TooDeep { limit: 100 })
        ));
        let many = |values: usize| format!("[{}0]", "0,".repeat(values - 1));
        assert!(check(&many(1022), 0).is_ok());
        assert!(matches!(
            check(&many(1024), 0),
            Err(Failure::TooMany { limit: 1024 })
        ));
        assert!(check(&many(1024), 1 << 20).is_ok());
        assert!(check(&format!("\"{}\"", ",".repeat(5000)), 0).is_ok());
    }
}
