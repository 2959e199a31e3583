"""Tests of the kernel, driven over a real channel; no package beyond the standard library is required."""
