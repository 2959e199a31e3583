//! What text from a sandbox may be.

use std::error::Error;

use cellblock_interpreter::render::{Block, CHARS_PER_TOKEN};
use cellblock_protocol::text::acts;

/// Asserts that an error with its causes has at most so many characters, none of which a terminal obeys.
pub(crate) fn is_short_and_plain(error: &(dyn Error + 'static), chars: usize) {
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        assert!(
            text.chars().count() <= chars,
            "an error of {} characters: {text:.200}",
            text.chars().count()
        );
        assert!(
            !text.chars().any(acts),
            "an error with characters that act: {text:?}"
        );
        next = error.source();
    }
}

/// Asserts that a model is shown at most what its budget allows, and nothing that acts.
pub(crate) fn is_for_a_model(blocks: &[Block], tokens: usize) {
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        Block::Image { name, .. } => name.as_deref(),
    });
    for text in texts {
        let wrong = |c: char| !matches!(c, '\n' | '\t') && acts(c);
        assert!(!text.chars().any(wrong), "a model is shown {text:?}");
    }
    let shown: usize = blocks
        .iter()
        .map(|block| match block {
            Block::Text { text } => text.chars().count(),
            Block::Image { .. } => 0,
        })
        .sum();
    assert!(
        shown <= tokens * CHARS_PER_TOKEN,
        "{shown} characters for {tokens} tokens"
    );
}
