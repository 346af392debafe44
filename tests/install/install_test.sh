#!/bin/sh
# install_test.sh BUILD PYTHON: installs into a scratch folder, moves that, and uses the program from there, so that nothing
# can lean on the build folder or on where it was first put.
set -eu
build=$1 python=$2
scratch=$(mktemp -d /var/tmp/spillway-install-XXXXXX)
trap 'rm -rf "$scratch"' EXIT

cmake --install "$build" --prefix "$scratch/first"
mv "$scratch/first" "$scratch/moved"
cd "$scratch"
program=$scratch/moved/bin/spillway

"$program" --version
"$program" --help >/dev/null
"$program" machines | grep -q a100
for file in "$program" $(find "$scratch/moved" -name '*.so'); do
  if readelf -d "$file" | grep -E 'R(UN)?PATH'; then
    echo "$file carries a search path of the machine it was built on"
    exit 1
  fi
done
test -f "$(find "$scratch/moved" -name LICENSE)"
[ -n "$python" ] || { echo "skipped the rest: built without the hook"; exit 77; }
find "$scratch/moved" -name 'libspillway_preload.so' | grep -q .
find "$scratch/moved" -name 'libspillway_torch.so' | grep -q .
# All that a GPU needs, where the build has it.
for library in libspillway_cuda.so libspillway_torch_cuda.so; do
  [ -z "$(find "$build/src/hook" -name $library)" ] || find "$scratch/moved" -name $library | grep -q .
done
cpu=$("$python" -c 'import os; print(min(os.sched_getaffinity(0)))')  # the least budget grows with the CPUs
if [ "$(id -u)" -ne 0 ] && taskset -c "$cpu" "$program" run --device-memory 64MiB true 2>&1 | grep 'page faults cannot be served'; then
  echo "skipped the run"
  exit 77
fi
taskset -c "$cpu" "$program" run --device-memory 64MiB --ssd "$scratch" --json "$scratch/run.json" -- "$python" -c '
import torch
keep = [torch.full((4 << 20,), float(i)) for i in range(8)]  # 128 MiB in all
print("sum", sum(float(k[-1]) for k in keep))' | grep -q '^sum 28.0$'
"$python" -c '
import json, sys
report = json.load(open(sys.argv[1]))
assert 0 < report["peak_device_bytes"] <= report["device_budget_bytes"] == 64 << 20, report
assert report["moved_bytes"]["device_to_ssd"] > 0, report' "$scratch/run.json"
