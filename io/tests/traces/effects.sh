#!/bin/sh
# SPDX-License-Identifier: MIT
# effects.sh PROGRAM: a trace has what the computations of tasks resume, perform, and where they end, if it is asked for;
# also of a thread that runs no task; and nothing of them if it is not.
set -eu
program=$1
. "$HAFT_SOURCE_DIR/io/tests/traces/head.sh"

$tool record -o plain -- "$program" 2>/dev/null
$tool stats plain >stats
! grep -q '^effects:' stats

$tool record --effects -o trace -- "$program" 2>/dev/null
$tool view -o trace.json trace >/dev/null
$check trace.json 'an asker' 'a puller' answering generator 'perform ask' 'perform count' 'perform leave' \
  'drop answering' 'waits: a time'
$tool stats trace >stats
for line in "ask by 'answering'  *6" "ask by 'generator'  *3" 'count in place  *6' "leave by 'answering'  *2" \
  "dropped: 'answering'  *2"; do
  grep -q "^  $line$" stats || { echo "not in the figures: $line"; cat stats; exit 1; }
done

# The computations of a task are on a track of its own, and their slices have what they ended with.
python3 - trace.json <<'end'
import json
import sys
events = json.load(open(sys.argv[1], encoding="utf-8"))["traceEvents"]
tracks = {event["args"]["name"].split(" (")[0] for event in events
          if event["ph"] == "M" and "computations" in event["args"]["name"]}
assert tracks == {"an asker", "another asker", "a puller"}, tracks
ends = {event["args"]["until it"] for event in events if event.get("cat") == "computation"}
assert {"performs ask", "performs leave", "ends"} <= ends, ends
end

"$program" alone
$tool stats alone >stats
grep -q "^  ask by 'generator'  *3$" stats || { cat stats; exit 1; }
$tool view -o alone.json alone >/dev/null
grep -q '"name": "generator"' alone.json
