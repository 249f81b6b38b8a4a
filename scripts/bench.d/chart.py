"""Draws an SVG of a bench's medians: for each dataset and measure a bar per program, relative to the best peer."""

from xml.sax.saxutils import escape

MEASURES = [("cpu", "CPU time"), ("wall", "Wall time"), ("peak", "Peak memory"), ("size", "Output size")]
# Colour-blind safe, on white and on black.
COLOURS = {"lakemill": "#0b7a6d", "duckdb": "#c98500", "polars": "#3f7fd1", "pyarrow": "#a6539b"}
NAMES = {"lakemill": "Lakemill", "duckdb": "DuckDB", "polars": "Polars", "pyarrow": "pyarrow"}
# Longer bars are cut, with their number beside them.
RATIO_MAX = 4.0
PANEL, BAR, GAP, LABEL, HEAD = 230, 11, 16, 64, 64
STYLE = """
text { font: 12px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1c1c1a }
.quiet { fill: #5e5e5a } .title { font-weight: 600 } .num { font-size: 10px; fill: #5e5e5a }
.one { stroke: #5e5e5a; stroke-dasharray: 2 3 }
@media (prefers-color-scheme: dark) { text { fill: #ececea } .quiet, .num { fill: #a9a9a4 } .one { stroke: #a9a9a4 } }
"""


def chart(medians, note):
    """`medians`: set -> program -> measure -> figure, with `lakemill` among the programs."""
    programs = list(dict.fromkeys(p for table in medians.values() for p in table))
    programs.sort(key=lambda p: (p != "lakemill", p))
    group = len(programs) * BAR + GAP
    width, height = LABEL + len(MEASURES) * PANEL, HEAD + len(medians) * group + 24
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
           f"<title>{escape(note)}</title><style>{STYLE}</style>"]
    x = LABEL
    for program in programs:
        out.append(f'<rect x="{x}" y="6" width="11" height="11" rx="2" fill="{COLOURS[program]}"/>'
                   f'<text x="{x + 16}" y="16">{NAMES[program]}</text>')
        x += 90
    out.append(f'<text class="quiet" x="{x}" y="16">{escape(note)}</text>')
    scale = (PANEL - 62) / RATIO_MAX
    for at, (measure, title) in enumerate(MEASURES):
        left = LABEL + at * PANEL
        out.append(f'<text class="title" x="{left}" y="42">{title}</text><text class="quiet" x="{left + 100}" y="42">× best peer</text>')
        one = left + scale
        out.append(f'<line class="one" x1="{one}" x2="{one}" y1="{HEAD - 12}" y2="{height - 24}"/>')
        for row, (name, table) in enumerate(medians.items()):
            top = HEAD + row * group
            if at == 0:
                out.append(f'<text x="0" y="{top + group / 2 - GAP / 2 + 4}">{escape(name)}</text>')
            best = min(v[measure] for p, v in table.items() if p != "lakemill")
            for nth, program in enumerate(p for p in programs if p in table):
                ratio = table[program][measure] / best
                y, long = top + nth * BAR, min(ratio, RATIO_MAX) * scale
                out.append(f'<rect x="{left}" y="{y}" width="{long:.1f}" height="{BAR - 2}" rx="1.5" fill="{COLOURS[program]}"/>'
                           f'<text class="num" x="{left + long + 4:.1f}" y="{y + BAR - 3}">{ratio:.2f}</text>')
    return "\n".join([*out, "</svg>", ""])
