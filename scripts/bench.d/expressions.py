"""Measures runs with expressions: a table of many rows with three of them, and the flights sample, by one program or by
several alternately; see scripts/bench. CPU time includes child processes, even those that outlive their parent: this
process reaps them.
"""

import argparse
import ctypes
import json
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time

from process import apart
from scale import BLOCK_ROWS, HEADER, SITES, block
from terminal import print_table

PR_SET_CHILD_SUBREAPER = 36
SAMPLE_SECONDS = 0.02
COLUMNS = [("id", "int64"), ("at", "timestamp"), ("site", "string"), ("reading", "float64"), ("note", "string")]


def make_table(folder, rows):
    """Writes the table's config and CSVs once: files of a million rows, all links to one file, which is read once per
    link."""
    if os.path.exists(os.path.join(folder, "complete")):
        return
    shutil.rmtree(folder, ignore_errors=True)
    lake = os.path.join(folder, "lake")
    os.makedirs(lake)
    for at in range(0, rows, BLOCK_ROWS):
        path, first = (os.path.join(lake, f"{number:03d}.csv") for number in (at // BLOCK_ROWS, 0))
        count = min(BLOCK_ROWS, rows - at)
        if at and count == BLOCK_ROWS:
            os.link(first, path)
        else:
            with open(path, "wb") as file:
                file.write(HEADER)
                file.write(block(count, SITES))
    mapping = {
        "table": "readings", "files": ["*.csv"],
        "columns": [{"name": n, "type": t} for n, t in COLUMNS] + [{"name": "day", "type": "date", "expr": "CAST(\"at\" AS DATE)"}],
        "where": "reading > -990",
        "checks": [{"name": "site_is_known", "assert": "length(site) = 6 AND site LIKE 's%'"}],
    }
    with open(os.path.join(folder, "pipeline.json"), "w", encoding="utf-8") as file:
        json.dump({"version": 1, "title": "expressions", "mappings": [mapping]}, file)
    open(os.path.join(folder, "complete"), "w", encoding="ascii").close()


def tree(pid):
    """A process and its descendants."""
    found = [pid]
    for at in found:
        try:
            for thread in os.listdir(f"/proc/{at}/task"):
                with open(f"/proc/{at}/task/{thread}/children", encoding="ascii") as file:
                    found += map(int, file.read().split())
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def memory(pid):
    """Anonymous memory of a process, in MiB."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            kib = [int(line.split()[1]) for line in file if line.startswith(("RssAnon:", "RssShmem:"))]
        return sum(kib) / 1024
    except (FileNotFoundError, ProcessLookupError):
        return 0


class Peak(threading.Thread):
    """The peak of the sampled memory of a process and its descendants, and the largest number of processes."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.mib, self.processes, self.over = pid, 0, set(), threading.Event()

    def run(self):
        while not self.over.wait(SAMPLE_SECONDS):
            pids = tree(self.pid)
            self.processes.update(pids)
            self.mib = max(self.mib, sum(map(memory, pids)))


def measure(lakemill, source, out, threads):
    """Wall and CPU seconds and peak memory of a run, including its children."""
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    line = [lakemill, "run", os.path.join(source, "pipeline.json"), "--input", os.path.join(source, "lake"),
            "--output", os.path.join(out, "tables"), "--threads", str(threads)]
    with open(os.path.join(out, "said"), "w+b") as said:
        begin = time.monotonic()
        child = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        peak = Peak(child.pid)
        peak.start()
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - begin
        peak.over.set()
        peak.join()
        cpu = usage.ru_utime + usage.ru_stime
        # Reaps orphaned descendants.
        while True:
            try:
                _, _, usage = os.wait4(-1, 0)
                cpu += usage.ru_utime + usage.ru_stime
            except ChildProcessError:
                break
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            said.seek(0)
            raise RuntimeError(f"`{lakemill} run` ended with {child.returncode}: {said.read()[-2000:].decode(errors='replace')}")
    shutil.rmtree(out)
    return {"cpu": cpu, "wall": wall, "peak": peak.mib, "children": len(peak.processes) - 1}


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--lakemill", action="append", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--flights", required=True)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--log")
    args = parser.parse_args()
    rows = args.rows or (BLOCK_ROWS if args.quick else 10 * BLOCK_ROWS)
    rounds = args.rounds or (3 if args.quick else 5)
    threads = int(os.environ.get("BENCH_THREADS", "2"))
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    table = os.path.join(args.work, f"expressions-{rows}")
    if not os.path.exists(os.path.join(table, "complete")):
        apart(make_table, table, rows)
    sets = {f"{rows:,} rows": table, "flights": args.flights}
    runs = []
    for turn in range(rounds):
        for name, source in sets.items():
            for at in range(len(args.lakemill)):
                program = args.lakemill[(at + turn) % len(args.lakemill)]
                run = measure(program, source, os.path.join(args.work, "expressions-out"), threads)
                run.update(set=name, program=program, turn=turn, load=os.getloadavg()[0])
                runs.append(run)
                print(f"round {turn + 1} {name} {program}: CPU {run['cpu']:.2f} s, wall {run['wall']:.2f} s, peak {run['peak']:.0f} MiB, "
                      f"{run['children']} children, load {run['load']:.1f}", file=sys.stderr, flush=True)
                if args.log:
                    with open(args.log, "a", encoding="utf-8") as log:
                        log.write(json.dumps(run) + "\n")
    print(f"\nMedians of {rounds} rounds with {threads} threads; × is the ratio to the first program. Memory is what no file "
          "backs, of all processes at once.\n")
    table = []
    for name in sets:
        median = lambda program, key: statistics.median(r[key] for r in runs if r["set"] == name and r["program"] == program)
        for program in dict.fromkeys(args.lakemill):
            cells = [f"{median(program, 'cpu'):.2f}", f"{median(program, 'cpu') / median(args.lakemill[0], 'cpu'):.3f}",
                     f"{median(program, 'wall'):.2f}", f"{median(program, 'wall') / median(args.lakemill[0], 'wall'):.3f}",
                     f"{median(program, 'peak'):.0f}", f"{median(program, 'children'):.0f}"]
            table.append([name, program, *cells])
    print_table(["", "program", "CPU s", "×", "wall s", "×", "peak MiB", "children"], table, 2, args.markdown)


if __name__ == "__main__":
    main()
