//! The arguments of a tool call, decoded while a provider still streams them.
//!
//! ```text
//! {"requirements":[],"code":"pri      -> "pri"
//! nt(1)\u00e9\n"                      -> "nt(1)é\n"
//! }  finish                           -> {"requirements": [], "code": "print(1)é\n"}
//! ```
//!
//! One string field is returned as it grows. Pieces may be split anywhere, even within an escape, a
//! surrogate pair or a character. The returned text equals the final value: a field that occurs
//! twice is rejected, because parsers disagree which one counts.

mod error;
#[cfg(test)]
mod tests;
mod text;

use serde_json::{Map, Value};

pub use error::ArgumentsError;

use text::Text;

/// Default maximum size of arguments in bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// Maximum nesting depth, including the object itself. Lower than the limit of `serde_json`.
pub const MAX_DEPTH: usize = 64;

/// Reads one JSON object that arrives in pieces.
#[derive(Clone, Debug)]
pub struct ArgumentsDecoder {
    field: String,
    limit: usize,
    raw: Vec<u8>,
    state: JsonState,
    nesting: Vec<Nest>,
    /// The last key of the outermost object.
    key: String,
    seen: bool,
    failed: Option<ArgumentsError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nest {
    Object,
    Array,
}

#[derive(Clone, Debug)]
enum JsonState {
    Start,
    /// After `{`, or after a comma, where the object cannot end.
    Key {
        or_end: bool,
    },
    InKey(Text),
    Colon,
    /// After `:`, `[` or a comma.
    Value {
        or_end: bool,
    },
    /// In the field that is returned as it grows.
    InField(Text),
    InString(Text),
    Number {
        from: usize,
    },
    Literal {
        left: &'static [u8],
    },
    AfterValue,
    /// After the object. Some servers send it once more at the end; the number counts the repeated
    /// bytes.
    End {
        whole: usize,
        repeated: usize,
    },
}

impl ArgumentsDecoder {
    /// Creates a decoder that returns `field` as it grows.
    pub fn new(field: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            limit: MAX_BYTES,
            raw: Vec::new(),
            state: JsonState::Start,
            nesting: Vec::new(),
            key: String::new(),
            seen: false,
            failed: None,
        }
    }

    /// Sets the maximum size in bytes.
    #[must_use]
    pub const fn limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// Takes the next piece, and returns the new part of the field. After an error, every call
    /// returns the same error.
    pub fn push(&mut self, piece: impl AsRef<[u8]>) -> Result<String, ArgumentsError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let mut grown = String::new();
        match self.take_all(piece.as_ref(), &mut grown) {
            Ok(()) => Ok(grown),
            Err(error) => {
                self.failed = Some(error.clone());
                Err(error)
            }
        }
    }

    /// Returns the whole arguments, whose field exists and is a string. No input at all counts as
    /// `{}`.
    pub fn finish(self) -> Result<Map<String, Value>, ArgumentsError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let offset = self.raw.len();
        let whole = match self.state {
            JsonState::Start => return Err(ArgumentsError::Missing { field: self.field }),
            JsonState::End { whole, repeated } if repeated == 0 || repeated == whole => &self.raw[..whole],
            _ => return Err(ArgumentsError::Unfinished { offset }),
        };
        let arguments: Map<String, Value> =
            serde_json::from_slice(whole).map_err(|error| ArgumentsError::Malformed {
                offset: offset_of(whole, &error),
                expected: "a value in range",
            })?;
        if self.seen {
            Ok(arguments)
        } else {
            Err(ArgumentsError::Missing { field: self.field })
        }
    }

    fn take_all(&mut self, piece: &[u8], grown: &mut String) -> Result<(), ArgumentsError> {
        for &byte in piece {
            if self.raw.len() == self.limit {
                return Err(ArgumentsError::TooLong { limit: self.limit });
            }
            let offset = self.raw.len();
            self.raw.push(byte);
            self.take(byte, offset, grown)?;
        }
        Ok(())
    }

    fn take(&mut self, byte: u8, offset: usize, grown: &mut String) -> Result<(), ArgumentsError> {
        let expected = |expected| ArgumentsError::Malformed { offset, expected };
        let blank = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        match &mut self.state {
            JsonState::InKey(text) => {
                // Keys of inner objects are skipped.
                let mut inner = String::new();
                let key = if self.nesting.len() == 1 {
                    &mut self.key
                } else {
                    &mut inner
                };
                if text.push(byte, key).map_err(expected)? {
                    self.state = JsonState::Colon;
                    return self.refuse_repetition(offset);
                }
            }
            JsonState::InField(text) => {
                if text.push(byte, grown).map_err(expected)? {
                    self.state = JsonState::AfterValue;
                }
            }
            JsonState::InString(text) => {
                if text.push(byte, &mut String::new()).map_err(expected)? {
                    self.state = JsonState::AfterValue;
                }
            }
            JsonState::Number { from } => {
                if !matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E') {
                    let number = &self.raw[*from..offset];
                    serde_json::from_slice::<serde::de::IgnoredAny>(number)
                        .map_err(|_| expected("a number"))?;
                    self.state = JsonState::AfterValue;
                    return self.take(byte, offset, grown);
                }
            }
            JsonState::Literal { left } => {
                let (first, rest) = left.split_first().unwrap_or((&0, &[]));
                if byte != *first {
                    return Err(expected("`true`, `false` or `null`"));
                }
                self.state = if rest.is_empty() {
                    JsonState::AfterValue
                } else {
                    JsonState::Literal { left: rest }
                };
            }
            JsonState::End { whole, repeated } => {
                return repeat(&self.raw, *whole, repeated, byte).map_err(expected);
            }
            _ if blank => {}
            JsonState::Start if byte == b'{' => return self.open(Nest::Object, offset),
            JsonState::Start => return Err(expected("`{`")),
            JsonState::Key { .. } if byte == b'"' => {
                if self.nesting.len() == 1 {
                    self.key.clear();
                }
                self.state = JsonState::InKey(Text::default());
            }
            JsonState::Key { or_end: true } if byte == b'}' => self.close(offset),
            JsonState::Key { .. } => return Err(expected("a field's name in quotes")),
            JsonState::Colon if byte == b':' => self.state = JsonState::Value { or_end: false },
            JsonState::Colon => return Err(expected("`:`")),
            JsonState::Value { or_end: true } if byte == b']' => self.close(offset),
            JsonState::Value { .. } => return self.begin(byte, offset),
            JsonState::AfterValue => return self.follow(byte, offset),
        }
        Ok(())
    }

    fn refuse_repetition(&mut self, offset: usize) -> Result<(), ArgumentsError> {
        if self.nesting.len() > 1 || self.key != self.field {
            return Ok(());
        }
        if std::mem::replace(&mut self.seen, true) {
            let field = self.field.clone();
            return Err(ArgumentsError::Repeated { field, offset });
        }
        Ok(())
    }

    /// Handles the first byte of a value.
    fn begin(&mut self, byte: u8, offset: usize) -> Result<(), ArgumentsError> {
        let wanted = self.nesting.len() == 1 && self.key == self.field;
        self.state = match byte {
            b'"' if wanted => JsonState::InField(Text::default()),
            _ if wanted => {
                let field = self.field.clone();
                return Err(ArgumentsError::NotText { field, offset });
            }
            b'"' => JsonState::InString(Text::default()),
            b'{' => return self.open(Nest::Object, offset),
            b'[' => return self.open(Nest::Array, offset),
            b'-' | b'0'..=b'9' => JsonState::Number { from: offset },
            b't' => JsonState::Literal { left: b"rue" },
            b'f' => JsonState::Literal { left: b"alse" },
            b'n' => JsonState::Literal { left: b"ull" },
            _ => {
                let expected = "a value";
                return Err(ArgumentsError::Malformed { offset, expected });
            }
        };
        Ok(())
    }

    fn follow(&mut self, byte: u8, offset: usize) -> Result<(), ArgumentsError> {
        match (self.nesting.last(), byte) {
            (Some(Nest::Object), b'}') | (Some(Nest::Array), b']') => self.close(offset),
            (Some(Nest::Object), b',') => self.state = JsonState::Key { or_end: false },
            (Some(Nest::Array), b',') => self.state = JsonState::Value { or_end: false },
            (nest, _) => {
                let object = nest == Some(&Nest::Object);
                let expected = if object { "`,` or `}`" } else { "`,` or `]`" };
                return Err(ArgumentsError::Malformed { offset, expected });
            }
        }
        Ok(())
    }

    fn open(&mut self, nest: Nest, offset: usize) -> Result<(), ArgumentsError> {
        if self.nesting.len() == MAX_DEPTH {
            let limit = MAX_DEPTH;
            return Err(ArgumentsError::TooDeep { offset, limit });
        }
        self.nesting.push(nest);
        self.state = match nest {
            Nest::Object => JsonState::Key { or_end: true },
            Nest::Array => JsonState::Value { or_end: true },
        };
        Ok(())
    }

    fn close(&mut self, offset: usize) {
        self.nesting.pop();
        self.state = if self.nesting.is_empty() {
            JsonState::End {
                whole: offset + 1,
                repeated: 0,
            }
        } else {
            JsonState::AfterValue
        };
    }
}

/// Handles bytes after the object: blanks, or the same bytes once more.
fn repeat(raw: &[u8], whole: usize, repeated: &mut usize, byte: u8) -> Result<(), &'static str> {
    let blank = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    if blank && (*repeated == 0 || *repeated == whole) {
        return Ok(());
    }
    // The blank could belong to the repetition, whose start is then without it.
    let start = raw.iter().position(|&byte| byte == b'{').unwrap_or_default();
    let at = if *repeated == 0 { start } else { *repeated };
    if at < whole && raw[at] == byte {
        *repeated = at + 1;
        return Ok(());
    }
    Err("nothing after the object")
}

/// Returns the offset in `whole` of an error of `serde_json`; its lines count from 1, its columns
/// bytes from 1.
fn offset_of(whole: &[u8], error: &serde_json::Error) -> usize {
    let lines = whole.split_inclusive(|&byte| byte == b'\n');
    let before: usize = lines.take(error.line().saturating_sub(1)).map(<[u8]>::len).sum();
    before + error.column().saturating_sub(1)
}
