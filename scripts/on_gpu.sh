#!/usr/bin/env bash
# Asks a GPU all that only a GPU can tell. See usage below; docs/gpu.md has the last answers.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

usage() {
  cat <<'TEXT'
scripts/on_gpu.sh --prepare     on a machine that ./test has built on: puts what a GPU machine lacks into gpu-kit/ (ignored by git)
scripts/on_gpu.sh OUT           on a machine with a GPU, in a copy of this folder with its gpu-kit/: writes text and JSON into OUT.
                                Its python3, or the one that PYTHON names, must have PyTorch for CUDA
scripts/on_gpu.sh OUT training [MODEL,...]
                                there: trains the examples under `spillway run` instead (bench/gpu_training.py), or these of them only.
                                The PyTorch must be of the version that the kit was built for. Where OUT/training.json is there already,
                                it goes on with what that lacks

Takes at most eight minutes (training: nine), the most decisive first. OUT/summary.txt says which parts were not reached, and what does
not hold.
Exit status 0: all was reached and holds, 1: some was not or does not, 77: there is no GPU.
TEXT
}

prepare() {
  local built=(build/bench/cuda/probe build/bench/launches/{launch_cost,liblaunch_log.so} build/src/hook/cuda/libspillway_cuda.so build/tests/cuda/fake/libfake_cuda.so
    build/spillway build/src/hook/preload/libspillway_preload.so build/src/hook/torch/libspillway_torch.so build/src/hook/torch/cuda/libspillway_torch_cuda.so)
  local file
  for file in "${built[@]}"; do
    [ -f "$file" ] || { echo "error: $file is not there: run ./test first (it needs a Python with a CUDA build of PyTorch)" >&2; exit 1; }
  done
  rm -rf gpu-kit
  mkdir -p gpu-kit/lib
  cp "${built[@]}" gpu-kit/
  # All but the C library's own parts, which every machine has.
  # PyTorch's come from the GPU machine.
  ldd "${built[@]}" | awk '$3 ~ /^\// { print $3 }' | grep -vE '/(libc|libm|libdl|libpthread|librt)\.so|/(torch|nvidia)/|/lib(cudart|c10|torch)' | sort -u | xargs -I{} cp -L {} gpu-kit/lib/ || exit 1
  du -sh gpu-kit | awk '{ print "gpu-kit/ is ready: " $1 }'
}

# run NAME SECONDS COMMAND ...: its output in OUT/NAME.txt
missing=0 status=0
run() {
  local name=$1 seconds=$2 end
  shift 2
  status=0
  timeout --kill-after=5 "$seconds" "$@" >"$out/$name.txt" 2>&1 || status=$?
  case $status in
    0) end="all was reached, and holds" ;;
    77) end="it saw no GPU" ;;
    1) end="something does not hold, or was not reached" ;;
    *) end="not all was reached: status $status" ;;
  esac
  printf '%-12s %s; %d s by now\n' "$name" "$end" $SECONDS >>"$out/summary.txt"
  [ $status -eq 77 ] || tail -n 1 "$out/summary.txt"
  [ $status -eq 0 ] || missing=1
}

case ${1:-} in
  --prepare) prepare; exit ;;
  --help | -h) usage; exit ;;
  '' | -*) [ -z "${1:-}" ] || echo "error: there is no option $1" >&2; usage >&2; exit 2 ;;
esac
[ $# -eq 1 ] || { [ "${2:-}" = training ] && [ $# -le 3 ]; } || { echo "error: one OUT only, and behind it nothing, or training and models" >&2; exit 2; }
for file in spillway probe launch_cost liblaunch_log.so libfake_cuda.so libspillway_{cuda,preload,torch,torch_cuda}.so lib; do
  [ -e gpu-kit/$file ] || { echo "error: gpu-kit/$file is missing: run scripts/on_gpu.sh --prepare where the project was built" >&2; exit 1; }
done
mkdir -p "$1" && [ -w "$1" ] || { echo "error: cannot write into $1" >&2; exit 1; }
out=$(cd "$1" && pwd) || exit 1
# What the figures are to be read beside.
for command in "nvidia-smi -q" "nvidia-smi topo -m" lscpu "ls /sys/devices/system/node" "cat /sys/kernel/mm/transparent_hugepage/enabled" \
  "df -T /tmp /var/tmp" "uname -a" "ulimit -l"; do
  printf '\n$ %s\n' "$command"
  timeout 5 bash -c "$command"
done >"$out/machine.txt" 2>&1
: >"$out/summary.txt"
libraries=$PWD/gpu-kit/lib:${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/usr/local/nvidia/lib64  # the last: a driver in some containers
with_libraries=(env "LD_LIBRARY_PATH=$libraries")
if [ "${2:-}" = training ]; then
  run training 540 env "LD_LIBRARY_PATH=$libraries" "${PYTHON:-python3}" bench/gpu_training.py gpu-kit/spillway --within 530 --json "$out/training.json" ${3:+--only "$3"}
  tee -a "$out/summary.txt" <"$out/training.txt"
  [ $status -ne 77 ] || exit 77
  exit $missing
fi
# What memory can do first, then what the launch shim sees.
run probe 252 "${with_libraries[@]}" gpu-kit/probe --within 240 --disk "${TMPDIR:-/var/tmp}" --json "$out/probe.json"
if [ $status -eq 77 ]; then
  tail -n 1 "$out/probe.txt" >&2
  exit 77
fi
sed -n '/^Parts:$/,$p' "$out/probe.txt" | tee -a "$out/summary.txt"
run launches 155 env LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/usr/local/nvidia/lib64" "${PYTHON:-python3}" bench/launches/launches.py \
  "$PWD/gpu-kit/libspillway_cuda.so" "$PWD/gpu-kit/liblaunch_log.so" --within 150 --json "$out/launches.json"
cat "$out/launches.txt" >>"$out/summary.txt"
run launch-cost 15 "${with_libraries[@]}" gpu-kit/launch_cost "$PWD/gpu-kit/libspillway_cuda.so" "$PWD/gpu-kit/libfake_cuda.so"
cat "$out/launch-cost.txt" >>"$out/summary.txt"
exit $missing
