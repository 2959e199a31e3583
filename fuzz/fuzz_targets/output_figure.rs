//! Reads any bytes as a chart from a kernel or a bare Vega-Lite specification.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| cellblock_fuzz_checks::run("output_figure", data));
