"""Compares a warehouse with its CSVs: check.py PIPELINE_JSON LAKE WAREHOUSE

DuckDB, Polars and pyarrow each read every table by their own means. All must find the declared types, and the counts,
sums and extremes that Python computes from the input (model.py); pyarrow's rows must equal the input's as a multiset.
Exit status 1, with every difference on a line, if anything differs.
"""

import collections
import datetime as dt
import decimal
import math
import pathlib
import re
import sys
import uuid

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads

import model

UTC = dt.timezone.utc
EPOCH = dt.datetime(1970, 1, 1)

# Declared type: pyarrow's, DuckDB's and Polars' names for it (several where a reader may know the logical type or not).
TYPES = {
    "boolean": (["bool"], ["BOOLEAN"], ["Boolean"]),
    "int8": (["int8"], ["TINYINT"], ["Int8"]),
    "int16": (["int16"], ["SMALLINT"], ["Int16"]),
    "int32": (["int32"], ["INTEGER"], ["Int32"]),
    "int64": (["int64"], ["BIGINT"], ["Int64"]),
    "uint8": (["uint8"], ["UTINYINT"], ["UInt8"]),
    "uint16": (["uint16"], ["USMALLINT"], ["UInt16"]),
    "uint32": (["uint32"], ["UINTEGER"], ["UInt32"]),
    "uint64": (["uint64"], ["UBIGINT"], ["UInt64"]),
    "float32": (["float"], ["FLOAT"], ["Float32"]),
    "float64": (["double"], ["DOUBLE"], ["Float64"]),
    "string": (["string", "large_string"], ["VARCHAR"], ["String"]),
    "date": (["date32[day]"], ["DATE"], ["Date"]),
    "time": (["time64[us]"], ["TIME"], ["Time"]),
    "timestamp": (["timestamp[us]"], ["TIMESTAMP"], ["Datetime(time_unit='us', time_zone=None)"]),
    "timestamptz": (["timestamp[us, tz=UTC]"], ["TIMESTAMP WITH TIME ZONE"],
                    ["Datetime(time_unit='us', time_zone='UTC')"]),
    "uuid": (["extension<arrow.uuid>", "fixed_size_binary[16]"], ["UUID"], ["Binary"]),
    # Polars knows Parquet's JSON type as bytes.
    "json": (["extension<arrow.json>", "string"], ["JSON", "VARCHAR"], ["Binary"]),
}
POLARS_HIVE = {"string": pl.String, "date": pl.Date}
ARROW_HIVE = {"string": pa.string(), "date": pa.date32()}
DUCKDB_HIVE = {"string": "VARCHAR", "date": "DATE"}


def type_names(kind):
    if kind.startswith("decimal"):
        precision, scale = re.findall(r"\d+", kind)
        return ([f"decimal128({precision}, {scale})"], [f"DECIMAL({precision},{scale})"],
                [f"Decimal(precision={precision}, scale={scale})"])
    return TYPES[kind]


def partitions(mapping):
    """(name in the path, type, source column, transform)"""
    kinds = {c["name"]: c["type"] for c in mapping["columns"]}
    out = []
    for field in mapping.get("partition_by", []):
        field = {"column": field} if isinstance(field, str) else field
        transform = field.get("transform", "identity")
        assert transform in ("identity", "day"), "the model knows these"
        kind = kinds[field["column"]] if transform == "identity" else "date"
        out.append((field.get("name", field["column"]), kind, field["column"], transform))
    return out


def micros(value):
    value = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    return (value - EPOCH) // dt.timedelta(microseconds=1)


# For each type, how values are made comparable if necessary, and mapped to a number, so that any column can be summed.
PLAIN = {
    "timestamp": micros,
    "timestamptz": micros,
    "uuid": lambda v: v if isinstance(v, bytes) else v.bytes,
    "decimal": str,
}
MEASURE = {
    "boolean": int,
    "string": lambda v: len(v.encode()),
    "json": lambda v: len(v.encode()),
    "date": lambda v: (v - EPOCH.date()).days,
    "time": lambda v: ((v.hour * 60 + v.minute) * 60 + v.second) * 1000 + v.microsecond // 1000,
    "timestamp": micros,
    "timestamptz": micros,
    "uuid": lambda v: 1,
}


def plain(values, kind):
    change = PLAIN.get(kind.partition("(")[0])
    return [None if v is None else change(v) for v in values] if change else values


def measured(values, kind):
    change = MEASURE.get(kind)
    return [change(v) for v in values] if change else values


def total(values, kind):
    if kind.startswith("float"):
        return math.fsum(values)
    with decimal.localcontext(prec=100):
        return sum(values, decimal.Decimal(0)) if kind.startswith("decimal") else sum(values)


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def by_duckdb(files, columns, hive):
    """(types, rows, {column: (count, sum)})"""
    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'")
    types = "{" + ", ".join(f"{name!r}: {DUCKDB_HIVE[kind]}" for name, kind, _, _ in hive) + "}"
    options = f"hive_partitioning = true, hive_types = {types}" if hive else "hive_partitioning = false"
    db.execute(f"CREATE VIEW t AS FROM read_parquet({[str(f) for f in files]!r}, {options})")
    found = {row[0]: row[1] for row in db.execute("DESCRIBE t").fetchall()}
    sums = []
    for name, kind in columns.items():
        c = quoted(name)
        amount = {"string": f"strlen({c})", "json": f"strlen({c}::VARCHAR)", "boolean": f"{c}::INT", "uuid": "1",
                  "date": f"({c} - DATE '1970-01-01')", "time": f"epoch_ms({c})",
                  "timestamp": f"epoch_us({c})::HUGEINT", "timestamptz": f"epoch_us({c})::HUGEINT", "float64": c, "float32": f"{c}::DOUBLE"}.get(kind, f"{c}::HUGEINT")
        if kind.startswith("decimal"):
            amount = c
        function = "fsum" if kind.startswith("float") else "sum"
        sums.append(f"count({c}), {function}({amount}) FILTER ({c} IS NOT NULL)")
    row = db.execute(f"SELECT count(*), {', '.join(sums)} FROM t").fetchone()
    return found, row[0], {n: (row[1 + 2 * i], row[2 + 2 * i]) for i, n in enumerate(columns)}


def by_polars(files, columns, hive):
    schema = {name: POLARS_HIVE[kind] for name, kind, _, _ in hive} or None
    frame = pl.scan_parquet(files, hive_partitioning=bool(hive), hive_schema=schema).collect()
    out = {}
    for name, kind in columns.items():
        c = frame[name]
        count = c.len() - c.null_count()
        if kind == "json":
            c = c.ext.storage() if str(c.dtype).startswith("Extension") else c
            c = c.cast(pl.String)
        if kind in ("string", "json"):
            c = c.str.len_bytes()
        elif kind in ("timestamp", "timestamptz"):
            c = c.to_physical()
        elif kind == "date":
            c = c.to_physical()
        elif kind == "time":
            c = c.to_physical() // 1_000_000
        elif kind == "uuid":
            c = c.is_not_null()
        if re.fullmatch(r"u?int64|timestamp.*|decimal.*", kind):
            # Polars' own sum of these wraps, or outgrows its precision.
            amount = total([v for v in c.to_list() if v is not None], kind)
        else:
            amount = c.cast(pl.Int64).sum() if not kind.startswith("float") else math.fsum(c.drop_nulls().to_list())
        out[name] = (count, amount)
    return {n: str(t) for n, t in frame.schema.items()}, frame.height, out


def by_pyarrow(files, columns, hive):
    schema = pa.schema([(name, ARROW_HIVE[kind]) for name, kind, _, _ in hive])
    partitioning = pads.partitioning(schema, flavor="hive") if hive else None
    table = pads.dataset([str(f) for f in files], format="parquet", partitioning=partitioning).to_table()
    lists = {name: table.column(name).to_pylist() for name in table.column_names}
    out = {}
    for name, kind in columns.items():
        values = [v for v in lists[name] if v is not None]
        out[name] = (len(values), total(measured(values, kind), kind))
    return {f.name: str(f.type) for f in table.schema}, table.num_rows, out, lists


def same_sum(found, wanted, kind):
    if found is None or wanted is None:
        return (found or 0) == (wanted or 0)
    if kind.startswith("float"):
        return math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-6) or (math.isnan(found) and math.isnan(wanted))
    return found == wanted


def check(mapping, lake, warehouse):
    """All differences of one table, each as a text."""
    name = mapping["table"]
    rows, rejected = model.table(mapping, lake)
    hive = partitions(mapping)
    columns = {c["name"]: c["type"] for c in mapping["columns"]}
    for field, kind, column, transform in hive:
        if transform == "day":
            columns[field] = kind
            for row in rows:
                value = row[column]
                row[field] = None if value is None else (value.date() if isinstance(value, dt.datetime) else value)
    files = sorted((warehouse / name).rglob("*.parquet"))
    if not files:
        return [] if not rows else [f"{name}: no files, expected {len(rows)} rows"]

    wrong = []
    expected = {}
    for column, kind in columns.items():
        values = [row[column] for row in rows if row[column] is not None]
        expected[column] = (len(values), total(measured(values, kind), kind))
    *arrow, lists = by_pyarrow(files, columns, hive)
    readers = [("pyarrow", 0, arrow), ("DuckDB", 1, by_duckdb(files, columns, hive)), ("Polars", 2, by_polars(files, columns, hive))]
    for reader, index, (types, count, sums) in readers:
        if count != len(rows):
            wrong.append(f"{name}: {reader} finds {count} rows, expected {len(rows)}")
        if set(types) != set(columns):
            wrong.append(f"{name}: {reader} finds columns {sorted(types)}, expected {sorted(columns)}")
            continue
        for column, kind in columns.items():
            if types[column] not in type_names(kind)[index]:
                wrong.append(f"{name}.{column}: {reader} finds type {types[column]}, expected {kind}")
            if sums[column][0] != expected[column][0]:
                wrong.append(f"{name}.{column}: {reader} counts {sums[column][0]}, expected {expected[column][0]}")
            if not same_sum(sums[column][1], expected[column][1], kind):
                wrong.append(f"{name}.{column}: {reader} sums {sums[column][1]}, expected {expected[column][1]}")

    if set(lists) == set(columns):
        found = collections.Counter(zip(*(plain(lists[c], kind) for c, kind in columns.items())))
        wanted = collections.Counter(zip(*(plain([row[c] for row in rows], kind) for c, kind in columns.items())))
        for label, difference in (("not in the input", found - wanted), ("not in the table", wanted - found)):
            for row, times in list(difference.items())[:3]:
                wrong.append(f"{name}: {times} x a row {label}: {dict(zip(columns, row))}")

    rejects = sorted((warehouse / "_rejected_rows").glob(f"table={name}/*.parquet"))
    counted = sum(pads.dataset(str(f), format="parquet").count_rows() for f in rejects)
    if counted != rejected:
        wrong.append(f"{name}: {counted} rejected rows, expected {rejected}")
    print(f"{name}: {len(rows):,} rows, {rejected} rejected, {len(files)} files, {len(columns)} columns")
    return wrong


def main(config, lake, warehouse):
    wrong = [text for mapping in model.load(config) for text in check(mapping, lake, pathlib.Path(warehouse))]
    for text in wrong:
        print("WRONG", text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
