"""Command-line arguments and printed tables of benches."""

import argparse


def listed(allowed):
    """The type of an argument that is a comma-separated list of some of `allowed`."""
    def parse(text):
        items = [item for item in text.split(",") if item]
        for item in items:
            if item not in allowed:
                raise argparse.ArgumentTypeError(f"`{item}` is none of {', '.join(allowed)}")
        return items
    return parse


def print_table(head, rows, names, markdown):
    """Prints rows under their head. The first `names` columns are text, the others right-aligned figures."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    pad = lambda row: [c.ljust(w) if i < names else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))]
    if markdown:
        print("| " + " | ".join(pad(head)) + " |")
        print("|" + "|".join("-" * (w + 1) + ("-" if i < names else ":") for i, w in enumerate(widths)) + "|")
    for row in rows if markdown else [head, *rows]:
        print("| " + " | ".join(pad(row)) + " |" if markdown else "  ".join(pad(row)))


def spread(values):
    """Quantiles of some values for the report; empty if there are no values."""
    values = sorted(values) or [float("nan")]
    at = lambda share: values[min(len(values) - 1, int(share * len(values)))]
    return {"p50": at(0.5), "p95": at(0.95), "p99": at(0.99), "max": values[-1]}
