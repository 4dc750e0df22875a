# SPDX-License-Identifier: MIT
"""Ratios of samples, and whether they keep what is promised (promised.py)."""

import statistics

from promised import MEMORY_TIMES, NOISE, OCAML_PEAK, PEER_NAMES, PROGRAM_TARGETS, TARGETS, WAITING


def paired_ratio(samples, loop, baseline):
    if isinstance(loop, list):
        return statistics.mean(paired_ratio(samples, *pair) for pair in zip(loop, baseline))
    pairs = zip(samples[loop], samples[baseline])
    return statistics.median(one / other for one, other in pairs)


def least_ratio(samples, loop, baseline):
    if isinstance(loop, list):
        return statistics.mean(least_ratio(samples, *pair) for pair in zip(loop, baseline))
    return min(samples[loop]) / min(samples[baseline])


def spread(samples):
    ordered = sorted(samples)
    return ordered[0], statistics.median(ordered), ordered[len(ordered) * 9 // 10]


def verdict(met):
    return "yes" if met else "**no**"


def judged(what, limit, ratio, least):
    """A row of the promises: two ratios, and whether they keep to the limit, if there is one. A
    promise that noise decides is given no digits."""
    if limit is None:
        return what, "", f"{ratio:.2f} ×", f"{least:.2f} ×", ""
    promised = f"≤ {limit:.3g} ×"
    if min(ratio, least) <= limit * (1 + NOISE) and max(ratio, least) >= limit * (1 - NOISE):
        return what, promised, "at the limit", "", "undecided"
    return what, promised, f"{ratio:.2f} ×", f"{least:.2f} ×", verdict(ratio <= limit)


def targets_of_programs(programs):
    rows = []
    for target in PROGRAM_TARGETS:
        measured = programs.get(target.program, {}).get("rows", {})
        seconds = {label: row["seconds"] for label, row in measured.items()}
        pair = target.peer, target.baseline
        if all(label in seconds for label in pair):
            ratio, least = paired_ratio(seconds, *pair), least_ratio(seconds, *pair)
            rows.append(judged(target.what, target.limit, ratio, least))
    return rows


def targets_of_waiting(results):
    rows = []
    for waiting in WAITING:
        measured = results.get(waiting.what, {})
        pair = PEER_NAMES["ocaml/haft"], PEER_NAMES["ocaml/ocaml5"]
        if any(label not in measured for label in pair):
            continue
        for what, key, limit in (
            (f"OCaml: {waiting.what}: peak memory / OCaml 5", "resident", waiting.memory_limit),
            ("the same: processor time / OCaml 5", "seconds", waiting.time_limit),
        ):
            samples = {label: measured[label][key] for label in pair}
            ratio, least = paired_ratio(samples, *pair), least_ratio(samples, *pair)
            rows.append(judged(what, limit, ratio, least))
    return rows


def targets_of(results):
    rows = targets_of_programs(results.get("programs", {}))
    rows += targets_of_waiting(results.get("waiting", {}))
    for name, samples in results.get("series", {}).items():
        for target in TARGETS[name]:
            if str(target.baseline).startswith("ocaml5/") and target.baseline not in samples:
                continue
            if target.baseline is None and target.loop in samples:
                least, middle, _ = spread(samples[target.loop])
                met = verdict(least <= target.limit)
                promised = f"≤ {target.limit} ns"
                rows.append((target.what, promised, f"{middle:.1f} ns", f"{least:.1f} ns", met))
                continue
            loops = [target.loop, target.baseline]
            if isinstance(target.loop, list):
                loops = target.loop + target.baseline
            if any(loop not in samples for loop in loops):
                promised = f"≤ {target.limit:.3g} ×" if target.limit else ""
                rows.append((target.what, promised, "not measured", "", ""))
                continue
            ratio = paired_ratio(samples, target.loop, target.baseline)
            least = least_ratio(samples, target.loop, target.baseline)
            rows.append(judged(target.what, target.limit, ratio, least))
    if "ocaml_objects" in results:
        objects = results["ocaml_objects"]
        rows.append(
            (
                "OCaml: object files of table 1's programs, with the library / without",
                "the same",
                "the same" if objects["same"] else "different",
                "",
                verdict(objects["same"]),
            )
        )
    for entry in results.get("memory", []):
        if "peak" in entry:
            met = verdict(entry["peak"] <= OCAML_PEAK) if "Haft" in entry["label"] else ""
            rows.append(
                (
                    f"peak resident memory a live continuation, {entry['label']}",
                    f"≤ {OCAML_PEAK} bytes" if met else "",
                    f"{entry['peak']} bytes",
                    "",
                    met,
                )
            )
        if entry["resident_limit"]:
            rows.append(
                (
                    f"resident memory a suspended fiber, {entry['label']}",
                    f"≤ {entry['resident_limit'] / 1024:.1f} KiB",
                    f"{entry['resident'] / 1024:.2f} KiB",
                    "",
                    verdict(entry["resident"] <= entry["resident_limit"]),
                )
            )
            whole = entry["resident"] + entry["page_tables"]
            rows.append(("the same with its page tables", "", f"{whole / 1024:.2f} KiB", "", ""))
            rows.append(
                (
                    f"mappings with {entry['count']:,} of them",
                    f"< {entry['mappings_limit']}",
                    f"{entry['mappings']}",
                    "",
                    verdict(entry["mappings"] < entry["mappings_limit"]),
                )
            )
    rows += life_of_a_million(results.get("memory", []))
    return rows


def life_of_a_million(entries):
    """Continuations made, resumed twice, and finished: beside OCaml 5's, in the same order."""
    whole = {
        entry["label"]: [sum(times) for times in zip(*(entry[name] for name in MEMORY_TIMES))]
        for entry in entries
    }
    pair = PEER_NAMES["ocaml/haft"], PEER_NAMES["ocaml/ocaml5"]
    if any(label not in whole for label in pair):
        return []
    what = "OCaml: a million continuations made, resumed twice and finished / OCaml 5"
    return [judged(what, 1, paired_ratio(whole, *pair), least_ratio(whole, *pair))]
