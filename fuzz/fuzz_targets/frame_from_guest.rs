//! Reads any bytes as a stream of frames from a guest.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| cellblock_fuzz_checks::run("frame_from_guest", data));
