# SPDX-License-Identifier: MIT
"""Drawings of lines, as text of SVG."""

import html
import itertools
import math

STYLE = """
  text { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
  .title { font-size: 13px; font-weight: 600 }
  .note { fill: #59636e }
  .ground { fill: #ffffff; stroke: #d1d9e0 }
  .grid { stroke: #d1d9e0; stroke-width: 1 }
  .line { fill: none; stroke-width: 1.6 }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc }
    .note { fill: #9198a1 }
    .ground { fill: #0d1117; stroke: #3d444d }
    .grid { stroke: #3d444d }
  }
"""
# Legible on both grounds, and by readers to whom red and green look alike; Haft's first.
OURS = ["#2f81f7", "#54aeff", "#8250df", "#1b7c83", "#0550ae"]
PEERS = ["#d4a72c", "#e16f24", "#bf3989", "#8c959f", "#1f883d", "#a475f9"]
WIDTH, HEIGHT, LEFT, TOP, BETWEEN = 210, 150, 52, 44, 62


def colours(names):
    ours, peers = itertools.cycle(OURS), itertools.cycle(PEERS)
    return {name: next(ours) if name.startswith("Haft") else next(peers) for name in names}


def number(value):
    return next((f"{value / size:g}{unit}" for size, unit in ((1000000, "M"), (1000, "k")) if value >= size), f"{value:g}")


def linear_ticks(most):
    """About four round numbers up to `most`."""
    step = 10 ** math.floor(math.log10(most / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if most / (step * factor) <= 5)
    return [step * index for index in range(int(most / step) + 1)]


def decades(least, most):
    return [10.0 ** power for power in range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)]


def panel(title, across, lines, colour, left, top, logarithmic):
    """`lines`: by name, points (x, y)."""
    points = [point for line in lines.values() for point in line]
    most_x, most_y = (max(point[axis] for point in points) for axis in (0, 1))
    ticks_x = linear_ticks(most_x)
    ticks_y = decades(min(y for _, y in points), most_y) if logarithmic else linear_ticks(most_y * 1.05)
    first, last = (math.log10(ticks_y[0]), math.log10(ticks_y[-1])) if logarithmic else (0, most_y * 1.05)

    def x_of(x):
        return left + WIDTH * x / (most_x * 1.03)

    def y_of(y):
        return top + HEIGHT - HEIGHT * ((math.log10(y) if logarithmic else y) - first) / (last - first)

    parts = [f'<text class="title" x="{left}" y="{top - 10}">{html.escape(title)}</text>',
             f'<text class="note" x="{left + WIDTH}" y="{top + HEIGHT + 32}" text-anchor="end">{html.escape(across)}</text>']
    for y in ticks_y:
        parts += [f'<line class="grid" x1="{left}" x2="{left + WIDTH}" y1="{y_of(y):.1f}" y2="{y_of(y):.1f}"/>',
                  f'<text class="note" x="{left - 6}" y="{y_of(y) + 4:.1f}" text-anchor="end">{number(y)}</text>']
    parts += [f'<text class="note" x="{x_of(x):.1f}" y="{top + HEIGHT + 16}" text-anchor="middle">{number(x)}</text>'
              for x in ticks_x]
    for name, line in lines.items():
        path = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in line)
        parts.append(f'<polyline class="line" stroke="{colour[name]}" points="{path}"/>')
        parts += [f'<circle cx="{x_of(x):.1f}" cy="{y_of(y):.1f}" r="2" fill="{colour[name]}"/>' for x, y in line]
    return parts


def drawing(label, rows, logarithmic=False):
    """`rows` of panels (title, what is across, lines), each of which is as wide as the others."""
    names = list(dict.fromkeys(name for row in rows for _, _, lines in row for name in lines))
    colour = colours(names)
    columns = max(len(row) for row in rows)
    width = LEFT + columns * (WIDTH + BETWEEN)
    parts = []
    for row_index, row in enumerate(rows):
        for column, (title, across, lines) in enumerate(row):
            parts += panel(title, across, lines, colour, LEFT + column * (WIDTH + BETWEEN),
                           TOP + row_index * (HEIGHT + 80), logarithmic)
    x, y = LEFT, TOP + len(rows) * (HEIGHT + 80) - 22
    for name in names:
        if x + 30 + 7 * len(name) > width - 20:
            x, y = LEFT, y + 20
        parts += [f'<rect x="{x}" y="{y - 9}" width="14" height="4" fill="{colour[name]}"/>',
                  f'<text x="{x + 20}" y="{y - 2}">{html.escape(name)}</text>']
        x += 44 + 7 * len(name)
    height = y + 16
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{html.escape(label)}">',
        f"<style>{STYLE}</style>",
        f'<rect class="ground" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="6"/>',
        *parts, "</svg>"]) + "\n"
