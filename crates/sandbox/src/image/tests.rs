//! Tests of whole builds.
