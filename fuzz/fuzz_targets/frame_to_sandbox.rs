//! Reads any bytes as a stream of frames to a guest or a kernel.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| cellblock_fuzz_checks::run("frame_to_sandbox", data));
