"""Reads partitioned tables with DuckDB, Polars and pyarrow: the partition column `p` must be the text in `v`.

Usage: partitions.py WAREHOUSE [--typed]. With `--typed`, readers are given the type of `p`.
"""

import datetime
import pathlib
import sys

import duckdb
import polars
import pyarrow
import pyarrow.dataset


def read_duckdb(table, typed):
    types = ", hive_types = {'p': VARCHAR}" if typed else ""
    sql = f"SELECT p, v FROM read_parquet('{table}/**/*.parquet', hive_partitioning = true{types})"
    return duckdb.connect().sql(sql).fetchall()


def read_polars(table, typed):
    schema = {"p": polars.String} if typed else None
    return polars.read_parquet(f"{table}/", hive_partitioning=True, hive_schema=schema).select("p", "v").rows()


def read_pyarrow(table, typed):
    schema = pyarrow.schema([("p", pyarrow.string())]) if typed else None
    partitioning = pyarrow.dataset.partitioning(schema, flavor="hive")
    rows = pyarrow.dataset.dataset(table, partitioning=partitioning, format="parquet").to_table()
    return list(zip(rows["p"].to_pylist(), rows["v"].to_pylist()))


def written(value):
    """A value as displayed text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    return str(value)


def main():
    warehouse, typed = pathlib.Path(sys.argv[1]), "--typed" in sys.argv[2:]
    tables = sorted(path for path in warehouse.iterdir() if path.is_dir() and not path.name.startswith(("_", ".")))
    wrong = 0
    for table in tables:
        files = len(list(table.rglob("*.parquet")))
        for read in (read_duckdb, read_polars, read_pyarrow):
            try:
                rows = read(str(table), typed)
            except Exception as error:
                rows, files = [(f"{type(error).__name__}: {error}"[:150], None)], files
            if len(rows) != files or any(written(p) != v for p, v in rows):
                wrong += 1
                print(table.name, read.__name__, len(rows), files, [row for row in rows if written(row[0]) != row[1]][:5])
    print(len(tables), "tables")
    sys.exit(wrong > 0 or not tables)


main()
