//! Deriving aliases from the names of tools.

/// Maximum number of characters in an alias that come from the tool.
const STEM_CHARS: usize = 64;

/// Makes an identifier from a tool's name: each run of characters other than ASCII letters and
/// digits becomes one `_`, none is kept at the ends, a name that then starts with a digit or is
/// empty gets the prefix `tool`, and long names are cut. Names that become equal are numbered
/// together, so that aliases are unique.
pub(super) fn stem(tool: &str) -> String {
    let mut stem = String::new();
    for c in tool.chars() {
        if c.is_ascii_alphanumeric() {
            if stem.is_empty() && c.is_ascii_digit() {
                stem.push_str("tool_");
            }
            stem.push(c);
        } else if !stem.is_empty() && !stem.ends_with('_') {
            stem.push('_');
        }
        if stem.len() >= STEM_CHARS {
            break;
        }
    }
    stem.truncate(STEM_CHARS);
    let kept = stem.trim_end_matches('_').len();
    stem.truncate(kept);
    if stem.is_empty() { "tool".to_owned() } else { stem }
}

/// Returns the alias of the n-th result of the tools with this stem. The number distinguishes it
/// from every reserved name.
pub(super) fn alias(stem: &str, number: u64) -> String {
    format!("{stem}_{number}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::alias::reserved;

    #[test]
    fn a_tools_name_becomes_an_identifier() {
        for (tool, expected) in [
            ("get_price_history", "get_price_history"),
            ("Coin.get-price/v2", "Coin_get_price_v2"),
            ("__import__", "import"),
            ("3d plot", "tool_3d_plot"),
            ("", "tool"),
            ("日本", "tool"),
            ("a\x1b[31m\n", "a_31m"),
            ("a__b", "a_b"),
        ] {
            assert_eq!(stem(tool), expected, "{tool:?}");
        }
    }

    #[test]
    fn no_alias_is_a_reserved_name_whatever_the_tool_is_called() {
        let names = crate::contract::HELPERS.iter().chain(crate::contract::PRELUDE);
        for name in names.chain(&["class", "None", "print", "ValueError"]) {
            for number in [1, 10, u64::MAX] {
                let alias = alias(&stem(name), number);
                assert!(reserved::check(&alias).is_ok(), "{alias}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_tool_gives_a_name_that_can_be_bound(tool: String, number: u64) {
            let alias = alias(&stem(&tool), number);
            prop_assert!(reserved::check(&alias).is_ok(), "{}", alias);
        }
    }
}
