#!/usr/bin/env python3
"""Reads the datasets of scripts/bench as Delta Lake or Iceberg tables with the engines that are installed.

    sets.py --binary LAKEMILL --data FOLDER --folder FOLDER --format delta|iceberg [--sets LIST] [--steps N] [--older N]
            [--readers LIST]

DATA has a folder of CSVs for each set. Makes a lake of them in FOLDER: each of N runs follows a change of one CSV, which
is added, shortened or removed. Then each reader reads the newest and older versions and filters by each column. Rows are
compared with those that Lakemill makes of each CSV by itself, without publishing, as DuckDB reads their Parquet files:
their number, a hash of whole rows and one of each column. Exits with 1 and prints each difference if there are any.
"""

import argparse
import collections
import gzip
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "scripts" / "bench.d"))

import duckdb

import delta
import iceberg
from bench import mapping_of
from schema import DATASETS

FORMATS = {"delta": delta.READERS, "iceberg": iceberg.READERS}
TYPES = {"i64": "BIGINT", "f64": "DOUBLE", "ts": "TIMESTAMP", "tsms": "TIMESTAMP", "tz": "TIMESTAMPTZ", "date": "DATE",
         "bool": "BOOLEAN", "str": "VARCHAR"}
FILES_MAX = 24


class Table:
    """A set's lake, its runs, and the CSVs of each version."""

    def __init__(self, name, args):
        self.name, self.args, self.rng = name, args, random.Random(args.seed)
        self.columns = {column: TYPES[kind] for column, kind in DATASETS[name]["schema"]}
        self.folder = pathlib.Path(args.folder).resolve() / name
        shutil.rmtree(self.folder, ignore_errors=True)
        self.given = sorted(path for path in (pathlib.Path(args.data) / name).iterdir() if ".csv" in path.name)[:FILES_MAX]
        self.now, self.versions = {}, []
        self.db = duckdb.connect()
        self.db.execute("SET TimeZone = 'UTC'")
        self.alone = {(path.name, part): self.made_of(path, part) for path in self.given for part in ("whole", "head")}

    def lines(self, path, part):
        """The CSV's bytes, or those of about a third of its records."""
        stored = path.read_bytes()
        if part == "whole":
            return stored
        packed = path.suffix == ".gz"
        lines = (gzip.decompress(stored) if packed else stored).splitlines(keepends=True)
        # Quoted cells may have line breaks; at a record's end, the quotes are paired.
        kept, quotes = [], 0
        for line in lines:
            quotes += line.count(b'"')
            kept.append(line)
            if len(kept) > len(lines) // 3 and quotes % 2 == 0:
                break
        return gzip.compress(b"".join(kept)) if packed else b"".join(kept)

    def run(self, lake, out, publish):
        mapping = mapping_of(self.name) | publish
        config = self.folder / f"{out.name}.json"
        config.write_text(json.dumps({"version": 1, "mappings": [mapping]}))
        command = [os.path.abspath(self.args.binary), "run", config, "--input", lake, "--output", out]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"lakemill run failed: {done.stdout}{done.stderr}")

    def made_of(self, path, part):
        """The Parquet files that Lakemill makes of one CSV, as a table of DuckDB; returns its name and hashes."""
        lake, out = self.folder / "one", self.folder / "alone"
        lake.mkdir(parents=True)
        (lake / path.name).write_bytes(self.lines(path, part))
        self.run(lake, out, {})
        name = f"{part}_{self.given.index(path)}"
        columns = ", ".join(f'CAST("{column}" AS {type}) AS "{column}"' for column, type in self.columns.items())
        self.db.execute(f"CREATE TABLE {name} AS SELECT {columns} FROM read_parquet('{out}/{self.name}/**/*.parquet', "
                        f"hive_partitioning = {bool(DATASETS[self.name]['part'])}, hive_types_autocast = false)")
        shutil.rmtree(lake)
        shutil.rmtree(out)
        return name, self.hashes(name)

    def change(self):
        missing = [path for path in self.given if path.name not in self.now]
        kind = self.rng.choice(["add", "add", "change", "remove"])
        if missing and (kind == "add" or len(self.now) < 3):
            self.now[self.rng.choice(missing).name] = self.rng.choice(["whole", "head"])
        elif kind == "remove":
            del self.now[self.rng.choice(sorted(self.now))]
        else:
            name = self.rng.choice(sorted(self.now))
            self.now[name] = "head" if self.now[name] == "whole" else "whole"

    def publish(self):
        """Makes the lake what `now` says, and runs Lakemill."""
        lake = self.folder / "lake"
        lake.mkdir(exist_ok=True)
        before = self.versions[-1] if self.versions else {}
        for path in self.given:
            part = self.now.get(path.name)
            if part is None:
                (lake / path.name).unlink(missing_ok=True)
            elif before.get(path.name) != part:
                (lake / path.name).write_bytes(self.lines(path, part))
        self.run(lake, self.folder / "out", {"publish": [self.args.format], "keep_history": "1d"})
        self.versions.append(dict(self.now))

    def path(self):
        return str(self.folder / "out" / self.name)

    def hashes(self, source):
        """The number of rows, and sums of hashes: of whole rows, and of each column's values."""
        columns = [f'CAST("{column}" AS {type})' for column, type in self.columns.items()]
        each = ", ".join(f"sum(hash({column})::HUGEINT)" for column in [", ".join(columns), *columns])
        return self.db.execute(f"SELECT count(*), {each} FROM {source}").fetchone()

    def expected(self, version):
        parts = [self.alone[key][1] for key in version.items()]
        return [sum(one or 0 for one in column) for column in zip(*parts)]

    def check(self, reader, number, version, say):
        try:
            self.db.register("found", reader.arrow(self.path(), number))
            got = [value or 0 for value in self.hashes("found")]
        except Exception as error:
            return say(f"fails: {type(error).__name__}: {str(error)[:300]}")
        expected = self.expected(version)
        if got[0] != expected[0]:
            return say(f"{got[0]} rows, expected {expected[0]}")
        wrong = [name for name, one, other in zip(["rows", *self.columns], got[1:], expected[1:]) if one != other]
        if wrong:
            say(f"differs in {', '.join(wrong)}")

    def filters(self, reader, number, version, say):
        """By up to three values of each column, of different frequency, and by null."""
        every = " UNION ALL ".join(f"SELECT * FROM {self.alone[key][0]}" for key in version.items())
        shown = next(iter(self.columns))
        for column in self.columns:
            found = self.db.execute(f'SELECT "{column}", count(*) FROM ({every}) GROUP BY 1 ORDER BY 2 DESC').fetch_arrow_table()
            counts = list(zip(*(values.to_pylist() for values in found.columns)))
            known = [pair for pair in counts if pair[0] is not None]
            picked = {repr(pair): pair for pair in [*known[:1], *known[len(known) // 2:][:1], *known[-1:]]}
            for value, rows in [*picked.values(), (None, dict(counts).get(None, 0))]:
                try:
                    got = len(reader.filtered(self.path(), column, value, number, shown))
                except Exception as error:
                    say(f"filter on {column} = {value!r} fails: {type(error).__name__}: {str(error)[:200]}")
                    break
                if got != rows:
                    say(f"filter on {column} = {value!r}: {got} rows, expected {rows}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--format", choices=FORMATS, required=True)
    parser.add_argument("--sets", default=",".join(DATASETS))
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--older", type=int, default=50, help="older versions to read")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--readers", default="")
    args = parser.parse_args()
    report, took = delta.Report(), collections.Counter()
    readers = {name: kind() for name, kind in FORMATS[args.format].items() if name in (args.readers or name).split(",")}
    for name in args.sets.split(","):
        table = Table(name, args)
        for _ in range(args.steps):
            table.change()
            table.publish()
        newest = len(table.versions) - 1
        older = delta.older_versions(newest, args)
        for reader in readers.values():
            began = time.monotonic()
            for number in [None, *older]:
                say = report.of(reader.name, name, "newest version" if number is None else f"version {number}")
                version = table.versions[newest if number is None else number]
                table.check(reader, number, version, say)
                if number is None or number == older[-1]:
                    table.filters(reader, number, version, say)
            took[reader.name] += time.monotonic() - began
            rows = table.expected(table.versions[newest])[0]
            print(f"{name}: {reader.name} read {1 + len(older)} versions of up to {rows} rows", flush=True)
        shutil.rmtree(table.folder)
    print("seconds:", {name: round(seconds) for name, seconds in took.items()}, flush=True)
    sys.exit(1 if report.faults else 0)


if __name__ == "__main__":
    main()
