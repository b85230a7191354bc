#!/usr/bin/env bash
# Plants a difference and checks that it is found: runs two models in turns with default settings, the second doing PERCENT more
# work. QNNSCOPE_APART=1 runs them separately, one after the other. Needs a build, a runtime and a C compiler. Arguments: PERCENT
# TRIES STEPS; default 10, 10 and 50 (about 2 ms per inference on two cores). QNNSCOPE_BIN replaces the release build,
# QNNSCOPE_FLAGS adds flags to run.
set -euo pipefail
cd "$(dirname "$0")/.."
bin="${QNNSCOPE_BIN:-$PWD/target/release/qnnscope}"
percent=${1:-10} tries=${2:-10} steps=${3:-50}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chain() {
    cc -shared -fPIC -O1 -DPATTERN=chain -DSTEPS="$1" -o "$work/chain-$1.so" tests/models/patterns.c
}
more=$((steps + steps * percent / 100))
chain "$steps"
chain "$more"
echo "$tries tries of $steps against $more steps; load of the machine: $(cut -d ' ' -f 1-3 /proc/loadavg)"
for ((try = 1; try <= tries; try++)); do
    start=$(date +%s%N)
    models=("$work/chain-$steps.so" "$work/chain-$more.so")
    if [ -n "${QNNSCOPE_APART:-}" ]; then
        files=()
        for model in "${models[@]}"; do
            "$bin" run "$model" -b cpu -n 300 ${QNNSCOPE_FLAGS:-} --json >"$model.json" 2>/dev/null
            files+=("$model.json")
        done
    else
        "$bin" run "${models[@]}" -b cpu -n 300 ${QNNSCOPE_FLAGS:-} --json >"$work/both.json" 2>/dev/null
        files=("$work/both.json")
    fi
    took=$((($(date +%s%N) - start) / 1000000))
    "$bin" compare "${files[@]}" --json >"$work/$try.json"
    python3 - "$work/$try.json" "$took" "${files[@]}" <<'PYTHON'
import json, sys
rows = {row["id"]: row["cells"][1]["difference"] for row in json.load(open(sys.argv[1]))["rows"]}
runs = [run for file in sys.argv[3:] for run in json.load(open(file))["runs"]]
medians = [[round(launch["p50"]) for launch in run["latency_us"]["launches"]] for run in runs]
told = []
for row in ("p50_us", "fastest_us"):
    found = rows.get(row) or {}
    low, high = (100 * bound for bound in found.get("ci95") or (float("nan"), float("nan")))
    told.append(f"{row} {found.get('verdict')} ({low:+.1f} to {high:+.1f} %)")
print(f"{len(medians[0])} and {len(medians[1])} launches in {int(sys.argv[2]) / 1000:.1f} s; {'; '.join(told)}; launches from {min(medians[0])} to {max(medians[0])} us, and from {min(medians[1])} to {max(medians[1])} us")
PYTHON
done | tee "$work/told"
for row in p50_us fastest_us; do
    echo "$row: found in $(grep -c "$row worse" "$work/told" || true) of $tries; load: $(cut -d ' ' -f 1-3 /proc/loadavg)"
done
