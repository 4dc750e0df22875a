#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check.py JSON [NAME...]: whether what `haft-trace view` has written is well formed, and has the names."""
import collections
import json
import sys

events = json.load(open(sys.argv[1], encoding="utf-8"))["traceEvents"]
wrong = []


def expect(condition, *words):
    if not condition and len(wrong) < 20:
        wrong.append(" ".join(str(word) for word in words))


tracks = collections.defaultdict(list)
flows, spans = collections.defaultdict(list), collections.defaultdict(list)
named, names = set(), set()
for event in events:
    expect({"ph", "pid", "name"} <= event.keys(), "an event lacks a field:", event)
    names.add(event["name"])
    if event["ph"] == "M":
        names.add(event["args"]["name"].split(" (")[0])
        named.add((event["pid"], event.get("tid")))
        continue
    expect(event["ts"] >= 0, "a time before the begin:", event)
    if event["ph"] == "X":
        expect(event["dur"] >= 0, "it ends before it begins:", event)
        tracks[event["pid"], event["tid"]].append(event)
    elif event["ph"] in "sf":
        flows[event["id"]].append(event)
    elif event["ph"] in "be":
        spans[event["id"]].append(event)
    else:
        expect(event["ph"] == "i", "a kind that is not expected:", event)

# A thread runs one task at once, and a task is in one state.
SLACK = 0.01  # microseconds
for track, slices in tracks.items():
    expect(track in named, "a track without a name:", track)
    slices.sort(key=lambda event: event["ts"])
    for one, next_one in zip(slices, slices[1:]):
        if one.get("cat") == "computation":  # one inside of the other, or one after the other
            inside = next_one["ts"] + next_one["dur"] <= one["ts"] + one["dur"] + SLACK
            expect(inside or one["ts"] + one["dur"] <= next_one["ts"] + SLACK, "two across:", one, next_one)
            continue
        expect(one["ts"] + one["dur"] <= next_one["ts"] + SLACK, "two at once:", one, next_one)
# An arrow goes from a wake to a run that begins just then.
runs = {(event["pid"], event["tid"], event["ts"]) for event in events if event.get("cat") == "run"}
for arrow in flows.values():
    expect([event["ph"] for event in arrow] == ["s", "f"], "half an arrow:", arrow)
    end = arrow[-1]
    expect((end["pid"], end["tid"], end["ts"]) in runs, "an arrow to no run:", arrow)
for span in spans.values():
    expect([event["ph"] for event in span] == ["b", "e"], "half a span:", span)
for name in sys.argv[2:]:
    expect(name in names, "nothing is called", repr(name))
expect(flows and tracks, "nothing has happened")
print("\n".join(wrong))
sys.exit(bool(wrong))
