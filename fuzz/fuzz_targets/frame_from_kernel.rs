//! Reads any bytes as a stream of `FromKernel` frames.

#![no_main]

use cellblock_protocol::FromKernel;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| cellblock_fuzz::frames::<FromKernel>(data));
