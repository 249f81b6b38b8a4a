#!/usr/bin/env python3
"""Reads tables that Lakemill publishes as Iceberg with the engines that are installed, and compares every value.

    iceberg.py --binary LAKEMILL --folder FOLDER [--steps N] [--readers LIST] [--loop PUBLISHES]

The lake, the oracle and the comparison are those of delta.py. Besides partitions by value, a table has partitions by
year, month, day and hour. After a third of the changes the config drops a column and widens others, and later has the
column again. Exits with 1 and prints each difference if there are any.
"""

import datetime as dt
import json
import os
import pathlib
import sys
import time

import delta
from delta import STORED, TYPES, Reader, Report, arguments, check, literal, loop, older_versions

TABLES = {"t": list(TYPES), "plain": STORED, "times": STORED}
# The column that the config drops temporarily, and those that it widens permanently.
DROPPED, WIDENED = "b", {"i16": "int64", "f32": "float64", "d9": "decimal(12,2)"}


def config(drops, widens, partitions):
    def column(name):
        return {"name": name, "type": WIDENED.get(name, TYPES[name]) if widens else TYPES[name]}

    def mapping(table, names, **more):
        names = [name for name in names if not (drops and name == DROPPED)]
        return {"table": table, "files": ["in/*.csv"], "csv": {"null_values": [delta.NULL]},
                "columns": [column(name) for name in names], "publish": ["iceberg"], "keep_history": "1d", **more}

    small = {"row_group_rows": 1024, "file_text_bytes": 2000, "tail_text_bytes": 1000}
    return {"version": 1, "mappings": [
        mapping("t", TABLES["t"], parquet=small,
                partition_by=[{"column": name, "inferable_texts": "keep"} for name in partitions]),
        mapping("plain", TABLES["plain"], sort_by=["id"],
                parquet={"file_text_bytes": 20000, "tail_text_bytes": 5000}),
        mapping("times", TABLES["times"], parquet=small, partition_by=[
            {"column": "ts", "transform": "day"}, {"column": "tz", "transform": "hour"},
            {"column": "tz", "transform": "month"}, {"column": "day", "transform": "year"}]),
    ]}


class Lake(delta.Lake):
    """The lake of delta.py with other tables, whose config changes twice."""

    def __init__(self, binary, folder, args):
        super().__init__(binary, folder, args.seed, args.partitions)
        self.steps, self.partitions, self.columns = args.steps, args.partitions, []

    def run(self):
        # The next run writes the next version.
        at = len(self.versions)
        widens = at >= self.steps / 3
        drops = widens and at < self.steps * 2 / 3
        (self.folder / "pipeline.json").write_text(json.dumps(config(drops, widens, self.partitions)))
        super().run()
        self.columns.append({table: [name for name in names if not (drops and name == DROPPED)]
                             for table, names in TABLES.items()})


def newest(path):
    folder = pathlib.Path(path) / "metadata"
    return str(folder / f"v{(folder / 'version-hint.text').read_text()}.metadata.json")


def snapshot(version):
    """A run makes one commit of each table, and the snapshot has its sequence."""
    return None if version is None else version + 1


class PyIceberg(Reader):
    name = "pyiceberg"

    def table(self, path):
        from pyiceberg.table import StaticTable
        return StaticTable.from_metadata(newest(path))

    def arrow(self, path, version=None):
        return self.table(path).scan(snapshot_id=snapshot(version)).to_arrow()

    def filtered(self, path, column, value, version=None, shown="id"):
        from pyiceberg.expressions import EqualTo, IsNull
        expr = IsNull(column) if value is None else EqualTo(column, value)
        # Version 0.12 finds no row by a partition value unless the column is selected.
        names = (shown,) if column == shown else (shown, column)
        found = self.table(path).scan(row_filter=expr, snapshot_id=snapshot(version), selected_fields=names)
        return found.to_arrow()[shown].to_pylist()


class Polars(delta.Polars):
    def scan(self, path, version):
        import polars as pl
        return pl.scan_iceberg(newest(path), snapshot_id=snapshot(version))


class DuckDb(Reader):
    name = "DuckDB"

    def __init__(self):
        import duckdb
        self.db = duckdb.connect(config={"allow_unsigned_extensions": True})
        for name in ["avro", "iceberg"]:
            self.db.execute(f"LOAD '{self.extension(name)}'")
        self.db.execute("SET TimeZone = 'UTC'")

    @staticmethod
    def extension(name):
        import duckdb_ext
        folders = map(pathlib.Path, duckdb_ext.__path__)
        return next(found for folder in folders for found in folder.rglob(f"{name}.duckdb_extension"))

    def source(self, path, version):
        at = "" if version is None else f", snapshot_from_id => {snapshot(version)}"
        return f"iceberg_scan('{path}'{at})"

    def fetch(self, query):
        return self.db.execute(query).fetch_arrow_table()

    def arrow(self, path, version=None):
        return self.fetch(f"SELECT * FROM {self.source(path, version)}")

    def filtered(self, path, column, value, version=None, shown="id"):
        # Version 1.4 fails to compare a float with a double.
        is_float = column == "f32" and value is not None
        text = f"= CAST('{value!r}' AS FLOAT)" if is_float else literal(value)
        query = f'SELECT "{shown}" FROM {self.source(path, version)} WHERE "{column}" {text}'
        return self.fetch(query)[shown].to_pylist()


class ClickHouse(Reader):
    name = "ClickHouse"

    def fetch(self, query, version):
        # It reads files below the working folder only.
        os.chdir("/")
        import chdb
        import pyarrow as pa
        settings = " SETTINGS session_timezone='UTC', output_format_arrow_string_as_string=1"
        settings += "" if version is None else f", iceberg_snapshot_id={snapshot(version)}"
        return pa.ipc.open_file(pa.BufferReader(chdb.query(query + settings, "Arrow").bytes())).read_all()

    def arrow(self, path, version=None):
        return self.fetch(f"SELECT * FROM icebergLocal('{path}')", version)

    def filtered(self, path, column, value, version=None, shown="id"):
        text = literal(value)
        if isinstance(value, dt.datetime):
            text = f"= toDateTime64('{value.replace(tzinfo=None).isoformat(sep=' ')}', 6, 'UTC')"
        elif isinstance(value, dt.date):
            text = f"= toDate32('{value.isoformat()}')"
        elif isinstance(value, str):
            text = "= '" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        query = f"SELECT `{shown}` FROM icebergLocal('{path}') WHERE `{column}` {text}"
        return self.fetch(query, version)[shown].to_pylist()


# Daft needs field ids in the files, and fails with a message without them.
READERS = {reader.name: reader for reader in [PyIceberg, Polars, DuckDb, ClickHouse]}


def main():
    args = arguments(READERS)
    # DuckDB rounds hours before 1970 towards zero; partitions of ClickHouse are days from 1970 to 2149.
    report = Report(
        r"DuckDB times( version \d+)?: filter on tz = datetime\.datetime\(1969,.*: 0 rows, expected \d+",
        r"ClickHouse times( version \d+)?: filter on \w+ = datetime\.(date\((1|1582)|datetime\((1900|1969|2262)),.*: 0 rows, expected \d+",
    )
    lake = Lake(os.path.abspath(args.binary), os.path.abspath(args.folder), args)
    for _ in range(args.steps):
        lake.change()
        lake.run()

    last = len(lake.versions) - 1
    older = older_versions(last, args)
    readers = []
    for name in args.readers.split(","):
        try:
            readers.append(READERS[name]())
        except Exception as error:
            report.of(name)(f"can't be loaded: {error}")
    for reader in readers:
        began = time.monotonic()
        for table in TABLES:
            path = lake.table(table)
            check(reader, path, lake.columns[last][table], lake.versions[last], None,
                  report.of(reader.name, table), args.filters)
            for version in older:
                say = report.of(reader.name, table, f"version {version}")
                filters = args.filters * (version == older[0])
                check(reader, path, lake.columns[version][table], lake.versions[version], version, say, filters)
        print(f"{reader.name}: read {1 + len(older)} versions in {time.monotonic() - began:.1f} s", flush=True)
    if args.loop:
        loop(lake, readers, args.loop, report)
    sys.exit(1 if report.faults else 0)


if __name__ == "__main__":
    main()
