"""Tests how a reader parses partition values: partitions.py FOLDER creates a lake and its config; partitions.py FOLDER
READER reads the tables that Lakemill wrote from it, and prints a JSON line for each value.

Each value has a table of its own with two rows. The other row is in the partition `plain`, or, of a value that looks
like another type, in the same one. A reader is told that the partition column is text (`declared`), and then left to
guess (`inferred`).

An empty text and `__HIVE_DEFAULT_PARTITION__` are not values of partitions: their rows are rejected.
"""

import json
import pathlib
import sys

import compare

# A label for each, and the text; None is null.
VALUES = [
    ("null", None), ("`NULL`", "NULL"),
    ("a blank", " "), ("`a b`", "a b"), ("a blank before", " a"), ("a blank after", "a "), ("a dot after", "a."),
    ("`.`", "."), ("`..`", ".."), ("`.a`", ".a"), ("`_a`", "_a"),
    ("`a/b`", "a/b"), ("a backslash", "a\\b"), ("`a=b`", "a=b"), ("`a%2Fb`", "a%2Fb"), ("`%`", "%"), ("`a+b`", "a+b"),
    ("`a:b`", "a:b"), ("`a?b`", "a?b"), ("`a#b`", "a#b"), ("`a*b`", "a*b"), ("`[ab]`", "[ab]"), ("`{a,b}`", "{a,b}"),
    ("`'`", "'"), ('`"`', '"'), ("`a&b<c>`", "a&b<c>"), ("`a\\|b`", "a|b"), ("`~`", "~"), ("`$a`", "$a"), ("`@`", "@"), ("`a,b;c`", "a,b;c"),
    ("`ä`", "ä"), ("a combining accent", "a\u0308"), ("`東京`", "東京"), ("an emoji", "🦆"),
    ("a tab", "a\tb"), ("a line break", "a\nb"), ("a control character", "a\x01b"), ("a no-break space", "a\u00a0b"),
    ("200 letters", "x" * 200), ("upper case beside lower", "PLAIN"),
]
# Texts that look like something else.
GUESSED = ["7", "007", "+7", "-0", "1.0", "1.10", "1e5", "0x1F", "NaN", "inf", "true", "True", "null", "None", "2024-01-02", "2024-1-2",
           "2024-01-02 03:04:05", "03:04:05", "99999999999999999999", "1_000"]
VALUES += [(f"`{text}`", text) for text in GUESSED]


def make(folder):
    mappings = []
    for number, (_, text) in enumerate(VALUES):
        table = f"t{number}"
        path = folder / "lake" / table / "a.csv"
        path.parent.mkdir(parents=True)
        other = text if text in GUESSED else "plain"
        cell = "" if text is None else '"' + text.replace('"', '""') + '"'
        path.write_bytes(f"id,p\n1,{other}\n2,{cell}\n".encode())
        mappings.append({"table": table, "files": [f"{table}/*.csv"], "partition_by": [{"column": "p", "inferable_texts": "keep"}], "rejects": {"max_ratio": 1.0},
                         "columns": [{"name": "id", "type": "int32", "nullable": False}, {"name": "p", "type": "string"}]})
    (folder / "pipeline.json").write_text(json.dumps({"version": 1, "mappings": mappings}, indent=1))


def by_pyarrow(path, declared):
    import pyarrow as pa
    import pyarrow.dataset as pads
    partitioning = pads.partitioning(pa.schema([("p", pa.string())]), flavor="hive") if declared else "hive"
    return pads.dataset(str(path), format="parquet", partitioning=partitioning).to_table().select(["id", "p"]).to_pylist()


def by_polars(path, declared):
    import polars as pl
    schema = {"p": pl.String} if declared else None
    return pl.scan_parquet(str(path), hive_partitioning=True, hive_schema=schema).select("id", "p").collect().to_dicts()


def by_duckdb(path, declared):
    import duckdb
    types = ", hive_types = {'p': 'VARCHAR'}" if declared else ""
    sql = f"SELECT id, p FROM read_parquet('{path}/**/*.parquet', hive_partitioning = true{types})"
    return [{"id": id, "p": p} for id, p in duckdb.connect().execute(sql).fetchall()]


def by_clickhouse(path, declared):
    import chdb
    if declared:
        return None  # It has no way to say so.
    sql = f"SELECT id, p FROM file('{path}/**/*.parquet', Parquet) SETTINGS use_hive_partitioning = 1"
    return [json.loads(line) for line in chdb.query(sql, "JSONEachRow").bytes().decode().splitlines()]


def by_fastparquet(path, declared):
    import fastparquet
    if declared:
        return None  # It has no way to say so.
    frame = fastparquet.ParquetFile(str(path)).to_pandas()
    value = lambda p: None if p != p or p is None else p.item() if hasattr(p, "item") else p
    return [{"id": int(id), "p": value(p)} for id, p in zip(frame["id"], frame["p"])]


def by_spark(path, declared):
    reader = compare.Spark()
    reader.start()
    read = compare.Spark.session.read
    frame = (read.schema("id INT, p STRING") if declared else read).parquet(str(path))
    return [{"id": row["id"], "p": row["p"]} for row in frame.select("id", "p").collect()]


READERS = {"pyarrow": by_pyarrow, "Polars": by_polars, "DuckDB": by_duckdb, "ClickHouse": by_clickhouse,
           "fastparquet": by_fastparquet, "Spark": by_spark}


def cell(read, path, text, declared):
    try:
        rows = read(path, declared)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return "refuses", compare.first_words(error)
    if rows is None:
        return "", ""
    found = {row["id"]: row["p"] for row in rows}
    if sorted(found) != [1, 2] or len(rows) != 2:
        return f"{len(rows)} of 2 rows", ""
    if found[2] == text and found[1] == (text if text in GUESSED else "plain"):
        return "ok", ""
    if text not in GUESSED and found[1] != "plain":
        return f"and `plain` is {shown(found[1])}", ""
    return shown(found[2]), ""


def shown(value):
    return "null" if value is None else f"text `{value}`" if isinstance(value, str) else f"{type(value).__name__} `{value}`"


def main(folder, name):
    for number, (label, text) in enumerate(VALUES):
        path = folder / "warehouse" / f"t{number}"
        if len(list(path.rglob("*.parquet"))) < (1 if text in GUESSED else 2):
            print(json.dumps({"label": label, "rejected": True}), flush=True)
            continue
        folders = sorted(p.name for p in path.iterdir() if p.name != "p=plain")
        line = {"label": label, "folder": folders[0]}
        for way in ("declared", "inferred"):
            line[way], line[f"{way}_why"] = cell(READERS[name], path, text, way == "declared")
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        make(pathlib.Path(sys.argv[1]))
    else:
        main(pathlib.Path(sys.argv[1]), sys.argv[2])
