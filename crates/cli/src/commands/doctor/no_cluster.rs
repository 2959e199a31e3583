//! A build without the feature `kubernetes`, which examines no cluster.

use std::future::{Ready, ready};

use cellblock_settings::MissingFeature;

use crate::args::DoctorArgs;
use crate::error::{Error, end};
use crate::exit_code::ExitCode;

pub(super) fn run(_: &DoctorArgs) -> Ready<ExitCode> {
    let missing = MissingFeature("kubernetes");
    ready(end(Err(Error::Refused(format!("doctor: {missing}")))))
}
