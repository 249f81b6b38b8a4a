//! A small world to run pipelines in: a converter of `partition,value` lines, and a naive oracle for the expected
//! tables.

pub mod convert;
pub mod oracle;
pub mod steps;
pub mod world;
