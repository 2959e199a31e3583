//! Doc summaries, type names and lines are measured; no number may grow beyond its ceiling.

use super::tree::File;
use super::{Violation, names};

/// A number that is measured over all Rust files.
struct Measure {
    /// Name of the things that are counted.
    name: &'static str,
    advice: &'static str,
    ceiling: Limit,
    tally: fn(&File) -> Tally,
}

#[derive(Debug, Clone, Copy)]
enum Limit {
    /// Maximum share of all candidates.
    Percent(usize),
    /// Maximum number.
    Number(usize),
}

/// Measured values of a file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    /// Number of candidates.
    candidates: usize,
    /// Lines of those that count.
    lines: Vec<usize>,
}

/// Lower a ceiling when its number has fallen. Do not raise one.
const MEASURES: [Measure; 3] = [
    Measure {
        name: "doc summaries that open with a question word",
        advice: "open with a noun or a verb in the third person",
        ceiling: Limit::Percent(2),
        tally: question_summaries,
    },
    Measure {
        name: "types named by a single participle",
        advice: "name a type with a noun and its role",
        ceiling: Limit::Number(6),
        tally: participle_types,
    },
    Measure {
        name: "lines of more than 110 columns",
        advice: "wrap comments and split strings",
        ceiling: Limit::Number(66),
        tally: long_lines,
    },
];

const QUESTION_WORDS: [&str; 7] = ["what", "who", "how", "where", "why", "when", "which"];

const PARTICIPLE_ENDINGS: [&str; 3] = ["ed", "en", "ing"];
/// Participles without one of these endings.
const IRREGULAR: [&str; 21] = [
    "Begun", "Bound", "Built", "Done", "Drawn", "Found", "Gone", "Heard", "Held", "Kept", "Known", "Left",
    "Lent", "Lost", "Made", "Met", "Ran", "Said", "Sent", "Shown", "Told",
];
/// Words with one of the endings that are not participles.
const OTHER_WORDS: [&str; 9] = [
    "During", "Feed", "Fred", "Golden", "Listen", "Nothing", "Open", "Screen", "Token",
];

const MAX_COLUMNS: usize = 110;

/// Number of places that a violation lists.
const LISTED: usize = 5;

/// Reports each number that is beyond its ceiling.
pub(super) fn violations(files: &[File]) -> Vec<Violation> {
    let beyond = MEASURES.iter().filter_map(|measure| measure.violation(files));
    beyond.collect()
}

impl Measure {
    fn violation(&self, files: &[File]) -> Option<Violation> {
        let mut candidates = 0;
        let mut places = Vec::new();
        for file in files.iter().filter(|file| file.is("rs")) {
            let tally = (self.tally)(file);
            candidates += tally.candidates;
            places.extend(tally.lines.into_iter().map(|line| (file, line)));
        }
        if self.ceiling.allows(places.len(), candidates) {
            return None;
        }
        let &(first, line) = places.first()?;
        let named = |(file, line): &(&File, usize)| format!("{}:{line}", file.path);
        let listed: Vec<_> = places.iter().take(LISTED).map(named).collect();
        let message = format!(
            "{}: {}; {}; the first are {}",
            self.name,
            self.ceiling.describe(places.len(), candidates),
            self.advice,
            listed.join(", ")
        );
        Some(Violation::new(first, line, message))
    }
}

impl Limit {
    fn allows(self, number: usize, candidates: usize) -> bool {
        match self {
            Self::Percent(percent) => number * 100 <= candidates * percent,
            Self::Number(ceiling) => number <= ceiling,
        }
    }

    fn describe(self, number: usize, candidates: usize) -> String {
        match self {
            Self::Percent(percent) => format!("{number} of {candidates}, the ceiling is {percent} %"),
            Self::Number(ceiling) => format!("{number}, the ceiling is {ceiling}"),
        }
    }
}

/// Counts the doc comments, and lists those whose first word asks a question.
fn question_summaries(file: &File) -> Tally {
    let mut tally = Tally::default();
    let mut before = None;
    for (number, line) in file.lines() {
        let comment = doc_comment(line);
        if let Some((kind, text)) = comment
            && before != Some(kind)
        {
            tally.candidates += 1;
            if opens_with_question(text) {
                tally.lines.push(number);
            }
        }
        before = comment.map(|(kind, _)| kind);
    }
    tally
}

/// Returns the marker and the text of a line that is a doc comment.
fn doc_comment(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let (kind, text) = line.split_at_checked(3)?;
    (matches!(kind, "///" | "//!") && !text.starts_with('/')).then_some((kind, text))
}

fn opens_with_question(text: &str) -> bool {
    let text = text.trim_start().trim_start_matches(['*', '_', '"', '(']);
    let word = text.split(|c: char| !c.is_alphanumeric()).next();
    word.is_some_and(|word| QUESTION_WORDS.contains(&word.to_lowercase().as_str()))
}

/// Counts the types, and lists those whose name is a participle and nothing else.
fn participle_types(file: &File) -> Tally {
    let types = names::rust_types(file);
    let participles = types.iter().filter(|(_, name)| is_participle(name));
    Tally {
        candidates: types.len(),
        lines: participles.map(|(line, _)| *line).collect(),
    }
}

fn is_participle(name: &str) -> bool {
    let mut letters = name.chars();
    let one_word = letters.next().is_some_and(char::is_uppercase) && letters.all(char::is_lowercase);
    let ends = PARTICIPLE_ENDINGS.iter().any(|ending| name.ends_with(ending));
    one_word && (ends || IRREGULAR.contains(&name)) && !OTHER_WORDS.contains(&name)
}

fn long_lines(file: &File) -> Tally {
    let is_long = |line: &str| line.len() > MAX_COLUMNS && line.chars().count() > MAX_COLUMNS;
    let lines = file.lines().filter(|(_, line)| is_long(line));
    Tally {
        candidates: file.text.lines().count(),
        lines: lines.map(|(number, _)| number).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(tally: fn(&File) -> Tally, text: &str) -> (usize, Vec<usize>) {
        let tally = tally(&File::of("a.rs", text));
        (tally.candidates, tally.lines)
    }

    #[test]
    fn only_the_first_line_of_a_doc_comment_is_a_summary() {
        let text = "//! How it works.\n\n/// Returns\n/// what is left.\nstruct A;\n    /// *Which* one.\n";
        assert_eq!(lines(question_summaries, text), (3, vec![1, 6]));
    }

    #[test]
    fn ordinary_comments_and_longer_words_are_not_question_summaries() {
        let text = "// What it is.\n//// Where.\n/// Whatever there is.\n//!\n/// `when` of the request.\n";
        assert_eq!(lines(question_summaries, text), (3, vec![]));
    }

    #[test]
    fn a_type_whose_whole_name_is_a_participle_is_counted() {
        let text =
            "struct Kept;\npub enum Opened {}\nstruct OpenedFile;\ntrait Token {}\ntype Reading = u8;\n";
        assert_eq!(lines(participle_types, text), (5, vec![1, 2, 5]));
    }

    #[test]
    fn columns_are_characters() {
        let text = format!("{}\n{}\n{}\n", "é".repeat(110), "é".repeat(111), "a".repeat(111));
        assert_eq!(lines(long_lines, &text), (3, vec![2, 3]));
    }

    #[test]
    fn a_share_at_its_ceiling_passes_and_one_beyond_it_does_not() {
        let ceiling = Limit::Percent(2);
        assert!(ceiling.allows(2, 100));
        assert!(!ceiling.allows(3, 100));
        assert!(ceiling.allows(0, 0));
    }

    #[test]
    fn a_violation_has_the_number_the_ceiling_and_the_first_five_places() {
        let measure = Measure {
            ceiling: Limit::Number(5),
            ..MEASURES[1]
        };
        let five = "struct Kept;\n".repeat(5);
        let files = [
            File::of("a.rs", &five),
            File::of("b.rs", "struct Told;\n"),
            File::of("c.md", "struct Told;\n"),
        ];
        assert_eq!(measure.violation(&files[..1]), None);
        assert_eq!(
            measure.violation(&files).unwrap().to_string(),
            "a.rs:1: types named by a single participle: 6, the ceiling is 5; name a type with a noun and \
             its role; the first are a.rs:1, a.rs:2, a.rs:3, a.rs:4, a.rs:5"
        );
    }

    #[test]
    fn a_share_beyond_its_ceiling_names_the_candidates() {
        let files = [File::of("a.rs", "/// What it is.\n")];
        assert_eq!(
            violations(&files)[0].to_string(),
            "a.rs:1: doc summaries that open with a question word: 1 of 1, the ceiling is 2 %; open with a \
             noun or a verb in the third person; the first are a.rs:1"
        );
    }
}
