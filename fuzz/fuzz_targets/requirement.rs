//! Reads any bytes as a requirement of a cell.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| cellblock_fuzz_checks::run("requirement", data));
