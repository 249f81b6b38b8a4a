"""Measures runs over a network: many small objects and a large one, from a folder, from an S3 server, and from the same
server with a delay added to every request; see scripts/bench. Each store has its own worker, which runs three jobs: all
sources new, nothing changed, one small object changed. As a baseline for the network, curl gets the same objects
through the same proxy.
"""

import argparse
import glob
import hashlib
import hmac
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.parse

from installation import ACCESS, BUCKETS, REGION, SECRET
from place import LAKE, Place
from scale import BLOCK_ROWS, COLUMNS, HEADER, SITES, block
from terminal import print_table

SMALL_ROWS = 80
AT_ONCE = 64
PART_BYTES = 4 << 20
PARTS_AT_ONCE = 8


def text_of(at, rows=SMALL_ROWS, seed=1):
    """A small object, whose rows form one partition."""
    return HEADER + block(rows, 1, seed).replace(b",s00000,", f",s{at:05d},".encode())


def make(home, files, big_mb):
    """Writes the objects, once for all stores."""
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


class RemotePlace(Place):
    """One of the stores, with the objects of `make`."""

    def __init__(self, kind, args, home, data):
        def fill(place):
            for name in sorted(os.listdir(os.path.join(data, "small"))):
                place.link(os.path.join(data, "small", name), f"small/{name}")
            place.link(os.path.join(data, "big.csv"), "big.csv")
        delay, rate = (args.delay_ms / 1000, args.mb_per_s * 1e6) if kind == "delayed" else (0.0, 0.0)
        super().__init__(args.lakemill, home, config(), fill, None if kind == "folder" else args.s3s_fs, delay, rate)

    def fetch(self, names, big_bytes):
        """Seconds that curl takes to get all objects: the small ones, then the large one in parts."""
        big, ranges = self.presigned("GET", "lake", "big.csv"), range(0, big_bytes, PART_BYTES)
        small = curl((f'url = "{self.presigned("GET", "lake", f"small/{name}")}"\n' for name in names), AT_ONCE)
        return small + curl((f'url = "{big}"\nrange = "{at}-{min(at + PART_BYTES, big_bytes) - 1}"\n' for at in ranges), PARTS_AT_ONCE)

    def publish(self, made):
        """Seconds that curl takes to upload the output of a run, under a prefix that no job lists."""
        # The proxy doesn't support `Expect: 100-continue`.
        put = 'header = "Expect:"\nupload-file'
        return curl((f'url = "{self.presigned("PUT", "warehouse", f"alone/{name}")}"\n{put} = "{os.path.join(made, name)}"\n'
                     for name in sorted(os.listdir(made))), AT_ONCE)

    def presigned(self, method, bucket, key):
        """A presigned URL that is valid for an hour."""
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


PLACES = {"folder": "a folder", "s3": "S3", "delayed": "S3, delayed"}


def curl(requests, at_once):
    """Seconds that curl takes for all requests, each given as lines of its config."""
    # `next` separates the options of two URLs.
    lines = "next\n".join(request + 'output = "/dev/null"\n' for request in requests)
    begin = time.monotonic()
    subprocess.run(["curl", "-sfZ", "--no-progress-meter", "--parallel-max", str(at_once), "-K", "-"], input=lines, text=True, check=True)
    return time.monotonic() - begin


def keep(place, made):
    """Links the output files of the run into one folder."""
    os.makedirs(made)
    for at, path in enumerate(glob.iglob(os.path.join(place.store.root, BUCKETS["warehouse"], "**", "*.parquet"), recursive=True)):
        os.link(path, os.path.join(made, f"{at:06d}.parquet"))


def measure(kind, args, home, data):
    """Measures each job, and curl's times for downloading its objects and uploading its output."""
    names = sorted(os.listdir(os.path.join(data, "small")))
    place = RemotePlace(kind, args, os.path.join(home, kind), data)
    made = os.path.join(data, "made")
    try:
        # A CSV younger than this may still be written.
        time.sleep(6)
        alone = (place.fetch(names, os.path.getsize(os.path.join(data, "big.csv"))), place.publish(made)) if place.proxy else (0.0, 0.0)
        found = {"first run": place.job()}
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
        # In a separate process, since a child's peak memory counts from its parent's.
        subprocess.run([sys.executable, __file__, "make", data, str(args.files), str(args.big_mb)], check=True)
        rows, alone, all_new = [], {}, {}
        for kind, title in PLACES.items():
            found, alone[kind] = measure(kind, args, home, data)
            all_new[kind] = found["first run"]
            for what, f in found.items():
                del f["record"]
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
    sys.exit(main())
