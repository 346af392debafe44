# Shared by ./test and ./demo (bash, sourced): long steps that show how long they take, and where their output went.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cores=$(nproc)
logs=$root/build/log
stages=$logs/stages  # name and seconds of each step, for a table at the end
began=$SECONDS
ticker=

say() { printf '%s\n' "$*"; }
die() {
  printf '%s\n' "error: $*" >&2
  exit 1
}
elapsed() { printf '%d:%02d' $((SECONDS / 60)) $((SECONDS % 60)); }

# On a terminal the line counts on once a second; in a log a sign of life every half minute is enough.
tick() {
  local what=$1 log=$2 start=$SECONDS last
  while sleep 1; do
    last=$(tail -c 400 "$log" 2>/dev/null | tr '\r' '\n' | tail -n 1 | tr -cd '[:print:]' | cut -c1-60)
    if [ -t 1 ]; then
      printf '\r\033[K  %s ... %d s  %s' "$what" $((SECONDS - start)) "$last"
    elif [ $(((SECONDS - start) % 30)) -eq 0 ]; then
      printf '  %s ... %d s  %s\n' "$what" $((SECONDS - start)) "$last"
    fi
  done
}

stop_ticker() {
  [ -z "$ticker" ] && return
  kill "$ticker" 2>/dev/null
  wait "$ticker" 2>/dev/null
  ticker=
  [ -t 1 ] && printf '\r\033[K'
  return 0
}
trap 'stop_ticker; stop_jobs' EXIT

log_name() { printf '%s.log' "$(printf '%s' "$1" | tr -c 'a-zA-Z0-9\n' '-')"; }

# step WHAT COMMAND ARGUMENT...: runs the command with its output in a log; if it fails, shows the log's end and stops.
step() {
  local what=$1 start=$SECONDS status=0 log
  shift
  mkdir -p "$logs"
  log=$logs/$(log_name "$what")
  : >"$log"
  tick "$what" "$log" &
  ticker=$!
  "$@" >"$log" 2>&1 </dev/null || status=$?
  stop_ticker
  if [ $status -ne 0 ]; then
    tail -n 40 "$log" >&2
    die "$what failed with status $status after $((SECONDS - start)) s; everything it said is in $log"
  fi
  printf '  %-52s %4d s\n' "$what" $((SECONDS - start))
  printf '%s\t%d\n' "$what" $((SECONDS - start)) >>"$stages"
}

# beside NAME COMMAND ...: runs the command, which may have steps, beside those that follow, until `wait_for NAME`. It has a
# process group of its own, which ends with this script.
declare -A jobs=()
beside() {
  local name=$1
  shift
  set -m
  (trap '' TTOU; tick() { :; }; "$@") </dev/null &  # Not stopped by a terminal that lets only one group write.
  jobs[$name]=$!
  set +m
}
wait_for() {
  local job=${jobs[$1]} status=0
  wait "$job" || status=$?
  unset "jobs[$1]"
  [ $status -eq 0 ] || exit 1
}
stop_jobs() {
  local job
  for job in "${jobs[@]}"; do
    kill -- "-$job" && wait "$job"
  done 2>/dev/null
}
