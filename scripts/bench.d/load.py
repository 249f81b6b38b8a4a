"""Puts the services under load for minutes, and reports latencies, failures, and whether the memory of each process
grows; see scripts/bench.

Redis and a folder of objects; two workers and a web service. Nothing else is restarted or cleaned in between, so that
leaks would show.
"""

import argparse
import http.client
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from installation import BUCKETS, WEBHOOK_SECRET, Site, await_work
from posters import Posters
from process import Process
from terminal import listed, print_table, spread

PARTS = ["queue", "posts", "sessions"]
FULL = {"pipelines": 10_000, "jobs": 100_000, "posts_a_second": 1_000, "sessions": 200, "seconds": 60.0}
QUICK = {"pipelines": 200, "jobs": 2_000, "posts_a_second": 200, "sessions": 20, "seconds": 10.0}
WORKERS, CONCURRENCY = 2, 4
POSTERS = 8
PASSWORD = "password of the load"
# Pauses between two requests of a session, in seconds: of a person, and of a polling page.
PAUSE_MEAN = 1.0
# Share of a session's requests that list all pipelines, as the first view does.
HOME_SHARE = 0.02
SAMPLE_SECONDS = 1.0


class Memory(threading.Thread):
    """Samples the resident memory of processes, in MiB, once a second until stopped."""

    def __init__(self, processes):
        super().__init__(daemon=True)
        self.processes, self.found, self.over = processes, {name: [] for name in processes}, threading.Event()
        self.start()

    def run(self):
        while not self.over.wait(SAMPLE_SECONDS):
            for name, process in self.processes.items():
                try:
                    with open(f"/proc/{process.pid}/status", encoding="ascii", errors="replace") as file:
                        line = next((line for line in file if line.startswith("VmRSS:")), None)
                except FileNotFoundError:
                    continue
                if line:
                    self.found[name].append(int(line.split()[1]) / 1024)

    def end(self):
        """For each process: the medians of the second and the last quarter of the time, and the peak. The first quarter
        fills caches and pools."""
        self.over.set()
        self.join()
        quarter = lambda values, nth: statistics.median(values[len(values) * nth // 4:len(values) * (nth + 1) // 4] or values)
        return {name: {"second": quarter(values, 1), "last": quarter(values, 3), "peak": max(values)}
                for name, values in self.found.items() if values}


def queue(site, web, size):
    """Enqueues jobs over all pipelines, starts the workers, and waits for the last record."""
    batch, begun = site.enqueue(size["jobs"]), time.time()
    filled = site.kv.process.memory()["rss"]
    workers = [site.spawn(CONCURRENCY) for _ in range(WORKERS)]
    memory = Memory({"worker": workers[0], "web": web, "redis": site.kv.process})
    for worker in workers:
        await_work(worker)
    _, last = site.await_records(batch, size["jobs"], 3_600)
    held, cpu = memory.end(), sum(worker.stop() for worker in workers)
    failed = site.failures(batch, size["jobs"])
    return {"what": f"{size['jobs']:,} jobs of {size['pipelines']:,} pipelines", "count": size["jobs"], "failed": failed,
            "rate": size["jobs"] / (last - begun), "latency": None, "memory": held,
            "more": f"{cpu / size['jobs'] * 1000:.1f} ms of CPU a job; Redis held {filled:.0f} MiB with all queued"}


def posts(site, web, size):
    """Webhook posts at a steady rate. A latency counts from when the post was due."""
    worker = site.worker(CONCURRENCY)
    order = {"port": worker.port, "slugs": site.slugs, "bucket": BUCKETS["lake"], "secret": WEBHOOK_SECRET, "status": 200,
             "seconds": size["seconds"], "rate": size["posts_a_second"] / POSTERS}
    with Posters(order, POSTERS, 1_237) as posters:
        memory, cpu = Memory({"worker": worker, "web": web, "redis": site.kv.process}), worker.cpu()
        posters.start()
        answers = posters.answers(worker)
        cpu, held = worker.cpu() - cpu, memory.end()
    worker.stop()
    latencies = [latency * 1000 for answer in answers for latency in answer["latencies"]]
    return {"what": f"{size['posts_a_second']:,} webhook posts a second", "count": len(latencies), "failed": 0,
            "rate": len(latencies) / size["seconds"], "latency": spread(latencies), "memory": held,
            "more": f"{cpu / size['seconds']:.2f} CPU s a second"}


class Session(threading.Thread):
    """A logged-in browser session that opens one view after another."""

    def __init__(self, port, slugs, seed):
        super().__init__(daemon=True)
        self.slugs, self.random = slugs, random.Random(seed)
        self.latencies, self.homes, self.failures = [], [], []
        self.client = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        # Sessions log in one by one: the service checks two passwords at a time.
        wanted, json_type = json.dumps({"password": PASSWORD}), {"Content-Type": "application/json"}
        status, self.cookie = self.ask(self.client, "POST", "/api/auth/login", wanted, json_type)
        if status != 200 or not self.cookie:
            sys.exit(f"bench load: a login was answered {status}, expected 200 and a cookie")

    def begin(self, until):
        self.until = until
        self.start()

    def run(self):
        client, headers = self.client, {"Cookie": self.cookie.split(";")[0]}
        try:
            while time.monotonic() < self.until:
                time.sleep(self.random.expovariate(1 / PAUSE_MEAN))
                path, taken = self.next()
                begun = time.monotonic()
                status, _ = self.ask(client, "GET", path, None, headers)
                taken.append((time.monotonic() - begun) * 1000)
                if status != 200:
                    self.failures.append(f"{path}: {status}")
        except Exception as error:  # Told with the rest.
            self.failures.append(repr(error))

    def next(self):
        if self.random.random() < HOME_SHARE:
            return "/api/pipelines?details=1", self.homes
        slug = self.random.choice(self.slugs)
        views = [*(f"/api/p/{slug}/{view}" for view in ("jobs?limit=20", "tables", "config", "dashboards")),
                 f"/api/lake?prefix=pipelines/{slug}/"]
        return self.random.choice(views), self.latencies

    @staticmethod
    def ask(client, method, path, body, headers):
        client.request(method, path, body, headers)
        answer = client.getresponse()
        answer.read()
        return answer.status, answer.getheader("Set-Cookie") or ""


def sessions(site, web, size):
    """Concurrent sessions on one web service, while a worker runs jobs."""
    worker = site.worker(CONCURRENCY)
    site.enqueue(len(site.slugs))
    people = [Session(web.port, site.slugs, seed) for seed in range(size["sessions"])]
    memory, cpu, begun = Memory({"worker": worker, "web": web, "redis": site.kv.process}), web.cpu(), time.monotonic()
    for person in people:
        person.begin(begun + size["seconds"])
    for person in people:
        person.join()
    seconds, held, cpu = time.monotonic() - begun, memory.end(), web.cpu() - cpu
    worker.stop()
    latencies = [latency for person in people for latency in person.latencies]
    homes = [latency for person in people for latency in person.homes]
    failures = [failure for person in people for failure in person.failures]
    if failures:
        print("failed:", *failures[:5], sep="\n  ", file=sys.stderr)
    return {"what": f"{size['sessions']:,} sessions", "count": len(latencies) + len(homes), "failed": len(failures),
            "rate": (len(latencies) + len(homes)) / seconds, "latency": spread(latencies), "memory": held,
            "more": f"all {size['pipelines']:,} pipelines at p50 {spread(homes)['p50']:.0f} ms, {len(homes)} times; {cpu / seconds:.2f} CPU s a second"}


def web_service(site, lakemill, home):
    told = subprocess.run([lakemill, "hash-password"], input=PASSWORD + "\n", capture_output=True, text=True, check=True, env=site.env)
    env = {**site.env, "SVC_ADMIN_PASSWORD_HASH": told.stdout.strip(), "SVC_CACHE_DIR": os.path.join(home, "cache")}
    web = Process([lakemill, "web"], os.path.join(home, "web.log"), env)
    address = lambda: next((json.loads(line)["address"] for line in web.said().splitlines() if "started" in line and "address" in line), None)
    web.port = int(web.wait_until("its address", address).rsplit(":", 1)[1])
    return web


def report(found, markdown):
    figure = lambda value: f"{value:.1f}"
    rows = [[part["what"], f"{part['count']:,}", str(part["failed"]), figure(part["rate"]),
             *(figure(part["latency"][name]) if part["latency"] else "" for name in ("p50", "p99", "max"))] for part in found]
    print()
    print_table(["", "done", "failed", "a second", "p50 ms", "p99 ms", "max ms"], rows, 1, markdown)
    print()
    rows = [[part["what"], name, *(figure(of[when]) for when in ("second", "last", "peak"))] for part in found for name, of in part["memory"].items()]
    print_table(["", "resident MiB of", "second quarter", "last quarter", "peak"], rows, 2, markdown)
    print()
    for part in found:
        print(f"{part['what']}: {part['more']}")


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--lakemill", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--parts", type=listed(PARTS), default=PARTS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    args = parser.parse_args()
    size = QUICK if args.quick else FULL
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.makedirs(args.work, exist_ok=True)
    home, site, web, found = tempfile.mkdtemp(prefix="load-", dir=args.work), None, None, []
    try:
        print(f"making {size['pipelines']:,} pipelines", file=sys.stderr, flush=True)
        site = Site("mixed", os.path.join(home, "site"), args.lakemill, None, size["pipelines"])
        web = web_service(site, args.lakemill, home)
        for part in args.parts:
            found.append(globals()[part](site, web, size))
            print(f"{found[-1]['what']}: {found[-1]['rate']:.0f} a second, {found[-1]['failed']} failed", file=sys.stderr, flush=True)
        web.stop()
    finally:
        if web:
            web.kill()
        if site:
            site.close()
        shutil.rmtree(home, ignore_errors=True)
    report(found, args.markdown)
    sys.exit(any(part["failed"] for part in found))


if __name__ == "__main__":
    main()
