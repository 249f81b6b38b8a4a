"""Reports the share of CPU time of each part of `lakemill run` on the bench's datasets; see scripts/bench. `perf`
samples all threads by CPU time; each sample counts for the part that its function belongs to.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys

from bench import command, warm
from terminal import print_table

# The part of a sample, by its shared object or its function; the first match counts.
PARTS = [
    ("kernel", "kernel", None),
    ("DuckDB", "duckdb", None),
    ("zstd", None, r"ZSTD|HUF|HIST|FSE|XXH"),
    ("gunzip", None, r"zlib|inflate|crc32"),
    ("SHA-256", None, r"engine::read::sha|sha2::"),
    ("malloc and free", None, r"^(_?_?(int_)?(m|c|re)?alloc|_int_(free|malloc|realloc)|c?free|unlink_chunk|malloc_consolidate"
                              r"|sysmalloc)"),
    ("copies", None, r"mem(move|cpy|set)_|RawVec|gather_texts"),
    ("separators, records, UTF-8", None, r"engine::read::|memchr|simdutf8|from_utf8"),
    ("cells to values", None, r"engine::cells::|fast_float|dec2flt"),
    ("encodings, statistics", None, r"engine::encode::|memcmp|parquet::"),
    ("rows to partitions", None, r"partitions::|arrow_select|RowMaker|convert::|arrow_buffer|arrow_array|spec_from_iter"
                                 r"|spec_extend"),
]
REST = "the rest"


def part_of(shared_object, function):
    for part, objects, functions in PARTS:
        if objects and objects in shared_object or functions and re.search(functions, function):
            return part
    return REST


def profile(name, args):
    """Shares of the CPU's time by part, in percent, and the number of samples."""
    data, out, record = (os.path.join(folder, name) for folder in (args.data, args.out, os.path.join(args.out, "perf")))
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(os.path.dirname(record), exist_ok=True)
    # Flushes the writes of earlier runs, which would disturb this one.
    os.sync()
    warm(data)
    perf = ["perf", "record", "-q", "-F", "2000", "-e", "cpu-clock", "-o", record, "--"]
    subprocess.run(perf + command("lakemill", name, data, out, args), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=True)
    report = ["perf", "report", "-i", record, "--no-children", "--stdio", "-t", "\t", "--sort", "dso,sym", "-g", "none",
              "--percent-limit", "0"]
    text = subprocess.run(report, capture_output=True, text=True, check=True).stdout
    shares, samples = {}, "?"
    for line in text.splitlines():
        if line.startswith("# Samples:"):
            samples = line.split()[2]
        fields = [field.strip() for field in line.split("\t")]
        if line.startswith("#") or len(fields) != 3:
            continue
        part = part_of(fields[1], re.sub(r"^\[.\] ", "", fields[2]))
        shares[part] = shares.get(part, 0.0) + float(fields[0].rstrip("%"))
    os.remove(record)
    if not shares:
        sys.exit(f"bench profile: perf saw nothing of {name}")
    return shares, samples


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lakemill", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--sets", default="trips,events,wide,hard,flights")
    parser.add_argument("--markdown", action="store_true")
    args = parser.parse_args()
    names = args.sets.split(",")
    found = {name: profile(name, args) for name in names}
    parts = [part for part, _, _ in PARTS] + [REST]
    parts.sort(key=lambda part: -sum(shares.get(part, 0.0) for shares, _ in found.values()))
    rows = [[part] + [f"{found[name][0].get(part, 0.0):.1f}" for name in names] for part in parts]
    rows.append(["samples"] + [found[name][1] for name in names])
    print_table(["% of CPU"] + names, rows, 1, args.markdown)


if __name__ == "__main__":
    main()
