//! Reads any bytes as a stream of `ToGuest` frames.

#![no_main]

use cellblock_protocol::ToGuest;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| cellblock_fuzz::frames::<ToGuest>(data));
