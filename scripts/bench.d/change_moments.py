"""Measures for how long a reader that globs a table's Parquet files sees files of two versions, while a change of one
source rewrites all 365 partitions; see scripts/bench. In a folder, inotify reports when data files appear and
disappear; on S3, the proxy does. The measured time is from the first such event to the last.
"""

import ctypes
import json
import os
import select
import struct
import subprocess
import sys
import time

from place import Place
from scale import COLUMNS, HEADER, SITES, Folder, block

SETS = {"moment": False, "moment-s3": True}
TABLE = [("set", "set", ""), ("partitions", "partitions", ","), ("run", "what", ""), ("program", "program", ""),
         ("ms", "ms", ".1f"), ("until the last came", "coming", ".1f"), ("files that came", "came", ","),
         ("files that went", "went", ","), ("wall s", "wall", ".2f")]
NAMES = 4
DAYS = 365
ROWS, ROWS_QUICK = 100_000, 10_000
CHANGES = 3
SETTLE_SECONDS = 6
PARTITIONED = {"partition_by": [{"column": "at", "transform": "day"}]}

IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE = 0x40, 0x80, 0x100, 0x200
IN_Q_OVERFLOW, IN_ISDIR, IN_ONLYDIR, IN_NONBLOCK = 0x4000, 0x40000000, 0x01000000, 0x800
LIBC = ctypes.CDLL(None, use_errno=True)


class Watch:
    """Records when Parquet files below a folder appear and disappear."""

    def __init__(self, root):
        self.fd, self.folders = LIBC.inotify_init1(IN_NONBLOCK), {}
        self.came, self.went = [], []
        self.add(root)

    def add(self, folder):
        watch = LIBC.inotify_add_watch(self.fd, os.fsencode(folder),
                                       IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_ONLYDIR)
        if watch < 0:
            raise OSError(ctypes.get_errno(), f"inotify_add_watch: {folder}")
        self.folders[watch] = folder
        for entry in os.scandir(folder):
            if entry.is_dir():
                self.add(entry.path)

    def read(self):
        try:
            events = os.read(self.fd, 1 << 20)
        except BlockingIOError:
            return
        now, at = time.monotonic(), 0
        while at < len(events):
            watch, mask, _, length = struct.unpack_from("iIII", events, at)
            name = events[at + 16:at + 16 + length].rstrip(b"\0")
            at += 16 + length
            if mask & IN_Q_OVERFLOW:
                raise RuntimeError("the kernel dropped events")
            if mask & IN_ISDIR and mask & (IN_CREATE | IN_MOVED_TO):
                # Files already in it would be missed: that would be a bug of the bench.
                folder = os.path.join(self.folders[watch], os.fsdecode(name))
                self.add(folder)
                if any(entry.endswith(".parquet") for entry in os.listdir(folder)):
                    raise RuntimeError(f"the new folder {folder} has files already")
            elif name.endswith(b".parquet") and not name.startswith(b"."):
                (self.came if mask & (IN_CREATE | IN_MOVED_TO) else self.went).append(now)


def watch(root):
    """The main function of the watching process: prints `ready`, and the times once its input ends."""
    found = Watch(root)
    try:
        os.nice(-10)
    except PermissionError:
        pass
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select([found.fd, sys.stdin], [], [])
        if found.fd in ready:
            found.read()
        elif ready:
            break
    json.dump({"came": found.came, "went": found.went}, sys.stdout)


def watched(root, act):
    """Calls `act`; returns its result, and the times at which files below a folder appeared and disappeared
    meanwhile."""
    with subprocess.Popen([sys.executable, __file__, root], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        if child.stdout.readline() != "ready\n":
            raise RuntimeError("the process that watches the table did not start")
        try:
            result = act()
        finally:
            said, _ = child.communicate()
    return result, json.loads(said)


def moment(times):
    """The time in ms during which both versions are visible. A file that replaces one of the same name only appears."""
    both = times["came"] + times["went"]
    if len(times["came"]) < DAYS:
        raise RuntimeError(f"{len(times['came'])} data files came, expected at least {DAYS}")
    first = min(both)
    return {"ms": (max(both) - first) * 1000, "coming": (max(times["came"]) - first) * 1000,
            "came": len(times["came"]), "went": len(times["went"])}


def csv(rows, seed):
    return HEADER + block(rows, SITES, seed)


class LocalTable:
    """A table written by `lakemill run`."""

    def __init__(self, program, home, rows):
        self.program, self.folder = program, Folder(home)
        self.folder.config(**PARTITIONED)
        self.folder.write("a.csv", block(rows, SITES, 1))
        self.change(rows, 2)

    def change(self, rows, seed):
        self.folder.write("b.csv", block(rows, SITES, seed))

    def run(self):
        return self.folder.result(self.program, int(os.environ.get("BENCH_THREADS", "2")))[0]

    def watched_run(self):
        return watched(os.path.join(self.folder.output, "t"), self.run)

    def close(self):
        pass


class RemoteTable:
    """A table written by a worker to S3."""

    def __init__(self, program, home, rows, args):
        def fill(place):
            place.change("a.csv", csv(rows, 1))
            place.change("b.csv", csv(rows, 2))
        columns = [{"name": name, "type": kind} for name, kind in COLUMNS]
        config = {"version": 1, "auto_run": False, "mappings": [
            {"table": "t", "files": ["*.csv"], "columns": columns, **PARTITIONED}]}
        self.place = Place(program, home, config, fill, args.s3s_fs, args.delay_ms / 1000)

    def change(self, rows, seed):
        self.place.change("b.csv", csv(rows, seed))

    def run(self):
        return self.place.job()

    def watched_run(self):
        self.place.proxy.changes()
        figures = self.run()
        changes = self.place.proxy.changes()
        return figures, {"came": changes["put"], "went": changes["deleted"]}

    def close(self):
        self.place.close()


def measure(which, args, work):
    """Measures each change with each program."""
    rows, tables = ROWS_QUICK if args.quick else ROWS, []
    try:
        for at, program in enumerate(args.lakemill):
            home = os.path.join(work, str(at))
            tables.append((program, RemoteTable(program, home, rows, args) if SETS[which] else LocalTable(program, home, rows)))
        time.sleep(SETTLE_SECONDS)
        for _, table in tables:
            table.run()
        for turn in range(CHANGES):
            for _, table in tables:
                table.change(rows, 3 + turn)
            time.sleep(SETTLE_SECONDS)
            for program, table in tables:
                figures, times = table.watched_run()
                found = moment(times)
                yield {"partitions": DAYS, "what": f"change {turn + 1}", "program": program, "wall": figures["wall"], **found}
    finally:
        for _, table in tables:
            table.close()


if __name__ == "__main__":
    watch(sys.argv[1])
