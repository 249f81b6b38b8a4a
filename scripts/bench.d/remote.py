"""A run over a network: many small objects and a large one, from a folder, from an S3 server, and from the same server with
a delay of every request; see scripts/bench.

A proxy before the server counts and delays. It also makes up for what the server lacks and stores in earnest have: tags in
listings, and conditional writes to a key that wait for each other.

Each place has a worker of its own, which does three jobs: all is new, nothing changed, one small object changed. What the
network takes by itself is measured with curl, which gets the same objects through the same proxy.
"""

import argparse
import asyncio
import base64
import contextlib
import datetime
import glob
import hashlib
import hmac
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.parse

from installation import ACCESS, BUCKETS, REGION, SECRET, Folder, Redis, S3
from process import Process
from scale import BLOCK_ROWS, COLUMNS, HEADER, SITES, block
from terminal import print_table

HERE = os.path.dirname(os.path.abspath(__file__))
SLUG = "remote"
LAKE = f"pipelines/{SLUG}"
SMALL_ROWS = 80
AT_ONCE = 64
PART_BYTES = 4 << 20
PARTS_AT_ONCE = 8
# Bytes that are passed on at once; a head is shorter.
PIECE = 1 << 18
JOB_SECONDS_MAX = 3600


class Line:
    """One direction of a network, which all connections share; `rate` in bytes a second, 0 for as fast as can be."""

    def __init__(self, rate):
        self.rate, self.free = rate, 0.0

    async def take(self, size):
        if self.rate:
            now = asyncio.get_running_loop().time()
            self.free = max(self.free, now) + size / self.rate
            await asyncio.sleep(self.free - now)


class Proxy:
    """Passes requests on, each after a delay, and counts them. One thread for all connections: many would wait for each
    other more than for the delay."""

    def __init__(self, upstream, delay, rate, root):
        self.upstream, self.delay, self.root = upstream, delay, root
        self.up, self.down = Line(rate), Line(rate)
        self.counts = {}
        self.turns = {}

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    async def serve(self):
        server = await asyncio.start_server(self.pass_all, "127.0.0.1", 0, backlog=512, limit=PIECE)
        print(server.sockets[0].getsockname()[1], flush=True)
        commands = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
        while await commands.readline():
            counts, self.counts = self.counts, {}
            print(json.dumps(counts), flush=True)

    async def pass_all(self, reader, writer):
        self.count("connections")
        try:
            answers, server = await asyncio.open_connection("127.0.0.1", self.upstream, limit=PIECE)
        except OSError:
            writer.close()
            return
        try:
            while True:
                await self.pass_one(reader, writer, answers, server)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()
            server.close()

    @staticmethod
    async def next_head(reader, answers):
        """The next request. If the server ends the connection before it, so do we, or the client would take it for a good one."""
        head, end = (asyncio.ensure_future(awaited) for awaited in (reader.readuntil(b"\r\n\r\n"), answers.read(1)))
        await asyncio.wait((head, end), return_when=asyncio.FIRST_COMPLETED)
        for waiting in (head, end):
            waiting.cancel()
        found, _ = await asyncio.gather(head, end, return_exceptions=True)
        if not isinstance(found, bytes):
            raise OSError("one side has ended the connection")
        return found

    async def pass_one(self, reader, writer, answers, server):
        head = await self.next_head(reader, answers)
        line, lower = head.split(b"\r\n", 1)[0], head.lower()
        method, target, _ = line.split(b" ", 2)
        self.count(method.decode())
        if self.delay:
            await asyncio.sleep(self.delay)
        key = target.split(b"?")[0]
        is_conditional = method in (b"PUT", b"POST") and (b"\r\nif-match:" in lower or b"\r\nif-none-match:" in lower)
        async with self.turn(key) if is_conditional else contextlib.nullcontext():
            server.write(head)
            await self.body(reader, server, length(head), self.up)
            answer = await answers.readuntil(b"\r\n\r\n")
        is_chunked = b"transfer-encoding: chunked" in answer.lower()
        if b"list-type=2" in line:
            writer.write(await self.tagged(answers, answer, key.decode().strip("/"), is_chunked))
            return
        writer.write(answer)
        if method == b"HEAD" or int(answer[9:12]) in (204, 304):
            return
        if is_chunked:
            async for framed, _ in self.chunks(answers):
                await self.down.take(len(framed))
                writer.write(framed)
                await writer.drain()
        else:
            await self.body(answers, writer, length(answer), self.down)

    @contextlib.asynccontextmanager
    async def turn(self, key):
        lock, others = self.turns.get(key, (None, 0))
        lock = lock or asyncio.Lock()
        self.turns[key] = (lock, others + 1)
        try:
            async with lock:
                yield
        finally:
            lock, others = self.turns.pop(key)
            if others > 1:
                self.turns[key] = (lock, others - 1)

    @staticmethod
    async def body(source, target, left, line):
        while left:
            piece = await source.read(min(left, PIECE))
            if not piece:
                raise OSError("a body broke off")
            await line.take(len(piece))
            target.write(piece)
            await target.drain()
            left -= len(piece)

    async def tagged(self, source, answer, bucket, is_chunked):
        """A listing with the tags that the server keeps beside the objects."""
        pieces = [piece async for _, piece in self.chunks(source)] if is_chunked else [await source.readexactly(length(answer))]

        def with_tag(found):
            try:
                with open(os.path.join(self.root, internal(bucket, found.group(1).decode())), encoding="ascii") as file:
                    tag = json.load(file)["e_tag"]
            except (OSError, KeyError, ValueError):
                return found.group(0)
            return b"<Key>%s</Key><ETag>&quot;%s&quot;</ETag>" % (found.group(1), tag.encode())

        body = re.sub(rb"<Key>([^<]*)</Key>", with_tag, b"".join(pieces))
        head = re.sub(rb"\r\n(content-length|transfer-encoding):[^\r]*", b"", answer[:-2], flags=re.IGNORECASE)
        return head + b"content-length: %d\r\n\r\n" % len(body) + body

    @staticmethod
    async def chunks(source):
        """Each chunk as it is framed, and its content."""
        size = None
        while size != 0:
            line = await source.readuntil(b"\r\n")
            size = int(line.split(b";")[0], 16)
            content = await source.readexactly(size + 2)
            yield line + content, content[:-2]


def length(head):
    found = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
    return int(found.group(1)) if found else 0


def internal(bucket, key):
    """Where the server keeps what it knows of an object."""
    encoded = [base64.urlsafe_b64encode(word.encode()).decode().rstrip("=") for word in (bucket, key)]
    return f".bucket-{encoded[0]}.object-{encoded[1]}.internal.json"


def proxy(upstream, delay, rate, root):
    """The life of the proxy's process: tells its port, then at each line the counts since it was asked last."""
    asyncio.run(Proxy(upstream, delay, rate, root).serve())


class Delayed:
    """The proxy as its users see it."""

    def __init__(self, upstream, delay, rate, root):
        self.child = subprocess.Popen([sys.executable, __file__, "proxy", str(upstream), str(delay), str(rate), root],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.child.stdout.readline())

    def counts(self):
        print("counts", file=self.child.stdin, flush=True)
        return json.loads(self.child.stdout.readline())

    def kill(self):
        self.child.kill()
        self.child.wait()


def text_of(at, rows=SMALL_ROWS, seed=1):
    """A small object, whose rows are a partition of their own."""
    return HEADER + block(rows, 1, seed).replace(b",s00000,", f",s{at:05d},".encode())


def make(home, files, big_mb):
    """The objects, once for all places."""
    os.makedirs(os.path.join(home, "small"))
    plain = block(SMALL_ROWS, 1)
    for at in range(files):
        with open(os.path.join(home, "small", f"{at:05d}.csv"), "wb") as file:
            file.write(HEADER + plain.replace(b",s00000,", f",s{at:05d},".encode()))
    rows = block(BLOCK_ROWS, SITES)
    with open(os.path.join(home, "big.csv"), "wb") as file:
        file.write(HEADER)
        while file.tell() < big_mb * 1e6:
            file.write(rows)


def config():
    columns = [{"name": name, "type": kind} for name, kind in COLUMNS]
    return {"version": 1, "auto_run": False, "mappings": [
        {"table": "small", "files": ["small/*.csv"], "columns": columns, "partition_by": ["site"]},
        {"table": "big", "files": ["big.csv"], "columns": columns}]}


class Place:
    """A store with the objects, and a worker that sees it, maybe through a proxy."""

    def __init__(self, kind, args, home, data):
        os.makedirs(home)
        self.home, self.jobs, self.parts = home, 0, []
        self.store = Folder(home) if kind == "folder" else S3(os.path.join(home, "s3"), args.s3s_fs)
        self.proxy, self.worker, self.kv = None, None, None
        try:
            url = self.store.url
            if self.store.process:
                delay, rate = (args.delay_ms / 1000, args.mb_per_s * 1e6) if kind == "delayed" else (0, 0)
                self.proxy = Delayed(self.store.port, delay, rate, self.store.root)
                url = f"http://127.0.0.1:{self.proxy.port}"
            for name in sorted(os.listdir(os.path.join(data, "small"))):
                self.link(os.path.join(data, "small", name), f"small/{name}")
            self.link(os.path.join(data, "big.csv"), "big.csv")
            self.store.put(BUCKETS["pipelines"], f"{LAKE}/pipeline.json", json.dumps(config()).encode())
            self.kv = Redis(os.path.join(home, "redis"))
            self.env = {
                **{name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ},
                **{f"S3_BUCKET_{name.upper()}": bucket for name, bucket in BUCKETS.items()},
                "OBJ_ENDPOINT_URL": url, "OBJ_ACCESS_KEY_ID": ACCESS, "OBJ_SECRET_ACCESS_KEY": SECRET, "OBJ_REGION": REGION,
                "KV_URL": self.kv.url, "SVC_WORKER_TOKEN": "token-of-the-worker-in-benches", "SVC_BIND": "127.0.0.1", "PORT": "0",
                "SVC_WEBHOOK_SECRET": "secret-of-the-webhook-in-benches", "SVC_SCRATCH_DIR": os.path.join(home, "scratch")}
            self.worker = Process([args.lakemill, "worker"], os.path.join(home, "worker.log"), self.env)
            self.worker.wait_until("it to be at work", lambda: "worker started" in self.worker.said())
        except BaseException:
            self.close()
            raise

    def path(self, key):
        return os.path.join(self.store.root, BUCKETS["lake"], LAKE, key)

    def link(self, path, key):
        target = self.path(key)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.link(path, target)
        self.tag(path, key)

    def tag(self, path, key):
        """Writes down the tag of an object, which the server would make of all its bytes for each request."""
        if not self.store.process:
            return
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "md5").hexdigest()
        with open(os.path.join(self.store.root, internal(BUCKETS["lake"], f"{LAKE}/{key}")), "w", encoding="ascii") as file:
            json.dump({"e_tag": digest}, file)

    def change(self, key, text):
        os.unlink(self.path(key))
        with open(self.path(key), "wb") as file:
            file.write(text)
        self.tag(self.path(key), key)

    def job(self):
        """Figures of one job, with all its attempts."""
        self.jobs += 1
        if self.proxy:
            self.proxy.counts()
        with open(f"/proc/{self.worker.pid}/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
        before, served, heard = self.worker.cpu(), self.served(), len(self.worker.said())
        self.kv.add([[["job_id", f"j{self.jobs}"], ["pipeline", SLUG]]])
        record = os.path.join(self.store.root, BUCKETS["pipelines"], LAKE, "jobs", f"j{self.jobs}.json")
        until = time.monotonic() + JOB_SECONDS_MAX
        while not os.path.exists(record):
            self.worker.check()
            if time.monotonic() > until:
                raise RuntimeError(f"a job has no record after {JOB_SECONDS_MAX} s: {self.worker.said()[-2000:]}")
            time.sleep(0.05)
        time.sleep(0.3)
        with open(record, encoding="utf-8") as file:
            told = json.load(file)
        if told["status"] != "completed":
            raise RuntimeError(f"the job ended as {told['status']}: {json.dumps(told)[:2000]}")
        with open(f"/proc/{self.worker.pid}/status", encoding="ascii") as file:
            peak = int(re.search(r"VmHWM:\s*(\d+)", file.read()).group(1)) / 1024
        counts = self.proxy.counts() if self.proxy else {}
        connections = counts.pop("connections", 0)
        # The record's own duration is that of the last attempt.
        enqueued, finished = (datetime.datetime.fromisoformat(told[name]) for name in ("enqueued_at", "finished_at"))
        if told["attempt"] > 1:
            troubles = [line for line in self.worker.said()[heard:].splitlines() if '"level":"info"' not in line]
            print(f"the job took {told['attempt']} attempts; its worker said:", *troubles, sep="\n", file=sys.stderr, flush=True)
        return {"wall": (finished - enqueued).total_seconds(), "attempts": told["attempt"], "cpu": self.worker.cpu() - before, "peak": peak,
                "served": [now - then for now, then in zip(self.served(), served)],
                "requests": sum(counts.values()), "connections": connections, "counts": counts}

    def served(self):
        """CPU seconds of the server, and of the proxy."""
        if not self.proxy:
            return 0.0, 0.0
        with open(f"/proc/{self.proxy.child.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return self.store.process.cpu(), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def fetch(self, names, big_bytes):
        """Seconds that curl takes for all objects: the small ones, then the large one in parts."""
        big, ranges = self.presigned("GET", "lake", "big.csv"), range(0, big_bytes, PART_BYTES)
        small = curl((f'url = "{self.presigned("GET", "lake", f"small/{name}")}"\n' for name in names), AT_ONCE)
        return small + curl((f'url = "{big}"\nrange = "{at}-{min(at + PART_BYTES, big_bytes) - 1}"\n' for at in ranges), PARTS_AT_ONCE)

    def publish(self, made):
        """Seconds that curl takes to put what a run made of them, where no job lists it."""
        # The proxy knows no answer before a body.
        put = 'header = "Expect:"\nupload-file'
        return curl((f'url = "{self.presigned("PUT", "warehouse", f"alone/{name}")}"\n{put} = "{os.path.join(made, name)}"\n'
                     for name in sorted(os.listdir(made))), AT_ONCE)

    def presigned(self, method, bucket, key):
        """A request that needs no headers, for an hour."""
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        host, path = f"127.0.0.1:{self.proxy.port}", f"/{BUCKETS[bucket]}/{LAKE}/{key}"
        scope = [now[:8], REGION, "s3", "aws4_request"]
        query = urllib.parse.urlencode({
            "X-Amz-Algorithm": "AWS4-HMAC-SHA256", "X-Amz-Credential": "/".join([ACCESS, *scope]), "X-Amz-Date": now,
            "X-Amz-Expires": "3600", "X-Amz-SignedHeaders": "host"}, quote_via=urllib.parse.quote, safe="")
        request = f"{method}\n{path}\n{query}\nhost:{host}\n\nhost\nUNSIGNED-PAYLOAD"
        text = f"AWS4-HMAC-SHA256\n{now}\n{'/'.join(scope)}\n{hashlib.sha256(request.encode()).hexdigest()}"
        signature = f"AWS4{SECRET}".encode()
        for word in [*scope, text]:
            signature = hmac.digest(signature, word.encode(), "sha256")
        return f"http://{host}{path}?{query}&X-Amz-Signature={signature.hex()}"

    def close(self):
        for part in (self.worker, self.proxy, self.store.process, self.kv and self.kv.process):
            if part:
                part.kill()
        shutil.rmtree(self.home, ignore_errors=True)


PLACES = {"folder": "a folder", "s3": "S3", "delayed": "S3, delayed"}


def curl(requests, at_once):
    """Seconds that curl takes for all of them; each is a few lines of its config."""
    # `next` ends what is said of one URL.
    lines = "next\n".join(request + 'output = "/dev/null"\n' for request in requests)
    begin = time.monotonic()
    subprocess.run(["curl", "-sfZ", "--no-progress-meter", "--parallel-max", str(at_once), "-K", "-"], input=lines, text=True, check=True)
    return time.monotonic() - begin


def keep(place, made):
    """Links what the place's run made into one folder."""
    os.makedirs(made)
    for at, path in enumerate(glob.iglob(os.path.join(place.store.root, BUCKETS["warehouse"], "**", "*.parquet"), recursive=True)):
        os.link(path, os.path.join(made, f"{at:06d}.parquet"))


def measure(kind, args, home, data):
    """The figures of each job, and the seconds that curl takes to get its objects and to put what it makes."""
    names = sorted(os.listdir(os.path.join(data, "small")))
    place = Place(kind, args, os.path.join(home, kind), data)
    made = os.path.join(data, "made")
    try:
        # A CSV younger than this may still be written.
        time.sleep(6)
        alone = (place.fetch(names, os.path.getsize(os.path.join(data, "big.csv"))), place.publish(made)) if place.proxy else (0.0, 0.0)
        found = {"all is new": place.job()}
        if not place.proxy:
            keep(place, made)
        found["nothing changed"] = place.job()
        place.change(f"small/{names[len(names) // 2]}", text_of(len(names) // 2, seed=9))
        time.sleep(6)
        found["one changed"] = place.job()
        return found, alone
    finally:
        place.close()


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--lakemill", required=True)
    parser.add_argument("--s3s-fs", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--files", type=int)
    parser.add_argument("--big-mb", type=int)
    parser.add_argument("--delay-ms", type=float, default=20.0)
    parser.add_argument("--mb-per-s", type=float, default=0.0)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--log")
    args = parser.parse_args()
    args.files = args.files or (1_000 if args.quick else 10_000)
    args.big_mb = args.big_mb or (200 if args.quick else 5_000)
    home = os.path.join(args.work, "remote")
    shutil.rmtree(home, ignore_errors=True)
    data = os.path.join(home, "data")
    try:
        # In a process of its own, since a child's peak memory counts from its parent's.
        subprocess.run([sys.executable, __file__, "make", data, str(args.files), str(args.big_mb)], check=True)
        rows, alone, all_new = [], {}, {}
        for kind, title in PLACES.items():
            found, alone[kind] = measure(kind, args, home, data)
            all_new[kind] = found["all is new"]
            for what, f in found.items():
                again = f" ({f['attempts']} attempts)" if f["attempts"] > 1 else ""
                rows.append([title, what + again, f"{f['wall']:.2f}", f"{f['cpu']:.2f}", f"{f['peak']:.0f}", f"{f['requests']:,}",
                             f"{f['connections']:,}", *(f"{seconds:.2f}" for seconds in f["served"])])
                print(f"{title}, {what}{again}: wall {f['wall']:.2f} s, CPU {f['cpu']:.2f} s, peak {f['peak']:.0f} MiB, {f['counts']}, "
                      f"{f['connections']} connections", file=sys.stderr, flush=True)
                if args.log:
                    with open(args.log, "a", encoding="utf-8") as log:
                        log.write(json.dumps({"place": kind, "what": what, "files": args.files, "big_mb": args.big_mb,
                                              "delay_ms": args.delay_ms, "mb_per_s": args.mb_per_s, "fetch_alone": alone[kind][0], "put_alone": alone[kind][1], **f}) + "\n")
    finally:
        shutil.rmtree(home, ignore_errors=True)
    print(f"\n{'### ' if args.markdown else ''}{args.files:,} small objects and one of {args.big_mb:,} MB, {args.delay_ms:g} ms a request"
          f"{f', {args.mb_per_s:g} MB/s each way' if args.mb_per_s else ''}\n")
    print_table(["", "", "wall s", "CPU s", "peak MiB", "requests", "connections", "server CPU s", "proxy CPU s"], rows, 2, args.markdown)
    for kind in ("s3", "delayed"):
        conversion, (fetching, publishing) = all_new["folder"]["wall"], alone[kind]
        bound = max(conversion, fetching + publishing)
        print(f"\n{PLACES[kind]}: {all_new[kind]['wall']:.2f} s, {all_new[kind]['wall'] / bound:.2f} times the slower of conversion alone "
              f"({conversion:.2f} s) and network alone (curl gets all in {fetching:.2f} s and puts what is made in {publishing:.2f} s)")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["make"]:
        make(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        sys.exit()
    if sys.argv[1:2] == ["proxy"]:
        proxy(int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]), sys.argv[5])
        sys.exit()
    sys.exit(main())
