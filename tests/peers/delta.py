#!/usr/bin/env python3
"""Reads tables that Lakemill publishes as Delta Lake with the engines that are installed, and compares every value.

    delta.py --binary LAKEMILL --folder FOLDER [--steps N] [--readers LIST] [--loop SECONDS]

Makes a lake of random CSVs in FOLDER: all types that Delta has, nulls, extremes, odd partition values. After each of N
random changes it runs Lakemill and remembers the rows. Then each reader reads the newest and older versions, whole and
with filters on every column. The log is checked by delta_protocol.py. With --loop it reads the table during further runs: each answer must be one version.
Exits with 1 and prints each difference if there are any. The oracle is this script: it shares no code with Lakemill.
"""

import argparse
import datetime as dt
import decimal
import json
import logging
import os
import math
import pathlib
import random
import re
import shutil
import subprocess
import sys
import threading
import time

import delta_protocol

UTC = dt.timezone.utc
D = decimal.Decimal
NULL = "\\N"
TYPES = {
    "id": "int64", "b": "boolean", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "f32": "float32", "f64": "float64", "d9": "decimal(9,2)", "d18": "decimal(18,4)", "d38": "decimal(38,10)",
    "s": "string", "day": "date", "ts": "timestamp", "tz": "timestamptz",
    "ps": "string", "pd": "decimal(5,2)", "pt": "timestamp", "pz": "timestamptz", "pb": "boolean", "pi": "uint16",
}
PARTITIONS = ["ps", "pd", "pt", "pz", "pb", "pi"]
STORED = [name for name in TYPES if name not in PARTITIONS]
TEXTS = ["a b", "50%", "%41", "a/b", "a=b", "é", "日本", "😀", "x'y", 'q"q', "a+b", "a&b", "#", "C:", "[1]", "a\\b", "plain", "1", "null"]


def f32(value):
    import struct
    return struct.unpack("f", struct.pack("f", value))[0]


def values(rng):
    """A random value of each column, or None."""
    pick = rng.choice
    row = {
        "b": pick([True, False]),
        "i8": pick([-128, 127, 0, 5]),
        "i16": pick([-32768, 32767, 3]),
        "i32": pick([-(2**31), 2**31 - 1, 7]),
        "i64": pick([-(2**63), 2**63 - 1, 2**53 + 1, 11]),
        "f32": pick([f32(0.1), -0.0, 0.0, math.inf, -math.inf, math.nan, f32(3.4e38), 1.5]),
        "f64": pick([0.1, -0.0, 0.0, math.inf, -math.inf, math.nan, 1.7e308, 5e-324, 2.5]),
        "d9": pick([D("-9999999.99"), D("9999999.99"), D("0.01"), D("12.30")]),
        "d18": pick([D("-99999999999999.9999"), D("99999999999999.9999"), D("1.5000")]),
        "d38": pick([D("-9999999999999999999999999999.9999999999"), D("0.0000000001"), D("3.1415926535")]),
        "s": pick(["", "x" * 70 + str(rng.randrange(9)), "é" * 40, "\U0010ffff" * 20, "zz\tq", "a\nb", "a,b", "~"]),
        "day": pick([dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1582, 10, 10), dt.date(2024, 2, 29)]),
        "ts": pick([dt.datetime(1900, 1, 1), dt.datetime(2024, 1, 1, 12, 0, 0, 1), dt.datetime(2262, 4, 11, 0, 0, 0, 999999)]),
        "tz": pick([dt.datetime(1970, 1, 1, tzinfo=UTC), dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
                    dt.datetime(2024, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)]),
        "ps": pick(TEXTS),
        "pd": pick([D("1.50"), D("0.05"), D("999.99")]),
        "pt": pick([dt.datetime(2024, 1, 31, 10, 0), dt.datetime(2024, 1, 31, 10, 0, 0, 500000)]),
        "pz": pick([dt.datetime(2024, 1, 31, 10, 0, tzinfo=UTC), dt.datetime(2024, 1, 31, 10, 0, 0, 120000, tzinfo=UTC)]),
        "pb": pick([True, False]),
        "pi": pick([0, 65535]),
    }
    return {name: None if rng.random() < 0.15 else value for name, value in row.items()}


def cell(value):
    if value is None:
        return NULL
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return {math.inf: "inf", -math.inf: "-inf"}.get(value, "NaN" if math.isnan(value) else repr(value))
    if isinstance(value, dt.datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, D):
        return format(value, "f")
    text = str(value)
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\n') or text == "" else text


def config(partitions):
    column = lambda name: {"name": name, "type": TYPES[name]}
    mapping = {
        "table": "t", "files": ["in/*.csv"], "csv": {"null_values": [NULL]},
        "columns": [column(name) for name in TYPES],
        "partition_by": [{"column": name, "inferable_texts": "keep"} for name in partitions],
        "publish": ["delta"], "keep_history": "1d",
        "parquet": {"row_group_rows": 1024, "file_text_bytes": 2000, "tail_text_bytes": 1000},
    }
    plain = {"table": "plain", "files": ["in/*.csv"], "csv": {"null_values": [NULL]}, "sort_by": ["id"],
             "columns": [column(name) for name in STORED], "publish": ["delta"], "keep_history": "1d",
             "parquet": {"file_text_bytes": 20000, "tail_text_bytes": 5000}}
    return {"version": 1, "mappings": [mapping, plain]}


class Lake:
    """The lake, Lakemill, and the rows after each run."""

    def __init__(self, binary, folder, seed, partitions):
        self.binary, self.folder, self.rng = binary, pathlib.Path(folder), random.Random(seed)
        self.sources, self.versions, self.next = {}, [], 0
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "lake" / "in").mkdir(parents=True)
        (self.folder / "pipeline.json").write_text(json.dumps(config(partitions)))

    def change(self):
        names = sorted(self.sources)
        kind = self.rng.choice(["add", "add", "add", "change", "remove"]) if len(names) > 2 else "add"
        name = f"{self.rng.randrange(1000):04}" if kind == "add" else self.rng.choice(names)
        path = self.folder / "lake" / "in" / f"{name}.csv"
        if kind == "remove":
            del self.sources[name]
            path.unlink()
            return
        rows = []
        for _ in range(self.rng.randrange(1, 12)):
            rows.append({"id": self.next, **values(self.rng)})
            self.next += 1
        self.sources[name] = rows
        lines = [",".join(TYPES)] + [",".join(cell(row[name]) for name in TYPES) for row in rows]
        path.write_text("\n".join(lines) + "\n")

    def run(self):
        command = [self.binary, "run", "pipeline.json", "--input", "lake", "--output", "out"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"lakemill run failed: {done.stdout}{done.stderr}")
        self.versions.append({row["id"]: row for rows in self.sources.values() for row in rows})

    def table(self, name):
        return str(self.folder / "out" / name)


def same(a, b):
    if a is None or b is None:
        return a is b
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    if isinstance(a, dt.datetime) and isinstance(b, dt.datetime):
        return a.replace(tzinfo=None) == b.replace(tzinfo=None)
    return type(a) is type(b) and a == b and str(a) == str(b) or (isinstance(a, int) and isinstance(b, int) and a == b)


class Reader:
    """An engine. `arrow` returns a table's rows; `filtered` returns a column of those with a value (None: null)."""

    def read(self, path, version=None):
        return self.arrow(path, version).to_pylist()


class DeltaRs(Reader):
    name = "deltalake"

    def arrow(self, path, version=None):
        from deltalake import DeltaTable
        return DeltaTable(path, version=version).to_pyarrow_table()

    def filtered(self, path, column, value, version=None, shown="id"):
        import pyarrow.dataset as ds
        import pyarrow as pa
        from deltalake import DeltaTable
        data = DeltaTable(path, version=version).to_pyarrow_dataset()
        ty = data.schema.field(column).type
        expr = ds.field(column) == pa.scalar(value, ty) if value is not None else ds.field(column).is_null()
        return data.to_table(columns=[shown], filter=expr)[shown].to_pylist()


class DataFusion(Reader):
    name = "deltalake SQL"

    def fetch(self, path, query, version):
        import pyarrow as pa
        from deltalake import DeltaTable, QueryBuilder
        return pa.table(QueryBuilder().register("t", DeltaTable(path, version=version)).execute(query).read_all())

    def arrow(self, path, version=None):
        return self.fetch(path, "SELECT * FROM t", version)

    def filtered(self, path, column, value, version=None, shown="id"):
        query = f'SELECT "{shown}" FROM t WHERE "{column}" {literal(value)}'
        return self.fetch(path, query, version)[shown].to_pylist()


def literal(value, ntz="TIMESTAMP", tz="TIMESTAMPTZ"):
    if value is None:
        return "IS NULL"
    if isinstance(value, bool):
        return f"= {str(value).lower()}"
    if isinstance(value, dt.datetime):
        if value.tzinfo:
            return f"= CAST('{value.isoformat()}' AS {tz})" if tz != "datafusion" else ""
        return f"= CAST('{value.isoformat(sep=' ')}' AS {ntz})"
    if isinstance(value, dt.date):
        return f"= DATE '{value.isoformat()}'"
    if isinstance(value, D):
        digits, scale = len(value.as_tuple().digits), -value.as_tuple().exponent
        return f"= CAST('{value:f}' AS DECIMAL({max(digits, scale)},{scale}))"
    if isinstance(value, float):
        return f"= CAST('{value!r}' AS DOUBLE)"
    if isinstance(value, int):
        return f"= {value}" if value > -(2**63) else f"= CAST('{value}' AS BIGINT)"
    return "= '" + value.replace("'", "''") + "'"


class Polars(Reader):
    name = "Polars"

    def scan(self, path, version):
        import polars as pl
        return pl.scan_delta(path, version=version)

    def arrow(self, path, version=None):
        return self.scan(path, version).collect().to_arrow()

    def filtered(self, path, column, value, version=None, shown="id"):
        import polars as pl
        frame = self.scan(path, version)
        ty = frame.collect_schema()[column]
        expr = pl.col(column).is_null() if value is None else pl.col(column) == pl.lit(value, dtype=ty)
        return frame.filter(expr).select(shown).collect()[shown].to_list()


class Daft(Reader):
    name = "daft"

    def frame(self, path, version):
        import daft
        # A warning that advises to filter by partition.
        logging.getLogger("daft").setLevel(logging.ERROR)
        return daft.read_deltalake(path, version=version)

    def arrow(self, path, version=None):
        return self.frame(path, version).to_arrow()

    def filtered(self, path, column, value, version=None, shown="id"):
        from daft import col, lit
        frame = self.frame(path, version)
        ty = next(field.dtype for field in frame.schema() if field.name == column)
        expr = col(column).is_null() if value is None else col(column) == lit(value).cast(ty)
        return frame.where(expr).select(shown).to_arrow()[shown].to_pylist()


class DuckDb(Reader):
    name = "DuckDB"

    def __init__(self):
        import duckdb
        self.db = duckdb.connect(config={"allow_unsigned_extensions": True})
        self.db.execute(f"LOAD '{self.extension()}'")
        self.db.execute("SET TimeZone = 'UTC'")

    @staticmethod
    def extension():
        import duckdb_ext
        folders = map(pathlib.Path, duckdb_ext.__path__)
        return next(found for folder in folders for found in folder.rglob("delta.duckdb_extension"))

    def source(self, path, version):
        if version is None:
            return f"delta_scan('{path}')"
        name = f"{pathlib.Path(path).name}_{version}"
        self.db.execute(f"ATTACH IF NOT EXISTS '{path}' AS {name} (TYPE delta, VERSION {version})")
        return name

    def fetch(self, query):
        return self.db.execute(query).fetch_arrow_table()

    def arrow(self, path, version=None):
        return self.fetch(f"SELECT * FROM {self.source(path, version)}")

    def filtered(self, path, column, value, version=None, shown="id"):
        query = f'SELECT "{shown}" FROM {self.source(path, version)} WHERE "{column}" {literal(value)}'
        return self.fetch(query)[shown].to_pylist()


class ClickHouse(Reader):
    name = "ClickHouse"

    def fetch(self, query, version):
        # It reads files below the working folder only.
        os.chdir("/")
        import chdb
        import pyarrow as pa
        settings = " SETTINGS session_timezone='UTC', output_format_arrow_string_as_string=1, schema_inference_make_columns_nullable=1"
        settings += "" if version is None else f", delta_lake_snapshot_version={version}"
        return pa.ipc.open_file(pa.BufferReader(chdb.query(query + settings, "Arrow").bytes())).read_all()

    def arrow(self, path, version=None):
        return self.fetch(f"SELECT * FROM deltaLakeLocal('{path}')", version)

    def filtered(self, path, column, value, version=None, shown="id"):
        text = literal(value, ntz="DateTime64(6)", tz="DateTime64(6,\\'UTC\\')".replace("\\", ""))
        if isinstance(value, dt.datetime):
            plain = value.replace(tzinfo=None).isoformat(sep=" ")
            text = f"= toDateTime64('{plain}', 6, 'UTC')"
        if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
            text = f"= toDate32('{value.isoformat()}')"
        if isinstance(value, str):
            text = "= '" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        return self.fetch(f"SELECT `{shown}` FROM deltaLakeLocal('{path}') WHERE `{column}` {text}", version)[shown].to_pylist()


READERS = {reader.name: reader for reader in [DeltaRs, DataFusion, Polars, Daft, DuckDb, ClickHouse]}


def plain(value):
    """A value in the oracle's representation."""
    if isinstance(value, bytes):
        return value.decode()
    return value


def compare(reader, path, columns, expected, version, say):
    rows = reader.read(path, version)
    found = {row["id"]: row for row in rows}
    if len(rows) != len(found) or set(found) != set(expected):
        say(f"rows: {len(rows)} with {len(found)} ids, expected {len(expected)}")
        return
    told = set()
    for key, row in expected.items():
        for column in columns:
            want, got = row[column], plain(found[key][column])
            if not same(want, got) and column not in told:
                told.add(column)
                say(f"{column}: {got!r}, expected {want!r}")


def check(reader, path, columns, expected, version, say, filters):
    """`filters`: how many values of each column are filtered by."""
    try:
        compare(reader, path, columns, expected, version, say)
    except Exception as error:
        say(f"fails: {type(error).__name__}: {str(error)[:300]}")
        return
    if not filters:
        return
    for column in columns:
        seen = {}
        for key, row in expected.items():
            seen.setdefault(repr(row[column]), (row[column], set()))[1].add(key)
        for value, ids in list(seen.values())[:filters]:
            if isinstance(value, float) and (math.isnan(value) or value == 0 or math.isinf(value)):
                continue
            try:
                found = reader.filtered(path, column, value, version)
            except Exception as error:
                say(f"filter on {column} = {value!r} fails: {type(error).__name__}: {str(error)[:200]}")
                break
            if sorted(found) != sorted(ids):
                say(f"filter on {column} = {value!r}: {len(found)} rows, expected {len(ids)}")
                break


class Report:
    """Prints faults and counts them, except those of readers that docs/engines.md knows. `known`: expressions that
    match the whole line of a fault."""

    def __init__(self, *known):
        self.faults, self.known = 0, known

    def of(self, *about):
        def say(text):
            line = " ".join(map(str, about)) + ": " + text
            is_known = any(re.fullmatch(known, line) for known in self.known)
            self.faults += not is_known
            print(f"known: {line}" if is_known else line, flush=True)
        return say


def arguments(readers):
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--older", type=int, default=8, help="older versions to read")
    parser.add_argument("--filters", type=int, default=100, help="values of each column to filter by")
    parser.add_argument("--partitions", type=lambda text: text.split(","), default=PARTITIONS, help="columns of table `t`")
    parser.add_argument("--readers", default=",".join(readers))
    parser.add_argument("--loop", type=int, default=0, help="publishes while readers read")
    return parser.parse_args()


def older_versions(newest, args):
    """Some of the versions that Lakemill still keeps (docs/history.md: at most 1,000)."""
    kept = range(max(0, newest - 999), newest)
    return sorted(random.Random(args.seed).sample(kept, min(args.older, len(kept))))


def main():
    args = arguments(READERS)
    report = Report()
    lake = Lake(os.path.abspath(args.binary), os.path.abspath(args.folder), args.seed, args.partitions)
    for _ in range(args.steps):
        lake.change()
        lake.run()

    for table in ["t", "plain"]:
        versions = delta_protocol.check(lake.table(table), report.of("protocol", table))
        print(f"protocol: checked {versions} versions of {table}", flush=True)
    newest = len(lake.versions) - 1
    older = older_versions(newest, args)
    readers = []
    for name in args.readers.split(","):
        try:
            readers.append(READERS[name]())
        except Exception as error:
            report.of(name)(f"can't be loaded: {error}")
    for reader in readers:
        began = time.monotonic()
        for table, columns in [("t", list(TYPES)), ("plain", STORED)]:
            path = lake.table(table)
            check(reader, path, columns, lake.versions[newest], None, report.of(reader.name, table), args.filters)
            for version in older:
                say = report.of(reader.name, table, f"version {version}")
                check(reader, path, columns, lake.versions[version], version, say, args.filters * (version == older[0]))
        print(f"{reader.name}: read {1 + len(older)} versions in {time.monotonic() - began:.1f} s", flush=True)
    if args.loop:
        loop(lake, readers, args.loop, report)
    sys.exit(1 if report.faults else 0)


def loop(lake, readers, publishes, report):
    """Reads while the table is published. Each answer has the rows of one version that was the newest meanwhile."""
    done, reads = threading.Event(), {reader.name: 0 for reader in readers}

    def read(reader):
        while not done.is_set():
            first = len(lake.versions) - 1
            try:
                found = sorted(row["id"] for row in reader.read(lake.table("plain")))
            except Exception as error:
                report.of(reader.name, "loop")(f"fails: {str(error)[:200]}")
                return
            # The run that is in progress may have published already.
            time.sleep(0)
            wanted = lambda: [sorted(rows) for rows in lake.versions[first:]]
            deadline = time.monotonic() + 120
            while found not in wanted() and not done.is_set() and time.monotonic() < deadline:
                time.sleep(0.05)
            if found not in wanted():
                report.of(reader.name, "loop")(f"{len(found)} rows are no version's")
                return
            reads[reader.name] += 1

    threads = [threading.Thread(target=read, args=(reader,)) for reader in readers]
    for thread in threads:
        thread.start()
    for _ in range(publishes):
        lake.change()
        lake.run()
    done.set()
    for thread in threads:
        thread.join()
    print(f"{publishes} publishes, reads: {reads}", flush=True)


if __name__ == "__main__":
    main()
