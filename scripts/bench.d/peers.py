"""Runs one conversion by a peer, in this process: peers.py PEER DATASET CSV_FOLDER OUT"""

import glob
import os
import sys

from schema import DATASETS, FLIGHTS_READ, HARD_FORMATS, HARD_REQUIRED

THREADS = int(os.environ.get("BENCH_THREADS", "2"))
ZSTD = int(os.environ.get("BENCH_ZSTD", "1"))


def files(data):
    return sorted(glob.glob(os.path.join(data, "*.csv")) + glob.glob(os.path.join(data, "*.csv.gz")))


def run_duckdb(name, data, out):
    import duckdb
    db = duckdb.connect()
    db.execute(f"SET threads={THREADS}; SET preserve_insertion_order=false")
    types = dict(i64="BIGINT", f64="DOUBLE", ts="TIMESTAMP", tsms="TIMESTAMP", tz="TIMESTAMPTZ", date="DATE", str="VARCHAR",
                 bool="BOOLEAN")
    schema, extra, select, delimiter, end = DATASETS[name]["schema"], "", "*", ",", "\\n"
    if name == "hard":
        # DuckDB's options for separators and broken rows are faster than replacing and casting text.
        types |= dict(date="VARCHAR", ts="VARCHAR")
        delimiter, end = ";", "\\r\\n"
        extra = ", decimal_separator=',', thousands='.', ignore_errors=true"
        timed = {n: f"try_strptime({n}, {HARD_FORMATS[k]!r})::{k == 'ts' and 'TIMESTAMP' or 'DATE'}" for n, k in schema
                 if k in HARD_FORMATS}
        good = " AND ".join([f"{n} IS NOT NULL" for n in HARD_REQUIRED] +
                            [f"({n} IS NULL OR {timed[n]} IS NOT NULL)" for n in timed])
        select = ", ".join(f"{timed[n]} AS {n}" if n in timed else n for n, _ in schema)
    if name == "flights":
        schema, extra, select = FLIGHTS_READ, ", nullstr='NA'", "*, make_date(year, month, day) AS flight_date"
    columns = ", ".join(f"'{n}': '{types[k]}'" for n, k in schema)
    source = f"read_csv({files(data)!r}, auto_detect=false, header=true, delim='{delimiter}', quote='\"', escape='\"', " \
        f"new_line='{end}', columns={{{columns}}}{extra})" + (f" WHERE {good}" if name == "hard" else "")
    options = f"FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL {ZSTD}"
    key = DATASETS[name]["part"]
    target = out
    if key:
        options += f", PARTITION_BY ({key}), OVERWRITE_OR_IGNORE"
    else:
        target = os.path.join(out, "t.parquet")
    db.execute(f"COPY (SELECT {select} FROM {source}) TO '{target}' ({options})")


def run_polars(name, data, out):
    """Times are read as text and then parsed: the faster of the two ways that Polars has."""
    os.environ["POLARS_MAX_THREADS"] = str(THREADS)
    import polars as pl
    types = dict(i64=pl.Int64, f64=pl.Float64, ts=pl.String, tsms=pl.String, tz=pl.String, date=pl.String, str=pl.String,
                 bool=pl.Boolean)
    parse = {
        "ts": lambda c: c.str.to_datetime("%Y-%m-%d %H:%M:%S"),
        "tsms": lambda c: c.str.to_datetime("%Y-%m-%d %H:%M:%S%.3f", time_unit="us"),
        "tz": lambda c: c.str.to_datetime("%Y-%m-%dT%H:%M:%SZ", time_zone="UTC"),
        "date": lambda c: c.str.to_date("%Y-%m-%d"),
    }
    schema = FLIGHTS_READ if name == "flights" else DATASETS[name]["schema"]
    if name == "hard":
        frame = polars_hard(pl, data, schema)
    else:
        frame = pl.scan_csv(files(data), schema={n: types[k] for n, k in schema}, has_header=True,
                            null_values="NA" if name == "flights" else None)
        frame = frame.with_columns([parse[k](pl.col(n)) for n, k in schema if k in parse])
    if name == "flights":
        frame = frame.with_columns(pl.date("year", "month", "day").alias("flight_date"))
    options = dict(compression="zstd", compression_level=ZSTD, maintain_order=False)
    key = DATASETS[name]["part"]
    if key:
        frame.sink_parquet(pl.PartitionBy(out, key=key, include_key=False), mkdir=True, **options)
    else:
        frame.sink_parquet(os.path.join(out, "t.parquet"), **options)


def polars_hard(pl, data, schema):
    """Reads text and casts each column; keeps a row if no value was lost by casting."""
    frame = pl.scan_csv(files(data), schema={n: pl.String for n, _ in schema}, separator=";", has_header=True,
                        truncate_ragged_lines=True)
    text = lambda n: pl.col(n).str.replace_all(".", "", literal=True)
    times = dict(date=lambda c, f: c.str.to_date(f, strict=False), ts=lambda c, f: c.str.to_datetime(f, strict=False))
    made = {}
    for name, kind in schema:
        if kind == "i64":
            made[name] = text(name).cast(pl.Int64, strict=False)
        elif kind == "f64":
            made[name] = text(name).str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
        elif kind in times:
            made[name] = pl.coalesce([times[kind](pl.col(name), f) for f in HARD_FORMATS[kind]])
    kept = [pl.col(n).is_not_null() for n in HARD_REQUIRED] + [pl.col(n).is_null() | pl.col(f"_{n}").is_not_null() for n in made]
    frame = frame.with_columns([c.alias(f"_{n}") for n, c in made.items()]).filter(pl.all_horizontal(kept))
    return frame.select([pl.col(f"_{n}").alias(n) if n in made else pl.col(n) for n, _ in schema])


def arrow_hard(pa, scanner, schema, kinds):
    """Like polars_hard, batch by batch; drops values that can't be cast first, since Arrow has no lenient cast."""
    import pyarrow.compute as pc
    number = dict(i64=r"^[+-]?\d+$", f64=r"^[+-]?(\d+(\.\d*)?|\.\d+)$")
    for batch in scanner.to_batches():
        columns, kept = {}, None
        for name, kind in kinds:
            column = batch.column(name)
            if kind in number:
                plain = pc.replace_substring(column, ".", "")
                plain = pc.replace_substring(plain, ",", ".") if kind == "f64" else plain
                good = pc.fill_null(pc.match_substring_regex(plain, number[kind]), True)
                columns[name] = pc.cast(pc.if_else(good, plain, None), schema.field(name).type)
            elif kind in HARD_FORMATS:
                made = pc.coalesce(*[pc.strptime(column, f, unit="s", error_is_null=True) for f in HARD_FORMATS[kind]])
                columns[name] = pc.cast(made, schema.field(name).type)
                good = pc.or_(pc.is_null(column), pc.is_valid(made))
            else:
                columns[name], good = column, None
            if name in HARD_REQUIRED:
                good = pc.is_valid(column) if good is None else pc.and_(good, pc.is_valid(column))
            if good is not None:
                kept = good if kept is None else pc.and_(kept, good)
        yield pa.record_batch([columns[n] for n, _ in kinds], schema=schema).filter(kept)


def arrow_flights(pa, scanner, schema):
    import pyarrow.compute as pc
    for batch in scanner.to_batches():
        zone = pc.cast(pc.strptime(batch.column("time_hour"), "%Y-%m-%dT%H:%M:%SZ", unit="s"), pa.timestamp("us"))
        days = [pc.cast(batch.column(n), pa.string()) for n in ("year", "month", "day")]
        day = pc.cast(pc.strptime(pc.binary_join_element_wise(*days, "-"), "%Y-%m-%d", unit="s"), pa.date32())
        columns = [pc.assume_timezone(zone, "UTC") if n == "time_hour" else batch.column(n) for n, _ in FLIGHTS_READ]
        yield pa.record_batch([*columns, day], schema=schema)


def run_pyarrow(name, data, out):
    import pyarrow as pa
    import pyarrow.csv as pc
    import pyarrow.dataset as pads
    pa.set_cpu_count(THREADS)
    types = dict(i64=pa.int64(), f64=pa.float64(), ts=pa.timestamp("us"), tsms=pa.timestamp("us"), tz=pa.timestamp("us", "UTC"),
                 date=pa.date32(), str=pa.string(), bool=pa.bool_())
    kinds = DATASETS[name]["schema"]
    schema = pa.schema([(n, types[k]) for n, k in kinds])
    read = schema
    if name == "hard":
        read = pa.schema([(n, pa.string()) for n, _ in kinds])
    if name == "flights":
        read = pa.schema([(n, pa.string() if k == "tz" else types[k]) for n, k in FLIGHTS_READ])
    csv = pads.CsvFileFormat(
        parse_options=pc.ParseOptions(newlines_in_values=name in ("events", "hard"), delimiter=";" if name == "hard" else ",",
                                      invalid_row_handler=(lambda row: "skip") if name == "hard" else None),
        convert_options=pc.ConvertOptions(column_types=read, strings_can_be_null=True,
                                          null_values=["NA" if name == "flights" else ""], quoted_strings_can_be_null=False),
        read_options=pc.ReadOptions(block_size=4 << 20))
    scanner = pads.dataset(files(data), schema=read, format=csv).scanner(use_threads=True)
    if name == "hard":
        scanner = arrow_hard(pa, scanner, schema, kinds)
    if name == "flights":
        scanner = arrow_flights(pa, scanner, schema)
    parquet = pads.ParquetFileFormat()
    key = DATASETS[name]["part"]
    pads.write_dataset(
        scanner, out, format=parquet, schema=schema if name in ("hard", "flights") else None,
        file_options=parquet.make_write_options(compression="zstd", compression_level=ZSTD),
        partitioning=pads.partitioning(pa.schema([schema.field(key)]), flavor="hive") if key else None,
        use_threads=True, max_partitions=2048, max_rows_per_group=1 << 20, existing_data_behavior="overwrite_or_ignore")


PEERS = {"duckdb": run_duckdb, "polars": run_polars, "pyarrow": run_pyarrow}

if __name__ == "__main__":
    PEERS[sys.argv[1]](*sys.argv[2:5])
