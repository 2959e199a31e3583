//! Whole configurations: what they say, and what is told of broken ones.
