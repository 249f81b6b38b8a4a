"""Measures workers with real backends and reports medians; see scripts/bench.

Everything listens on the loopback only, in a folder that is removed at the end.
"""

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import time

from installation import BUCKETS, KINDS, WEBHOOK_SECRET, Site, await_work
from posters import Posters
from terminal import listed, print_table, spread

PARTS = ["jobs", "latency", "webhooks", "memory"]
# Numbers of workers, and concurrent jobs of each.
FLEETS = [(1, 1), (1, 4), (3, 1), (3, 4)]
CLIENTS = 8
MEMORY_JOBS = 100
FULL = {"pipelines": 200, "jobs": 1000, "latencies": 50, "post_seconds": 8.0, "idle_seconds": 10.0}
QUICK = {"pipelines": 40, "jobs": 200, "latencies": 10, "post_seconds": 2.0, "idle_seconds": 3.0}


def measure_jobs(site, size, fleet):
    """Jobs without changes to convert: from the start of the workers to the last terminal record."""
    workers, concurrency = fleet
    batch, before = site.enqueue(size["jobs"]), site.cpu()
    begun = time.time()
    started = [site.spawn(concurrency) for _ in range(workers)]
    for worker in started:
        await_work(worker)
    first, last = site.await_records(batch, size["jobs"])
    after = site.cpu()
    cpu = sum(worker.stop() for worker in started)
    failed = site.failures(batch, size["jobs"])
    if failed:
        raise RuntimeError(f"{site.kind}: {failed} of {size['jobs']} jobs failed: {started[0].said()[-2000:]}")
    return {"part": "jobs", "site": site.kind, "workers": workers, "concurrency": concurrency, "jobs": size["jobs"],
            "wall": last - begun, "rate": size["jobs"] / (last - begun), "running": (size["jobs"] - 1) / max(last - first, 1e-3),
            "cpu": cpu, **{name: after[name] - before[name] for name in after}}


def measure_latency(site, size):
    """One job at a time on an idle worker: from before the enqueue to the terminal record."""
    worker, found = site.worker(), []
    for _ in range(size["latencies"] + 1):
        # A random pause avoids synchronizing with the worker's periodic tasks.
        time.sleep(random.uniform(0.3, 0.8))
        begun = time.monotonic()
        record = site.record(site.enqueue(1), 0)
        while not os.path.exists(record):
            if time.monotonic() - begun > 60:
                raise RuntimeError(f"{site.kind}: a job has no record after a minute: {worker.said()[-2000:]}")
            time.sleep(0.0005)
        found.append((time.monotonic() - begun) * 1000)
    worker.stop()
    return {"part": "latency", "site": site.kind, "jobs": len(found) - 1, "first": found[0], **spread(found[1:])}


def measure_posts(site, size, is_right):
    """Posts of one record each over persistent connections, as fast as they are answered."""
    worker = site.worker()
    order = {"port": worker.port, "slugs": site.slugs, "bucket": BUCKETS["lake"], "secret": WEBHOOK_SECRET if is_right else "wrong",
             "status": 200 if is_right else 401, "seconds": size["post_seconds"]}
    with Posters(order, CLIENTS, 17) as posters:
        posters.start()
        start = time.monotonic()
        before, cpu = site.cpu(), worker.cpu()
        time.sleep(max(0, start + order["seconds"] - time.monotonic()))
        after, cpu = site.cpu(), worker.cpu() - cpu
        answers = posters.answers(worker)
    worker.stop()
    latencies = [latency * 1000 for answer in answers for latency in answer["latencies"]]
    load = sum(answer["cpu"] for answer in answers)
    return {"part": "webhooks", "site": site.kind, "status": order["status"], "posts": len(latencies),
            "rate": len(latencies) / size["post_seconds"], **spread(latencies), "cpu": cpu / len(latencies) * 1e6,
            "kv_cpu": (after["kv_cpu"] - before["kv_cpu"]) / len(latencies) * 1e6, "load_cpu": load / len(latencies) * 1e6,
            "load_share": load / size["post_seconds"] / os.cpu_count(), "connections": sum(a["connections"] for a in answers)}


def measure_memory(site, size):
    """An idle worker, before and after some jobs."""
    worker = site.worker()
    time.sleep(size["idle_seconds"])
    idle = worker.memory()
    before = worker.cpu()
    time.sleep(size["idle_seconds"])
    idle_cpu = (worker.cpu() - before) / size["idle_seconds"]
    site.await_records(site.enqueue(MEMORY_JOBS), MEMORY_JOBS)
    time.sleep(2)
    after = worker.memory()
    worker.stop()
    return [{"part": "memory", "site": site.kind, "when": "idle", **idle, "idle_cpu": idle_cpu},
            {"part": "memory", "site": site.kind, "when": f"after {MEMORY_JOBS} jobs", **after, "idle_cpu": idle_cpu}]


# For each part: the columns that identify a row, then the figures with their field, digits and factor.
TABLES = {
    "jobs": (["site", "workers", "concurrency"], [
        ("jobs/s", "rate", 0, 1), ("running jobs/s", "running", 0, 1), ("wall s", "wall", 2, 1), ("CPU s workers", "cpu", 2, 1),
        ("Redis", "kv_cpu", 2, 1), ("S3 server", "store_cpu", 2, 1)]),
    "latency": (["site"], [("p50 ms", "p50", 1, 1), ("p95 ms", "p95", 1, 1), ("max ms", "max", 1, 1), ("first of a worker", "first", 1, 1)]),
    "webhooks": (["site", "status"], [
        ("posts/s", "rate", 0, 1), ("p50 ms", "p50", 2, 1), ("p99 ms", "p99", 2, 1), ("max ms", "max", 0, 1), ("CPU µs a post: worker", "cpu", 0, 1),
        ("Redis", "kv_cpu", 0, 1), ("clients", "load_cpu", 0, 1), ("clients' share of the machine %", "load_share", 0, 100)]),
    "memory": (["site", "when"], [
        ("RSS MiB", "rss", 1, 1), ("PSS", "pss", 1, 1), ("anonymous", "anonymous", 1, 1), ("file: DuckDB", "duckdb", 1, 1),
        ("file: program", "program", 1, 1), ("threads", "threads", 0, 1), ("CPU ms/s idle", "idle_cpu", 1, 1000)]),
}
NOTES = {
    "jobs": "Jobs that find nothing to do, enqueued before the workers start. jobs/s: from the start of the workers to the last "
            "terminal record; running: from the first record to the last.",
    "latency": "One job at a time on an idle worker, from before its XADD (embedded: its row) to its terminal record. On SQLite "
               "nobody tells a worker what another process wrote: it looks every 200 ms. The first job of a worker, which isn't "
               "counted, starts DuckDB to ask for its version.",
    "webhooks": f"POST /events/s3 with one record, {CLIENTS} clients that each keep a connection and wait for the answer.",
    "memory": "From /proc/PID/smaps. File pages are shared among processes and given up by the system when it needs them.",
}


def report(runs, args):
    mark = "### " if args.markdown else ""
    print(f"\nMedians of {args.rounds} rounds; {os.cpu_count()} CPUs, which servers and clients share. "
          f"fleet: Redis and S3 over HTTP; mixed: Redis and a folder; embedded: SQLite and a folder.")
    for part in dict.fromkeys(run["part"] for run in runs):
        names, columns = TABLES[part]
        groups = {}
        for run in runs:
            if run["part"] == part:
                groups.setdefault(tuple(str(run[name]) for name in names), []).append(run)
        head = [*names, *(title for title, *_ in columns)]
        median = lambda group, field, factor: statistics.median(run[field] for run in group) * factor
        rows = [[*key, *(f"{median(group, field, factor):.{digits}f}" for _, field, digits, factor in columns)]
                for key, group in groups.items()]
        print(f"\n{mark}{part}\n{NOTES[part]}\n")
        print_table(head, rows, len(names), args.markdown)


def round_of(site, size, args):
    if "memory" in args.parts:
        yield from measure_memory(site, size)
    if "latency" in args.parts:
        yield measure_latency(site, size)
    if "jobs" in args.parts:
        for fleet in FLEETS:
            yield measure_jobs(site, size, fleet)
    if "webhooks" in args.parts:
        yield measure_posts(site, size, True)
        yield measure_posts(site, size, False)


def show_commands(site):
    """Prints the commands, so that they can be run by hand."""
    for server in site.servers:
        print("ran:", " ".join(word or "''" for word in server.words), file=sys.stderr)
    shown = " ".join(f"{name}={value}" for name, value in site.env.items() if name not in ("PATH", "LD_LIBRARY_PATH"))
    print("ran:", shown, "WORKER_CONCURRENCY=N", site.lakemill, "worker", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--lakemill", required=True)
    parser.add_argument("--s3s-fs", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sites", type=listed(KINDS), default=KINDS)
    parser.add_argument("--parts", type=listed(PARTS), default=PARTS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--log")
    args = parser.parse_args()
    size = QUICK if args.quick else FULL
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.makedirs(args.work, exist_ok=True)
    runs = []
    with tempfile.TemporaryDirectory(prefix="services-", dir=args.work) as home:
        for kind in args.sites:
            site = Site(kind, os.path.join(home, kind), args.lakemill, args.s3s_fs, size["pipelines"])
            try:
                show_commands(site)
                for turn in range(args.rounds):
                    for run in round_of(site, size, args):
                        names, columns = TABLES[run["part"]]
                        load = os.getloadavg()[0]
                        runs.append({**run, "turn": turn, "load": load})
                        print(f"round {turn + 1} {run['part']}", *(run[name] for name in names),
                              *(f"{title} {run[field] * factor:.{digits}f}," for title, field, digits, factor in columns),
                              f"load {load:.1f}", file=sys.stderr, flush=True)
            finally:
                site.close()
            shutil.rmtree(os.path.join(home, kind))
    report(runs, args)
    if args.log:
        with open(args.log, "a", encoding="utf-8") as log:
            for run in runs:
                log.write(json.dumps(run) + "\n")


if __name__ == "__main__":
    main()
