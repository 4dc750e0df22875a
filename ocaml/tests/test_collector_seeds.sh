#!/bin/sh
# The collector's test from other chances: seeds 1 to HAFT_COLLECTOR_SEEDS (1, or 6 with
# HAFT_CAMPAIGN=long), each with every setting.
set -eu
seeds=1
[ "${HAFT_CAMPAIGN:-}" = long ] && seeds=6
seeds=${HAFT_COLLECTOR_SEEDS:-$seeds}

# collect SEED COUNT [NAME=VALUE...]
collect() {
  seed=$1
  count=$2
  shift 2
  # shellcheck disable=SC2086 # the launcher is a list
  if ! env "$@" ${HAFT_LAUNCHER:-} "$HAFT_TEST_DIR/collector" "$count" "$seed" >output 2>&1; then
    cat output
    echo "fails: $* collector $count $seed"
    exit 1
  fi
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
seed=1
while [ "$seed" -le "$seeds" ]; do
  collect "$seed" 3000
  collect "$seed" 3000 HAFT_OCAML_STACKS=0
  collect "$seed" 800 OCAMLRUNPARAM=s=256,i=1k,o=10
  collect "$seed" 800 OCAMLRUNPARAM=s=256,i=1k,o=10 HAFT_OCAML_STACKS=0
  seed=$((seed + 1))
done
echo "$seeds seeds"
# SPDX-License-Identifier: MIT
