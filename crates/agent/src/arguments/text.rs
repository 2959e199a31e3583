//! One JSON string, decoded byte by byte: escapes, surrogate pairs and UTF-8 may be split anywhere.

/// A string whose opening quote was read.
#[derive(Clone, Debug, Default)]
pub(super) struct Text {
    state: TextState,
    /// The bytes so far of a multibyte character.
    pending: [u8; 4],
    held: usize,
}

#[derive(Clone, Copy, Debug, Default)]
enum TextState {
    #[default]
    Plain,
    /// After a backslash.
    Escape,
    /// In the four digits of `\u`; `high` is the first half of a pair if these are the second.
    Hex {
        digits: u8,
        value: u16,
        high: Option<u16>,
    },
    /// After a first half: a backslash must follow.
    PairBackslash { high: u16 },
    /// After a first half and a backslash: `u` must follow.
    PairU { high: u16 },
}

impl Text {
    /// Takes a byte, appends what it completes, and returns whether it was the closing quote, or
    /// else the expected input.
    pub(super) fn push(&mut self, byte: u8, out: &mut String) -> Result<bool, &'static str> {
        match self.state {
            TextState::Plain => return self.plain(byte, out),
            TextState::Escape => self.state = escape(byte, out)?,
            TextState::Hex { digits, value, high } => {
                let digit = char::from(byte).to_digit(16).ok_or("a hexadecimal digit")?;
                let value = value << 4 | u16::try_from(digit).unwrap_or_default();
                self.state = if digits < 3 {
                    let digits = digits + 1;
                    TextState::Hex { digits, value, high }
                } else {
                    unit(value, high, out)?
                };
            }
            TextState::PairBackslash { high } if byte == b'\\' => self.state = TextState::PairU { high },
            TextState::PairU { high } if byte == b'u' => self.state = hex(Some(high)),
            TextState::PairBackslash { .. } | TextState::PairU { .. } => return Err(SECOND_HALF),
        }
        Ok(false)
    }

    fn plain(&mut self, byte: u8, out: &mut String) -> Result<bool, &'static str> {
        if self.held == 0 {
            match byte {
                b'"' => return Ok(true),
                b'\\' => self.state = TextState::Escape,
                0..0x20 => return Err("an escape in place of a control character"),
                0x20..0x80 => out.push(char::from(byte)),
                _ => self.hold(byte, out)?,
            }
        } else {
            self.hold(byte, out)?;
        }
        Ok(false)
    }

    fn hold(&mut self, byte: u8, out: &mut String) -> Result<(), &'static str> {
        // Four bytes are always a whole character or an error, so the array is never full here.
        self.pending[self.held] = byte;
        self.held += 1;
        match std::str::from_utf8(&self.pending[..self.held]) {
            Ok(character) => {
                out.push_str(character);
                self.held = 0;
                Ok(())
            }
            Err(error) if error.error_len().is_none() => Ok(()),
            Err(_) => Err("UTF-8"),
        }
    }
}

const SECOND_HALF: &str = "the second half of a surrogate pair";

const fn hex(high: Option<u16>) -> TextState {
    TextState::Hex {
        digits: 0,
        value: 0,
        high,
    }
}

fn escape(byte: u8, out: &mut String) -> Result<TextState, &'static str> {
    out.push(match byte {
        b'"' | b'\\' | b'/' => char::from(byte),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return Ok(hex(None)),
        _ => return Err("an escape that JSON has"),
    });
    Ok(TextState::Plain)
}

/// Handles a complete `\uXXXX`: a character, one half, or an invalid half.
fn unit(value: u16, high: Option<u16>, out: &mut String) -> Result<TextState, &'static str> {
    if let (None, 0xD800..=0xDBFF) = (high, value) {
        return Ok(TextState::PairBackslash { high: value });
    }
    let mut characters = char::decode_utf16(high.into_iter().chain([value]));
    match characters.next() {
        Some(Ok(character)) => out.push(character),
        Some(Err(_)) | None if high.is_some() => return Err(SECOND_HALF),
        Some(Err(_)) | None => return Err("the first half of a surrogate pair"),
    }
    Ok(TextState::Plain)
}
