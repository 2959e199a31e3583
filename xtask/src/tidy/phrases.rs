//! Docs, messages and doc comments are free of a few phrases that readers stumble over.

use super::Violation;
use super::tree::File;

/// A sequence of words, and what to write instead.
struct Phrase {
    words: &'static [&'static str],
    instead: &'static str,
}

const PHRASES: &[Phrase] = &[
    Phrase {
        words: &["told"],
        instead: "reported, returned or sent",
    },
    Phrase {
        words: &["is", "no"],
        instead: "is not a valid …",
    },
    Phrase {
        words: &["but", "for"],
        instead: "except",
    },
    Phrase {
        words: &["whoever"],
        instead: "the actor's name",
    },
    Phrase {
        words: &["for", "want", "of"],
        instead: "because … is missing",
    },
    Phrase {
        words: &["may", "be", "had"],
        instead: "is available",
    },
    Phrase {
        words: &["cannot", "be", "had"],
        instead: "is unavailable",
    },
    Phrase {
        words: &["is", "asked", "for"],
        instead: "is requested or required",
    },
    Phrase {
        words: &["are", "asked", "for"],
        instead: "are requested or required",
    },
    Phrase {
        words: &["comes", "of", "it"],
        instead: "its result",
    },
    Phrase {
        words: &["stands", "in"],
        instead: "is in",
    },
    Phrase {
        words: &["besides"],
        instead: "also",
    },
];

/// Word before an "is no" that makes it a plain sentence: "there is no file", "is no longer".
const PLAIN_BEFORE: &str = "there";
const PLAIN_AFTER: [&str; 3] = ["longer", "more", "different"];

/// Rejects the phrases in the prose of a file: documents, strings and doc comments of Rust, and the
/// kernel's Python.
pub(super) fn check(file: &File) -> Vec<Violation> {
    let rejected = |(line, Phrase { words, instead }): (usize, &Phrase)| {
        let message = format!("\"{}\": write \"{instead}\"", words.join(" "));
        Violation::new(file, line, message)
    };
    found(file).into_iter().map(rejected).collect()
}

/// Finds the phrases of a file with their lines.
fn found(file: &File) -> Vec<(usize, &'static Phrase)> {
    let words = words(file);
    let matches = |start: usize, phrase: &Phrase| {
        let here = words[start..].iter().map(|(_, word)| word.as_str());
        here.take(phrase.words.len()).eq(phrase.words.iter().copied())
    };
    let word = |index: usize| words.get(index).map_or("", |(_, word)| word.as_str());
    let plain = |start: usize, phrase: &Phrase| {
        phrase.words == ["is", "no"]
            && (start > 0 && word(start - 1) == PLAIN_BEFORE || PLAIN_AFTER.contains(&word(start + 2)))
    };
    let mut found = Vec::new();
    for (start, (line, _)) in words.iter().enumerate() {
        let here = PHRASES
            .iter()
            .filter(|phrase| matches(start, phrase) && !plain(start, phrase));
        found.extend(here.map(|phrase| (*line, phrase)));
    }
    found
}

/// Lists the words of a file's prose in lowercase, with their lines.
fn words(file: &File) -> Vec<(usize, String)> {
    // These two have the words that they look for.
    let own = matches!(
        file.path.as_str(),
        "xtask/src/tidy/phrases.rs" | "xtask/src/tidy/style.rs"
    );
    let is_test = file
        .path
        .split('/')
        .any(|part| matches!(part, "tests" | "tests.rs"));
    if own || is_test && !file.is("md") {
        return Vec::new();
    }
    if file.is("rs") {
        // A doc comment is a string among the tokens.
        let strings = file.tokens().iter().filter(|token| token.text.ends_with('"'));
        return strings.flat_map(|token| split(token.line, &token.text)).collect();
    }
    if file.is("md") || file.is("py") && file.path.starts_with("crates/guest/") {
        return file.lines().flat_map(|(line, text)| split(line, text)).collect();
    }
    Vec::new()
}

fn split(line: usize, text: &str) -> impl Iterator<Item = (usize, String)> {
    let words = text.split(|c: char| c.is_whitespace() || c == '\\');
    let bare = words.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    bare.filter(|word| !word.is_empty())
        .map(move |word| (line, word.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(usize, &'static str)> {
        let found = super::found(&File::of(path, text)).into_iter();
        found.map(|(line, phrase)| (line, phrase.words[0])).collect()
    }

    #[test]
    fn phrases_in_documents_strings_and_doc_comments_are_found_across_lines() {
        assert_eq!(
            found("a.md", "Everything is deleted but\nfor files. *Told* once."),
            [(1, "but"), (2, "told")]
        );
        let rust = "//! Whoever asks.\n/// `x` is\n/// no name.\n\
                    fn f() {\n    // told\n    g(\"x is no number\", told);\n}\n";
        assert_eq!(found("a.rs", rust), [(1, "whoever"), (2, "is"), (6, "is")]);
        assert_eq!(
            found("crates/guest/python/a.py", "\"\"\"Is told.\"\"\"\n"),
            [(1, "told")]
        );
        assert_eq!(found("crates/x/tests/a.rs", "const A: &str = \"told\";\n"), []);
    }

    #[test]
    fn plain_sentences_are_left_alone() {
        assert_eq!(
            found(
                "a.md",
                "There is no file. It is no longer there, and not but it is for you."
            ),
            []
        );
    }

    #[test]
    fn a_phrase_is_rejected_with_its_line_and_other_words() {
        let violations = check(&File::of("a.md", "It was\ntold."));
        assert_eq!(
            violations[0].to_string(),
            "a.md:2: \"told\": write \"reported, returned or sent\""
        );
    }
}
