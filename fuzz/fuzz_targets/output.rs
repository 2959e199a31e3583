//! Reads any bytes as the header and blobs of an output, up to what a model and a terminal are shown.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| cellblock_fuzz_checks::run("output", data));
