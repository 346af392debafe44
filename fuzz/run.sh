#!/bin/sh
# run.sh PROGRAM WORK SEEDS...: replays the seeds, then fuzzes for SPILLWAY_FUZZ_SECONDS (default 3). What it learns stays in
# WORK from run to run; an input that breaks the program is left there too, and belongs into SEEDS once that is mended.
set -u
program=$1 work=$2
shift 2
for seeds; do
  [ -d "$seeds" ] || { echo "no seeds in $seeds: add at least one valid input"; exit 1; }
done
mkdir -p "$work/corpus" "$work/found"
"$program" -runs=0 "$@" || exit 1
exec "$program" -max_total_time="${SPILLWAY_FUZZ_SECONDS:-3}" -timeout=10 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
  -artifact_prefix="$work/found/" "$work/corpus" "$@"
