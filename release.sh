#!/usr/bin/env bash
# Builds target/release/qnnscope and libqnnscope_tap.so beside it, free of the build machine's paths: panic messages name source
# files, and those of dependencies lie in the builder's home. Cargo's own `trim-paths` is not stable yet. Fails if a path remains.
# Arguments are passed to cargo.
set -euo pipefail
cd "$(dirname "$0")"

cargo_home="${CARGO_HOME:-$HOME/.cargo}"
# CARGO_ENCODED_RUSTFLAGS separates flags with this character, so folder names may contain spaces.
unit=$'\x1f'
# The last matching prefix wins, so narrower ones come last.
flags="--remap-path-prefix=$HOME=~$unit--remap-path-prefix=$PWD=qnnscope$unit--remap-path-prefix=$cargo_home=cargo"
if sysroot="$(rustc --print sysroot)"; then
    flags="$flags$unit--remap-path-prefix=$sysroot=rust"
fi
export CARGO_ENCODED_RUSTFLAGS="${CARGO_ENCODED_RUSTFLAGS:+$CARGO_ENCODED_RUSTFLAGS$unit}$flags"
cargo build --locked --release --bin qnnscope "$@"

folder="${CARGO_TARGET_DIR:-target}/release"
# Cargo leaves the tap in target/release/deps; `qnnscope tap` also looks beside the binary.
cp -f "$folder/deps/libqnnscope_tap.so" "$folder/"
for binary in "$folder/qnnscope" "$folder/libqnnscope_tap.so"; do
    for path in "$HOME/" "$PWD/" "$cargo_home/"; do
        # A home of / would match every path.
        [ "$path" = // ] && continue
        if grep -aqF -- "$path" "$binary"; then
            echo "release.sh: $binary names $path:" >&2
            grep -aoF -- "$path" "$binary" | sort | uniq -c >&2
            exit 1
        fi
    done
    ls -l "$binary"
done
