//! Pure types and rules: no I/O, no clock, no environment.

pub mod arn;
pub mod backup;
pub mod dashboard;
pub mod delta;
pub mod digest;
pub mod file_tag;
pub mod iceberg;
pub mod job;
pub mod layout;
pub mod limits;
pub mod login;
pub mod name;
pub mod notification;
pub mod partition;
pub mod pause;
pub mod pipeline;
pub mod plan;
pub mod problem;
pub mod reject;
pub mod sample;
mod schema;
pub mod source_name;
pub mod table_log;
pub mod table_schema;
pub mod text;
pub mod zones;
