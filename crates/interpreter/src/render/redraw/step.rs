//! The steps that a terminal takes for written bytes: characters, and the movements that progress bars make.

/// Maximum length of an escape sequence; a longer one is text.
const LONGEST: usize = 32;
/// Maximum number of rows or columns of one movement.
const FAR: usize = 4096;

const ESCAPE: u8 = 0x1b;

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalStep {
    /// A character, or a byte that is not UTF-8.
    Put(ScreenCell),
    /// A line end.
    NewLine,
    /// To the start of the row.
    Return,
    /// So many columns to the left.
    Left(usize),
    /// So many columns to the right.
    Right(usize),
    /// To this column, from 0.
    Column(usize),
    /// So many rows up.
    Up(usize),
    /// So many rows down, within the rows that exist.
    Down(usize),
    /// Erases a row from the cursor to its end (0), from its start to the cursor (1), or all of it (2).
    EraseLine(usize),
    /// Erases everything after the cursor.
    EraseBelow,
    /// Colors, and whether the cursor is visible: nothing that a text can show.
    Nothing,
}

/// Bytes of a character, or one byte that is not UTF-8; unused ones are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScreenCell([u8; 4]);

impl ScreenCell {
    /// A space.
    pub(super) const SPACE: Self = Self([b' ', 0, 0, 0]);

    fn new(bytes: &[u8]) -> Self {
        let mut cell = [0; 4];
        cell[..bytes.len()].copy_from_slice(bytes);
        Self(cell)
    }

    /// Returns the bytes. No byte after the first one of a character is 0.
    pub fn bytes(&self) -> &[u8] {
        let length = self.0[1..].iter().take_while(|byte| **byte != 0).count();
        &self.0[..=length]
    }
}

/// Returns the first step of some bytes with its length. Returns nothing if more bytes must come
/// first; after the `last` ones, what is incomplete is text.
pub fn first_step(bytes: &[u8], last: bool) -> Option<(TerminalStep, usize)> {
    let step = match *bytes.first()? {
        b'\n' => TerminalStep::NewLine,
        b'\r' => TerminalStep::Return,
        b'\x08' => TerminalStep::Left(1),
        ESCAPE => match sequence(bytes) {
            Sequence::Incomplete if !last => return None,
            Sequence::TerminalStep(step, length) => return Some((step, length)),
            Sequence::Incomplete | Sequence::Unknown => TerminalStep::Put(ScreenCell::new(&bytes[..1])),
        },
        _ => return character(bytes, last),
    };
    Some((step, 1))
}

fn character(bytes: &[u8], last: bool) -> Option<(TerminalStep, usize)> {
    let length = match bytes[0] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    let there = &bytes[..length.min(bytes.len())];
    let length = match std::str::from_utf8(there) {
        Ok(_) => length,
        Err(error) if error.error_len().is_none() && !last => return None,
        Err(_) => 1,
    };
    Some((TerminalStep::Put(ScreenCell::new(&bytes[..length])), length))
}

enum Sequence {
    TerminalStep(TerminalStep, usize),
    Incomplete,
    Unknown,
}

fn sequence(bytes: &[u8]) -> Sequence {
    let Some(rest) = bytes.get(1..).filter(|rest| !rest.is_empty()) else {
        return Sequence::Incomplete;
    };
    let Some(rest) = rest.strip_prefix(b"[") else {
        return Sequence::Unknown;
    };
    let given = rest
        .iter()
        .take_while(|byte| matches!(byte, b'0'..=b'9' | b';' | b':' | b'?'))
        .count();
    let (given, rest) = rest.split_at(given);
    if given.len() > LONGEST {
        return Sequence::Unknown;
    }
    let Some(end) = rest.first() else {
        return Sequence::Incomplete;
    };
    // A movement without a number, or with 0, is one of 1.
    let number = std::str::from_utf8(given)
        .ok()
        .filter(|given| given.bytes().all(|byte| byte.is_ascii_digit()))
        .map(|given| {
            given
                .parse::<usize>()
                .unwrap_or(if given.is_empty() { 0 } else { FAR })
        });
    let distance = number.map(|number| number.clamp(1, FAR));
    let step = match (end, number, distance) {
        (b'm', ..) if !given.starts_with(b"?") => TerminalStep::Nothing,
        (b'h' | b'l', ..) if given.starts_with(b"?") => TerminalStep::Nothing,
        (b'A', _, Some(rows)) => TerminalStep::Up(rows),
        (b'B', _, Some(rows)) => TerminalStep::Down(rows),
        (b'C', _, Some(columns)) => TerminalStep::Right(columns),
        (b'D', _, Some(columns)) => TerminalStep::Left(columns),
        (b'G', _, Some(column)) => TerminalStep::Column(column - 1),
        (b'K', Some(part @ 0..=2), _) => TerminalStep::EraseLine(part),
        (b'J', Some(0), _) => TerminalStep::EraseBelow,
        _ => return Sequence::Unknown,
    };
    Sequence::TerminalStep(step, given.len() + 3)
}
