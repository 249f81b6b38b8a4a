"""Measures the overhead of queries over plain DuckDB on the same files, and pages of rows at several offsets; see
scripts/bench.

`lakemill up --demo` runs in a folder that is removed at the end, with the sample (365 files) and a table of many rows
(100 files). DuckDB has the same version and as many threads. It is measured with a warm database, and with a new
database for each query, both in a persistent process.
"""

import argparse
import http.client
import json
import os
import shutil
import statistics
import sys
import tempfile
import time

import duckdb

from scale import BLOCK_ROWS, COLUMNS, HEADER, SITES, block
from terminal import print_table
from web import ask, await_run, installation

CASES = [
    ("flights, a count", "flights", "SELECT count(*) AS n FROM {t}"),
    ("flights, an aggregate", "flights", "SELECT carrier, count(*) AS flights, avg(dep_delay) AS delay FROM {t} GROUP BY carrier ORDER BY carrier"),
    ("flights, one day", "flights", "SELECT carrier, flight, dep_delay FROM {t} WHERE year = 2013 AND month = 3 AND day = 1 ORDER BY flight, carrier LIMIT 100"),
    ("readings, a count", "readings", "SELECT count(*) AS n FROM {t}"),
    ("readings, one site", "readings", "SELECT count(*) AS n, avg(reading) AS reading FROM {t} WHERE site = 's00042'"),
]


class Service:
    def __init__(self, port, cookie):
        self.client = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        self.cookie = cookie

    def ask(self, method, path, body=None):
        return json.loads(ask(self.client, method, path, body, {"Cookie": self.cookie})[0])


def make_readings(service, data, rows):
    """Creates a table with `rows` rows. Its files are links to one file, which is read once per link."""
    folder = os.path.join(data, "objects", "svc-lake", "pipelines", "readings")
    config = {"version": 1, "title": "Readings", "auto_run": False, "mappings": [
        {"table": "readings", "files": ["*.csv"], "columns": [{"name": n, "type": t} for n, t in COLUMNS], "partition_by": ["site"]}]}
    service.ask("PUT", "/api/p/readings/config", config)
    os.makedirs(folder, exist_ok=True)
    first = os.path.join(folder, "000.csv")
    with open(first, "wb") as file:
        file.write(HEADER + block(BLOCK_ROWS, SITES))
    for at in range(1, rows // BLOCK_ROWS):
        os.link(first, os.path.join(folder, f"{at:03d}.csv"))
    service.ask("POST", "/api/p/readings/jobs")
    await_run(service.client, service.cookie, "readings")


def plain(data, threads, tables):
    """Opens DuckDB with a view of each table."""
    found = duckdb.connect(config={"threads": threads})
    for table in tables:
        files = os.path.join(data, "objects", "svc-warehouse", "pipelines", table, table, "**", "*.parquet")
        found.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{files}', hive_partitioning = true)")
    return found


def timed(work):
    begin = time.monotonic()
    found = work()
    return (time.monotonic() - begin) * 1000, found


def compare(service, data, threads, other, case, times):
    """Milliseconds of both, run alternately; the results must agree."""
    _, table, sql = case
    sql = sql.format(t=table)
    ours, staying, new = [], [], []
    for turn in range(times + 3):
        took, answer = timed(lambda: service.ask("POST", f"/api/p/{table}/query", {"sql": sql}))
        took_staying, rows = timed(lambda: other.execute(sql).fetchall())
        took_new, _ = timed(lambda: plain(data, threads, [table]).execute(sql).fetchall())
        if len(answer["rows"]) != len(rows) or (len(rows) == 1 and int(answer["rows"][0][0]) != rows[0][0]):
            raise RuntimeError(f"`{sql}` gave {answer['rows'][:3]} here and {rows[:3]} in DuckDB")
        # The first few fill caches and are not counted.
        if turn >= 3:
            ours.append(took)
            staying.append(took_staying)
            new.append(took_new)
    return ours, staying, new


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--lakemill", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--markdown", action="store_true")
    args = parser.parse_args()
    os.makedirs(args.work, exist_ok=True)
    home = tempfile.mkdtemp(prefix="queries-", dir=args.work)
    at = lambda values, share: sorted(values)[min(len(values) - 1, int(share * len(values)))]
    try:
        up, port, cookie, _ = installation(args.lakemill, home)
        service, data = Service(port, cookie), os.path.join(home, "data")
        make_readings(service, data, args.rows)
        threads = os.cpu_count()
        other = plain(data, threads, ["flights", "readings"])
        rows = []
        for case in CASES:
            found = compare(service, data, threads, other, case, args.times)
            middle = [statistics.median(values) for values in found]
            rows.append([case[0], *(f"{ms:.1f}" for ms in middle), *(f"{middle[0] - ms:+.1f}" for ms in middle[1:])])
            print(f"{case[0]}: {rows[-1][1:]}", file=sys.stderr, flush=True)
        pages = []
        for offset in (0, args.rows // 1000, args.rows // 2, args.rows - 100):
            path = f"/api/p/readings/tables/readings/rows?limit=100&offset={offset}"
            found = [timed(lambda: service.ask("GET", path)) for _ in range(args.times + 3)]
            if any(len(page["rows"]) != 100 for _, page in found):
                raise RuntimeError(f"a page at {offset:,} has not 100 rows")
            took = [ms for ms, _ in found[3:]]
            pages.append([f"{offset:,}", f"{found[0][0]:.1f}", f"{at(took, 0.5):.1f}", f"{at(took, 0.95):.1f}"])
        up.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)
    print_table(["p50 ms", "Lakemill", "DuckDB, open", "DuckDB, new", "vs. open", "vs. new"], rows, 1, args.markdown)
    print()
    print_table([f"page of 100 at row, of {args.rows:,}", "first ms", "p50 ms", "p95 ms"], pages, 1, args.markdown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
