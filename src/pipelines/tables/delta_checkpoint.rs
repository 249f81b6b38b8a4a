//! Checkpoints of a table's Delta log, and the deletion of versions that are no longer needed.
//!
//! A checkpoint is one Parquet file with all files of the table. It is made from the manifest, so no log is read. It is
//! written after its version, and may be missing: readers then begin at an earlier one.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Int32Array, Int64Array, ListBuilder, MapBuilder, MapFieldNames, RecordBatch, StringArray,
    StringBuilder, StructArray, new_null_array,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Fields, Schema};
use arrow::error::ArrowError;
use chrono::TimeDelta;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use serde_json::{Map, Value, json};

use super::delta_log::{file_actions, milliseconds};
use super::{Maps, TableError, TableResult, TableStore};
use crate::domain::delta::{self, FileAction};
use crate::domain::layout::{delta_checkpoint_key, delta_last_checkpoint_key, delta_log_prefix};
use crate::domain::table_log::root::{DeltaLog, Root};
use crate::ports::store::{Bucket, Lease, ObjectMeta, WriteOptions, list_all};

/// Files per batch.
const BATCH_FILES: usize = 4_096;
/// How long versions stay that a later checkpoint replaces, for readers that have listed the log.
const LISTED_LOG_TTL: TimeDelta = TimeDelta::hours(1);

/// Why there is no checkpoint.
#[derive(Debug, thiserror::Error)]
pub(super) enum CheckpointError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error("checkpoint can't be encoded: {0}")]
    Parquet(#[from] ParquetError),
    #[error("checkpoint can't be encoded: {0}")]
    Arrow(#[from] ArrowError),
}

/// Writes the checkpoint of the current version if it has one, then deletes expired versions of the log.
pub(super) fn checkpoint(table: &TableStore<'_>, root: &Root, lease: &dyn Lease) -> Result<(), CheckpointError> {
    let Some(log) = root.delta.as_ref().filter(|log| delta::has_checkpoint(log.version, root.totals.files)) else {
        return Ok(());
    };
    let (bytes, files) = encode(table, root, log)?;
    let options = WriteOptions::leased(lease);
    let (slug, name) = (table.slug, table.table);
    let put = |key: &str, bytes: &[u8]| -> TableResult<ObjectMeta> {
        Ok(table.store.put(Bucket::Warehouse, key, bytes, &options)?)
    };
    let written = put(&delta_checkpoint_key(slug, name, log.version), &bytes)?;
    let last = json!({
        "version": log.version, "size": files + 3, "sizeInBytes": bytes.len(), "numOfAddFiles": files,
    });
    put(&delta_last_checkpoint_key(slug, name), last.to_string().as_bytes())?;
    Ok(clean_up(table, root, log, &written, lease)?)
}

fn encode(table: &TableStore<'_>, root: &Root, log: &DeltaLog) -> Result<(Vec<u8>, usize), CheckpointError> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
    let mut writer = ArrowWriter::try_new_with_options(Vec::new(), Arc::new(schema()), options)?;
    writer.write(&table_batch(root, log)?)?;
    let (mut files, mut batch) = (0, Vec::with_capacity(BATCH_FILES));
    for entry in Maps::of(Some(root)).groups.entries(&mut table.reader()) {
        let (key, group) = entry?;
        batch.extend(file_actions(log, root, &key, &group.files));
        if batch.len() >= BATCH_FILES {
            files += batch.len();
            writer.write(&files_batch(&std::mem::take(&mut batch))?)?;
        }
    }
    files += batch.len();
    if !batch.is_empty() {
        writer.write(&files_batch(&batch)?)?;
    }
    Ok((writer.into_inner()?, files))
}

/// Deletes versions and checkpoints before the last checkpoint from which all retained versions can be read.
fn clean_up(
    table: &TableStore<'_>,
    root: &Root,
    log: &DeltaLog,
    written: &ObjectMeta,
    lease: &dyn Lease,
) -> TableResult<()> {
    let prefix = delta_log_prefix(table.slug, table.table);
    let listed = list_all(table.store, Bucket::Warehouse, &prefix)?;
    let version = |object: &ObjectMeta| object.key.strip_prefix(&prefix)?.split('.').next()?.parse::<u64>().ok();
    let is_checkpoint = |object: &&ObjectMeta| object.key.ends_with(".checkpoint.parquet");
    let oldest = log.version.saturating_sub(root.retained.len() as u64).min(log.version.saturating_sub(1));
    let checkpoints = listed.iter().filter(is_checkpoint).filter_map(version);
    let Some(first) = checkpoints.filter(|version| *version <= oldest).max() else { return Ok(()) };
    let until = written.modified - LISTED_LOG_TTL;
    let is_over = |object: &&ObjectMeta| version(object).is_some_and(|own| own < first) && object.modified < until;
    let keys: Vec<String> = listed.iter().filter(is_over).map(|object| object.key.clone()).collect();
    if !keys.is_empty() {
        table.store.delete(Bucket::Warehouse, &keys, &WriteOptions::leased(lease))?;
    }
    Ok(())
}

fn field(name: &str, ty: DataType) -> Field {
    Field::new(name, ty, true)
}

fn text(name: &str) -> Field {
    field(name, DataType::Utf8)
}

fn number(name: &str) -> Field {
    field(name, DataType::Int64)
}

fn map_type() -> DataType {
    let key_value = [Field::new("key", DataType::Utf8, false), text("value")];
    DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(key_value.into_iter().collect()), false)), false)
}

fn list_type() -> DataType {
    DataType::List(Arc::new(text("element")))
}

fn txn_fields() -> Fields {
    [text("appId"), number("version"), number("lastUpdated")].into_iter().collect()
}

fn add_fields() -> Fields {
    let fields = [
        text("path"),
        field("partitionValues", map_type()),
        number("size"),
        number("modificationTime"),
        field("dataChange", DataType::Boolean),
        text("stats"),
    ];
    fields.into_iter().collect()
}

fn remove_fields() -> Fields {
    [text("path"), number("deletionTimestamp"), field("dataChange", DataType::Boolean)].into_iter().collect()
}

fn format_fields() -> Fields {
    [text("provider"), field("options", map_type())].into_iter().collect()
}

fn metadata_fields() -> Fields {
    let fields = [
        text("id"),
        text("name"),
        field("format", DataType::Struct(format_fields())),
        text("schemaString"),
        field("partitionColumns", list_type()),
        number("createdTime"),
        field("configuration", map_type()),
    ];
    fields.into_iter().collect()
}

fn protocol_fields() -> Fields {
    let version = |name| field(name, DataType::Int32);
    let features = |name| field(name, list_type());
    let fields = [
        version("minReaderVersion"),
        version("minWriterVersion"),
        features("readerFeatures"),
        features("writerFeatures"),
    ];
    fields.into_iter().collect()
}

fn schema() -> Schema {
    let action = |name, fields| field(name, DataType::Struct(fields));
    Schema::new(vec![
        action("txn", txn_fields()),
        action("add", add_fields()),
        action("remove", remove_fields()),
        action("metaData", metadata_fields()),
        action("protocol", protocol_fields()),
    ])
}

/// The rows of the table itself: one for the transaction, one for the metadata, one for the protocol.
fn table_batch(root: &Root, log: &DeltaLog) -> Result<RecordBatch, ArrowError> {
    const ROWS: usize = 3;
    let metadata = delta::metadata(log, &root.table, &root.schema.columns);
    let protocol = delta::protocol(log);
    let only = |at: usize| Some(NullBuffer::from_iter((0..ROWS).map(|row| row == at)));
    let texts = |value: &str| -> ArrayRef { Arc::new(StringArray::from(vec![value; ROWS])) };
    let numbers = |value: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![value; ROWS])) };
    let versions = |value: i32| -> ArrayRef { Arc::new(Int32Array::from(vec![value; ROWS])) };
    let empty = maps(&vec![Map::new(); ROWS])?;
    let txn = vec![texts(&log.id), numbers(root.sequence as i64), numbers(milliseconds(&root.committed_at))];
    let format = StructArray::try_new(format_fields(), vec![texts("parquet"), Arc::clone(&empty)], None)?;
    let meta = vec![
        texts(&metadata.id),
        texts(&metadata.name),
        Arc::new(format),
        texts(&metadata.schema_string),
        lists(ROWS, Some(&metadata.partition_columns)),
        numbers(metadata.created_time),
        empty,
    ];
    let proto = vec![
        versions(protocol.min_reader_version),
        versions(protocol.min_writer_version),
        lists(ROWS, protocol.reader_features.as_deref()),
        lists(ROWS, protocol.writer_features.as_deref()),
    ];
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StructArray::try_new(txn_fields(), txn, only(0))?),
        new_null_array(&DataType::Struct(add_fields()), ROWS),
        new_null_array(&DataType::Struct(remove_fields()), ROWS),
        Arc::new(StructArray::try_new(metadata_fields(), meta, only(1))?),
        Arc::new(StructArray::try_new(protocol_fields(), proto, only(2))?),
    ];
    RecordBatch::try_new(Arc::new(schema()), columns)
}

fn files_batch(files: &[FileAction]) -> Result<RecordBatch, ArrowError> {
    let rows = files.len();
    let values: Vec<Map<String, Value>> = files.iter().map(|file| file.partition_values.clone()).collect();
    let add: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(files.iter().map(|file| file.path.as_str()))),
        maps(&values)?,
        Arc::new(Int64Array::from_iter_values(files.iter().map(|file| file.size as i64))),
        Arc::new(Int64Array::from_iter_values(files.iter().map(|file| file.modified_ms))),
        Arc::new(BooleanArray::from(vec![false; rows])),
        Arc::new(StringArray::from_iter_values(files.iter().map(|file| file.stats.as_str()))),
    ];
    let columns: Vec<ArrayRef> = vec![
        new_null_array(&DataType::Struct(txn_fields()), rows),
        Arc::new(StructArray::try_new(add_fields(), add, None)?),
        new_null_array(&DataType::Struct(remove_fields()), rows),
        new_null_array(&DataType::Struct(metadata_fields()), rows),
        new_null_array(&DataType::Struct(protocol_fields()), rows),
    ];
    RecordBatch::try_new(Arc::new(schema()), columns)
}

fn maps(rows: &[Map<String, Value>]) -> Result<ArrayRef, ArrowError> {
    let names = MapFieldNames { entry: "key_value".into(), key: "key".into(), value: "value".into() };
    let mut builder = MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new());
    for row in rows {
        for (name, value) in row {
            builder.keys().append_value(name);
            builder.values().append_option(value.as_str());
        }
        builder.append(true)?;
    }
    Ok(Arc::new(builder.finish()))
}

/// The same list in each row; `None`: null.
fn lists<T: AsRef<str>>(rows: usize, texts: Option<&[T]>) -> ArrayRef {
    let mut builder = ListBuilder::new(StringBuilder::new()).with_field(text("element"));
    for _ in 0..rows {
        texts.into_iter().flatten().for_each(|text| builder.values().append_value(text));
        builder.append(texts.is_some());
    }
    Arc::new(builder.finish())
}
