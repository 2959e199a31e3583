//! Reads any bytes as a stream of `FromGuest` frames.

#![no_main]

use cellblock_protocol::FromGuest;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| cellblock_fuzz::frames::<FromGuest>(data));
