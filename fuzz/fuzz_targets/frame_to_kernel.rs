//! Reads any bytes as a stream of `ToKernel` frames.

#![no_main]

use cellblock_protocol::ToKernel;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| cellblock_fuzz::frames::<ToKernel>(data));
