//! The table function through which DuckDB reads the batch at hand.
//!
//! Invariant: a slot belongs to one evaluator; its id is never used again, and no text of a person can name the
//! function (table functions are not on the allow-list). The crate's own `arrow` function keeps every batch for the
//! life of the process, hence this one.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::error::Error;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use arrow::array::{Int64Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType as Arrow, Field, Schema};
use duckdb::core::{DataChunkHandle, LogicalTypeHandle, LogicalTypeId};
use duckdb::vtab::{BindInfo, InitInfo, TableFunctionInfo, VTab, record_batch_to_duckdb_data_chunk};

use crate::domain::pipeline::types::DataType;
use crate::sql::query::BATCH_FUNCTION;

/// The function's name in SQL; it takes the slot's id.
pub const FUNCTION: &str = BATCH_FUNCTION;
/// Rows of one call, DuckDB's vector size (its compile-time constant).
const VECTOR_ROWS: usize = 2_048;

static SLOTS: LazyLock<Mutex<HashMap<u64, Arc<Slot>>>> = LazyLock::new(Mutex::default);
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// What one evaluator shows to DuckDB: the row number, then its columns.
pub struct Slot {
    row_name: String,
    columns: Vec<(String, DataType)>,
    batch: Mutex<Option<RecordBatch>>,
    failure: Mutex<Option<String>>,
}

/// A registered [`Slot`]; unregistered when dropped.
pub struct SlotHandle {
    pub id: u64,
    slot: Arc<Slot>,
}

impl SlotHandle {
    /// Registers a slot whose first column is the row number, called `row_name`.
    pub fn new(row_name: String, columns: Vec<(String, DataType)>) -> Self {
        let slot = Arc::new(Slot { row_name, columns, batch: Mutex::default(), failure: Mutex::default() });
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        SLOTS.lock().insert(id, Arc::clone(&slot));
        Self { id, slot }
    }

    /// Shows `batch` (the slot's columns, in their order) to the queries that run until the guard is dropped.
    pub fn show(&self, batch: RecordBatch) -> Shown<'_> {
        *self.slot.failure.lock() = None;
        *self.slot.batch.lock() = Some(batch);
        Shown(&self.slot)
    }
}

impl Drop for SlotHandle {
    fn drop(&mut self) {
        SLOTS.lock().remove(&self.id);
    }
}

/// While it lives, its batch is what the slot gives.
pub struct Shown<'a>(&'a Slot);

impl Shown<'_> {
    /// Why reading the batch itself failed, if it did.
    pub fn failure(&self) -> Option<String> {
        self.0.failure.lock().clone()
    }
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        *self.0.batch.lock() = None;
    }
}

/// The table function.
pub struct BatchScan;

impl VTab for BatchScan {
    type InitData = AtomicUsize;
    type BindData = Arc<Slot>;

    fn bind(bind: &BindInfo) -> Result<Arc<Slot>, Box<dyn Error>> {
        let id = bind.get_parameter(0).to_uint64();
        let slot = SLOTS.lock().get(&id).cloned().ok_or("no such batch")?;
        bind.add_result_column(&slot.row_name, LogicalTypeHandle::from(LogicalTypeId::Bigint));
        for (name, ty) in &slot.columns {
            bind.add_result_column(name, logical_type(*ty));
        }
        Ok(slot)
    }

    fn init(_: &InitInfo) -> Result<AtomicUsize, Box<dyn Error>> {
        Ok(AtomicUsize::new(0))
    }

    fn func(info: &TableFunctionInfo<Self>, output: &mut DataChunkHandle) -> Result<(), Box<dyn Error>> {
        let slot = info.get_bind_data();
        let Some(batch) = slot.batch.lock().clone() else { return Err("no batch is shown".into()) };
        let start = info.get_init_data().fetch_add(VECTOR_ROWS, Ordering::Relaxed).min(batch.num_rows());
        let rows = VECTOR_ROWS.min(batch.num_rows() - start);
        if rows == 0 {
            output.set_len(0);
            return Ok(());
        }
        let written = numbered(&batch, start, rows)
            .map_err(|error| error.to_string())
            .and_then(|part| record_batch_to_duckdb_data_chunk(&part, output).map_err(|error| error.to_string()));
        written.map_err(|error| {
            *slot.failure.lock() = Some(error.clone());
            error.into()
        })
    }

    fn parameters() -> Option<Vec<LogicalTypeHandle>> {
        Some(vec![LogicalTypeHandle::from(LogicalTypeId::UBigint)])
    }
}

/// DuckDB's handle of a declared type.
fn logical_type(ty: DataType) -> LogicalTypeHandle {
    let id = match ty {
        DataType::Boolean => LogicalTypeId::Boolean,
        DataType::Int8 => LogicalTypeId::Tinyint,
        DataType::Int16 => LogicalTypeId::Smallint,
        DataType::Int32 => LogicalTypeId::Integer,
        DataType::Int64 => LogicalTypeId::Bigint,
        DataType::UInt8 => LogicalTypeId::UTinyint,
        DataType::UInt16 => LogicalTypeId::USmallint,
        DataType::UInt32 => LogicalTypeId::UInteger,
        DataType::UInt64 => LogicalTypeId::UBigint,
        DataType::Float32 => LogicalTypeId::Float,
        DataType::Float64 => LogicalTypeId::Double,
        DataType::Decimal { precision, scale } => return LogicalTypeHandle::decimal(precision, scale),
        DataType::String => LogicalTypeId::Varchar,
        DataType::Date => LogicalTypeId::Date,
        DataType::Time => LogicalTypeId::Time,
        DataType::Timestamp => LogicalTypeId::Timestamp,
        DataType::TimestampTz => LogicalTypeId::TimestampTZ,
        DataType::Uuid => LogicalTypeId::Uuid,
        DataType::Json => {
            let mut json = LogicalTypeHandle::from(LogicalTypeId::Varchar);
            json.set_alias("JSON");
            return json;
        }
    };
    LogicalTypeHandle::from(id)
}

/// `rows` rows from `start`, with their numbers in front.
fn numbered(batch: &RecordBatch, start: usize, rows: usize) -> Result<RecordBatch, arrow::error::ArrowError> {
    let numbers = Int64Array::from_iter_values(start as i64..(start + rows) as i64);
    let mut fields = vec![Arc::new(Field::new("row", Arrow::Int64, false))];
    fields.extend(batch.schema().fields().iter().cloned());
    let mut columns: Vec<arrow::array::ArrayRef> = vec![Arc::new(numbers)];
    columns.extend(batch.columns().iter().map(|column| column.slice(start, rows)));
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
}
