//! Whole-source tests: bytes in, records with their positions out.

mod encodings;
mod exactness;
mod sources;
mod streams;
mod support;
