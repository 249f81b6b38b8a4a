"""What a change of a table costs, by the size of the table, by one program or by several in turns; see scripts/bench.

Each program has a lake and an output of its own, and the same changes are made to all lakes. A source of the large tables is
a link to one of few files, so that a lake takes little of the disk and its bytes are in memory: the figures are of computing,
not of the disk.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from terminal import listed, print_table

DISTINCT = 8
DAYS = 28
HEADER = b"id,at,site,reading,note\n"
COLUMNS = [("id", "int64"), ("at", "timestamp"), ("site", "string"), ("reading", "float64"), ("note", "string")]


def text(seed, megabytes):
    """About so many MB of CSV rows, of each day of February 2023 the same number."""
    import numpy as np
    g = np.random.Generator(np.random.PCG64(seed))
    rows = int(megabytes * 1e6 / 51)
    at = np.datetime64("2023-02-01T00:00:00") + np.sort(g.integers(0, DAYS * 86_400, rows)).astype("timedelta64[s]")
    at = np.datetime_as_string(at)
    site, reading = g.integers(0, 100, rows).tolist(), g.integers(-99_999, 999_999, rows).tolist()
    line = lambda r: f"{r},{at[r]},s{site[r]:05d},{reading[r] / 100:.2f},{'' if r % 7 else 'checked by hand'}\n"
    return HEADER + "".join(map(line, range(rows))).encode()


class Table:
    """A lake of one table, and where its Parquet goes."""

    def __init__(self, folder, partitioned):
        self.folder, self.lake, self.output = folder, os.path.join(folder, "lake"), os.path.join(folder, "out")
        os.makedirs(self.lake)
        mapping = {"table": "t", "files": ["**/*.csv"], "columns": [{"name": n, "type": t} for n, t in COLUMNS]}
        if partitioned:
            mapping["partition_by"] = [{"column": "at", "transform": "day"}]
        with open(os.path.join(folder, "pipeline.json"), "w", encoding="utf-8") as file:
            json.dump({"version": 1, "title": "change", "mappings": [mapping]}, file)

    def path(self, name):
        return os.path.join(self.lake, name)

    def link(self, name, source):
        """A source with the bytes of another file; a link, as long as the file system allows more of them."""
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        try:
            os.link(source, self.path(name))
        except OSError:
            shutil.copyfile(source, self.path(name))

    def write(self, name, content):
        """A new file, whatever was there."""
        path = self.path(name)
        if os.path.exists(path):
            os.unlink(path)
        with open(path, "wb") as file:
            file.write(content)

    def run(self, program, threads):
        """Figures of one run."""
        line = [program, "run", os.path.join(self.folder, "pipeline.json"), "--input", self.lake, "--output", self.output,
                "--threads", str(threads), "--json", "--quiet"]
        with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as printed:
            begin = time.monotonic()
            child = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=printed, stderr=said)
            _, status, usage = os.wait4(child.pid, 0)
            wall = time.monotonic() - begin
            child.returncode = os.waitstatus_to_exitcode(status)
            for file in (said, printed):
                file.seek(0)
            if child.returncode:
                raise RuntimeError(f"`{program} run` ended with {child.returncode}: {said.read()[-2000:].decode(errors='replace')}")
            result = json.load(printed)
        return {"wall": wall, "cpu": usage.ru_utime + usage.ru_stime, "peak": usage.ru_maxrss / 1024, **self.figures(result)}

    @staticmethod
    def figures(result):
        table = (result.get("result") or result)["tables"]["t"]
        return {"read": table["sources_read"], "rows": table["rows_written"], "files": table["files"]}


def name(at):
    return f"{at // 1000:04d}/{at:07d}.csv"


# Each set: sources, MB of each (0: one row), whether it is partitioned by day.
SETS = {
    "plain": (1_000, 1, False),
    "days": (1_000, 1, True),
    "tiny": (200_000, 0, False),
    "plain-large": (10_000, 1, False),
    "days-large": (10_000, 1, True),
    "tiny-large": (1_000_000, 0, False),
}
DEFAULT_SETS = ["plain", "days", "tiny"]


def make(folder, count, megabytes, partitioned):
    table = Table(folder, partitioned)
    for seed in range(DISTINCT):
        with open(os.path.join(folder, f"{seed}"), "wb") as file:
            file.write(text(seed, megabytes) if megabytes else HEADER + f"{seed},2023-02-0{seed + 1}T00:00:00,s1,1.5,\n".encode())
    for at in range(count):
        table.link(name(2 * at), os.path.join(folder, f"{at % DISTINCT}"))


def steps(count, megabytes):
    """The changes in turn: what they are called, and what they do to a table's lake. Sources have even numbers."""
    content = lambda seed: text(seed, megabytes) if megabytes else HEADER + f"{seed},2023-02-09T00:00:00,s2,2.5,\n".encode()
    middle = count // 2
    return [
        ("first run", lambda table: None),
        ("nothing changed", lambda table: None),
        ("one added at the end", lambda table: table.write(name(2 * count), content(101))),
        ("one late in the middle", lambda table: table.write(name(2 * (middle - count // 8) + 1), content(102))),
        ("one changed", lambda table: table.write(name(2 * middle), content(103))),
        ("one removed", lambda table: os.unlink(table.path(name(2 * (middle + count // 8))))),
    ]


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--lakemill", action="append", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--sets", type=listed(list(SETS)), default=DEFAULT_SETS)
    parser.add_argument("--quick", action="store_true", help="a tenth of the sources")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--log")
    args = parser.parse_args()
    threads = int(os.environ.get("BENCH_THREADS", "2"))
    rows = []
    for which in args.sets:
        count, megabytes, partitioned = SETS[which]
        count = count // 10 if args.quick else count
        work = os.path.join(args.work, "change")
        shutil.rmtree(work, ignore_errors=True)
        tables = []
        for at, program in enumerate(args.lakemill):
            folder = os.path.join(work, str(at))
            # In a process of its own, since a child's peak memory counts from its parent's.
            pid = os.fork()
            if pid == 0:
                os.makedirs(folder)
                make(folder, count, megabytes, partitioned)
                os._exit(0)
            _, status = os.waitpid(pid, 0)
            if status:
                raise RuntimeError("making the lake failed")
            table = Table.__new__(Table)
            table.folder, table.lake, table.output = folder, os.path.join(folder, "lake"), os.path.join(folder, "out")
            tables.append((program, table))
        for what, change in steps(count, megabytes):
            for program, table in tables:
                pid = os.fork()
                if pid == 0:
                    change(table)
                    os._exit(0)
                os.waitpid(pid, 0)
            # Files that changed less than 2 s ago are read again by the next run.
            time.sleep(2.1)
            found = [(program, table.run(program, threads)) for program, table in tables]
            for program, run in found:
                row = {"set": which, "sources": count, "what": what, "program": program, "load": os.getloadavg()[0], **run}
                rows.append(row)
                print(f"{which} {what} {program}: wall {run['wall']:.2f} s, CPU {run['cpu']:.2f} s, peak {run['peak']:.0f} MiB, "
                      f"{run['read']} CSVs read, {run['files']} files, load {row['load']:.1f}", file=sys.stderr, flush=True)
                if args.log:
                    with open(args.log, "a", encoding="utf-8") as log:
                        log.write(json.dumps(row) + "\n")
            if len({run["rows"] for _, run in found}) > 1:
                raise RuntimeError(f"{which}, {what}: the programs disagree on the number of rows: {found}")
        shutil.rmtree(work)
    cells = [[row["set"], f"{row['sources']:,}", row["what"], row["program"], f"{row['wall']:.2f}", f"{row['cpu']:.2f}",
              f"{row['peak']:.0f}", f"{row['read']:,}", f"{row['files']:,}"] for row in rows]
    print()
    print_table(["set", "sources", "run", "program", "wall s", "CPU s", "peak MiB", "CSVs read", "files"], cells, 4, args.markdown)


if __name__ == "__main__":
    main()
