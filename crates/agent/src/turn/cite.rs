//! Finding the ranges of a model's text that refer to files made by its code.

use super::call_result::OutputFile;
use crate::wire::Annotation;

/// Cites files that a text names: each link `sandbox:/mnt/data/name`, else the first occurrence of
/// the path or the name. With `rest`, unnamed files are cited at its end, with an empty range. A
/// cited file is removed from `made`.
pub(super) fn cite(text: &str, made: &mut Vec<OutputFile>, rest: bool) -> Vec<Annotation> {
    let mut taken: Vec<(usize, usize)> = Vec::new();
    let mut cited: Vec<(usize, usize, &OutputFile)> = Vec::new();
    // The latest first: of two files with the same name, it is the one that the text means.
    for file in made.iter().rev() {
        for (from, to) in ranges(text, file) {
            if taken.iter().all(|taken| to <= taken.0 || taken.1 <= from) {
                taken.push((from, to));
                cited.push((from, to, file));
            }
        }
    }
    if rest {
        for file in made.iter() {
            if cited.iter().all(|(.., other)| other.id != file.id) {
                cited.push((text.len(), text.len(), file));
            }
        }
    }
    cited.sort_by_key(|(from, to, _)| (*from, *to));
    let characters = |to: usize| text[..to].chars().count();
    let annotations: Vec<_> = cited
        .iter()
        .map(|(from, to, file)| Annotation::ContainerFileCitation {
            container_id: file.container.clone(),
            file_id: file.id.clone(),
            filename: file.name().to_owned(),
            start_index: characters(*from),
            end_index: characters(*to),
        })
        .collect();
    let ids: Vec<_> = cited.iter().map(|(.., file)| file.id.clone()).collect();
    made.retain(|file| !ids.contains(&file.id));
    annotations
}

/// Returns the ranges in bytes in which a text names a file.
fn ranges(text: &str, file: &OutputFile) -> Vec<(usize, usize)> {
    let link = format!("sandbox:{}", file.path);
    let mut found = places(text, &link);
    if link.contains(' ') {
        found.extend(places(text, &link.replace(' ', "%20")));
    }
    if !found.is_empty() {
        return found;
    }
    let first = |name: &str| places(text, name).into_iter().next();
    first(&file.path)
        .or_else(|| first(file.name()))
        .into_iter()
        .collect()
}

/// Returns the ranges in which a text contains a name that is not a part of a longer one.
fn places(text: &str, name: &str) -> Vec<(usize, usize)> {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/');
    let whole = |from: usize, to: usize| {
        let before = text[..from].chars().next_back();
        let mut after = text[to..].chars();
        let next = after.next();
        // A dot may end a sentence, or start an extension.
        let goes_on =
            next.is_some_and(part) || (next == Some('.') && after.next().is_some_and(char::is_alphanumeric));
        !goes_on && !before.is_some_and(|c| part(c) || c == '.')
    };
    text.match_indices(name)
        .map(|(from, name)| (from, from + name.len()))
        .filter(|(from, to)| whole(*from, *to))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(id: &str, path: &str) -> OutputFile {
        OutputFile {
            container: "cntr_1".to_owned(),
            id: id.to_owned(),
            path: path.to_owned(),
        }
    }

    /// A file, and the characters of its citation.
    fn cited(text: &str, made: &mut Vec<OutputFile>, rest: bool) -> Vec<(String, String)> {
        let characters: Vec<_> = text.chars().collect();
        let range = |annotation| match annotation {
            Annotation::ContainerFileCitation {
                file_id,
                start_index,
                end_index,
                ..
            } => (file_id, characters[start_index..end_index].iter().collect()),
            Annotation::Other(other) => panic!("{other} is not a citation"),
        };
        cite(text, made, rest).into_iter().map(range).collect()
    }

    fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(id, text)| ((*id).to_owned(), (*text).to_owned()))
            .collect()
    }

    #[test]
    fn every_link_is_cited_by_its_characters() {
        let mut files = vec![made("a", "/mnt/data/größe.csv"), made("b", "/mnt/data/b c.png")];
        let text = "Größe: [hier](sandbox:/mnt/data/größe.csv), [x](sandbox:/mnt/data/b%20c.png), \
                    größe.csv, sandbox:/mnt/data/größe.csv.";
        let expected = owned(&[
            ("a", "sandbox:/mnt/data/größe.csv"),
            ("b", "sandbox:/mnt/data/b%20c.png"),
            ("a", "sandbox:/mnt/data/größe.csv"),
        ]);
        assert_eq!(cited(text, &mut files, false), expected);
        assert_eq!(files, []);
    }

    #[test]
    fn a_name_is_cited_once_and_only_where_it_is_whole() {
        let mut files = vec![made("a", "/mnt/data/a.csv")];
        let text = "aa.csv, a.csv.gz and old/a.csv are others; a.csv. And a.csv again.";
        let annotations = cite(text, &mut files, false);
        let Annotation::ContainerFileCitation {
            start_index,
            end_index,
            filename,
            ..
        } = &annotations[0]
        else {
            panic!("no citation");
        };
        assert_eq!((*start_index, *end_index, filename.as_str()), (43, 48, "a.csv"));
        assert_eq!(annotations.len(), 1);
        let mut files = vec![made("a", "/mnt/data/a.csv")];
        assert_eq!(
            cited("It is `/mnt/data/a.csv`", &mut files, false),
            owned(&[("a", "/mnt/data/a.csv")])
        );
    }

    #[test]
    fn unnamed_files_are_cited_at_the_end_of_the_last_text() {
        let mut files = vec![made("a", "/mnt/data/a.csv"), made("b", "/mnt/data/b.csv")];
        assert_eq!(cited("I made b.csv", &mut files, false), owned(&[("b", "b.csv")]));
        assert_eq!(files.len(), 1);
        assert_eq!(cited("Done: b.csv", &mut files, true), owned(&[("a", "")]));
        assert_eq!(cited("Done", &mut files, true), []);
    }

    #[test]
    fn a_shared_name_refers_to_the_later_file() {
        let mut files = vec![made("old", "/mnt/data/a.csv"), made("new", "/mnt/data/a.csv")];
        assert_eq!(
            cited("See a.csv.", &mut files, true),
            owned(&[("new", "a.csv"), ("old", "")])
        );
    }
}
