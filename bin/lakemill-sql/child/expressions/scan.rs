//! The table function through which DuckDB reads the current batch.
//!
//! Invariant: a slot belongs to one evaluator, its id is never reused, and no user's text can call the function (table
//! functions are not on the allow-list). The crate's own `arrow` function keeps every batch for the life of the
//! process, hence this one.

use lakemill::domain::pipeline::types::DataType;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::error::Error;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use arrow::array::{Int64Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType as Arrow, Field, Schema};
use duckdb::core::{DataChunkHandle, LogicalTypeHandle, LogicalTypeId};
use duckdb::vtab::{BindInfo, InitInfo, TableFunctionInfo, VTab, record_batch_to_duckdb_data_chunk};

use crate::child::duckdb_types::logical_type;

/// Rows of one call, DuckDB's vector size (its compile-time constant).
const VECTOR_ROWS: usize = 2_048;

static SLOTS: LazyLock<Mutex<HashMap<u64, Arc<BatchSlot>>>> = LazyLock::new(Mutex::default);
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// The relation that one evaluator serves to DuckDB: the row number, then its columns.
pub struct BatchSlot {
    row_name: String,
    columns: Vec<(String, DataType)>,
    batch: Mutex<Option<RecordBatch>>,
    failure: Mutex<Option<String>>,
}

/// A registered [`BatchSlot`]; unregistered when dropped.
pub struct SlotHandle {
    pub id: u64,
    slot: Arc<BatchSlot>,
}

impl SlotHandle {
    /// Registers a slot whose first column is the row number, called `row_name`.
    pub fn new(row_name: String, columns: Vec<(String, DataType)>) -> Self {
        let slot = Arc::new(BatchSlot { row_name, columns, batch: Mutex::default(), failure: Mutex::default() });
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        SLOTS.lock().insert(id, Arc::clone(&slot));
        Self { id, slot }
    }

    /// Serves `batch` (the slot's columns, in their order) to queries until the guard is dropped.
    pub fn serve(&self, batch: RecordBatch) -> BatchGuard<'_> {
        *self.slot.failure.lock() = None;
        *self.slot.batch.lock() = Some(batch);
        BatchGuard(&self.slot)
    }
}

impl Drop for SlotHandle {
    fn drop(&mut self) {
        SLOTS.lock().remove(&self.id);
    }
}

/// Serves its batch until dropped.
pub struct BatchGuard<'a>(&'a BatchSlot);

impl BatchGuard<'_> {
    /// Why reading the batch itself failed, if it did.
    pub fn failure(&self) -> Option<String> {
        self.0.failure.lock().clone()
    }
}

impl Drop for BatchGuard<'_> {
    fn drop(&mut self) {
        *self.0.batch.lock() = None;
    }
}

/// The table function.
pub struct BatchScan;

impl VTab for BatchScan {
    type InitData = AtomicUsize;
    type BindData = Arc<BatchSlot>;

    fn bind(bind: &BindInfo) -> Result<Arc<BatchSlot>, Box<dyn Error>> {
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
        let Some(batch) = slot.batch.lock().clone() else { return Err("no batch is served".into()) };
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
