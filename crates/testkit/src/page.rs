//! Pages of the documentation.

/// Returns the fenced blocks of code in a language, in order, without the line break at their ends.
pub fn fenced<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let begin = format!("```{language}\n");
    let parts = page.split(begin.as_str()).skip(1);
    parts
        .filter_map(|part| Some(part.split_once("\n```")?.0))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_a_language_are_found_in_order() {
        let page = "a\n```sh\nx\n\ny\n```\n```json\n{}\n```\n```sh\necho '```'\n```\n```sh\ncut off";
        assert_eq!(fenced(page, "sh"), ["x\n\ny", "echo '```'"]);
        assert_eq!(fenced(page, "json"), ["{}"]);
        assert_eq!(fenced(page, "yaml"), [""; 0]);
    }
}
