"""Installations to measure: `fleet` (Redis and S3 over HTTP), `mixed` (Redis and a folder), `embedded` (SQLite and a
folder). Each has pipelines of one small CSV, converted beforehand, so that a further job finds nothing to do.

Jobs are enqueued by the documented means: a plain XADD on Redis, a row of the stream's table on SQLite.
"""

import contextlib
import datetime
import glob
import hashlib
import hmac
import http.client
import json
import os
import re
import socket
import sqlite3
import sys
import time

from process import Process, free_port, listens

KINDS = ["fleet", "mixed", "embedded"]
BUCKETS = {"pipelines": "svc-pipelines", "lake": "svc-lake", "warehouse": "svc-warehouse"}
ACCESS, SECRET, REGION = "bench", "bench-secret", "us-east-1"
WEBHOOK_SECRET = "secret-of-the-webhook-in-benches"
JOBS_SECONDS_MAX = 600
# Events must not start runs: only jobs that the bench enqueues are measured.
CONFIG = {"version": 1, "auto_run": False, "mappings": [{"table": "t", "files": ["*.csv"], "columns": [
    {"name": "id", "type": "int64", "nullable": False}, {"name": "name", "type": "string"}]}]}
CSV = b"id,name\n1,one\n2,two\n3,three\n"


class Redis:
    def __init__(self, home):
        self.port = free_port()
        os.mkdir(home)
        self.process = Process(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", home, "--save", "", "--appendonly", "yes",
             "--appendfsync", "everysec", "--maxmemory-policy", "noeviction"], os.path.join(home, "log"))
        self.process.wait_until("its port", lambda: listens(self.port))
        self.url = f"redis://127.0.0.1:{self.port}"

    def add(self, entries):
        """Sends one XADD per entry in a pipeline."""
        def packed(words):
            words = [str(word).encode() for word in words]
            return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
        commands = [packed(["XADD", "svc:jobs:stream", "*", *(word for pair in entry for word in pair)]) for entry in entries]
        with socket.create_connection(("127.0.0.1", self.port), 30) as client:
            client.sendall(b"".join(commands))
            lines, answers = 2 * len(commands), b""
            while answers.count(b"\r\n") < lines:
                piece = client.recv(1 << 16)
                if not piece or answers.startswith(b"-"):
                    raise RuntimeError(f"XADD: {answers[:200]!r}")
                answers += piece


class Sqlite:
    """The first worker creates the file."""

    process = None

    def __init__(self, home):
        self.path = os.path.join(home, "kv.db")
        self.url = f"sqlite://{self.path}"

    def add(self, entries):
        now = int(time.time() * 1000)
        with contextlib.closing(sqlite3.connect(self.path, timeout=30)) as db, db:
            db.execute("PRAGMA synchronous = FULL")
            db.executemany("INSERT INTO stream (fields, received_ms) VALUES (?, ?)",
                           [(json.dumps(entry), now) for entry in entries])


class S3:
    def __init__(self, home, binary):
        self.root = os.path.join(home, "buckets")
        for bucket in BUCKETS.values():
            os.makedirs(os.path.join(self.root, bucket))
        self.port = free_port()
        self.process = Process([binary, "--host", "127.0.0.1", "--port", str(self.port), "--access-key", ACCESS, "--secret-key", SECRET,
                                self.root], os.path.join(home, "log"))
        self.process.wait_until("its port", lambda: listens(self.port))
        # By default it sends head and body of a response in separate packets, 40 ms apart, which real stores don't do.
        try:
            self.process.answer_at_once()
        except OSError as error:
            print(f"the S3 server stays slow, and the figures of `fleet` with it: {error}", file=sys.stderr)
        self.url = f"http://127.0.0.1:{self.port}"

    def put(self, bucket, key, body):
        """Sends a PUT with signature version 4."""
        host, path = f"127.0.0.1:{self.port}", f"/{bucket}/{key}"
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        digest, signed = hashlib.sha256(body).hexdigest(), "host;x-amz-content-sha256;x-amz-date"
        request = f"PUT\n{path}\n\nhost:{host}\nx-amz-content-sha256:{digest}\nx-amz-date:{now}\n\n{signed}\n{digest}"
        scope = [now[:8], REGION, "s3", "aws4_request"]
        text = f"AWS4-HMAC-SHA256\n{now}\n{'/'.join(scope)}\n{hashlib.sha256(request.encode()).hexdigest()}"
        key = b"AWS4" + SECRET.encode()
        for word in [*scope, text]:
            key = hmac.digest(key, word.encode(), "sha256")
        client = http.client.HTTPConnection(host, timeout=30)
        client.request("PUT", path, body, {
            "x-amz-content-sha256": digest, "x-amz-date": now,
            "Authorization": f"AWS4-HMAC-SHA256 Credential={ACCESS}/{'/'.join(scope)}, SignedHeaders={signed}, Signature={key.hex()}"})
        answer = client.getresponse()
        said = answer.read()
        client.close()
        if answer.status != 200:
            raise RuntimeError(f"PUT {path}: {answer.status} {said[:500]!r}")


class Folder:
    process = None

    def __init__(self, home):
        self.root = os.path.join(home, "objects")
        self.url = f"file://{self.root}"
        for bucket in BUCKETS.values():
            os.makedirs(os.path.join(self.root, bucket))

    def put(self, bucket, key, body):
        path = os.path.join(self.root, bucket, key)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(body)


def environment(store_url, kv_url, home):
    """The environment of a worker."""
    return {
        **{name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ},
        **{f"S3_BUCKET_{name.upper()}": bucket for name, bucket in BUCKETS.items()},
        "OBJ_ENDPOINT_URL": store_url, "OBJ_ACCESS_KEY_ID": ACCESS, "OBJ_SECRET_ACCESS_KEY": SECRET, "OBJ_REGION": REGION,
        "KV_URL": kv_url, "SVC_WORKER_TOKEN": "token-of-the-worker-in-benches", "SVC_WEBHOOK_SECRET": WEBHOOK_SECRET,
        "SVC_BIND": "127.0.0.1", "PORT": "0", "SVC_SCRATCH_DIR": os.path.join(home, "scratch")}


def await_work(worker):
    """Waits until a worker is ready, and returns its port."""
    found = worker.wait_until("it to be at work", lambda: re.search(
        r"(?:the worker is at work|worker started).*?127\.0\.0\.1:(\d+)|"
        r"127\.0\.0\.1:(\d+).*?(?:the worker is at work|worker started)", worker.said()))
    return int(found.group(1) or found.group(2))


class Site:
    def __init__(self, kind, home, lakemill, s3s_fs, pipelines):
        os.mkdir(home)
        self.kind, self.home, self.lakemill = kind, home, lakemill
        self.slugs = [f"p{number:04}" for number in range(pipelines)]
        self.count, self.workers = 0, []
        self.servers = []
        try:
            self.kv = Sqlite(home) if kind == "embedded" else self.serve(Redis(os.path.join(home, "redis")))
            self.store = self.serve(S3(os.path.join(home, "s3"), s3s_fs)) if kind == "fleet" else Folder(home)
            self.env = environment(self.store.url, self.kv.url, home)
            self.prepare()
        except BaseException:
            self.close()
            raise

    def serve(self, server):
        self.servers.append(server.process)
        return server

    def prepare(self):
        """Creates every pipeline and waits until it is converted."""
        for slug in self.slugs:
            self.store.put(BUCKETS["pipelines"], f"pipelines/{slug}/pipeline.json", json.dumps(CONFIG).encode())
            self.store.put(BUCKETS["lake"], f"pipelines/{slug}/data.csv", CSV)
        # The folder store treats a younger CSV as still being written; with S3, every job checks a younger CSV again.
        time.sleep(6)
        worker = self.worker(4)
        self.await_records(self.enqueue(len(self.slugs)), len(self.slugs))
        worker.stop()
        made = os.path.join(self.store.root, BUCKETS["warehouse"], "pipelines")
        tables = sum(len(glob.glob(os.path.join(made, slug, "t", "part-*.parquet"))) == 1 for slug in self.slugs)
        if tables != len(self.slugs):
            raise RuntimeError(f"{self.kind}: {tables} tables were made, expected {len(self.slugs)}; {worker.said()[-2000:]}")

    def worker(self, concurrency=1):
        """Starts a worker, and waits until it is ready."""
        worker = self.spawn(concurrency)
        worker.port = await_work(worker)
        return worker

    def spawn(self, concurrency):
        self.count += 1
        env = {**self.env, "WORKER_CONCURRENCY": str(concurrency)}
        worker = Process([self.lakemill, "worker"], os.path.join(self.home, f"worker-{self.count}.log"), env)
        self.workers.append(worker)
        return worker

    def enqueue(self, jobs):
        """Enqueues `jobs` jobs, round-robin over the pipelines; returns the prefix of their ids."""
        self.count += 1
        batch = f"b{self.count}-"
        slug = lambda number: self.slugs[number % len(self.slugs)]
        self.kv.add([[["job_id", f"{batch}{number}"], ["pipeline", slug(number)]] for number in range(jobs)])
        return batch

    def record(self, batch, number):
        return os.path.join(self.store.root, BUCKETS["pipelines"], "pipelines", self.slugs[number % len(self.slugs)], "jobs",
                            f"{batch}{number}.json")

    def await_records(self, batch, jobs, seconds_max=JOBS_SECONDS_MAX):
        """Waits for the terminal record of every job; returns the times of the first and the last, in seconds since
        1970."""
        times, missing = [], list(range(jobs))
        until = time.monotonic() + seconds_max
        while missing:
            if time.monotonic() > until:
                raise RuntimeError(f"{self.kind}: {len(missing)} of {jobs} jobs have no record after {seconds_max} s")
            for worker in self.workers:
                if worker.child.returncode is None:
                    worker.check()
            # Jobs end roughly in order, so records far behind the first missing one are not looked up.
            time.sleep(0.1)
            still = []
            for place, number in enumerate(missing):
                if len(still) > 64:
                    still += missing[place:]
                    break
                try:
                    times.append(os.stat(self.record(batch, number)).st_mtime)
                except FileNotFoundError:
                    still.append(number)
            missing = still
        return min(times), max(times)

    def failures(self, batch, jobs):
        """Jobs that did not end as completed."""
        def status(number):
            with open(self.record(batch, number), encoding="utf-8") as file:
                return json.load(file)["status"]
        return sum(status(number) != "completed" for number in range(jobs))

    def cpu(self):
        """CPU seconds of Redis and the S3 server so far."""
        return {"kv_cpu": self.kv.process.cpu() if self.kv.process else 0.0,
                "store_cpu": self.store.process.cpu() if self.store.process else 0.0}

    def close(self):
        for process in [*self.workers, *self.servers]:
            process.kill()
