//! SQL by embedded DuckDB.
