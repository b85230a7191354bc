#!/usr/bin/env bash
# Makes the documentation's pictures from real runs: `just pictures`. Needs the QNN runtime (`qnnscope runtime install`).
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cargo build --release --bins --example picture
bin=target/release/qnnscope
picture=target/release/examples/picture

"$bin" run demo/qnnscope-demo-int8.dlc -b htp,cpu -n 120 --record "$work/live.jsonl" --headless >/dev/null
"$picture" screen "$work/live.jsonl" 120x36 docs/pictures/live.svg previous-run

# The GPU backend finds no Adreno here: a real failure.
if "$bin" run demo/qnnscope-demo-float.dlc -b gpu -n 10 --record "$work/failed.jsonl" --headless >/dev/null; then
    echo "the run that was to fail did not" >&2
    exit 1
fi
"$picture" screen "$work/failed.jsonl" 120x36 docs/pictures/diagnosis.svg
