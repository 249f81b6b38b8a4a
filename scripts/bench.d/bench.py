"""Runs Lakemill and its peers alternately and reports medians; see scripts/bench.

This process stays small (no DuckDB in it): on Linux a child's peak memory counts from its parent's.
"""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import time

from chart import chart
from schema import DATASETS, HARD_FORMATS, HARD_REQUIRED
from terminal import listed, print_table

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = ["duckdb", "polars", "pyarrow"]
TYPES = {"i64": "int64", "f64": "float64", "ts": "timestamp", "tsms": "timestamp", "tz": "timestamptz", "date": "date",
         "str": "string", "bool": "boolean"}


def mapping_of(name):
    """The mapping of a dataset, with the schema that the peers get."""
    columns = [{"name": n, "type": TYPES[k]} for n, k in DATASETS[name]["schema"]]
    mapping = {"table": name, "files": ["*.csv", "*.csv.gz"], "columns": columns}
    if name == "hard":
        mapping["csv"] = {"delimiter": ";", "decimal": ",", "thousands": "."}
        mapping["rejects"] = {"max_ratio": 0.05}
        for column, (_, kind) in zip(columns, DATASETS[name]["schema"]):
            column["nullable"] = column["name"] not in HARD_REQUIRED
            if kind in HARD_FORMATS:
                column["formats"] = HARD_FORMATS[kind]
    if name == "flights":
        mapping["csv"] = {"null_values": ["NA"]}
        columns[-1]["expr"] = "make_date(year, month, day)"
    if DATASETS[name]["part"]:
        mapping["partition_by"] = [DATASETS[name]["part"]]
    mapping["parquet"] = {"compression": "zstd", "compression_level": int(os.environ.get("BENCH_ZSTD", "1"))}
    return mapping


def write_config(name, out):
    """Writes the pipeline.json of a dataset."""
    path = os.path.join(out, f"{name}.pipeline.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"version": 1, "title": name, "mappings": [mapping_of(name)]}, file, indent=1)
    return path


def command(program, name, data, out, args):
    if program == "lakemill":
        threads = os.environ.get("BENCH_THREADS", "2")
        return [args.lakemill, "run", write_config(name, args.out), "--input", data, "--output", out, "--threads", threads]
    return [sys.executable, os.path.join(HERE, "peers.py"), program, name, data, out]


def warm(folder):
    """Reads all files, so that every program finds the CSVs in the page cache."""
    for path, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(path, name), "rb", buffering=0) as file:
                while file.read(1 << 20):
                    pass


def in_turn(programs, turn):
    """The order of a round: a Williams design. With an even number of programs and as many rounds, each runs right
    after each other once, which balances after-effects on the machine."""
    count = len(programs)
    return [programs[((at + 1) // 2 * (1 if at % 2 else -1) + turn) % count] for at in range(count)]


def measure(program, name, data, out, args):
    """One conversion: wall and CPU seconds, peak memory and output in MiB, files."""
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    os.sync()
    warm(data)
    line = command(program, name, data, out, args)
    with open(os.path.join(args.out, "stderr"), "w+b") as errors:
        begin = time.monotonic()
        child = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        said = errors.read().decode(errors="replace")[-2000:]
    tables = os.path.join(out, name) if program == "lakemill" else out
    sizes = [os.path.getsize(os.path.join(d, f)) for d, _, fs in os.walk(tables) for f in fs if f.endswith(".parquet")]
    return {"program": program, "set": name, "wall": wall, "cpu": usage.ru_utime + usage.ru_stime, "peak": usage.ru_maxrss / 1024,
            "size": sum(sizes) / 2**20, "files": len(sizes), "status": child.returncode, "said": said,
            "load": os.getloadavg()[0]}, tables


def put_by(folder, kept):
    """Moves a folder into `kept`, its files emptied. Deleting them would slow the next run: for minutes, ext4 scans
    over freed inodes whenever it looks for one."""
    for path, _, names in os.walk(folder):
        for name in names:
            os.truncate(os.path.join(path, name), 0)
    os.rename(folder, kept)


def fingerprint(name, folder):
    run = subprocess.run([sys.executable, os.path.join(HERE, "fingerprint.py"), name, folder], capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr.strip().splitlines()[-1])
    return json.loads(run.stdout)


def difference(found, wanted):
    if len(found) != len(wanted):
        return f"{len(found)} partitions, expected {len(wanted)}"
    for row, other in zip(found, wanted):
        for place, (a, b) in enumerate(zip(row, other)):
            close = isinstance(a, float) and isinstance(b, float) and math.isclose(a, b, rel_tol=1e-9, abs_tol=0.02)
            if a != b and not close:
                return f"partition `{row[0]}`, field {place}: {a}, expected {b}"
    return None


def medians(runs):
    keys = ("cpu", "wall", "peak", "size", "files")
    programs = dict.fromkeys(r["program"] for r in runs)
    return {p: {k: statistics.median(r[k] for r in runs if r["program"] == p) for k in keys} for p in programs}


def report(runs, args):
    tables = {}
    print(f"\nMedians; × is the ratio to the best of the peers (below 1: better than all). {args.rounds} rounds, "
          f"{os.environ.get('BENCH_THREADS', '2')} threads, zstd level {os.environ.get('BENCH_ZSTD', '1')}.")
    for name in args.sets:
        good = [r for r in runs if r["set"] == name and r["status"] == 0]
        table = tables[name] = medians(good)
        best = {k: min((v[k] for p, v in table.items() if p != "lakemill"), default=math.nan) for k in ("cpu", "wall", "peak", "size")}
        head = ["", "CPU s", "×", "wall s", "×", "peak MiB", "×", "output MiB", "×", "files"]
        rows = [[p, f"{v['cpu']:.2f}", f"{v['cpu'] / best['cpu']:.2f}", f"{v['wall']:.2f}", f"{v['wall'] / best['wall']:.2f}",
                 f"{v['peak']:.0f}", f"{v['peak'] / best['peak']:.2f}", f"{v['size']:.1f}", f"{v['size'] / best['size']:.2f}",
                 f"{v['files']:.0f}"] for p, v in sorted(table.items(), key=lambda item: item[1]["cpu"])]
        print(f"\n{'### ' if args.markdown else ''}{name}")
        if args.markdown:
            print()
        print_table(head, rows, 1, args.markdown)
    if args.chart and all("lakemill" in table and len(table) > 1 for table in tables.values()):
        note = f"medians of {args.rounds} rounds, {os.environ.get('BENCH_THREADS', '2')} threads, zstd level {os.environ.get('BENCH_ZSTD', '1')}"
        with open(args.chart, "w", encoding="utf-8") as file:
            file.write(chart(tables, note))


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--lakemill", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sets", type=listed(list(DATASETS)), default=list(DATASETS))
    parser.add_argument("--peers", type=listed(PEERS), default=PEERS)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--log")
    parser.add_argument("--chart")
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    kept = os.path.join(args.out, "kept")
    shutil.rmtree(kept, ignore_errors=True)
    os.makedirs(kept)
    runs, reference, bad = [], {}, 0
    for turn in range(args.rounds):
        for name in args.sets:
            data = os.path.join(args.data, name)
            for program in in_turn([*args.peers, "lakemill"], turn):
                out = os.path.join(args.out, program)
                run, tables = measure(program, name, data, out, args)
                run["turn"] = turn
                verdict = "" if run["status"] == 0 else f"FAILED with {run['status']}: {run['said'].strip()}"
                if not verdict:
                    try:
                        found = fingerprint(name, tables)
                        verdict = difference(found, reference.setdefault(name, (program, found))[1])
                        verdict = f"DIFFERS from {reference[name][0]}: {verdict}" if verdict else ""
                    except RuntimeError as error:
                        verdict = f"UNREADABLE: {error}"
                bad += bool(verdict)
                runs.append(run)
                put_by(out, os.path.join(kept, f"{name}-{turn}-{program}"))
                print(f"round {turn + 1} {name:6} {program:8} CPU {run['cpu']:6.2f} s, wall {run['wall']:6.2f} s, peak {run['peak']:5.0f} MiB, "
                      f"output {run['size']:6.1f} MiB, load {run['load']:.1f} {verdict or 'ok'}", file=sys.stderr, flush=True)
                if args.log:
                    with open(args.log, "a", encoding="utf-8") as log:
                        log.write(json.dumps(run) + "\n")
    shutil.rmtree(kept, ignore_errors=True)
    report(runs, args)
    if bad:
        print(f"\n{bad} runs failed or differ; see above", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
