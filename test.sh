#!/usr/bin/env bash
# Installs what the tests need (if missing, adb, shells, a C compiler and a browser through apt; the QNN
# runtimes through pip), then runs all tests.
set -euo pipefail
cd "$(dirname "$0")"

# A background job ignores Ctrl-C, one under nohup the end of its terminal, and so does everything they start:
# programs that the tests interrupt would keep running.
if [ -z "${QNNSCOPE_SIGNALS_ARE_DEFAULT:-}" ]; then
    QNNSCOPE_SIGNALS_ARE_DEFAULT=1 exec env --default-signal=INT,QUIT,HUP bash ./test.sh "$@"
fi

say() { printf '== %s\n' "$*"; }

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else
        say "root is needed for: $*"
        exit 3
    fi
}

missing=()
for program in adb mksh toybox busybox dash tmux strace chromium; do
    command -v "$program" >/dev/null || missing+=("$program")
done
command -v nsenter >/dev/null && command -v unshare >/dev/null && command -v setsid >/dev/null || missing+=(util-linux)
command -v cc >/dev/null || missing+=(gcc libc6-dev)
# The lab of DSP failures: an emulated aarch64 processor, and what its programs are built and linked with.
command -v qemu-aarch64-static >/dev/null || missing+=(qemu-user-static)
command -v aarch64-linux-gnu-gcc >/dev/null || missing+=(gcc-aarch64-linux-gnu)
[ -e /usr/aarch64-linux-gnu/include/stdio.h ] || missing+=(libc6-dev-arm64-cross)
[ -e /usr/aarch64-linux-gnu/lib/libstdc++.so.6 ] || missing+=(libstdc++6-arm64-cross)
ldconfig -p 2>/dev/null | grep -q 'libatomic\.so\.1' || missing+=(libatomic1)
if [ "${#missing[@]}" -gt 0 ]; then
    command -v apt-get >/dev/null || { say "install these by hand, there is no apt-get here: ${missing[*]}"; exit 3; }
    say "installing ${missing[*]}"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi

# The tests' runtimes are kept under target/, so that the user's own data folder is not touched.
export QNNSCOPE_TEST_RUNTIMES="${QNNSCOPE_TEST_RUNTIMES:-$PWD/target/test-runtimes}"
say "fetching what other platforms are built of, for the test of licences"
cargo fetch --locked
say "building"
# Some tests run an example; `cargo test --examples` would build its test harness instead of it.
cargo build --locked --bins --examples
for version in 2.3.0 2.7.0; do
    say "runtime $version"
    QNNSCOPE_DATA_DIR="$QNNSCOPE_TEST_RUNTIMES" target/debug/qnnscope runtime install --version "$version"
done

# ONNX Runtime with the QNN plug-in: the program that the tap is tested in. Packages in a folder rather than a
# virtual environment: Debian's Python comes without venv.
export QNNSCOPE_TEST_PYTHON="${QNNSCOPE_TEST_PYTHON:-$PWD/target/test-python}"
for version in 2.3.0 2.7.0; do
    folder="$QNNSCOPE_TEST_PYTHON/onnxruntime-qnn-$version"
    [ -e "$folder/.complete" ] && continue
    say "ONNX Runtime with onnxruntime-qnn $version"
    rm -rf "$folder"
    python3 -m pip install --quiet --target "$folder" --only-binary=:all: onnxruntime==1.24.4 "onnxruntime-qnn==$version" numpy==2.2.6
    touch "$folder/.complete"
done
# The libraries for boards, which the lab runs under emulation.
for version in 2.3.0 2.7.0; do
    folder="$QNNSCOPE_TEST_PYTHON/aarch64-$version"
    [ -e "$folder/.complete" ] && continue
    say "onnxruntime-qnn $version for aarch64"
    rm -rf "$folder"
    python3 -m pip install --quiet --target "$folder" --only-binary=:all: --no-deps --python-version 3.11 \
        --platform manylinux_2_34_aarch64 "onnxruntime-qnn==$version"
    touch "$folder/.complete"
done
# DuckDB reads the dataset as a lab would.
[ -e "$QNNSCOPE_TEST_PYTHON/duckdb/.complete" ] || {
    say "DuckDB"
    rm -rf "$QNNSCOPE_TEST_PYTHON/duckdb"
    python3 -m pip install --quiet --target "$QNNSCOPE_TEST_PYTHON/duckdb" --only-binary=:all: duckdb==2.0.0
    touch "$QNNSCOPE_TEST_PYTHON/duckdb/.complete"
}

say "testing"
# The tests record which screen snapshots they compared with.
used="$PWD/target/snapshots-used"
: >"$used"
export INSTA_SNAPSHOT_REFERENCES_FILE="$used"
# No doc tests: there are none, and a last line that counts zero of them would look like a run without tests.
# Tests spend time waiting for devices, programs and the clock, so there is one more thread than cores.
export RUST_TEST_THREADS="${RUST_TEST_THREADS:-$(($(nproc) + 1))}"
if [ "$#" -gt 0 ]; then exec cargo test --locked --workspace --lib --tests "$@"; fi
# Checked before the tests end, so that their count is the last thing printed.
cargo test --locked --test screens
git ls-files --cached --others --exclude-standard '*.snap' | while read -r file; do
    grep -qF "/$file" "$used" || { say "no test compares with $file: delete it"; exit 1; }
done
# Shows all failures at once. When called from .ci/run, the unit tests have already run.
if [ -n "${QNNSCOPE_UNIT_TESTS_DONE:-}" ]; then cargo test --locked --workspace --no-fail-fast --test '*'
else cargo test --locked --workspace --no-fail-fast --lib --tests; fi
