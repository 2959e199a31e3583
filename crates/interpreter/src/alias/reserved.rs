//! Names to which no value may be bound because code already uses them.

use super::error::{AliasError, NameFault};
use crate::contract::{ReservedReason, is_identifier, reserved};

/// Checks that a value may be recorded under this name: a contract must be able to name it, and it
/// must not start with an underscore.
pub fn check(name: &str) -> Result<(), AliasError> {
    let fault = match reserved(name) {
        _ if !is_identifier(name) || name.starts_with('_') => NameFault::NotAnIdentifier,
        Some(ReservedReason::Keyword) => NameFault::Keyword,
        Some(ReservedReason::Builtin) => NameFault::Builtin,
        Some(ReservedReason::Helper | ReservedReason::Prelude) => NameFault::Prelude,
        None => return Ok(()),
    };
    Err(AliasError::name(name, fault))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_may_be_bound() {
        for name in ["a", "get_price_1", "Sales2024", "inputs_1", "type_1", "match"] {
            assert!(check(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn each_reserved_name_is_rejected_with_its_use() {
        for (name, message) in [
            ("class", "`class` is a keyword of Python"),
            ("sum", "`sum` is a builtin of Python"),
            ("pd", "`pd` is a library or a helper in cells"),
            ("1a", "`1a` is not a valid Python identifier"),
        ] {
            let error = check(name).expect_err(name).to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn names_that_python_normalizes_are_rejected() {
        for name in ["", "_", "__name__", "a-b", "a b", "a\n", "ｐｄ", "né", "a.b"] {
            assert!(check(name).is_err(), "{name}");
        }
        assert!(check(&"a".repeat(128)).is_ok());
        assert!(check(&"a".repeat(129)).is_err());
    }
}
