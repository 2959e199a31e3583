//! Reads any bytes as the specification of a chart and its rows.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| cellblock_fuzz_checks::run("chart", data));
