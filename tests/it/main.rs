//! All integration tests, in one binary.

mod peers;
mod tidy;
