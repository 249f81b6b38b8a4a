"""One conversion by a peer, in this process: peers.py PEER DATASET CSV_FOLDER OUT"""

import glob
import os
import sys

from schema import DATASETS

THREADS = int(os.environ.get("BENCH_THREADS", "2"))
ZSTD = int(os.environ.get("BENCH_ZSTD", "1"))


def files(data):
    return sorted(glob.glob(os.path.join(data, "*.csv")))


def run_duckdb(name, data, out):
    import duckdb
    db = duckdb.connect()
    db.execute(f"SET threads={THREADS}; SET preserve_insertion_order=false")
    types = dict(i64="BIGINT", f64="DOUBLE", ts="TIMESTAMP", tsms="TIMESTAMP", date="DATE", str="VARCHAR", bool="BOOLEAN")
    columns = ", ".join(f"'{n}': '{types[k]}'" for n, k in DATASETS[name]["schema"])
    source = f"read_csv({files(data)!r}, auto_detect=false, header=true, delim=',', quote='\"', escape='\"', " \
        f"new_line='\\n', columns={{{columns}}})"
    options = f"FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL {ZSTD}"
    key = DATASETS[name]["part"]
    target = out
    if key:
        options += f", PARTITION_BY ({key}), OVERWRITE_OR_IGNORE"
    else:
        target = os.path.join(out, "t.parquet")
    db.execute(f"COPY (SELECT * FROM {source}) TO '{target}' ({options})")


def run_polars(name, data, out):
    """Times are read as text and then parsed: the faster of the two ways that Polars has."""
    os.environ["POLARS_MAX_THREADS"] = str(THREADS)
    import polars as pl
    types = dict(i64=pl.Int64, f64=pl.Float64, ts=pl.String, tsms=pl.String, date=pl.String, str=pl.String, bool=pl.Boolean)
    parse = {
        "ts": lambda c: c.str.to_datetime("%Y-%m-%d %H:%M:%S"),
        "tsms": lambda c: c.str.to_datetime("%Y-%m-%d %H:%M:%S%.3f", time_unit="us"),
        "date": lambda c: c.str.to_date("%Y-%m-%d"),
    }
    schema = DATASETS[name]["schema"]
    frame = pl.scan_csv(files(data), schema={n: types[k] for n, k in schema}, has_header=True)
    frame = frame.with_columns([parse[k](pl.col(n)) for n, k in schema if k in parse])
    options = dict(compression="zstd", compression_level=ZSTD, maintain_order=False)
    key = DATASETS[name]["part"]
    if key:
        frame.sink_parquet(pl.PartitionBy(out, key=key, include_key=False), mkdir=True, **options)
    else:
        frame.sink_parquet(os.path.join(out, "t.parquet"), **options)


def run_pyarrow(name, data, out):
    import pyarrow as pa
    import pyarrow.csv as pc
    import pyarrow.dataset as pads
    pa.set_cpu_count(THREADS)
    types = dict(i64=pa.int64(), f64=pa.float64(), ts=pa.timestamp("us"), tsms=pa.timestamp("us"), date=pa.date32(),
                 str=pa.string(), bool=pa.bool_())
    schema = pa.schema([(n, types[k]) for n, k in DATASETS[name]["schema"]])
    csv = pads.CsvFileFormat(
        parse_options=pc.ParseOptions(newlines_in_values=name == "events"),
        convert_options=pc.ConvertOptions(column_types=schema, strings_can_be_null=True, null_values=[""],
                                          quoted_strings_can_be_null=False),
        read_options=pc.ReadOptions(block_size=4 << 20))
    scanner = pads.dataset(files(data), schema=schema, format=csv).scanner(use_threads=True)
    parquet = pads.ParquetFileFormat()
    key = DATASETS[name]["part"]
    pads.write_dataset(
        scanner, out, format=parquet,
        file_options=parquet.make_write_options(compression="zstd", compression_level=ZSTD),
        partitioning=pads.partitioning(pa.schema([schema.field(key)]), flavor="hive") if key else None,
        use_threads=True, max_partitions=2048, max_rows_per_group=1 << 20, existing_data_behavior="overwrite_or_ignore")


PEERS = {"duckdb": run_duckdb, "polars": run_polars, "pyarrow": run_pyarrow}

if __name__ == "__main__":
    PEERS[sys.argv[1]](*sys.argv[2:5])
