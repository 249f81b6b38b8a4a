//! Whole-source tests: bytes in, records with their places out.

mod encodings;
mod exactness;
mod sources;
mod streams;
mod support;
