//! Sessions that outlive a command, as shell scripts use them.

mod ends;
mod refusals;
mod scripts;
mod support;
