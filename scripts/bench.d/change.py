"""Measures updates of a table, by one program or by several alternately; see scripts/bench.

Each program has a lake and an output of its own, and the same changes are made to all lakes. Most sources of a large
table are links to few files, so that a lake takes little disk space and stays in the page cache: the figures measure
computing, not the disk. A source that a step changes or removes is a file of its own: a change of the number of a
file's links changes the change time of all its names, and with it the ETag of all these sources.

This file has the sets that `lakemill run` converts; change_jobs.py has those of a worker, and change_moments.py those
that measure for how long readers can see a mixture of two states.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time

import change_jobs
import change_moments
from process import apart
from scale import HEADER, Folder
from terminal import listed, print_table
from tiny import DAYS, DISTINCT, Links, name, one_row


def text(seed, megabytes):
    """About `megabytes` MB of CSV rows, equally many for each day of February 2023."""
    import numpy as np
    g = np.random.Generator(np.random.PCG64(seed))
    rows = int(megabytes * 1e6 / 51)
    at = np.datetime64("2023-02-01T00:00:00") + np.sort(g.integers(0, DAYS * 86_400, rows)).astype("timedelta64[s]")
    at = np.datetime_as_string(at)
    site, reading = g.integers(0, 100, rows).tolist(), g.integers(-99_999, 999_999, rows).tolist()
    line = lambda r: f"{r},{at[r]},s{site[r]:05d},{reading[r] / 100:.2f},{'' if r % 7 else 'checked by hand'}\n"
    return "".join(map(line, range(rows))).encode()


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
TABLE = [("set", "set", ""), ("sources", "sources", ","), ("run", "what", ""), ("program", "program", ""), ("wall s", "wall", ".2f"),
         ("CPU s", "cpu", ".2f"), ("peak MiB", "peak", ".0f"), ("CSVs read", "read", ","), ("files", "files", ",")]
NAMES = 4


def content(seed, megabytes):
    return text(seed, megabytes) if megabytes else one_row(seed)


def own_sources(count):
    """The sources that steps change or remove."""
    return {"changed": count // 2, "removed": count // 2 + count // 8}


def make(folder, count, megabytes, partitioned, publish):
    folder.config(**({"partition_by": [{"column": "at", "transform": "day"}]} if partitioned else {}),
                  **({"publish": publish} if publish else {}))
    contents = [HEADER + content(seed, megabytes) for seed in range(DISTINCT)]
    links, own = Links(os.path.join(folder.path, "bytes"), contents), set(own_sources(count).values())
    made = None
    for at in range(count):
        path = os.path.join(folder.input, name(2 * at))
        if os.path.dirname(path) != made:
            made = os.path.dirname(path)
            os.makedirs(made, exist_ok=True)
        (shutil.copyfile if at in own else os.link)(links.file(at)[0], path)


def steps(count, megabytes):
    """The changes in order: their names, and functions that apply them to a lake. Sources have even numbers."""
    own = own_sources(count)
    put = lambda at, seed: lambda folder: folder.write(name(at), content(seed, megabytes))
    return [
        ("first run", lambda folder: None),
        ("nothing changed", lambda folder: None),
        ("one added at the end", put(2 * count, 101)),
        ("one late in the middle", put(2 * (count // 2 - count // 8) + 1, 102)),
        ("one changed", put(2 * own["changed"], 103)),
        ("one removed", lambda folder: os.unlink(os.path.join(folder.input, name(2 * own["removed"])))),
    ]


def measure_run(folder, program, threads):
    figures, result = folder.result(program, threads)
    table = result["tables"]["t"]
    return {**figures, "read": table["sources_read"], "rows": table["rows_written"], "files": table["files"]}


def measure(which, args, work):
    """Measures each step with each program."""
    threads = int(os.environ.get("BENCH_THREADS", "2"))
    count, megabytes, partitioned = SETS[which]
    count = args.sources or (count // 10 if args.quick else count)
    programs = [(program, publish) for program in args.lakemill for publish in [[], *([args.publish] if args.publish else [])]]
    folders = [(*program, Folder(os.path.join(work, str(at)))) for at, program in enumerate(programs)]
    for _, publish, folder in folders:
        apart(make, folder, count, megabytes, partitioned, publish)
    for what, change in steps(count, megabytes):
        for *_, folder in folders:
            apart(change, folder)
        # Files that changed less than 2 s ago are read again by the next run.
        time.sleep(2.1)
        found = []
        for program, publish, folder in folders:
            run = measure_run(folder, program, threads)
            found.append(run["rows"])
            yield {"sources": count, "what": what, "program": " ".join([program, *publish]), **run}
        if len(set(found)) > 1:
            raise RuntimeError(f"{which}, {what}: the programs disagree on the number of rows: {found}")


PARTS = [sys.modules[__name__], change_jobs, change_moments]


def cell(row, field, form):
    return format(row[field], form) if form else str(row[field])


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--lakemill", action="append", required=True)
    parser.add_argument("--s3s-fs", help="the S3 server, for sets with `s3` in their name")
    parser.add_argument("--work", required=True)
    parser.add_argument("--sets", type=listed([which for part in PARTS for which in part.SETS]), default=DEFAULT_SETS)
    parser.add_argument("--sources", type=int, help="so many sources instead of the set's number")
    parser.add_argument("--delay-ms", type=float, default=20.0)
    parser.add_argument("--publish", type=listed(["delta", "iceberg"]), help="also publish the table in these formats")
    parser.add_argument("--quick", action="store_true", help="a tenth of the sources")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--log")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.makedirs(args.work, exist_ok=True)
    rows = []
    for which in args.sets:
        part = next(part for part in PARTS if which in part.SETS)
        with tempfile.TemporaryDirectory(prefix="change-", dir=args.work) as work:
            for figures in part.measure(which, args, work):
                row = {"set": which, **figures, "load": os.getloadavg()[0]}
                rows.append((part, row))
                print(*(f"{title} {cell(row, field, form)}," for title, field, form in part.TABLE), f"load {row['load']:.1f}",
                      file=sys.stderr, flush=True)
                if args.log:
                    with open(args.log, "a", encoding="utf-8") as log:
                        log.write(json.dumps(row) + "\n")
    for part in PARTS:
        cells = [[cell(row, field, form) for _, field, form in part.TABLE] for of, row in rows if of is part]
        if cells:
            print()
            print_table([title for title, *_ in part.TABLE], cells, part.NAMES, args.markdown)


if __name__ == "__main__":
    main()
