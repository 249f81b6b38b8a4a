"""Measures an event-triggered job for one changed source, on a folder or an S3 server with added latency; see
scripts/bench. Earlier jobs are enqueued, and compare all sources with the table.
"""

import os
import time

from place import Place
from scale import COLUMNS, HEADER
from tiny import Links, name, one_row, one_row_contents

# Each set: sources of one row, whether they are on S3.
SETS = {
    "tiny-event": (200_000, False),
    "tiny-event-large": (1_000_000, False),
    "s3-event": (100_000, True),
}
TABLE = [("set", "set", ""), ("sources", "sources", ","), ("job", "what", ""), ("program", "program", ""), ("wall s", "run", ".3f"),
         ("CPU s", "cpu", ".2f"), ("MiB before", "resident", ".0f"), ("peak MiB", "peak", ".0f"), ("CSVs read", "read", ","),
         ("requests", "requests", ","), ("attempts", "attempts", "")]
NAMES = 4
# A CSV that changed less than 5 s ago may still be written.
SETTLE_SECONDS = 6
# A worker that watches a folder detects a new file, and starts its job 5 s later. The event is sent later, so that the
# file counts as complete when the job starts.
EVENT_PAUSE_SECONDS = 1


def config(auto_run):
    columns = [{"name": column, "type": kind} for column, kind in COLUMNS]
    return {"version": 1, "auto_run": auto_run, "mappings": [{"table": "t", "files": ["**/*.csv"], "columns": columns}]}


def filler(count):
    """Returns a function that fills a place with `count` sources. The source that a step changes is not a link."""
    def fill(place):
        links = Links(os.path.join(place.home, "bytes"), one_row_contents())
        for at in range(count):
            if at == count // 2:
                place.change(name(2 * at), HEADER + one_row(at))
            else:
                path, digest = links.file(at)
                place.link(path, name(2 * at), digest)
    return fill


def by_event(place, at, seed):
    """Puts a source, sends its event, and returns the figures of the job."""
    place.change(name(at), HEADER + one_row(seed))
    time.sleep(EVENT_PAUSE_SECONDS)
    return place.job_of_event(name(at))


def steps(count):
    return [
        ("first run", Place.job),
        ("nothing changed", Place.job),
        ("one added by event", lambda place: by_event(place, 2 * count, 101)),
        ("one late by event", lambda place: by_event(place, 2 * (count // 2 - count // 8) + 1, 102)),
        ("one changed by event", lambda place: by_event(place, 2 * (count // 2), 103)),
    ]


def measure(which, args, work):
    """Measures each step with each program."""
    count, is_remote = SETS[which]
    count = args.sources or (count // 10 if args.quick else count)
    remote = {"s3s_fs": args.s3s_fs, "delay": args.delay_ms / 1000} if is_remote else {}
    places = []
    try:
        # The reconciliation at a worker's start must find no differences.
        for at, program in enumerate(args.lakemill):
            places.append((program, Place(program, os.path.join(work, str(at)), config(False), filler(count), **remote)))
        time.sleep(SETTLE_SECONDS)
        for what, act in steps(count):
            for program, place in places:
                if what == "one added by event":
                    place.configure(config(True))
                figures = act(place)
                table = figures.pop("record")["result"]["tables"]["t"]
                yield {"sources": count, "what": what, "program": program, **figures, "read": table["sources_read"]}
    finally:
        for _, place in places:
            place.close()
