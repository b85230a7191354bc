# Daily commands. `just` lists them; each is a single command that also works without `just`.

[private]
default:
    @just --list --unsorted

# Formatting, lints, unit tests, screens: the checks people wait for
fast:
    .ci/fast

# Everything, as continuous integration runs it
all:
    .ci/run

# Accept intended changes of screens, after checking `git diff`
bless:
    INSTA_UPDATE=always cargo test --test screens

# The bundled model on cpu and on the simulated htp
demo:
    cargo run --release -- demo

# All benchmarks; the machine must be idle
bench:
    cargo bench

# Eight identical runs, all pairs compared; the machine must be idle
aa:
    cargo build --release
    scripts/aa.sh

# Draw the documentation's pictures from real runs
pictures:
    scripts/pictures.sh
