"""A client that posts events over a persistent connection, as fast as it is answered or at a given rate; see
posters.py.

Reads a JSON object from standard input, says `ready`, reads when to start, and prints a JSON object: each client is a
separate process, so that clients don't wait for each other.
"""

import json
import resource
import socket
import sys
import time
import urllib.parse


def answer(client, buffer):
    """Reads one response; returns its status line and headers, and whether the server closes the connection."""
    while True:
        end = buffer.find(b"\r\n\r\n")
        if end >= 0:
            head = bytes(buffer[:end]).lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15:].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(buffer) >= end + 4 + length:
                del buffer[:end + 4 + length]
                return int(head[9:12]), b"connection: close" in head
        piece = client.recv(1 << 16)
        if not piece:
            raise ConnectionError("the worker closed the connection in the middle of an answer")
        buffer += piece


def notification(bucket, key, size):
    """The body of an event about a new object, as a store sends it."""
    record = {"eventVersion": "2.0", "eventSource": "minio:s3", "awsRegion": "", "eventName": "s3:ObjectCreated:Put",
              "s3": {"s3SchemaVersion": "1.0", "bucket": {"name": bucket, "arn": f"arn:aws:s3:::{bucket}"},
                     "object": {"key": urllib.parse.quote(key, safe=""), "size": size, "eTag": "0" * 32}}}
    return json.dumps({"EventName": "s3:ObjectCreated:Put", "Key": f"{bucket}/{key}", "Records": [record]})


def main():
    order = json.loads(sys.stdin.readline())
    posts = []
    for slug in order["slugs"]:
        body = notification(order["bucket"], f"pipelines/{slug}/data.csv", 31)
        head = (f"POST /events/s3 HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {order['secret']}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n")
        posts.append((head + body).encode())
    connect = lambda: socket.create_connection(("127.0.0.1", order["port"]), 30)
    client, buffer, latencies, connections = connect(), bytearray(), [], 1
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    print("ready", flush=True)
    start = float(sys.stdin.readline())
    time.sleep(max(0, start - time.monotonic()))
    end, sent = start + order["seconds"], order["first"]
    before = resource.getrusage(resource.RUSAGE_SELF)
    begun = time.monotonic()
    due = lambda: start + len(latencies) / order["rate"] if "rate" in order else time.monotonic()
    while begun < end:
        time.sleep(max(0, begun - time.monotonic()))
        client.sendall(posts[sent % len(posts)])
        status, closes = answer(client, buffer)
        done = time.monotonic()
        if status != order["status"]:
            raise RuntimeError(f"status {status}, expected {order['status']}")
        latencies.append(done - begun)
        sent, begun = sent + 1, due()
        if closes:
            client.close()
            client, connections = connect(), connections + 1
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    json.dump({"latencies": latencies, "cpu": cpu, "connections": connections}, sys.stdout)


if __name__ == "__main__":
    main()
