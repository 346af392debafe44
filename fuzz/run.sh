#!/bin/sh
# run.sh PROGRAM SEEDS WORK: replays the seeds, then fuzzes for SPILLWAY_FUZZ_SECONDS (default 5). What it learns stays in
# WORK from run to run; an input that breaks the program is left there too, and belongs into SEEDS once that is mended.
set -u
program=$1 seeds=$2 work=$3
[ -d "$seeds" ] || { echo "no seeds in $seeds: add at least one valid input"; exit 1; }
mkdir -p "$work/corpus" "$work/found"
"$program" -runs=0 "$seeds" || exit 1
exec "$program" -max_total_time="${SPILLWAY_FUZZ_SECONDS:-5}" -timeout=10 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
  -artifact_prefix="$work/found/" "$work/corpus" "$seeds"
