//! Ranking of tools by the words of a search: rare words count more, and words of a name count more than
//! those of a description.

use std::collections::{BTreeSet, HashMap};

/// Maximum number of different words of a search.
const WORDS: usize = 32;
/// Maximum number of characters of a text that are read.
const READ: usize = 2000;
/// Minimum length of a word that is found by its beginning.
const BEGINNING: usize = 4;
/// Weight of a search that is exactly a name.
const WHOLE: f64 = 100.0;

/// A tool as a search sees it.
#[derive(Debug, Default)]
pub(crate) struct SearchDocument {
    /// Names by which the tool, or all tools with it, are called.
    names: Vec<String>,
    /// Words with their weights.
    words: HashMap<String, f64>,
}

impl SearchDocument {
    /// Adds a name.
    pub(crate) fn name(&mut self, name: &str) {
        self.names.push(name.to_lowercase());
        self.add(name, 3.0);
    }

    /// Adds a text.
    pub(crate) fn text(&mut self, text: &str) {
        self.add(text, 1.0);
    }

    fn add(&mut self, text: &str, weight: f64) {
        for word in words(text) {
            let known = self.words.entry(word).or_default();
            *known = known.max(weight);
        }
    }

    fn weight(&self, word: &str) -> f64 {
        if let Some(weight) = self.words.get(word) {
            return *weight;
        }
        let alike = |other: &str| {
            word.len().min(other.len()) >= BEGINNING && (other.starts_with(word) || word.starts_with(other))
        };
        let alike = self.words.iter().filter(|(other, _)| alike(other));
        alike.map(|(_, weight)| weight / 2.0).fold(0.0, f64::max)
    }
}

/// Returns the places of the documents that a search finds, the best first; equal ones keep their order.
pub(crate) fn rank(query: &str, documents: &[SearchDocument]) -> Vec<usize> {
    let mut scores = vec![0.0; documents.len()];
    let count = amount(documents.len());
    let unique: BTreeSet<String> = words(query).into_iter().collect();
    for word in unique.iter().take(WORDS) {
        let weights: Vec<f64> = documents.iter().map(|document| document.weight(word)).collect();
        let having = weights.iter().filter(|weight| **weight > 0.0).count();
        let rarity = (1.0 + count / amount(having.max(1))).ln();
        for (score, weight) in scores.iter_mut().zip(weights) {
            *score += weight * rarity;
        }
    }
    let whole = query.trim().to_lowercase();
    for (score, document) in scores.iter_mut().zip(documents) {
        if document.names.contains(&whole) {
            *score += WHOLE;
        }
    }
    let mut found: Vec<(usize, f64)> = scores
        .into_iter()
        .enumerate()
        .filter(|(_, score)| *score > 0.0)
        .collect();
    found.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    found.into_iter().map(|(place, _)| place).collect()
}

fn amount(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Returns the words of a text, also those of a name such as `findOrder` or `find_orders`, in lowercase and
/// without the `s` of a plural.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut lower = false;
    for character in text.chars().take(READ) {
        if !character.is_alphanumeric() || lower && character.is_uppercase() {
            words.push(String::new());
        }
        if character.is_alphanumeric() {
            words
                .last_mut()
                .into_iter()
                .for_each(|word| word.extend(character.to_lowercase()));
        }
        lower = character.is_lowercase();
    }
    let plain = |word: String| match word.strip_suffix('s') {
        Some(one) if one.len() >= 3 && !one.ends_with('s') => one.to_owned(),
        _ => word,
    };
    words.retain(|word| !word.is_empty());
    words.into_iter().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(query: &str, tools: &[(&str, &str)]) -> Vec<String> {
        let documents: Vec<_> = tools
            .iter()
            .map(|(name, text)| {
                let mut document = SearchDocument::default();
                document.name(name);
                document.text(text);
                document
            })
            .collect();
        let found = rank(query, &documents).into_iter();
        found.map(|place| tools[place].0.to_owned()).collect()
    }

    const TOOLS: [(&str, &str); 4] = [
        ("list_orders", "Lists the orders of a customer."),
        ("findCustomer", "Finds a customer by name."),
        ("send_mail", "Sends a mail to a customer."),
        ("get_weather", "Returns the weather of a city."),
    ];

    #[test]
    fn rare_words_and_words_of_names_come_first() {
        for (query, names) in [
            ("customer", vec!["findCustomer", "list_orders", "send_mail"]),
            (
                "send customers an email or mail",
                vec!["send_mail", "findCustomer", "list_orders"],
            ),
            ("order", vec!["list_orders"]),
            ("weath", vec!["get_weather"]),
            ("GET_WEATHER", vec!["get_weather"]),
            ("translate", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(found(query, &TOOLS), names, "{query}");
        }
    }

    #[test]
    fn a_whole_name_comes_first() {
        let tools = [("mail_mail", "mail mail"), ("mail", "x"), ("mail_list", "mail")];
        assert_eq!(found("mail", &tools)[0], "mail");
    }

    #[test]
    fn words_are_those_of_people_and_of_programs() {
        assert_eq!(
            words("findOrders, list_HTTP-days"),
            ["find", "order", "list", "http", "day"]
        );
        assert_eq!(words("gas class Überweisung"), ["gas", "class", "überweisung"]);
    }
}
