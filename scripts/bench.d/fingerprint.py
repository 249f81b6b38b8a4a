"""Summarizes an output per partition, as DuckDB reads it: fingerprint.py DATASET FOLDER prints a JSON array. It has the
number of rows, and for each column the count of values and their sum (strings: the sum of their hashes).
"""

import json
import sys

import duckdb

from schema import DATASETS

SUMS = {
    "i64": "sum({c}::HUGEINT)::VARCHAR",
    "f64": "sum({c})",
    "ts": "sum(epoch_us({c}::TIMESTAMP)::HUGEINT)::VARCHAR",
    "tsms": "sum(epoch_us({c}::TIMESTAMP)::HUGEINT)::VARCHAR",
    "tz": "sum(epoch_us({c}::TIMESTAMPTZ)::HUGEINT)::VARCHAR",
    "date": "sum({c} - DATE '1970-01-01')::VARCHAR",
    "bool": "count_if({c})",
    "str": "(sum(hash({c}::VARCHAR)::HUGEINT) FILTER ({c} IS NOT NULL))::VARCHAR",
}


def main(name, folder):
    key = DATASETS[name]["part"]
    columns = [(n, k) for n, k in DATASETS[name]["schema"] if n != key]
    sums = ", ".join(f"count({n}), " + SUMS[k].format(c=n) for n, k in columns)
    source = f"read_parquet('{folder}/**/*.parquet', hive_partitioning={'true' if key else 'false'})"
    value = f"{key}::VARCHAR" if key else "''"
    rows = duckdb.connect().execute(f"SELECT {value} AS k, count(*), {sums} FROM {source} GROUP BY 1 ORDER BY 1").fetchall()
    json.dump(rows, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:3])
