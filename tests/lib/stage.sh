# shellcheck shell=bash
# Stages: steps with a time limit, a log, one line of result, and a count at the end. To be sourced.
#
#   stage NAME SECONDS COMMAND...   runs COMMAND (a program or a function of the caller)
#   stage_skip NAME REASON
#   stage_summary                   the totals; the last line is 'N passed, N failed, N skipped'
#
# A stage runs in a session of its own; whatever is left of the session when the stage ends or its time
# is up is killed by process id, so that nothing it started can hang its caller or outlive it.

STAGE_LOGS=${STAGE_LOGS:-build/log}
# How the suites' lines about a failed test look.
stage_failing='^FAIL|\*\*\*(Failed|Timeout|Exception)|: Failure$| FAIL '
stage_passed=0 stage_failed=0 stage_skipped=0
stage_failures=() stage_session='' stage_started=$SECONDS
# Read now: a stage may run while its terminal is in other hands.
stage_tty=no
[ -t 1 ] && [ "${CI-}" != true ] && stage_tty=yes

# Prints the ids of all living processes of session $1, of what descends from them, and of the sessions
# that those lead.
session_processes() {
  cat /proc/[0-9]*/stat 2>/dev/null | awk -v session="$1" '
    {
      pid = $1
      # The name in parentheses may hold anything; what follows it is: state ppid pgrp session ...
      sub(/^.*\) /, "")
      if ($1 !~ /[ZX]/) { parent[pid] = $2; led_by[pid] = $4 }
    }
    END {
      do {
        grown = 0
        for (p in parent)
          if (!(p in ours) && (led_by[p] == session || parent[p] in ours || led_by[p] in ours)) { ours[p]; grown = 1 }
      } while (grown)
      for (p in ours) print p
    }'
}

# Kills all that session_processes finds, by id. Orphans in sessions of their own are found only while their
# parents live: hence the list is made before anything is killed.
end_session() {  # SESSION
  local pids _
  for _ in 1 2 3 4 5; do
    pids=$(session_processes "$1")
    [ -z "$pids" ] && return 0
    # shellcheck disable=SC2086
    kill -KILL $pids 2>/dev/null
    sleep 0.1
  done
}

# Lets the leader of session $1 clean up for two seconds first.
interrupt_session() {
  local pids _
  pids=$(session_processes "$1")
  kill -TERM "$1" 2>/dev/null
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    kill -0 "$1" 2>/dev/null || break
    sleep 0.2
  done
  # shellcheck disable=SC2086
  [ -n "$pids" ] && kill -KILL $pids 2>/dev/null
  end_session "$1"
}

stage_interrupted() {
  [ -n "$stage_session" ] && interrupt_session "$stage_session"
  [ $stage_tty = yes ] && printf '\n'
  exit 130
}
trap stage_interrupted INT TERM HUP

# Adds up the results in log $1 of a stage that ended with status $2: those of the suites that print
# 'N passed, N failed, N skipped', those of ctest, else the stage is one test. Sets p, f, s.
stage_count() {
  read -r p f s < <(awk '
    /^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$/ { p = $1; f = $3; s = $5 + 0; known = 1 }
    /^ *[0-9]+\/[0-9]+ Test +#[0-9]+: .* Passed / { cp++; ctest = 1 }
    /^ *[0-9]+\/[0-9]+ Test +#[0-9]+: .*\*\*\*/ { if (/\*\*\*Skipped/) cs++; else cf++; ctest = 1 }
    END {
      if (known) print p, f, s
      else if (ctest) print cp + 0, cf + 0, cs + 0
      else print -1, 0, 0
    }' "$1")
  if [ "$p" = -1 ]; then
    p=0
    if [ "$2" = 0 ]; then p=1; else f=1; fi
  elif [ "$2" != 0 ] && [ "$f" = 0 ]; then
    f=1
  elif [ "$2" = 0 ] && [ "$p" = 0 ] && [ "$s" = 0 ]; then
    echo 'the suite ran no test' >>"$1"
    f=1
  fi
}

stage() {  # NAME SECONDS COMMAND...
  local name=$1 limit=$2 log start=$SECONDS status pid p f s width=34 beat
  shift 2
  # STAGE_DEADLINE, in seconds of the caller's run time, bounds all stages together.
  [ -n "${STAGE_DEADLINE-}" ] && [ $((STAGE_DEADLINE - SECONDS)) -lt "$limit" ] && limit=$((STAGE_DEADLINE - SECONDS))
  mkdir -p "$STAGE_LOGS"
  log=$STAGE_LOGS/$(tr -cs 'a-zA-Z0-9' - <<<"$name" | sed 's/-*$//').log
  if [ $stage_tty = yes ]; then printf '%-*s ' $width "$name"; else printf '%-*s started\n' $width "$name"; fi

  # setsid wants a program; the caller's functions travel through the environment.
  # shellcheck disable=SC2046
  export -f $(compgen -A function)
  # A shell's background jobs ignore SIGINT and hand that on: programs under test must not see it.
  setsid --wait env --default-signal=INT,QUIT bash -u -o pipefail -c '"$@"' stage "$@" >"$log" 2>&1 </dev/null &
  pid=$!
  # setsid --wait forks only when it leads a group: as a background job of a script it does not.
  stage_session=$pid
  beat=$((SECONDS + 60))
  status=''
  while kill -0 $pid 2>/dev/null; do
    if [ $((SECONDS - start)) -ge "$limit" ]; then
      status=124
      echo "stage '$name' was ended: over its limit of $limit s" >>"$log"
      interrupt_session $pid 2>/dev/null
      break
    fi
    if [ $stage_tty = yes ]; then
      printf '\r%-*s %4d s  %s\e[K' $width "$name" $((SECONDS - start)) "$(tail -n 1 "$log" | tr -cd '[:print:]' | cut -c -60)"
    elif [ $SECONDS -ge $beat ]; then
      printf '%-*s %4d s  %s\n' $width "$name" $((SECONDS - start)) "$(tail -n 1 "$log" | cut -c -120)"
      beat=$((SECONDS + 60))
    fi
    sleep 0.2
  done
  end_session $pid 2>/dev/null  # bash would report the death of its job
  if [ -z "$status" ]; then
    wait $pid
    status=$?
  else
    wait $pid 2>/dev/null
  fi
  stage_session=''

  stage_count "$log" "$status"
  stage_passed=$((stage_passed + p)) stage_failed=$((stage_failed + f)) stage_skipped=$((stage_skipped + s))
  [ $stage_tty = yes ] && printf '\r'
  if [ "$f" = 0 ]; then
    local tests=''
    [ $((p + s)) -gt 1 ] && tests="$p passed"
    [ "$s" != 0 ] && tests="$tests, $s skipped"
    printf '%-*s %4d s  ok%s\n' $width "$name" $((SECONDS - start)) "${tests:+  ($tests)}$([ $stage_tty = yes ] && printf '\e[K')"
    # A skipped test never goes unsaid.
    [ "$s" != 0 ] && grep -iE 'skip' "$log" | grep -vE '^[0-9]+ passed' | head -n 20 | sed 's/^/    /'
    return 0
  fi
  printf '%-*s %4d s  FAILED (status %s)%s\n' $width "$name" $((SECONDS - start)) "$status" "$([ $stage_tty = yes ] && printf '\e[K')"
  # What failed, again at the very end: often only the last lines of a run are kept.
  stage_failures+=("$name: $f failed, log: $log" "$(grep -aE -A 15 "$stage_failing" "$log" | cut -c -300 | head -n 48)")
  echo "---- end of $log"
  # Without the steps of a build that went well.
  grep -avE '^\[[0-9]+/[0-9]+\] ' "$log" | cut -c -400 | tail -n "${STAGE_TAIL:-60}"
  echo "----"
  return 1
}

stage_skip() {  # NAME REASON
  stage_skipped=$((stage_skipped + 1))
  printf '%-34s         skipped: %s\n' "$1" "$2"
}

stage_summary() {
  local i
  echo
  for ((i = 0; i < ${#stage_failures[@]}; i += 2)); do
    echo "FAILED  ${stage_failures[i]}"
    [ -z "${stage_failures[i + 1]}" ] || sed 's/^/    /' <<<"${stage_failures[i + 1]}"
  done
  echo "took $((SECONDS - stage_started)) s"
  echo "$stage_passed passed, $stage_failed failed, $stage_skipped skipped"
  [ $stage_failed -eq 0 ] && [ $stage_passed -gt 0 ]
}
