# Daily commands. `just` lists them; each is a line that can be typed without it, too.

[private]
default:
    @just --list --unsorted

# Formatting, lints, unit tests, screens: what people wait for
fast:
    .ci/fast

# Everything, as continuous integration runs it
all:
    .ci/run

# Accept screens that changed on purpose, after looking at `git diff`
bless:
    INSTA_UPDATE=always cargo test --test screens

# The bundled model on cpu and on the simulated htp
demo:
    cargo run --release -- demo

# All benchmarks; the machine must be idle
bench:
    cargo bench

# Eight equal runs, all pairs compared; the machine must be idle
aa:
    cargo build --release
    scripts/aa.sh

# Draw the pictures of the documentation from real runs
pictures:
    scripts/pictures.sh
