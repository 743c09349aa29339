# shellcheck shell=bash disable=SC2034 # what is set here is used by the runners
# One program at a time, with a limit. To be sourced.
#
#   watchdog_begin SCRATCH      makes SCRATCH vanish at the runner's end, whatever ends it
#   watchdog_run SECONDS DIAGNOSE COMMAND...
#                               leaves the exit status in `status`, or `hung`; output in SCRATCH/out and SCRATCH/err.
#                               When the time is over, the output of DIAGNOSE (a function, which is given the process
#                               group) goes to SCRATCH/diagnosis, and then the whole group is killed. `running` is the
#                               group while there is one.

watchdog_begin() {
  watchdog_scratch=$1 running=
  mkfifo "$1/alarm" && exec 9<>"$1/alarm" || exit 2
  trap watchdog_cleanup EXIT
  trap 'exit 130' INT TERM
}

watchdog_cleanup() {
  [ "$BASHPID" = "$$" ] || return  # a subshell ended by a signal before it had reset its traps
  [ -n "$running" ] && kill -KILL -- "-$running" 2>/dev/null
  echo >&9
  rm -rf "$watchdog_scratch"
}

watchdog_run() {
  local seconds=$1 diagnose=$2 watchdog
  shift 2
  rm -f "$watchdog_scratch/hung" "$watchdog_scratch/diagnosis"
  setsid "$@" >"$watchdog_scratch/out" 2>"$watchdog_scratch/err" </dev/null 9<&- &
  running=$!
  # Called off by a line rather than by a signal: one that comes before the subshell has reset its traps would run the
  # runner's own.
  (
    trap - EXIT INT TERM
    read -r -t "$seconds" -u 9 && exit
    touch "$watchdog_scratch/hung"
    "$diagnose" "$running" >"$watchdog_scratch/diagnosis"
    kill -KILL -- "-$running"
  ) 2>/dev/null &
  watchdog=$!
  wait "$running" 2>/dev/null
  status=$?
  # Whoever it left behind belongs to its process group and must not disturb the next program.
  kill -KILL -- "-$running" 2>/dev/null
  running=
  [ -e "$watchdog_scratch/hung" ] || echo >&9
  wait "$watchdog" 2>/dev/null
  if [ -e "$watchdog_scratch/hung" ]; then
    status=hung
    if read -r -t 0 -u 9; then read -r -u 9; fi  # called off just too late
  fi
}
