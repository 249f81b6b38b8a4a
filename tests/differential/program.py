"""Runs the program on many cases at once, and reads its output with pyarrow."""

import decimal
import gzip
import json
import pathlib
import shutil
import struct
import subprocess
import tempfile

import pyarrow as pa
import pyarrow.parquet as pq

import table

SECONDS_MAX = 600
# Decimals have 38 digits.
CONTEXT = decimal.Context(prec=100)
ARROW = {
    "boolean": pa.bool_(), "int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64(),
    "uint8": pa.uint8(), "uint16": pa.uint16(), "uint32": pa.uint32(), "uint64": pa.uint64(), "float32": pa.float32(),
    "float64": pa.float64(), "string": pa.string(), "date": pa.date32(), "time": pa.time64("us"), "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
}
WHOLE = {"date": pa.int32(), "time": pa.int64(), "timestamp": pa.int64(), "timestamptz": pa.int64()}


class Failed(Exception):
    """The run failed; the text is the program's message."""


class Case:
    """A mapping without its table and globs, and its files by name. A name's ending says how it is compressed."""

    def __init__(self, mapping, files, label=""):
        self.mapping, self.files, self.label = mapping, files, label

    def expect(self):
        return table.expect(self.mapping, self.files)


def compressed(name, data):
    if name.endswith(".gz"):
        return gzip.compress(data, 1)
    if name.endswith(".zst"):
        return pa.compress(data, codec="zstd", asbytes=True)
    return data


def lay_out(cases, folder):
    """Writes config and lake; the table of case `n` is `t<n>`."""
    mappings = []
    for n, case in enumerate(cases):
        mapping = {"table": f"t{n}", "files": [f"t{n}/*"], "rejects": {"max_ratio": 1.0}, **case.mapping}
        mappings.append(mapping)
        (folder / "lake" / f"t{n}").mkdir(parents=True)
        for name, data in case.files.items():
            (folder / "lake" / f"t{n}" / name).write_bytes(compressed(name, data))
    text = json.dumps({"version": 1, "mappings": mappings}, ensure_ascii=False, indent=1)
    (folder / "pipeline.json").write_text(text, encoding="utf-8")


def plain(array, kind):
    """The values of a column in the oracle's representation."""
    if kind == "uuid":
        array = array.storage if hasattr(array, "storage") else array
    elif kind == "json":
        array = array.storage if hasattr(array, "storage") else array
    elif kind in WHOLE:
        array = array.cast(WHOLE[kind]) if kind != "timestamptz" else array.cast(pa.timestamp("us")).cast(pa.int64())
    values = array.to_pylist()
    if kind.startswith("decimal"):
        scale = array.type.scale
        return [None if v is None else int(v.scaleb(scale, CONTEXT)) for v in values]
    if kind.startswith("float"):
        letter = "f" if kind == "float32" else "d"
        return [None if v is None else "nan" if v != v else struct.pack(letter, v) for v in values]
    return values


def arrow_type(kind):
    if kind.startswith("decimal"):
        precision, scale = kind[len("decimal("):-1].split(",")
        return pa.decimal128(int(precision), int(scale))
    return ARROW.get(kind)


def bounds(opened, columns):
    """Finds values outside the statistics by which readers skip row groups; NaN has none."""
    for group in range(opened.num_row_groups):
        read = opened.read_row_group(group)
        for at, column in enumerate(columns):
            statistics = opened.metadata.row_group(group).column(at).statistics
            if not column["type"].startswith(("int", "uint", "float")) or not statistics or not statistics.has_min_max:
                continue
            values = [value for value in read.column(at).to_pylist() if value is not None]
            if not all(statistics.min <= value <= statistics.max for value in values):
                yield f"column {column['name']} has values beyond its bounds, {statistics.min} to {statistics.max}"


class Made:
    """The output of a run for one table."""

    def __init__(self, n, case, output, record):
        self.wrong = []
        name = f"t{n}"
        self.files = sorted((output / name).glob("*.parquet"))
        self.rows = []
        columns = case.mapping["columns"]
        for file in self.files:
            opened = pq.ParquetFile(file)
            read = opened.read().combine_chunks()
            if read.column_names != [column["name"] for column in columns]:
                self.wrong.append(f"columns {read.column_names}")
                return
            lists = []
            for column in columns:
                array, kind = read.column(column["name"]), column["type"]
                expected = arrow_type(kind)
                if expected is not None and array.type != expected:
                    self.wrong.append(f"column {column['name']} has type {array.type}, expected {expected}")
                chunk = array.chunk(0) if array.num_chunks else pa.array([], array.type)
                lists.append(plain(chunk, kind))
            self.wrong += bounds(opened, columns)
            self.rows += [list(row) for row in zip(*lists)]
        self.rejects = []
        for file in (output / "_rejected_rows" / f"table={name}").glob("*.parquet"):
            for row in pq.ParquetFile(file).read().to_pylist():
                place = (row["source"].partition("/")[2], row["line"], row["byte_offset"], row["column"], row["value"])
                self.rejects.append((*place, row["reason"], row["raw"], row["raw_hex"], row["byte_length"]))
        # Files are named by hashes; within a file, rejects are in source order.
        self.rejects.sort(key=lambda reject: reject[0])
        result = record["tables"][name]
        self.counts = {s["source"].partition("/")[2]: table.Counts(
            s["rows_read"], s["rows_written"], s["rows_rejected"], s["rows_filtered"], s["blank_lines"]) for s in result["sources"]}
        self.table_counts = (result["rows_written"], result["rows_rejected"])


class Program:
    def __init__(self, binary, scratch=None):
        self.binary = str(pathlib.Path(binary).resolve())
        self.scratch = scratch or ("/dev/shm" if pathlib.Path("/dev/shm").is_dir() else None)

    def run(self, cases, read, threads=None, memory=None, chunk_bytes=None):
        """Runs `cases` in one pipeline; `read(n, case, output folder, record)` for each. Raises `Failed`."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="lakemill-differential-", dir=self.scratch))
        try:
            lay_out(cases, folder)
            words = [self.binary, "run", folder / "pipeline.json", "--input", folder / "lake", "--output", folder / "out", "--json", "--quiet"]
            words += ["--threads", str(threads)] if threads else []
            words += ["--memory", str(memory)] if memory else []
            environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
            if chunk_bytes:
                environment["FAILPOINTS"] = f"convert::chunk_bytes=return({chunk_bytes})"
            done = subprocess.run(words, capture_output=True, env=environment, timeout=SECONDS_MAX)
            if done.returncode:
                raise Failed(f"exit status {done.returncode}: {done.stderr.decode('utf-8', 'replace')[:2000]}")
            record = json.loads(done.stdout)
            return [read(n, case, folder / "out", record) for n, case in enumerate(cases)]
        finally:
            shutil.rmtree(folder, ignore_errors=True)
