"""A proxy in front of an S3 server. It delays and counts requests, and records when data files appeared and
disappeared. It also adds features of production stores that the server lacks: ETags in listings, and serialized
conditional writes to a key.
"""

import asyncio
import base64
import contextlib
import json
import os
import re
import subprocess
import sys
import time

from process import cpu_of

# Size of a forwarded chunk in bytes; a head is shorter.
PIECE = 1 << 18


class Line:
    """One direction of a network, shared by all connections; `rate` in bytes per second, 0 for unlimited."""

    def __init__(self, rate):
        self.rate, self.free = rate, 0.0

    async def take(self, size):
        if self.rate:
            now = asyncio.get_running_loop().time()
            self.free = max(self.free, now) + size / self.rate
            await asyncio.sleep(self.free - now)


class Proxy:
    """Forwards requests after a delay, and counts them. Uses one thread for all connections: contention between several
    would exceed the delay."""

    def __init__(self, upstream, delay, rate, root):
        self.upstream, self.delay, self.root = upstream, delay, root
        self.up, self.down = Line(rate), Line(rate)
        self.counts = {}
        self.changes = {"put": [], "deleted": []}
        self.turns = {}

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    async def serve(self):
        server = await asyncio.start_server(self.pass_all, "127.0.0.1", 0, backlog=512, limit=PIECE)
        print(server.sockets[0].getsockname()[1], flush=True)
        commands = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
        while command := await commands.readline():
            if command == b"changes\n":
                found, self.changes = self.changes, {"put": [], "deleted": []}
            else:
                found, self.counts = self.counts, {}
            print(json.dumps(found), flush=True)

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
        """Waits for the next request. If the server closes the connection, closes the client's too, so that the client
        doesn't reuse it."""
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
            sent = await self.body(reader, server, length(head), self.up, is_kept=method == b"POST")
            answer = await answers.readuntil(b"\r\n\r\n")
        self.note(method, target, sent, answer)
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

    def note(self, method, target, sent, answer):
        """Records the time of a response to a request that added or removed Parquet files."""
        key, _, query = target.partition(b"?")
        parameters = {parameter.partition(b"=")[0] for parameter in query.split(b"&")}
        is_file, now = key.endswith(b".parquet"), time.monotonic()
        if answer[9:10] != b"2":
            return
        if is_file and ((method == b"PUT" and b"partNumber" not in parameters) or (method == b"POST" and b"uploadId" in parameters)):
            self.changes["put"].append(now)
        elif is_file and method == b"DELETE" and b"uploadId" not in parameters:
            self.changes["deleted"].append(now)
        elif method == b"POST" and b"delete" in parameters:
            self.changes["deleted"] += sent.count(b".parquet</Key>") * [now]

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
    async def body(source, target, left, line, is_kept=False):
        """Forwards a body, and returns it if `is_kept`."""
        kept = bytearray()
        while left:
            piece = await source.read(min(left, PIECE))
            if not piece:
                raise OSError("a body was truncated")
            await line.take(len(piece))
            target.write(piece)
            await target.drain()
            if is_kept:
                kept += piece
            left -= len(piece)
        return bytes(kept)

    async def tagged(self, source, answer, bucket, is_chunked):
        """Adds ETags to a listing from the files that the server keeps beside the objects."""
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
        """Yields each chunk with its framing, and its content."""
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
    """The path at which the server stores an object's metadata."""
    encoded = [base64.urlsafe_b64encode(word.encode()).decode().rstrip("=") for word in (bucket, key)]
    return f".bucket-{encoded[0]}.object-{encoded[1]}.internal.json"


def proxy(upstream, delay, rate, root):
    """The main function of the proxy's process: prints its port, then for each line it reads, the events since the last
    one: `changes` (times at which Parquet files appeared or disappeared) or `counts` (of requests)."""
    asyncio.run(Proxy(upstream, delay, rate, root).serve())


class Delayed:
    """A handle to the proxy's process."""

    def __init__(self, upstream, delay, rate, root):
        self.child = subprocess.Popen([sys.executable, __file__, str(upstream), str(delay), str(rate), root],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.child.stdout.readline())

    def ask(self, command):
        print(command, file=self.child.stdin, flush=True)
        return json.loads(self.child.stdout.readline())

    def counts(self):
        return self.ask("counts")

    def changes(self):
        return self.ask("changes")

    def cpu(self):
        return cpu_of(self.child.pid)

    def kill(self):
        self.child.kill()
        self.child.wait()


if __name__ == "__main__":
    proxy(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), sys.argv[4])
