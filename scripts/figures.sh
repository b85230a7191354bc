#!/usr/bin/env bash
# Measures the figures quoted in the documentation and names the document that quotes each.
#
#   scripts/figures.sh [size] [check] [diagnose] [profile-log] [screen] [bench]
#
# Without arguments, all of them. All but `size` need an idle machine. `bench` prints the output of `cargo bench`.
# Needs python3 and a runtime (`cargo run --release -- runtime install`).
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- size check diagnose profile-log screen bench
cargo build --release --locked --quiet
program=$PWD/target/release/qnnscope
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

row() { printf '%-28s %-52s %s\n' "$1" "$2" "$3"; }

# Runs a command, discards its output, and prints "SECONDS s, USER+SYSTEM s of processor time, PEAK MB".
timed() {
    python3 - "$@" <<'PY'
import os, resource, subprocess, sys, time
begun = time.monotonic()
with open(os.devnull, "w") as null:
    subprocess.run(sys.argv[1:], stdout=null, stderr=null, check=False)
took = time.monotonic() - begun
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{took:.2f} s, {used.ru_utime + used.ru_stime:.2f} s of processor time, {used.ru_maxrss / 1024:.0f} MB")
PY
}

# Writes a file of at least MEGABYTES from copies of others.
repeated() {
    local target=$1 megabytes=$2
    shift 2
    python3 - "$target" "$megabytes" "$@" <<'PY'
import sys
target, megabytes, *sources = sys.argv[1:]
block = b"".join(open(source, "rb").read() for source in sources)
with open(target, "wb") as out:
    for _ in range(int(megabytes) * 1_000_000 // len(block) + 1):
        out.write(block)
PY
}

for part in "$@"; do
    case $part in
    size)
        row docs/performance.md "release binary" "$(stat -c %s "$program" | awk '{ printf "%.1f MB\n", $1 / 1e6 }')"
        for model in demo/*.dlc; do
            row docs/devices.md "$model" "$(stat -c %s "$model" | awk '{ printf "%.0f KiB\n", $1 / 1024 }')"
        done
        ;;
    check)
        row docs/check.md "check of the bundled model on htp and cpu" \
            "$(timed "$program" check demo/qnnscope-demo-int8.dlc --backend htp,cpu)"
        ;;
    diagnose)
        repeated "$scratch/good.log" 1000 tests/data/run-logs/good-*.log
        row docs/diagnosis.md "1 GB of healthy logs" "$(timed "$program" diagnose "$scratch/good.log")"
        repeated "$scratch/bad.log" 1000 tests/data/run-logs/htp-*.log tests/data/run-logs/op-*.log
        row docs/diagnosis.md "1 GB of failing logs" "$(timed "$program" diagnose "$scratch/bad.log")"
        rm -f "$scratch"/*.log
        ;;
    profile-log)
        for log in cpu-2op-3000inf-detailed ort-cpu-cls-20inf-detailed; do
            for megabytes in 17 400; do
                repeated "$scratch/$log.log" "$megabytes" "tests/data/profile-logs/$log.log"
                for format in text csv json; do
                    row docs/profile-log.md "$log, $megabytes MB, $format" \
                        "$(timed "$program" profile-log "$scratch/$log.log" --format "$format")"
                done
                rm -f "$scratch/$log.log"
            done
        done
        ;;
    screen)
        # From exec to the end of the first frame on a terminal, and the processor time of 20 s without key presses.
        python3 - "$program" <<'PY'
import os, pty, select, signal, sys, time, fcntl, struct, termios
begun = time.monotonic()
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1]])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
# A frame is one synchronised update.
first, seen = None, b""
while first is None and time.monotonic() - begun < 5:
    if select.select([terminal], [], [], 0.05)[0]:
        seen += os.read(terminal, 1 << 16)
        if b"\x1b[?2026l" in seen:
            first = time.monotonic() - begun
def ticks():
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])
before = ticks()
end = time.monotonic() + 20
while time.monotonic() < end:
    if select.select([terminal], [], [], 0.2)[0]:
        os.read(terminal, 1 << 16)
share = (ticks() - before) / os.sysconf("SC_CLK_TCK") / 20
os.kill(pid, signal.SIGKILL)
print(f"{'docs/performance.md':<28} {'first frame after start':<52} {first * 1000:.0f} ms")
print(f"{'docs/performance.md':<28} {'idle CPU, start screen':<52} {share:.1%} of one core")
PY
        ;;
    bench) cargo bench --locked ;;
    *)
        echo "scripts/figures.sh: no part $part; the parts are size, check, diagnose, profile-log, screen, bench" >&2
        exit 2
        ;;
    esac
done
