# SPDX-License-Identifier: MIT
"""The text of bench/figures.svg, from what bench/results.json holds."""

import collections
import html

# The drawing: five operations, each with a bar a peer, the median of its loop in nanoseconds.
Operation = collections.namedtuple("Operation", "title series bars")
DRAWN = [
    Operation(
        "Suspend in a request, resume with the reply",
        "micro",
        [
            ("Haft", "haft/round-trip"),
            ("C++20 coroutine", "coroutines/round-trip"),
            ("Boost.Context", "boost/round-trip"),
            ("setjmp/longjmp", "setjmp/round-trip"),
        ],
    ),
    Operation(
        "Ask the nearest handler, which answers in place",
        "micro",
        [
            ("Haft", "haft/tail-resumptive"),
            ("virtual call", "plain/virtual-call"),
            ("indirect call", "plain/indirect-call"),
        ],
    ),
    Operation(
        "Create a computation, run it to its end, free it",
        "micro",
        [
            ("Haft", "haft/create-run-free"),
            ("C++20 coroutine", "coroutines/create-run-free"),
            ("Boost.Context", "boost/create-run-free"),
        ],
    ),
    Operation(
        "An element of a recursive generator, tree of depth 10",
        "generators",
        [
            ("Haft, C++", "cpp/trees/010"),
            ("Boost.Context", "boost/trees/010"),
            ("C++20 coroutine", "coroutines/trees/010"),
        ],
    ),
    Operation(
        "OCaml: two threads meet (chameneos)",
        "ocaml/chameneos",
        [
            ("Haft, OCaml 4", "haft/chameneos"),
            ("OCaml 5", "ocaml5/chameneos"),
            ("Lwt, OCaml 4", "lwt/chameneos"),
        ],
    ),
]
# The drawing has a ground of its own, so that it is legible on a page of either colour.
DRAWING_STYLE = """
  text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
  .title { font-weight: 600 }
  .note { font-size: 12px; fill: #59636e }
  .ground { fill: #ffffff; stroke: #d1d9e0 }
  .ours { fill: #0969da }
  .peer { fill: #8c959f }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc }
    .note { fill: #9198a1 }
    .ground { fill: #0d1117; stroke: #3d444d }
    .ours { fill: #4493f8 }
    .peer { fill: #656c76 }
  }
"""


def drawing(results):
    """The text of figures.svg. The bars of an operation share a scale: the longest takes the width."""
    width, left, longest, line = 720, 160, 460, 17
    parts, y = [], 12
    for operation in DRAWN:
        loops = results["series"].get(operation.series, {})
        bars = [(peer, loops[loop]["median"]) for peer, loop in operation.bars if loop in loops]
        if not bars:
            continue
        y += 14
        parts.append(f'<text class="title" x="20" y="{y}">{operation.title}</text>')
        y += 5
        scale = longest / max(figure for _, figure in bars)
        for peer, figure in bars:
            kind = "ours" if peer.startswith("Haft") else "peer"
            end = left + figure * scale
            parts += [
                f'<text x="{left - 10}" y="{y + 12}" text-anchor="end">{peer}</text>',
                f'<rect class="{kind}" x="{left}" y="{y + 2}" width="{figure * scale:.1f}" '
                'height="12" rx="2"/>',
                f'<text x="{end + 8:.1f}" y="{y + 12}">{two_digits(figure)} ns</text>',
            ]
            y += line
        y += 10
    machine = html.escape(results["machine"])
    note = f"Medians, each operation in one interleaved series; shorter is better. {machine}."
    parts.append(f'<text class="note" x="20" y="{y + 10}">{note}</text>')
    height = y + 24
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" aria-label="Five operations beside peers">',
            f"<style>{DRAWING_STYLE}</style>",
            f'<rect class="ground" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="6"/>',
            *parts,
            "</svg>",
        ]
    ) + "\n"


def two_digits(figure):
    return f"{figure:.1f}" if figure < 10 else f"{float(f'{figure:.2g}'):.0f}"
