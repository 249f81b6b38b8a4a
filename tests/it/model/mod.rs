//! A small world to run pipelines in: a store in memory that can fail, a converter of `partition,value` lines, and a
//! naive oracle that says what the tables must be.

pub mod convert;
pub mod oracle;
pub mod steps;
pub mod store;
pub mod world;
