# What CI runs.
check:
    .ci/run

# What CI runs, and what is long.
full:
    .ci/run --full

# Controllers that die before and after every effect, over this many seeds.
crash runs="2000000":
    SCARPENTER_CRASH_RUNS={{runs}} cargo test -p scarpenter-tests --test crash

# Formats, and writes generated files and golden outputs anew.
update:
    cargo fmt --all
    UPDATE_GOLDEN=1 SCARPENTER_UPDATE=1 cargo test --workspace
