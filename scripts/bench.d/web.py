"""Measures the web service on the flights tables and a folder: latencies by number of concurrent clients; see
scripts/bench.

`lakemill up --demo` runs in a folder that is removed at the end. Each client is a process with one persistent
connection, and sends its next request when the last one is answered.
"""

import argparse
import http.client
import json
import multiprocessing
import os
import shutil
import statistics
import sys
import tempfile
import time

from process import Process
from terminal import print_table, spread

AGGREGATE = "SELECT carrier, count(*) AS flights, avg(dep_delay) AS delay FROM flights GROUP BY carrier ORDER BY carrier"
JSON = {"Content-Type": "application/json"}
RUN_SECONDS_MAX = 600


def cases(dashboard):
    """Name, method, path, body."""
    api = "/api/p/flights"
    found = [
        ("tables", "GET", f"{api}/tables", None),
        ("rows", "GET", f"{api}/tables/flights/rows?limit=100&sort=-dep_delay", None),
        ("query", "POST", f"{api}/query", {"sql": AGGREGATE}),
    ]
    if dashboard:
        found.append(("dashboard data", "POST", f"{api}/dashboards/{dashboard}/data", {"params": {}}))
    return found


def ask(client, method, path, body, headers):
    text = None if body is None else json.dumps(body)
    client.request(method, path, text, {**headers, **(JSON if text else {})})
    answer = client.getresponse()
    said = answer.read()
    if answer.status // 100 != 2:
        raise RuntimeError(f"{method} {path}: {answer.status} {said[:500]!r}")
    return said, answer


def load(port, cookie, case, start, seconds, out):
    """Runs one client; returns the latencies of its requests in ms."""
    _, method, path, body = case
    client, found = http.client.HTTPConnection("127.0.0.1", port, timeout=60), []
    try:
        time.sleep(max(0, start - time.monotonic()))
        while time.monotonic() < start + seconds:
            begun = time.monotonic()
            ask(client, method, path, body, {"Cookie": cookie})
            found.append((time.monotonic() - begun) * 1000)
        out.put(found)
    except Exception as error:  # The parent waits for a result, and reports it.
        out.put(str(error))


def measure(up, port, cookie, case, clients, seconds):
    out, start = multiprocessing.Queue(), time.monotonic() + 0.5
    before = up.cpu() + children_cpu(up.pid)
    workers = [multiprocessing.Process(target=load, args=(port, cookie, case, start, seconds, out)) for _ in range(clients)]
    for worker in workers:
        worker.start()
    results = [out.get(timeout=seconds + 120) for _ in workers]
    for worker in workers:
        worker.join()
    for result in results:
        if isinstance(result, str):
            raise RuntimeError(result)
    cpu = up.cpu() + children_cpu(up.pid) - before
    values = [value for result in results for value in result]
    return {"case": case[0], "clients": clients, "requests": len(values), "rate": len(values) / seconds, **spread(values),
            "cpu_ms": cpu * 1000 / len(values)}


def children_cpu(pid):
    """CPU seconds of reaped children."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def await_run(client, cookie, pipeline):
    """Waits until the pipeline's last job has completed."""
    until = time.monotonic() + RUN_SECONDS_MAX
    while True:
        jobs = json.loads(ask(client, "GET", f"/api/p/{pipeline}/jobs", None, {"Cookie": cookie})[0])["jobs"]
        if jobs and jobs[0]["status"] == "completed":
            return
        if time.monotonic() > until or (jobs and jobs[0]["status"] == "failed"):
            raise RuntimeError(f"the run of `{pipeline}` did not complete: {jobs[:1]}")
        time.sleep(0.2)


def installation(binary, home):
    """Starts `up` and waits until its sample is converted; returns the process, its port, and a session cookie."""
    data, log = os.path.join(home, "data"), os.path.join(home, "log")
    up = Process([binary, "up", "--demo", "--data", data, "--port", "0", "--worker-port", "0"], log)

    def told(word):
        lines = [line.split() for line in up.said().splitlines()]
        return next((line[1] for line in lines if len(line) > 1 and line[0] == word), None)
    port = int(up.wait_until("its address", lambda: told("open")).rsplit(":", 1)[1])
    password = up.wait_until("its password", lambda: told("password"))
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    answer = ask(client, "POST", "/api/auth/login", {"password": password}, {})[1]
    cookie = answer.getheader("Set-Cookie").split(";")[0]
    await_run(client, cookie, "flights")
    dashboards = json.loads(ask(client, "GET", "/api/p/flights/dashboards", None, {"Cookie": cookie})[0])["dashboards"]
    dashboard = next((d["name"] for d in dashboards if d["published"]), None)
    return up, port, cookie, dashboard


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--lakemill", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--log")
    args = parser.parse_args()
    os.makedirs(args.work, exist_ok=True)
    home, up = tempfile.mkdtemp(prefix="web-", dir=args.work), None
    results = []
    try:
        up, port, cookie, dashboard = installation(args.lakemill, home)
        for case in cases(dashboard):
            measure(up, port, cookie, case, args.clients, min(2.0, args.seconds))
        for turn in range(args.rounds):
            for case in cases(dashboard):
                for clients in [1, args.clients]:
                    result = measure(up, port, cookie, case, clients, args.seconds)
                    results.append(result)
                    print(f"round {turn + 1}: {case[0]}, {clients} at a time: p50 {result['p50']:.1f} ms", file=sys.stderr)
                    if args.log:
                        with open(args.log, "a", encoding="utf-8") as file:
                            file.write(json.dumps({"load": os.getloadavg()[0], **result}) + "\n")
        up.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)
    rows = []
    for name, clients in dict.fromkeys((r["case"], r["clients"]) for r in results):
        of = [r for r in results if (r["case"], r["clients"]) == (name, clients)]
        middle = lambda field: statistics.median(r[field] for r in of)
        rows.append([name, str(clients), *(f"{middle(field):.1f}" for field in ["p50", "p95", "p99", "max", "rate", "cpu_ms"])])
    print_table(["", "clients", "p50 ms", "p95 ms", "p99 ms", "max ms", "a second", "CPU ms each"], rows, 1, args.markdown)


if __name__ == "__main__":
    main()
