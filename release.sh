#!/usr/bin/env bash
# Builds target/release/qnnscope, and libqnnscope_tap.so beside it, without the paths of the machine that builds it: panics name source files, and those of crates
# lie in the builder's home. Cargo's own `trim-paths` is not stable yet. Fails if a path is left. Arguments go to cargo.
set -euo pipefail
cd "$(dirname "$0")"

cargo_home="${CARGO_HOME:-$HOME/.cargo}"
# The separator of CARGO_ENCODED_RUSTFLAGS, so that folders may have blanks in their names.
unit=$'\x1f'
# The last prefix that fits wins, so the narrower ones come last.
flags="--remap-path-prefix=$HOME=~$unit--remap-path-prefix=$PWD=qnnscope$unit--remap-path-prefix=$cargo_home=cargo"
if sysroot="$(rustc --print sysroot)"; then
    flags="$flags$unit--remap-path-prefix=$sysroot=rust"
fi
export CARGO_ENCODED_RUSTFLAGS="${CARGO_ENCODED_RUSTFLAGS:+$CARGO_ENCODED_RUSTFLAGS$unit}$flags"
cargo build --locked --release --bin qnnscope "$@"

folder="${CARGO_TARGET_DIR:-target}/release"
# Cargo leaves the tap among what the binary is built of; `qnnscope tap` looks for it beside the binary, too.
cp -f "$folder/deps/libqnnscope_tap.so" "$folder/"
for binary in "$folder/qnnscope" "$folder/libqnnscope_tap.so"; do
    for path in "$HOME/" "$PWD/" "$cargo_home/"; do
        # A builder whose home is / has nothing to hide.
        [ "$path" = // ] && continue
        if grep -aqF -- "$path" "$binary"; then
            echo "release.sh: $binary names $path:" >&2
            grep -aoF -- "$path" "$binary" | sort | uniq -c >&2
            exit 1
        fi
    done
    ls -l "$binary"
done
