//! Input that a model types into a command: text with escape sequences, and the keys that a terminal would
//! make signals of.

/// A part of what is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Keystroke {
    /// Text for the standard input.
    Text(String),
    /// A signal, by its name.
    Signal(&'static str),
    /// The end of the input.
    End,
}

/// Decodes what is typed. Models write `\n` as two characters as often as they write a line break;
/// everything else is left as it is.
pub(super) fn keystrokes(input: &str) -> Vec<Keystroke> {
    let mut all = Vec::new();
    let mut text = String::new();
    let decoded = decode(input);
    for character in decoded.chars() {
        let key = match character {
            '\x03' => Keystroke::Signal("SIGINT"),
            '\x04' => Keystroke::End,
            '\x1a' => Keystroke::Signal("SIGTSTP"),
            '\x1c' => Keystroke::Signal("SIGQUIT"),
            other => {
                text.push(other);
                continue;
            }
        };
        if !text.is_empty() {
            all.push(Keystroke::Text(std::mem::take(&mut text)));
        }
        all.push(key);
    }
    if !text.is_empty() {
        all.push(Keystroke::Text(text));
    }
    all
}

fn decode(input: &str) -> String {
    let mut decoded = String::with_capacity(input.len());
    let mut rest = input;
    while let Some(at) = rest.find('\\') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at..];
        let (character, length) = escape(rest).unwrap_or(('\\', 1));
        decoded.push(character);
        rest = &rest[length..];
    }
    decoded + rest
}

/// Returns the character that an escape sequence stands for, and how many bytes it has.
fn escape(text: &str) -> Option<(char, usize)> {
    let kind = text[1..].chars().next()?;
    let digits = match kind {
        'n' => return Some(('\n', 2)),
        'r' => return Some(('\r', 2)),
        't' => return Some(('\t', 2)),
        'b' => return Some(('\x08', 2)),
        'e' => return Some(('\x1b', 2)),
        '0' => return Some(('\0', 2)),
        '\\' => return Some(('\\', 2)),
        'x' => 2,
        'u' => 4,
        _ => return None,
    };
    let number = text.get(2..2 + digits)?;
    let number = u32::from_str_radix(number, 16).ok()?;
    Some((char::from_u32(number)?, 2 + digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Keystroke {
        Keystroke::Text(text.to_owned())
    }

    #[test]
    fn escape_sequences_are_decoded_and_everything_else_is_kept() {
        assert_eq!(keystrokes(r"print(1)\n"), [text("print(1)\n")]);
        assert_eq!(keystrokes("print(1)\n"), [text("print(1)\n")]);
        assert_eq!(keystrokes(r"\x41\u00e9\\n é \q \x4"), [text("Aé\\n é \\q \\x4")]);
        assert_eq!(keystrokes("\\"), [text("\\")]);
        assert_eq!(keystrokes(""), []);
    }

    #[test]
    fn control_keys_are_what_a_terminal_makes_of_them() {
        assert_eq!(
            keystrokes(r"a\x03b\x04"),
            [text("a"), Keystroke::Signal("SIGINT"), text("b"), Keystroke::End]
        );
    }
}
