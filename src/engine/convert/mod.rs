//! Converts sources into spooled Parquet files, partition by partition.
//!
//! Must not: write to the store.

mod assemble;
mod build;
mod build_feed;
mod conversion;
mod cut_forecast;
mod encoding;
mod error;
mod feed;
mod group_files;
mod hashing_file;
mod head_rows;
mod inputs;
mod measure;
mod members;
mod parquet_file;
mod partition_encoder;
mod partitions;
mod piece;
mod pool;
mod prefetch;
mod rejects;
mod row_buffer;
mod row_outcomes;
mod rows;
mod small_parts;
mod sorting;
mod source_layout;
mod source_list;
mod spill;
mod stored_rows;
mod table_writer;
mod text_list;

pub use assemble::RowGroups;
pub use conversion::{
    BuiltGroup, BuiltSegment, Conversion, ConvertProgress, Converted, OnFile, OutcomeSink, Resources, SourceOutcome,
    SourceRef, SpooledFile,
};
pub use error::ConvertError;
pub use head_rows::{HeadBatch, HeadRows};
pub use inputs::{BuildInputs, BuildLayout, StoredSegment, StoredSource};
pub use members::{Member, Members};
pub use rejects::rejects_schema;
pub use row_buffer::BufferedRows;
pub use source_list::SourceList;
pub use text_list::TextList;
