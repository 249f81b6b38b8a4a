"""Clients that post events, each a process of its own (posts.py), so that they don't wait for each other."""

import json
import os
import subprocess
import sys
import time

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "posts.py")
START_SECONDS = 0.2
ANSWER_SECONDS_MAX = 120


class Posters:
    """`count` clients with one configuration (see posts.py), ready to start. `step`: the offset between the pipelines
    they start with."""

    def __init__(self, order, count, step):
        self.seconds = order["seconds"]
        self.clients = [subprocess.Popen([sys.executable, "-I", SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, text=True) for _ in range(count)]
        try:
            for number, client in enumerate(self.clients):
                print(json.dumps({**order, "first": number * step}), file=client.stdin, flush=True)
            for client in self.clients:
                if client.stdout.readline() != "ready\n":
                    raise RuntimeError(f"a client that posts failed: {client.communicate()[1].strip()[-500:]}")
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def start(self):
        """Starts all clients at once, and waits until they run."""
        start = time.monotonic() + START_SECONDS
        for client in self.clients:
            print(start, file=client.stdin, flush=True)
        time.sleep(max(0, start - time.monotonic()))

    def answers(self, worker):
        """Waits for all clients, and returns their results."""
        found = []
        for client in self.clients:
            said, errors = client.communicate(timeout=self.seconds + ANSWER_SECONDS_MAX)
            if client.returncode:
                raise RuntimeError(f"a client that posts failed: {errors.strip()[-500:]}; {worker.said()[-1000:]}")
            found.append(json.loads(said))
        return found

    def close(self):
        for client in self.clients:
            if client.poll() is None:
                client.kill()
                client.wait()
