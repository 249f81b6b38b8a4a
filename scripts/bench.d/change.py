"""What a change of a table costs, by the size of the table, by one program or by several in turns; see scripts/bench.

Each program has a lake and an output of its own, and the same changes are made to all lakes. A source of the large tables is
a link to one of few files, so that a lake takes little of the disk and its bytes are in memory: the figures are of computing,
not of the disk.
"""

import argparse
import json
import os
import shutil
import sys
import time

from process import apart
from scale import HEADER, Folder
from terminal import listed, print_table

DISTINCT = 8
DAYS = 28


def text(seed, megabytes):
    """About so many MB of CSV rows, of each day of February 2023 the same number."""
    import numpy as np
    g = np.random.Generator(np.random.PCG64(seed))
    rows = int(megabytes * 1e6 / 51)
    at = np.datetime64("2023-02-01T00:00:00") + np.sort(g.integers(0, DAYS * 86_400, rows)).astype("timedelta64[s]")
    at = np.datetime_as_string(at)
    site, reading = g.integers(0, 100, rows).tolist(), g.integers(-99_999, 999_999, rows).tolist()
    line = lambda r: f"{r},{at[r]},s{site[r]:05d},{reading[r] / 100:.2f},{'' if r % 7 else 'checked by hand'}\n"
    return "".join(map(line, range(rows))).encode()


def link(folder, name, source):
    """A source with the bytes of another file; a link, as long as the file system allows more of them."""
    path = os.path.join(folder.input, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        os.link(source, path)
    except OSError:
        shutil.copyfile(source, path)


def replace(folder, name, content):
    """A new file, whatever was there: a link's other names keep their bytes."""
    if os.path.exists(os.path.join(folder.input, name)):
        os.unlink(os.path.join(folder.input, name))
    folder.write(name, content)


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


def one_row(seed):
    return f"{seed},2023-02-{seed % DAYS + 1:02d}T00:00:00,s1,1.5,\n".encode()


def make(folder, count, megabytes, partitioned):
    folder.config(**({"partition_by": [{"column": "at", "transform": "day"}]} if partitioned else {}))
    for seed in range(DISTINCT):
        with open(os.path.join(folder.path, f"{seed}"), "wb") as file:
            file.write(HEADER + (text(seed, megabytes) if megabytes else one_row(seed)))
    for at in range(count):
        link(folder, name(2 * at), os.path.join(folder.path, f"{at % DISTINCT}"))


def steps(count, megabytes):
    """The changes in turn: what they are called, and what they do to a lake. Sources have even numbers."""
    content = lambda seed: text(seed, megabytes) if megabytes else one_row(seed)
    middle = count // 2
    return [
        ("first run", lambda folder: None),
        ("nothing changed", lambda folder: None),
        ("one added at the end", lambda folder: replace(folder, name(2 * count), content(101))),
        ("one late in the middle", lambda folder: replace(folder, name(2 * (middle - count // 8) + 1), content(102))),
        ("one changed", lambda folder: replace(folder, name(2 * middle), content(103))),
        ("one removed", lambda folder: os.unlink(os.path.join(folder.input, name(2 * (middle + count // 8))))),
    ]


def measure(folder, program, threads):
    figures, result = folder.result(program, threads)
    table = result["tables"]["t"]
    return {**figures, "read": table["sources_read"], "rows": table["rows_written"], "files": table["files"]}


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
        folders = [(program, Folder(os.path.join(work, str(at)))) for at, program in enumerate(args.lakemill)]
        for _, folder in folders:
            apart(make, folder, count, megabytes, partitioned)
        for what, change in steps(count, megabytes):
            for _, folder in folders:
                apart(change, folder)
            # Files that changed less than 2 s ago are read again by the next run.
            time.sleep(2.1)
            found = [(program, measure(folder, program, threads)) for program, folder in folders]
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
