#!/usr/bin/env python3
"""An Iceberg REST catalog in memory, built from PyIceberg's models, checks and metadata updates.

    iceberg_catalog.py [--port PORT] [--client ID:SECRET] [--prefix TEXT] [--no-register] [--renumbers]

With --client, requests need a token that the client gets at /v1/oauth/tokens. With --renumbers it gives schemas ids of
its own, and finds schemas by their fields, as catalogs made of Iceberg's Java library do.

/test answers what happened: the requests, in order. POST /test sets how many of the next requests to a table fail
({"fail": N, "after": true: after they took effect}), ends all tokens ({"expire": true}), or puts a snapshot of another
program on a table ({"foreign": [NAMESPACE, TABLE]}).
"""

import argparse
import json
import logging
import secrets
import sys
import threading

from flask import Flask, Response, request
from werkzeug.serving import make_server
from pyiceberg.io import load_file_io
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import CommitTableRequest
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.table.update import AddSchemaUpdate, AssertCreate, SetCurrentSchemaUpdate, update_table_metadata
from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.exceptions import CommitFailedException

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, default=0, help="default: a free one, which is printed")
parser.add_argument("--client")
parser.add_argument("--prefix", default="")
parser.add_argument("--no-register", action="store_true")
parser.add_argument("--renumbers", action="store_true")
parser.add_argument("--io", default="{}", help="properties of the file system, as JSON")
args = parser.parse_args()

logging.getLogger("werkzeug").setLevel(logging.ERROR)
app, lock = Flask(__name__), threading.Lock()
namespaces, tables, tokens, requests = set(), {}, set(), []
state = {"fail": 0, "after": False, "made": 0}
base = f"/v1/{args.prefix}" if args.prefix else "/v1"
TABLE = f"{base}/namespaces/<namespace>/tables/<table>"


def error(status, kind, message):
    print(request.method, request.path, status, kind, message, file=sys.stderr, flush=True)
    return {"error": {"message": message, "type": kind, "code": status}}, status


def metadata_json(metadata):
    return json.loads(metadata.model_dump_json(by_alias=True, exclude_none=True))


def table_response(key):
    location, metadata = tables[key]
    return {"metadata-location": location, "metadata": metadata_json(metadata), "config": {}}


@app.before_request
def before():
    if request.path == "/test":
        return None
    requests.append(f"{request.method} {request.path}")
    if request.path == "/v1/oauth/tokens":
        return None
    if args.client and request.headers.get("Authorization", "").removeprefix("Bearer ") not in tokens:
        return error(401, "NotAuthorizedException", "the token is unknown or has ended")
    if state["fail"] > 0 and not state["after"]:
        state["fail"] -= 1
        return error(503, "ServiceUnavailableException", "away")
    return None


@app.after_request
def after(response):
    if state["fail"] > 0 and state["after"] and request.method == "POST" and "/tables/" in request.path:
        state["fail"] -= 1
        return Response("", 504)
    return response


@app.get("/test")
def seen():
    known = {".".join(key): metadata_json(metadata) for key, (_, metadata) in tables.items()}
    return {"requests": requests, "tables": sorted(known), "metadata": known}


@app.post("/test")
def arrange():
    wanted = request.get_json()
    state.update(fail=wanted.get("fail", 0), after=wanted.get("after", False))
    if wanted.get("expire"):
        tokens.clear()
    if "foreign" in wanted:
        key = tuple(wanted["foreign"])
        location, metadata = tables[key]
        text = metadata_json(metadata)
        snapshot = dict(text["snapshots"][-1])
        snapshot.update({"snapshot-id": 2**62, "sequence-number": text["last-sequence-number"] + 1,
                         "summary": {"operation": "append"}})
        text["snapshots"].append(snapshot)
        text["last-sequence-number"] += 1
        text["current-snapshot-id"] = text["refs"]["main"]["snapshot-id"] = 2**62
        tables[key] = (location, TableMetadataUtil.parse_obj(text))
    return {}


@app.post("/v1/oauth/tokens")
def token():
    form = request.form
    if f"{form.get('client_id')}:{form.get('client_secret')}" != args.client or form["grant_type"] != "client_credentials":
        return {"error": "invalid_client"}, 401
    made = secrets.token_hex(8)
    tokens.add(made)
    return {"access_token": made, "token_type": "bearer", "expires_in": 3600}


@app.get("/v1/config")
def config():
    if request.args.get("warehouse", "main") != "main":
        return error(404, "NotFoundException", "no such warehouse")
    prefix = {"prefix": args.prefix} if args.prefix else {}
    return {"defaults": {}, "overrides": prefix}


@app.get(f"{base}/namespaces")
def list_namespaces():
    return {"namespaces": [name.split("\x1f") for name in sorted(namespaces)]}


@app.post(f"{base}/namespaces")
def make_namespace():
    name = "\x1f".join(request.get_json()["namespace"])
    if name in namespaces:
        return error(409, "AlreadyExistsException", "the namespace exists")
    if "\x1f" in name and name.rsplit("\x1f", 1)[0] not in namespaces:
        return error(404, "NoSuchNamespaceException", "no parent")
    namespaces.add(name)
    return {"namespace": name.split("\x1f"), "properties": {}}


@app.post(f"{base}/namespaces/<namespace>/register")
def register(namespace):
    wanted = request.get_json()
    key = (namespace, wanted["name"])
    if args.no_register:
        return error(405, "MethodNotAllowed", "no such request")
    with lock:
        if namespace not in namespaces:
            return error(404, "NoSuchNamespaceException", "no such namespace")
        if key in tables:
            return error(409, "AlreadyExistsException", "the table exists")
        location = wanted["metadata-location"]
        metadata = FromInputFile.table_metadata(load_file_io(json.loads(args.io), location).new_input(location))
        tables[key] = (location, metadata)
        return table_response(key)


@app.get(TABLE)
def load(namespace, table):
    with lock:
        return table_response((namespace, table)) if (namespace, table) in tables else error(404, "NoSuchTableException", "no such table")


@app.delete(TABLE)
def drop(namespace, table):
    if request.args.get("purgeRequested") != "false":
        return error(400, "BadRequestException", "purging is not for this table")
    with lock:
        return ("", 204) if tables.pop((namespace, table), None) else error(404, "NoSuchTableException", "no such table")


def renumbered(metadata, updates):
    """Assigns schema ids as Iceberg's Java library does: the id of a schema with the same fields, or the next one."""
    schemas, made = {} if metadata is None else {schema.schema_id: schema for schema in metadata.schemas}, []
    for update in updates:
        if isinstance(update, AddSchemaUpdate):
            same = [at for at, schema in schemas.items() if schema.fields == update.schema_.fields]
            number = same[0] if same else max(schemas, default=-1) + 1
            schema = update.schema_.model_copy(update={"schema_id": number})
            schemas[number] = schema
            made = [number]
            if not same:
                yield AddSchemaUpdate(schema=schema)
        elif isinstance(update, SetCurrentSchemaUpdate) and update.schema_id == -1:
            yield SetCurrentSchemaUpdate(schema_id=made[-1])
        else:
            yield update


@app.post(TABLE)
def commit(namespace, table):
    body = CommitTableRequest.model_validate({"identifier": {"namespace": [namespace], "name": table}, **request.get_json()})
    key = (namespace, table)
    with lock:
        if namespace not in namespaces:
            return error(404, "NoSuchNamespaceException", "no such namespace")
        location, metadata = tables.get(key, ("", None))
        if metadata is None and not any(isinstance(one, AssertCreate) for one in body.requirements):
            return error(404, "NoSuchTableException", "no such table")
        try:
            for requirement in body.requirements:
                requirement.validate(metadata)
        except CommitFailedException as failed:
            return error(409, "CommitFailedException", str(failed))
        updates = tuple(renumbered(metadata, body.updates) if args.renumbers else body.updates)
        try:
            made = update_table_metadata(
                base_metadata=metadata or MetastoreCatalog._empty_table_metadata(), updates=updates,
                enforce_validation=metadata is None, metadata_location=location or None)
        except Exception as failed:
            return error(400, type(failed).__name__, str(failed))
        state["made"] += 1
        tables[key] = (f"{made.location}/metadata/{state['made']:05}-{made.table_uuid}.metadata.json", made)
        if made.location.startswith("file:"):
            open(tables[key][0].removeprefix("file://"), "w").write(made.model_dump_json(by_alias=True, exclude_none=True))
        return table_response(key)


server = make_server("127.0.0.1", args.port, app, threaded=True)
print(server.server_port, flush=True)
server.serve_forever()
