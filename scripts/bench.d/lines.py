"""Draws an SVG of wall seconds and peak memory by input size. Both axes are logarithmic, so cost proportional to the
input has slope one; a line of that slope is drawn for comparison."""

import math
from xml.sax.saxutils import escape

COLOURS = ["#0b7a6d", "#c98500", "#3f7fd1"]
WIDTH, HEIGHT, LEFT, TOP, GAP = 380, 240, 56, 34, 40
STYLE = """
text { font: 12px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1c1c1a }
.quiet { font-size: 11px; fill: #5e5e5a } .grid { stroke: #8884 } .slope { stroke: #888; stroke-dasharray: 3 4; fill: none }
@media (prefers-color-scheme: dark) { text { fill: #ececea } .quiet { fill: #a9a9a4 } }
"""


def short(value):
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def decades(values):
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def panel(lines, measure, title, unit, left):
    """Draws one pair of axes with a line for each of `lines`: name -> [(size, figures)]."""
    xs = [at for points in lines.values() for at, _ in points]
    ys = [max(found[measure], 1e-3) for points in lines.values() for _, found in points]
    (x0, x1), (y0, y1) = decades(xs), decades(ys)
    wide, high = WIDTH - LEFT - 12, HEIGHT - TOP - 46
    px = lambda x: left + LEFT + (math.log10(x) - x0) / (x1 - x0) * wide
    py = lambda y: TOP + high - (math.log10(max(y, 1e-3)) - y0) / (y1 - y0) * high
    out = [f'<text x="{left + LEFT}" y="20">{title}</text>']
    for power in range(x0, x1 + 1):
        out.append(f'<line class="grid" x1="{px(10**power):.1f}" x2="{px(10**power):.1f}" y1="{TOP}" y2="{TOP + high}"/>'
                   f'<text class="quiet" text-anchor="middle" x="{px(10**power):.1f}" y="{TOP + high + 16}">{short(10**power)}</text>')
    for power in range(y0, y1 + 1):
        out.append(f'<line class="grid" x1="{left + LEFT}" x2="{left + LEFT + wide}" y1="{py(10.0**power):.1f}" y2="{py(10.0**power):.1f}"/>'
                   f'<text class="quiet" text-anchor="end" x="{left + LEFT - 6}" y="{py(10.0**power) + 4:.1f}">{short(10.0**power)}</text>')
    out.append(f'<text class="quiet" text-anchor="middle" x="{left + LEFT + wide / 2}" y="{HEIGHT - 12}">{escape(unit)}</text>')
    if measure == "wall":
        # The line of slope one runs back from the last point of the first line to the edge of the axes.
        at, found = next(iter(lines.values()))[-1]
        begin = max(10.0**x0, at * 10.0**y0 / max(found[measure], 1e-3))
        out.append(f'<path class="slope" d="M{px(begin):.1f},{py(found[measure] * begin / at):.1f}L{px(at):.1f},{py(found[measure]):.1f}"/>')
    for colour, points in zip(COLOURS, lines.values()):
        path = "L".join(f"{px(at):.1f},{py(found[measure]):.1f}" for at, found in points)
        out.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{px(at):.1f}" cy="{py(found[measure]):.1f}" r="3" fill="{colour}"/>' for at, found in points]
    return out


def plot(lines, unit):
    width = 2 * WIDTH + GAP
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT + 20}" width="{width}" height="{HEIGHT + 20}" role="img">',
           f"<title>Cost by {escape(unit)}</title><style>{STYLE}</style>"]
    out += panel(lines, "wall", "Wall seconds", unit, 0) + panel(lines, "peak", "Peak memory, MiB", unit, WIDTH + GAP)
    for at, (colour, name) in enumerate(zip(COLOURS, lines)):
        x = LEFT + at * 150
        out.append(f'<rect x="{x}" y="{HEIGHT + 4}" width="11" height="11" rx="2" fill="{colour}"/><text x="{x + 16}" y="{HEIGHT + 14}">{name}</text>')
    return "\n".join([*out, "</svg>", ""])
