//! Reads any bytes as a picture from a kernel.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| cellblock_fuzz_checks::run("output_image", data));
