"""Reads the sample's tables with DuckDB and compares them with known facts about the data. Usage: check_flights.py DIR

Prints a line a table; exit status 1 if anything differs.
"""

import pathlib
import sys

import duckdb

ROWS = {"flights": 336_776, "weather": 26_115, "planes": 3_322, "airports": 1_458, "airlines": 16}

# Name, query over the view `flights`, expected result.
FACTS = [
    ("miles flown", "SELECT sum(distance) FROM flights", 350_217_607),
    ("flights without dep_delay", "SELECT count(*) FROM flights WHERE dep_delay IS NULL", 8_255),
    ("sum of dep_delay", "SELECT sum(dep_delay) FROM flights", 4_152_200),
    ("days", "SELECT count(DISTINCT flight_date) FROM flights", 365),
    ("rows in the wrong partition", "SELECT count(*) FROM flights WHERE flight_date <> make_date(year, month, day)", 0),
    ("type of time_hour", "SELECT any_value(typeof(time_hour)) FROM flights", "TIMESTAMP WITH TIME ZONE"),
    ("hours that are not the local departure's",
     "SELECT count(*) FROM flights WHERE hour(time_hour AT TIME ZONE 'America/New_York') <> hour", 0),
]


def main(warehouse):
    db = duckdb.connect()
    wrong = 0

    def report(what, found, wanted, more=""):
        nonlocal wrong
        good = found == wanted
        wrong += not good
        shown = [f"{v:,}" if isinstance(v, int) else str(v) for v in (found, wanted)]
        print(f"{'ok   ' if good else 'WRONG'} {what}: {shown[0]}{more}" + ("" if good else f", expected {shown[1]}"))

    for table, rows in ROWS.items():
        files = sorted((warehouse / table).rglob("*.parquet"))
        if not files:
            report(f"{table}, rows", 0, rows, " (no files)")
            continue
        hive = "hive_partitioning = true, hive_types = {'flight_date': DATE}" if table == "flights" else \
            "hive_partitioning = false"
        db.execute(f"CREATE VIEW {table} AS FROM read_parquet({[str(f) for f in files]!r}, {hive})")
        size = sum(f.stat().st_size for f in files) / 2**20
        found = db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        report(f"{table}, rows", found, rows, f" in {len(files):,} files, {size:.1f} MiB")

    if any((warehouse / "flights").rglob("*.parquet")):
        db.execute("LOAD icu")
        for what, query, wanted in FACTS:
            found = db.execute(query).fetchone()[0]
            report(what, found, wanted)
        partitions = [p for p in (warehouse / "flights").iterdir() if p.name.startswith("flight_date=")]
        report("day partitions", len(partitions), 365)
    report("files of rejected rows", sum(1 for _ in (warehouse / "_rejected_rows").rglob("*.parquet")), 0)

    print(f"{wrong} wrong" if wrong else "all tables are right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
