#!/usr/bin/env bash
# Checks the dependencies against deny.toml. Gets cargo-deny into target/tools where it is not installed. Where the advisory
# database is out of reach, licences, bans and sources still count, and it says so.
set -euo pipefail
cd "$(dirname "$0")"

export PATH="$PWD/target/tools/bin:$PATH"
if ! command -v cargo-deny >/dev/null; then
    echo "== installing cargo-deny into target/tools (once)"
    # Its own target folder is removed with the temporary one; nothing of ours is built anew.
    cargo install --locked --quiet --root target/tools cargo-deny
fi
cargo deny --locked check --hide-inclusion-graph licenses bans sources
if cargo deny --locked fetch db 2>/dev/null; then
    cargo deny --locked check --hide-inclusion-graph --disable-fetch advisories
else
    echo "== the advisory database is out of reach: advisories were NOT checked"
fi
