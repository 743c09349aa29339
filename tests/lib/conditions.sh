# shellcheck shell=bash disable=SC2034 # what is set here is used by the runners
# Conditions under which the suites run their programs. To be sourced.
#
#   normal         as the runner itself
#   unprivileged   as user 65534 without any capability, with 8 MiB of locked memory (tests/lib/refuse.c)
#   refused        bpf, perf_event_open, userfaultfd and io_uring_* answer EPERM
#
#   conditions_check LIST BUILD     ends the runner with status 2 unless LIST names conditions that BUILD can make
#   conditions_files BUILD SCRATCH PART...   sets `reachable`: BUILD, or a copy of its parts in SCRATCH where user
#                                   65534 cannot get at BUILD itself
#   condition_begin NAME SCRATCH    sets `confine` (the words before a command) and `place` (a folder that the command
#                                   may write to)
#   condition_folder FOLDER         makes another such folder

conditions_check() {
  local name
  [[ $1 =~ ^[a-z]+(,[a-z]+)*$ ]] || { echo "run: --under: bad value '$1'; some of normal,unprivileged,refused" >&2; exit 2; }
  for name in ${1//,/ }; do
    case $name in
      normal) ;;
      unprivileged | refused)
        confine_program=$2/tests/lib/refuse
        [ -x "$confine_program" ] || { echo "run: $confine_program is missing; build it (./dev build)" >&2; exit 2; }
        "$confine_program" "$name" true || { echo "run: --under $name does not work here" >&2; exit 2; }
        ;;
      *) echo "run: --under: unknown condition '$name'; some of normal,unprivileged,refused" >&2; exit 2 ;;
    esac
  done
}

conditions_files() {
  local build=$1 scratch=$2 part
  shift 2
  reachable=$build
  chmod 755 "$scratch"
  [ -z "${confine_program:-}" ] && return 0
  for part in "$@"; do
    # A folder must be readable; so must the files in it, if the folder is.
    "$confine_program" unprivileged test -r "$build/$part" -a -x "$build/$part" && continue
    reachable=$scratch/build
    break
  done
  [ "$reachable" = "$build" ] && return 0
  for part in "$@"; do
    mkdir -p "$reachable/$(dirname "$part")" && cp -R "$build/$part" "$reachable/$part" || exit 2
  done
  chmod -R a+rX "$reachable"
}

condition_begin() {
  confine=() place=$2/$1
  [ "$1" = normal ] || confine=("$confine_program" "$1")
  condition_owner=
  if [ "$1" = unprivileged ] && [ "$(id -u)" = 0 ]; then condition_owner=65534:65534; fi
  condition_folder "$place"
}

condition_folder() {
  # Programs that become another user write their statistics there, too.
  mkdir -p "$1" && chmod 777 "$1" && { [ -z "$condition_owner" ] || chown "$condition_owner" "$1"; }
}
