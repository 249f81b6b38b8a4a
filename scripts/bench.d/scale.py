"""Measures how the cost of a run grows with rows, files, partitions, columns, the size of one file, threads, and
changes since the last run; see scripts/bench. Each point is a `lakemill run` on a temporary folder. A separate process
creates the folders, since a child's peak memory counts from its parent's.
"""

import argparse
import functools
import json
import os
import shutil
import subprocess
import sys
import time

from lines import plot
from terminal import listed, print_table

BLOCK_ROWS = 1_000_000
SITES = 100


def block(rows, partitions, seed=1):
    """CSV rows without header: id, at, site, reading, note."""
    import numpy as np
    g = np.random.Generator(np.random.PCG64(seed))
    at = np.datetime_as_string(np.datetime64("2024-01-01T00:00:00") + np.sort(g.integers(0, 31_536_000, rows)).astype("timedelta64[s]"))
    site, reading = g.integers(0, partitions, rows).tolist(), g.integers(-99_999, 999_999, rows).tolist()
    line = lambda r: f"{r},{at[r]},s{site[r]:05d},{reading[r] / 100:.2f},{'' if r % 7 else 'checked by hand'}\n"
    return "".join(map(line, range(rows))).encode()


HEADER = b"id,at,site,reading,note\n"
COLUMNS = [("id", "int64"), ("at", "timestamp"), ("site", "string"), ("reading", "float64"), ("note", "string")]


class Folder:
    """A lake with one table, and its output folder."""

    def __init__(self, path):
        self.path = path
        self.input, self.output = os.path.join(path, "in"), os.path.join(path, "out")
        os.makedirs(self.input, exist_ok=True)

    def write(self, name, text, header=HEADER):
        path = os.path.join(self.input, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(header)
            file.write(text)
        return path

    def config(self, columns=COLUMNS, **more):
        mapping = {"table": "t", "files": ["**/*.csv"], "columns": [{"name": n, "type": t} for n, t in columns], **more}
        with open(os.path.join(self.path, "pipeline.json"), "w", encoding="utf-8") as file:
            json.dump({"version": 1, "title": "scale", "mappings": [mapping]}, file)

    def bytes(self):
        return sum(os.path.getsize(os.path.join(d, f)) for d, _, fs in os.walk(self.input) for f in fs)

    def run(self, lakemill, threads, cores=None):
        """Wall and CPU seconds, and peak memory in MiB, of one run on `cores` cores, or on all."""
        return {**self.result(lakemill, threads, cores)[0], "bytes": self.bytes()}

    def result(self, lakemill, threads, cores=None):
        """The figures of one run, and its result."""
        figures, printed = self.printed(lakemill, threads, cores)
        return figures, json.loads(printed) if prints_json(lakemill) else {"tables": tables_of(printed)}

    def printed(self, lakemill, threads, cores=None):
        """The figures of one run, and its standard output."""
        allowed = sorted(os.sched_getaffinity(0))[:cores]
        line = [lakemill, "run", os.path.join(self.path, "pipeline.json"), "--input", self.input, "--output", self.output,
                "--threads", str(threads), *(["--json"] if prints_json(lakemill) else [])]
        with open(os.path.join(self.path, "said"), "w+b") as said, open(os.path.join(self.path, "result"), "w+b") as result:
            begin = time.monotonic()
            child = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=result, stderr=said,
                                     preexec_fn=lambda: os.sched_setaffinity(0, allowed))
            _, status, usage = os.wait4(child.pid, 0)
            wall = time.monotonic() - begin
            child.returncode = os.waitstatus_to_exitcode(status)
            if child.returncode:
                said.seek(0)
                raise RuntimeError(f"`lakemill run` ended with {child.returncode}: {said.read()[-2000:].decode(errors='replace')}")
            result.seek(0)
            figures = {"wall": wall, "cpu": usage.ru_utime + usage.ru_stime, "peak": usage.ru_maxrss / 1024}
            return figures, result.read().decode()


@functools.cache
def prints_json(lakemill):
    """Version 0.1 prints a table for people only."""
    return "--json" in subprocess.run([lakemill, "run", "--help"], capture_output=True, text=True, check=True).stdout


def tables_of(printed):
    """Parses the table of figures that version 0.1 prints: columns of words, where a size is a number and a unit."""
    head, *lines = [line.split() for line in printed.splitlines()]
    number = lambda word: int(word.replace(",", ""))
    tables = {}
    for words in lines:
        if len(words) == len(head) + 1:
            of = dict(zip(["table", "rows", "rejected", "filtered", "files", "size", "unit", "written", "unchanged", "read"], words))
            tables[of["table"]] = {"rows_written": number(of["rows"]), "files": number(of["files"]), "sources_read": number(of["read"])}
    return tables


def rows(folder, count):
    """Writes `count` rows in files of a million. The files are links to one file, which is read once per link."""
    folder.config()
    whole, rest = divmod(count, BLOCK_ROWS)
    if whole:
        first = folder.write("000.csv", block(BLOCK_ROWS, SITES))
        for at in range(1, whole):
            os.link(first, os.path.join(folder.input, f"{at:03d}.csv"))
    if rest:
        folder.write("rest.csv", block(rest, SITES))


def files(folder, count):
    """Writes `count` files of 200 rows for one table."""
    folder.config()
    text = block(200, SITES)
    for at in range(count):
        folder.write(f"{at // 1000:02d}/{at:05d}.csv", text)


def partitions(folder, count):
    """Writes a million rows for `count` partitions."""
    folder.config(partition_by=["site"])
    folder.write("all.csv", block(BLOCK_ROWS, count))


def columns(folder, count):
    """Writes four million cells in `count` columns."""
    import numpy as np
    rows = 4_000_000 // count
    g = np.random.Generator(np.random.PCG64(2))
    names = [f"c{at:04d}" for at in range(count)]
    folder.config([(name, "float64") for name in names])
    head = (",".join(names) + "\n").encode()
    cells = g.integers(0, 100_000, (rows, count))
    folder.write("all.csv", "".join(",".join(f"{v / 100:.2f}" for v in row) + "\n" for row in cells.tolist()).encode(), head)


def large(folder, gigabytes):
    """Writes one file of `gigabytes` GB."""
    folder.config()
    text = block(BLOCK_ROWS, SITES)
    path = folder.write("all.csv", text)
    with open(path, "ab") as file:
        while file.tell() < gigabytes * 1e9:
            file.write(text)


def sources(folder, count):
    """Writes `count` files of 2,000 rows, each for its own partition; a second call changes one of them."""
    folder.config(partition_by=["site"])
    if os.path.isdir(folder.output):
        folder.write("00/00000.csv", block(2_000, 1, seed=9))
        return
    text = block(2_000, 1)
    for at in range(count):
        folder.write(f"{at // 1000:02d}/{at:05d}.csv", text.replace(b",s00000,", f",s{at:05d},".encode()))


SERIES = {
    "rows": (rows, [10**4, 10**5, 10**6, 10**7, 10**8], "rows"),
    "files": (files, [1, 10, 100, 1_000, 10_000, 50_000], "files"),
    "partitions": (partitions, [1, 10, 100, 1_000, 5_000, 20_000], "partitions"),
    "columns": (columns, [1, 10, 100, 500, 2_000], "columns"),
    "large": (large, [1, 5], "GB in one file"),
    "change": (sources, [10, 100, 1_000, 10_000], "sources"),
}


def measure(series, at, args):
    """Measures one size: [(label, figures)]."""
    shutil.rmtree(os.path.join(args.work, "scale"), ignore_errors=True)
    folder = Folder(os.path.join(args.work, "scale"))
    make = lambda: subprocess.run([sys.executable, __file__, "make", series, str(at), folder.path], check=True)
    make()
    found = []
    if series in ("large", "rows") and at == SERIES[series][1][-1]:
        # With one thread for rows, another still reads, hashes and splits in parallel.
        for what, cores in (("1 thread, 1 core", 1), ("1 thread", None)):
            found.append((what, folder.run(args.lakemill, 1, cores)))
            shutil.rmtree(folder.output)
    found.append(("2 threads", folder.run(args.lakemill, 2)))
    if series == "change":
        found = [("first run", found[0][1])]
        found.append(("nothing changed", folder.run(args.lakemill, 2)))
        make()
        found.append(("one changed", folder.run(args.lakemill, 2)))
    shutil.rmtree(folder.path)
    return found


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--lakemill", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--series", type=listed(list(SERIES)), default=list(SERIES))
    parser.add_argument("--quick", action="store_true", help="only the smaller half of each series")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--plots", help="folder for an SVG a series")
    parser.add_argument("--log")
    args = parser.parse_args()
    os.makedirs(args.work, exist_ok=True)
    for series in args.series:
        _, points, unit = SERIES[series]
        lines, table = {}, []
        for at in points[: (len(points) + 1) // 2] if args.quick else points:
            for what, found in measure(series, at, args):
                lines.setdefault(what, []).append((at, found))
                table.append([f"{at:,}", what, f"{found['bytes'] / 2**20:.1f}", f"{found['wall']:.2f}", f"{found['cpu']:.2f}",
                              f"{found['peak']:.0f}", f"{found['wall'] / at * 1e6:.1f}"])
                print(f"{series} {at:,} {what}: wall {found['wall']:.2f} s, CPU {found['cpu']:.2f} s, peak {found['peak']:.0f} MiB",
                      file=sys.stderr, flush=True)
                if args.log:
                    with open(args.log, "a", encoding="utf-8") as log:
                        log.write(json.dumps({"series": series, "at": at, "what": what, **found}) + "\n")
        print(f"\n{'### ' if args.markdown else ''}{series}\n")
        print_table([unit, "", "input MiB", "wall s", "CPU s", "peak MiB", f"µs a {unit.rstrip('s').split(' ')[0]}"], table, 2, args.markdown)
        if args.plots:
            os.makedirs(args.plots, exist_ok=True)
            with open(os.path.join(args.plots, f"scale-{series}.svg"), "w", encoding="utf-8") as file:
                file.write(plot(lines, unit))
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["make"]:
        SERIES[sys.argv[2]][0](Folder(sys.argv[4]), int(sys.argv[3]))
        sys.exit()
    sys.exit(main())
