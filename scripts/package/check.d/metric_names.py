"""Compares the metrics that alert rules and dashboard ask for with those that services tell.

Usage: metric_names.py RULES DASHBOARD METRICS…, each of METRICS what a /metrics answered. Exit status 1 if a rule or a panel
asks for a metric, or a label of one, that none of them has.
"""

import json
import pathlib
import re
import sys

NAME = r"(?:lakemill|process)_[a-z0-9_]+"
# Of a histogram: told by these, described by the name without.
SUFFIXES = ("_bucket", "_sum", "_count")
# Described only by workers with a setting, here SVC_EVENTS_SQS_URL.
OPTIONAL = {"lakemill_event_queue_up"}
# Labels that Prometheus adds.
SCRAPED = {"job", "instance", "le"}


def told(texts):
    """Names that are described, each with the labels of its samples; a family without samples has any."""
    families = {}
    for text in texts:
        for line in text.splitlines():
            if found := re.match(rf"# TYPE ({NAME}) \w+", line):
                families.setdefault(found[1], set())
            elif found := re.match(rf"({NAME})(?:\{{(.*)\}})? ", line):
                name = next((found[1].removesuffix(s) for s in SUFFIXES if found[1].removesuffix(s) in families), found[1])
                families.setdefault(name, set()).update(re.findall(r'(\w+)="', found[2] or ""))
                if not found[2]:
                    families[name].add("")
    return families


def asked(rules, dashboard):
    """Where, and the expression."""
    for rule in re.split(r"\n\s*- alert: ", rules)[1:]:
        name, body = rule.split("\n", 1)
        yield f"alert {name}", body.split("annotations:")[0].split("labels:")[0]
    for panel in json.loads(dashboard)["panels"]:
        for target in panel.get("targets", []):
            yield f"panel {panel['title']}", target["expr"]


def main(rules, dashboard, *metrics):
    families = told(pathlib.Path(m).read_text(encoding="utf-8") for m in metrics)
    wrong, used = 0, set()
    for where, text in asked(pathlib.Path(rules).read_text(encoding="utf-8"), pathlib.Path(dashboard).read_text(encoding="utf-8")):
        text = re.sub(r"#.*", "", text)
        for found in re.finditer(rf"\b({NAME})(?:\{{([^}}]*)\}})?", text):
            name = found[1]
            name = name if name in families else next((name.removesuffix(s) for s in SUFFIXES if name.endswith(s)), name)
            if name in OPTIONAL:
                continue
            if name not in families:
                print(f"{where}: no service tells `{found[1]}`")
                wrong += 1
                continue
            used.add(name)
            labels = set(re.findall(r"(\w+)\s*(?:=|!)", found[2] or "")) - SCRAPED
            if families[name] and labels - families[name]:
                print(f"{where}: `{found[1]}` has no label {', '.join(sorted(labels - families[name]))}")
                wrong += 1
    print(f"{len(used)} of {len(families)} metrics are asked for; {wrong} wrong")
    return 1 if wrong or not used else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
