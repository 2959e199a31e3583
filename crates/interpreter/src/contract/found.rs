//! The mistakes of one call, limited to a number that a model can handle.

use cellblock_protocol::text::counted;

use crate::rejection::Rejection;

/// Maximum number of mistakes that are reported at once.
const MOST: usize = 20;

/// Mistakes in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct Mistakes {
    told: Vec<Rejection>,
    more: usize,
}

impl Mistakes {
    pub(crate) fn add(&mut self, rejection: Rejection) {
        if self.told.len() < MOST {
            self.told.push(rejection);
        } else {
            self.more += 1;
        }
    }

    /// Returns all of them; the last one contains the number of omitted ones.
    pub(crate) fn all(mut self) -> Vec<Rejection> {
        if let (Some(last), 1..) = (self.told.last_mut(), self.more) {
            let (more, verb) = (
                counted(self.more, "more problem"),
                if self.more == 1 { "is" } else { "are" },
            );
            last.message = format!("{} ({more} of this call {verb} not listed)", last.message);
        }
        self.told
    }
}
