"""Child processes of a bench, and their figures from /proc. No child outlives the bench."""

import ctypes
import os
import re
import signal
import socket
import subprocess
import time
import traceback

START_SECONDS_MAX = 30
STOP_SECONDS_MAX = 60
TICKS = os.sysconf("SC_CLK_TCK")
PR_SET_PDEATHSIG = 1
SYS_PIDFD_GETFD = 438
LIBC = ctypes.CDLL(None, use_errno=True)


class Process:
    """A child with a log file."""

    def __init__(self, words, log, env=None):
        self.words, self.log = words, log
        with open(log, "wb") as file:
            self.child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=env,
                                          preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
        self.usage = None

    @property
    def pid(self):
        return self.child.pid

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def check(self):
        """Fails if the process has ended."""
        if self.child.poll() is not None:
            raise RuntimeError(f"`{self.words[0]}` ended with {self.child.returncode}: {self.said()[-2000:].strip()}")

    def wait_until(self, what, condition):
        """Waits until the condition is true, and returns its value."""
        until = time.monotonic() + START_SECONDS_MAX
        while True:
            self.check()
            found = condition()
            if found:
                return found
            if time.monotonic() > until:
                raise RuntimeError(f"`{self.words[0]}`: waited {START_SECONDS_MAX} s for {what}: {self.said()[-2000:].strip()}")
            time.sleep(0.005)

    def answer_at_once(self):
        """Sets TCP_NODELAY on its listeners, from which connections inherit it."""
        process = os.pidfd_open(self.pid)
        found = 0
        for name in os.listdir(f"/proc/{self.pid}/fd"):
            try:
                if not os.readlink(f"/proc/{self.pid}/fd/{name}").startswith("socket:"):
                    continue
            except FileNotFoundError:
                # It was closed since they were listed: no listener.
                continue
            fd = LIBC.syscall(SYS_PIDFD_GETFD, process, int(name), 0)
            if fd < 0:
                raise OSError(ctypes.get_errno(), "pidfd_getfd")
            with socket.socket(fileno=fd) as shared:
                if shared.family in (socket.AF_INET, socket.AF_INET6) and shared.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    shared.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    found += 1
        os.close(process)
        if not found:
            raise RuntimeError(f"`{self.words[0]}` has no listener")

    def cpu(self):
        """CPU seconds so far."""
        return cpu_of(self.pid)

    def reset_peak(self):
        """Makes the peak memory count from now."""
        with open(f"/proc/{self.pid}/clear_refs", "w", encoding="ascii") as file:
            file.write("5")

    def resident(self):
        """Resident memory in MiB: now, and the peak."""
        with open(f"/proc/{self.pid}/status", encoding="ascii", errors="replace") as file:
            status = file.read()
        return [int(re.search(rf"{name}:\s*(\d+)", status).group(1)) / 1024 for name in ("VmRSS", "VmHWM")]

    def stop(self):
        """Stops the process, and returns its total CPU seconds."""
        self.check()
        os.kill(self.pid, signal.SIGTERM)
        until = time.monotonic() + STOP_SECONDS_MAX
        while True:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > until:
                self.kill()
                raise RuntimeError(f"`{self.words[0]}` did not end within {STOP_SECONDS_MAX} s")
            time.sleep(0.005)
        self.child.returncode = os.waitstatus_to_exitcode(status)
        if self.child.returncode:
            raise RuntimeError(f"`{self.words[0]}` ended with {self.child.returncode}: {self.said()[-2000:].strip()}")
        return usage.ru_utime + usage.ru_stime

    def kill(self):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()

    def memory(self):
        """Memory in MiB: resident, proportional, anonymous, and the file pages of DuckDB and the program."""
        kib = {"rss": 0, "pss": 0, "anonymous": 0, "duckdb": 0, "program": 0}
        name = ""
        with open(f"/proc/{self.pid}/smaps", encoding="utf-8", errors="replace") as file:
            for line in file:
                words = line.split()
                if "-" in words[0] and not words[0].endswith(":"):
                    path = words[5] if len(words) > 5 else ""
                    name = {"libduckdb.so": "duckdb", os.path.basename(self.words[0]): "program"}.get(os.path.basename(path), "")
                    continue
                if words[0] in ("Rss:", "Pss:", "Anonymous:"):
                    kib[words[0][:-1].lower()] += int(words[1])
                # Written pages of a private mapping no longer belong to the file.
                if name and words[0] in ("Rss:", "Anonymous:"):
                    kib[name] += int(words[1]) if words[0] == "Rss:" else -int(words[1])
        found = {key: value / 1024 for key, value in kib.items()}
        return {**found, "threads": len(os.listdir(f"/proc/{self.pid}/task"))}


def cpu_of(pid):
    """CPU seconds of a process so far."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def apart(act, *args):
    """Calls a function in a separate process: a child's peak memory counts from its parent's."""
    pid = os.fork()
    if pid == 0:
        try:
            act(*args)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    if status:
        raise RuntimeError(f"`{act.__name__}` failed in its process")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def listens(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
