"""A mail server that prints each mail it gets as a line of JSON, and first its port.

Arguments: `plain`, `starttls` or `tls`, then for the last two certificate and key.
"""
import base64
import json
import socket
import ssl
import sys
import threading

mode = sys.argv[1]
context = None
if mode != "plain":
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])


def serve(connection):
    secure = mode == "tls"
    if secure:
        connection = context.wrap_socket(connection, server_side=True)
    reader = connection.makefile("rb")

    def say(text):
        connection.sendall(text.encode() + b"\r\n")

    mail = {"login": None, "tls": secure}
    say("220 sink")
    while line := reader.readline():
        command = line.decode().strip()
        word = command.upper()
        if word.startswith("EHLO"):
            say("250-sink")
            if mode == "starttls" and not secure:
                say("250-STARTTLS")
            say("250 AUTH PLAIN")
        elif word == "STARTTLS":
            say("220 go")
            connection = context.wrap_socket(connection, server_side=True)
            reader = connection.makefile("rb")
            secure = mail["tls"] = True
        elif word.startswith("AUTH PLAIN"):
            mail["login"] = base64.b64decode(command.split()[2]).decode().split("\0")[1:]
            say("235 ok")
        elif word.startswith("MAIL FROM"):
            mail["from"], mail["to"] = command[10:], []
            say("250 ok")
        elif word.startswith("RCPT TO"):
            mail["to"].append(command[8:])
            say("250 ok")
        elif word == "DATA":
            say("354 go")
            lines = []
            while (line := reader.readline()) not in (b".\r\n", b""):
                lines.append(line[1:] if line.startswith(b"..") else line)
            print(json.dumps({**mail, "text": b"".join(lines).decode()}), flush=True)
            say("250 ok")
        elif word == "QUIT":
            say("221 bye")
            return
        else:
            say("250 ok")


server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    client, _ = server.accept()
    client.settimeout(60)
    threading.Thread(target=serve, args=(client,), daemon=True).start()
