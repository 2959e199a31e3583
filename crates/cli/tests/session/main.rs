//! Sessions that outlive a command, as shell scripts use them.

mod checkpoints;
mod ends;
mod guide;
mod processes;
mod python_client;
mod refusals;
mod scripts;
mod support;
mod terminals;
mod warm;
