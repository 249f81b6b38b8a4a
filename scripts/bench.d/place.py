"""A store with the CSVs of one pipeline, and a worker that converts them; optionally behind a proxy that delays and
counts requests. Measures single jobs, which are enqueued or started by an event.
"""

import datetime
import hashlib
import http.client
import json
import os
import shutil
import sys
import time

from installation import BUCKETS, WEBHOOK_SECRET, Folder, Redis, S3, await_work, environment
from posts import notification
from process import Process
from proxy import Delayed, internal

SLUG = "remote"
LAKE = f"pipelines/{SLUG}"
JOB_SECONDS_MAX = 3600


class Place:
    """`fill` puts the CSVs there, before the worker starts. Without `s3s_fs` the store is a folder."""

    def __init__(self, lakemill, home, config, fill, s3s_fs=None, delay=0.0, rate=0.0):
        os.makedirs(home)
        self.home, self.jobs = home, 0
        self.store = S3(os.path.join(home, "s3"), s3s_fs) if s3s_fs else Folder(home)
        self.proxy, self.worker, self.kv = None, None, None
        try:
            url = self.store.url
            if s3s_fs:
                self.proxy = Delayed(self.store.port, delay, rate, self.store.root)
                url = f"http://127.0.0.1:{self.proxy.port}"
            fill(self)
            self.configure(config)
            self.kv = Redis(os.path.join(home, "redis"))
            self.worker = Process([lakemill, "worker"], os.path.join(home, "worker.log"), environment(url, self.kv.url, home))
            self.port = await_work(self.worker)
        except BaseException:
            self.close()
            raise

    def configure(self, config):
        self.store.put(BUCKETS["pipelines"], f"{LAKE}/pipeline.json", json.dumps(config).encode())

    def path(self, key):
        return os.path.join(self.store.root, BUCKETS["lake"], LAKE, key)

    def link(self, path, key, digest=None):
        """Puts an object as a link to a file. `digest`: the file's MD5, if known."""
        target = self.path(key)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.link(path, target)
        self.tag(path, key, digest)

    def tag(self, path, key, digest=None):
        """Stores the ETag of an object, which the server would otherwise compute from its bytes for each request."""
        if not self.store.process:
            return
        if not digest:
            with open(path, "rb") as file:
                digest = hashlib.file_digest(file, "md5").hexdigest()
        with open(os.path.join(self.store.root, internal(BUCKETS["lake"], f"{LAKE}/{key}")), "w", encoding="ascii") as file:
            json.dump({"e_tag": digest}, file)

    def change(self, key, text):
        """Puts or replaces an object; links to the replaced file keep its bytes."""
        os.makedirs(os.path.dirname(self.path(key)), exist_ok=True)
        if os.path.exists(self.path(key)):
            os.unlink(self.path(key))
        with open(self.path(key), "wb") as file:
            file.write(text)
        self.tag(self.path(key), key)

    def tell(self, key):
        """Posts the event of a new object to the worker."""
        body = notification(BUCKETS["lake"], f"{LAKE}/{key}", os.path.getsize(self.path(key)))
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        client.request("POST", "/events/s3", body, {"Authorization": f"Bearer {WEBHOOK_SECRET}", "Content-Type": "application/json"})
        answer = client.getresponse()
        said = answer.read()
        client.close()
        if answer.status != 200 or json.loads(said).get("accepted") != 1:
            raise RuntimeError(f"the event was answered {answer.status}: {said[:500]!r}")

    def job(self):
        """Figures of one job, with all its attempts."""
        self.jobs += 1
        name = f"j{self.jobs}"
        return self.measure(lambda: self.kv.add([[["job_id", name], ["pipeline", SLUG]]]))

    def job_of_event(self, key):
        """Figures of the job that the event of an object starts. The CPU seconds include the debounce window."""
        return self.measure(lambda: self.tell(key))

    def records(self):
        folder = os.path.join(self.store.root, BUCKETS["pipelines"], LAKE, "jobs")
        return {name for name in os.listdir(folder) if name.endswith(".json")} if os.path.isdir(folder) else set()

    def measure(self, start):
        """Figures of the job that `start` causes."""
        known = self.records()
        if self.proxy:
            self.proxy.counts()
        self.worker.reset_peak()
        resident, _ = self.worker.resident()
        before, served, heard = self.worker.cpu(), self.served(), len(self.worker.said())
        start()
        until = time.monotonic() + JOB_SECONDS_MAX
        while not (new := self.records() - known):
            self.worker.check()
            if time.monotonic() > until:
                raise RuntimeError(f"a job has no record after {JOB_SECONDS_MAX} s: {self.worker.said()[-2000:]}")
            time.sleep(0.05)
        # Waits until the job has acknowledged its entry.
        time.sleep(0.3)
        with open(os.path.join(self.store.root, BUCKETS["pipelines"], LAKE, "jobs", new.pop()), encoding="utf-8") as file:
            record = json.load(file)
        if record["status"] != "completed":
            raise RuntimeError(f"the job ended as {record['status']}: {json.dumps(record)[:2000]}; {self.worker.said()[-2000:]}")
        _, peak = self.worker.resident()
        counts = self.proxy.counts() if self.proxy else {}
        connections = counts.pop("connections", 0)
        if record["attempt"] > 1:
            troubles = [line for line in self.worker.said()[heard:].splitlines() if '"level":"info"' not in line]
            print(f"the job took {record['attempt']} attempts; its worker said:", *troubles, sep="\n", file=sys.stderr, flush=True)
        # The duration in the record covers the last attempt only.
        enqueued, started, finished = (datetime.datetime.fromisoformat(record[name])
                                       for name in ("enqueued_at", "started_at", "finished_at"))
        return {"wall": (finished - enqueued).total_seconds(), "run": (finished - started).total_seconds(),
                "attempts": record["attempt"], "cpu": self.worker.cpu() - before, "resident": resident, "peak": peak,
                "served": [now - then for now, then in zip(self.served(), served)],
                "requests": sum(counts.values()), "connections": connections, "counts": counts, "record": record}

    def served(self):
        """CPU seconds of the server, and of the proxy."""
        return (self.store.process.cpu(), self.proxy.cpu()) if self.proxy else (0.0, 0.0)

    def close(self):
        for part in (self.worker, self.proxy, self.store.process, self.kv and self.kv.process):
            if part:
                part.kill()
        shutil.rmtree(self.home, ignore_errors=True)
