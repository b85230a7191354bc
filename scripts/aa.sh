#!/usr/bin/env bash
# Runs the same model eight times with default settings and compares all 28 pairs: how many are judged better or worse? Needs a
# release build (or QNNSCOPE_BIN) and a runtime. Arguments: MODEL BACKEND [FLAGS OF run...]; default: the bundled float model on cpu,
# 400 inferences.
set -euo pipefail
cd "$(dirname "$0")/.."
bin="${QNNSCOPE_BIN:-$PWD/target/release/qnnscope}"
[ "$#" -gt 0 ] || set -- "$PWD/demo/qnnscope-demo-float.dlc" cpu -n 400
model=$1 backend=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for run in 1 2 3 4 5 6 7 8; do
    "$bin" run "$model" -b "$backend" "$@" --json >"$work/$run.json" 2>/dev/null
done
python3 - "$bin" "$work" <<'PYTHON'
import itertools, json, subprocess, sys
bin, work = sys.argv[1:]
for run in range(1, 9):
    latency = json.load(open(f"{work}/{run}.json"))["runs"][0]["latency_us"]
    print(f"run {run}: median {latency['p50']:.0f} us; launches", *(round(each["p50"]) for each in latency["launches"]))
called = {}
for pair in itertools.combinations(range(1, 9), 2):
    files = [f"{work}/{run}.json" for run in pair]
    document = json.loads(subprocess.run([bin, "compare", *files, "--json"], capture_output=True, text=True).stdout)
    for row in document["rows"]:
        for cell in row["cells"]:
            verdict = ((cell or {}).get("difference") or {}).get("verdict")
            if verdict and verdict != "unknown":
                called.setdefault(row["id"], []).append(verdict in ("better", "worse"))
for figure, verdicts in called.items():
    print(f"{figure}: {sum(verdicts)} of {len(verdicts)} pairs of equal runs called better or worse")
PYTHON
