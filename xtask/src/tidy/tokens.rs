//! Flattens a Rust file's tokens, those inside macros included.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A token and the line it stands on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) text: String,
    pub(super) line: usize,
}

/// Lists all tokens in order; a group is its opening bracket, its tokens and its closing bracket.
///
/// Empty for text that is not valid Rust, which the compiler reports.
pub(super) fn all(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    if let Ok(stream) = text.parse() {
        flatten(stream, &mut tokens);
    }
    tokens
}

fn flatten(stream: TokenStream, into: &mut Vec<Token>) {
    for tree in stream {
        let line = tree.span().start().line;
        let TokenTree::Group(group) = tree else {
            into.push(Token {
                text: tree.to_string(),
                line,
            });
            continue;
        };
        let (open, close) = match group.delimiter() {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Brace => ("{", "}"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::None => ("", ""),
        };
        into.push(Token {
            text: open.to_owned(),
            line,
        });
        flatten(group.stream(), into);
        into.push(Token {
            text: close.to_owned(),
            line: group.span_close().start().line,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_inside_macros_are_listed_and_those_in_strings_and_comments_are_not() {
        let tokens: Vec<_> = all("// unsafe\nfn f() {\n    vec![g(\"unsafe\")];\n}\n")
            .into_iter()
            .map(|token| (token.text, token.line))
            .collect();
        let expected = [
            ("fn", 2),
            ("f", 2),
            ("(", 2),
            (")", 2),
            ("{", 2),
            ("vec", 3),
            ("!", 3),
            ("[", 3),
            ("g", 3),
            ("(", 3),
            ("\"unsafe\"", 3),
            (")", 3),
            ("]", 3),
            (";", 3),
            ("}", 4),
        ];
        assert_eq!(tokens, expected.map(|(text, line)| (text.to_owned(), line)));
    }
}
