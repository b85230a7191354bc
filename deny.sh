#!/usr/bin/env bash
# Checks the dependencies against deny.toml. Installs cargo-deny into target/tools if it is missing. If the advisory database
# cannot be reached, it says so and still checks licences, bans and sources.
set -euo pipefail
cd "$(dirname "$0")"

export PATH="$PWD/target/tools/bin:$PATH"
if ! command -v cargo-deny >/dev/null; then
    echo "== installing cargo-deny into target/tools (once)"
    # Its target folder goes with the temporary one, so our own builds stay valid.
    cargo install --locked --quiet --root target/tools cargo-deny
fi
cargo deny --locked check --hide-inclusion-graph licenses bans sources
if cargo deny --locked fetch db 2>/dev/null; then
    cargo deny --locked check --hide-inclusion-graph --disable-fetch advisories
else
    echo "== the advisory database is out of reach: advisories were NOT checked"
fi
