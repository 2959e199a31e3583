//! Output and files of a run.

pub(crate) mod chart;
pub(crate) mod judge;
pub(crate) mod machine;
pub(crate) mod results;
pub(crate) mod table;
