# shellcheck shell=bash disable=SC2154
# The programs, one function each. A case runs plain and on Upcall; see `run` for what it may use. build_NAME, where
# there is one, compiles what case_NAME runs.

# pack_and_unpack PACK UNPACK: what Upcall packs is unpacked plain, and the other way.
pack_and_unpack() {
  # shellcheck disable=SC2086
  step packed $1 -c "$DATA" && unpacks_to "$2 -c" "$OUT/packed" "$DATA" 'what it packed does not unpack to the input'
  # shellcheck disable=SC2086
  step unpacked $2 -c "$REF/packed" && same "$OUT/unpacked" "$DATA" 'unpacked data differ'
  rm -f "$OUT/unpacked"
}

case_pigz() { pack_and_unpack 'pigz -p 4 -3' 'pigz -p 4 -d'; }
case_pbzip2() { pack_and_unpack 'pbzip2 -p4 -1' 'pbzip2 -p4 -d'; }
case_xz() { pack_and_unpack 'xz -T4 -0' 'xz -T4 -d'; }
case_zstd() { pack_and_unpack 'zstd -q -T4 -3' 'zstd -q -T4 -d'; }

case_sort() {
  step in_memory sort --parallel=4 -S 600M "$LINES_FILE" && same "$OUT/in_memory" "$REF/in_memory" 'sorted lines differ'
  # A small buffer: sorted pieces in temporary files, merged by threads.
  step by_pieces sort --parallel=4 -S 40M -T "$OUT" "$LINES_FILE" && same "$OUT/by_pieces" "$REF/in_memory" 'merged lines differ'
  step stable sort --parallel=4 -S 600M -s -k2,2 "$LINES_FILE" && same "$OUT/stable" "$REF/stable" 'stably sorted lines differ'
}

# python_tests MODULE LEAST [THREADS]: Debian's own test module; every test that passes plain must pass, at least LEAST
# do. THREADS others, if given, call each other meanwhile.
python_tests() { python_tests_like -- "$@"; }

# python_tests_like OPTION... -- MODULE LEAST [THREADS]: with options of step.
python_tests_like() {
  local lost options=()
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  step "${options[@]}" tests "$PYTHON" "$WORK/src/run_unittest.py" "test.$1" "$OUT/outcomes" "${@:3}"
  [ -f "$OUT/outcomes" ] || { problem "$1 did not get to its end; the last it said: $(tail -n 1 "$OUT/tests.err")"; return; }
  if [ "$MODE" = plain ]; then
    [ "$(grep -c '^ok ' "$OUT/outcomes")" -ge "$2" ] ||
      problem "fewer than $2 tests of $1 pass: $(grep -v '^ok ' "$OUT/outcomes" | head -n 5)"
    return
  fi
  while IFS= read -r lost; do
    problem "passes on kernel threads only: $lost ($(grep -F " ${lost#ok }" "$OUT/outcomes" | head -n 1))"
  done < <(grep '^ok ' "$REF/outcomes" | LC_ALL=C sort | comm -23 - <(grep '^ok ' "$OUT/outcomes" | LC_ALL=C sort))
  # What cannot be tried here cannot be tried there, and nothing else.
  while IFS= read -r lost; do problem "skipped in one of the two runs only: $lost"; done < <(
    diff <(grep '^skipped ' "$REF/outcomes") <(grep '^skipped ' "$OUT/outcomes") | grep '^[<>]')
  # Python's own account of them.
  while IFS= read -r lost; do problem "    $lost"; done < <(sed -n '/^=====/,$p' "$OUT/tests.err" | head -n 80)
}

case_test_threading() { python_tests test_threading 150; }
case_test_thread() { python_tests test_thread 20; }
case_test_queue() { python_tests test_queue 45; }
case_test_threading_local() { python_tests test_threading_local 18; }
case_test_threadsignals() { python_tests test_threadsignals 6; }
# It makes no threads of its own: fork, vfork and pipes beside some that others make.
case_test_subprocess() { python_tests test_subprocess 250 3; }

# Processes and signals. They make few threads of their own: three others hand numbers around meanwhile.
case_test_signal() { python_tests test_signal 45 3; }
case_test_os() { python_tests_like -t 10-20 -b sched_setscheduler,sched_setaffinity,setpriority,setns,unshare -- test_os 250 3; }
case_test_posix() { python_tests_like -b sched_setscheduler,sched_setaffinity,setpriority,setns,unshare -- test_posix 120 3; }
case_test_fork1() { python_tests test_fork1 4 3; }
case_test_wait3() { python_tests test_wait3 3 3; }
case_test_wait4() { python_tests test_wait4 2 3; }
case_test_pty() { python_tests test_pty 6 3; }
case_test_popen() { python_tests test_popen 5 3; }
case_test_faulthandler() { python_tests test_faulthandler 38 3; }

# Programs without threads, whose children have some (xz).
case_bash() {
  head -c 3000000 "$DATA" >"$OUT/data"
  step -c 2+ script bash "$WORK/src/shell.sh" "$OUT/data" && same "$OUT/script" "$REF/script" 'the script says something else'
  step -c 2+ terminal "$PYTHON" "$WORK/src/on_terminal.py" && same "$OUT/terminal" "$REF/terminal" 'on a terminal it is different'
}
case_make() {
  cp -R "$WORK/src/tree" "$OUT/tree"
  step -c 4+ output bash "$OUT/tree/build.sh" "$OUT/tree" && same "$OUT/output" "$REF/output" 'make says something else'
}

case_python_queues() {
  step -f output "$PYTHON" "$WORK/src/python_queues.py" && same "$OUT/output" "$REF/output" 'results differ'
  [ "$MODE" = plain ] || [ "$threads" -eq 1000 ] || problem "$threads threads instead of 1000"
}

# sysbench_events LABEL NUMBER: sysbench counted exactly this many events.
sysbench_events() {
  grep -qE "total number of events: +$2\$" "$OUT/$1" || problem "$1: not $2 events: $(grep -F 'number of events' "$OUT/$1")"
}

case_sysbench_threads() {
  step -f threads sysbench threads --threads=64 --thread-yields=200 --thread-locks=8 --time=0 --events=5000 run &&
    sysbench_events threads 5000
}

case_sysbench_mutex() {
  step -f mutex sysbench mutex --threads=256 --mutex-num=16 --mutex-locks=20000 --mutex-loops=200 run &&
    sysbench_events mutex 256
}

build_openmp() { cc -O2 -Wall -Wextra -fopenmp -o "$WORK/openmp" "$WORK/src/openmp.c"; }
case_openmp() { step -f output "$WORK/openmp" && same "$OUT/output" "$REF/output" 'results differ'; }

# The same program with LLVM's runtime, whose threads spin and yield before they sleep. How many make up the nested teams
# depends on which are free by then.
build_libomp() { clang -O2 -Wall -Wextra -fopenmp=libomp -o "$WORK/libomp" "$WORK/src/openmp.c"; }
case_libomp() { step -f -t 7-15 output "$WORK/libomp" && same "$OUT/output" "$REF/output" 'results differ'; }

build_rust_threads() { "$RUSTC" --edition 2021 -C opt-level=1 -o "$WORK/rust_threads" "$WORK/src/rust_threads.rs"; }
case_rust_threads() { step -f output "$WORK/rust_threads" && same "$OUT/output" "$REF/output" 'results differ'; }

build_cpp_threads() { c++ -std=c++20 -O2 -Wall -Wextra -pthread -o "$WORK/cpp_threads" "$WORK/src/cpp_threads.cc"; }
case_cpp_threads() {
  step -f output "$WORK/cpp_threads" && same "$OUT/output" "$REF/output" 'results differ'
  [ "$MODE" = plain ] || [ "$threads" -ge 30000 ] || problem "$threads threads instead of 30,000 and a few"
}

# stress LABEL STRESSOR OPERATIONS THREADS OPTION...: two workers, processes of their own, do exactly so many.
stress() {
  local label=$1 stressor=$2 operations=$3 by_children=$4
  shift 4
  # Its threads look whether they may enter name spaces.
  step -c "$by_children" -b setns "$label" stress-ng "--$stressor" 2 "--$stressor-ops" "$operations" --timeout 60 --verify \
    --metrics --log-file "$OUT/$label.log" --temp-path "$OUT" "$@"
  grep -qE "metrc: .* $stressor +$operations " "$OUT/$label.log" ||
    problem "$label: not $operations operations: $(grep -E "metrc: .* $stressor " "$OUT/$label.log")"
  grep -q 'successful run completed' "$OUT/$label.log" || problem "$label: $(grep -E 'fail|error' "$OUT/$label.log" | head -n 3)"
}

case_stress_ng() {
  # It creates, asks about and joins them, 64 at a time.
  stress pthread pthread 6000 6000 --pthread-max 64
}

# memcached serves connections over loopback that check every value; then SIGTERM.
case_memcached() {
  local client
  rm -f "$OUT/port"
  timeout 120 "$PYTHON" "$WORK/src/memcached_load.py" "$OUT/port" >"$OUT/load" 2>&1 &
  client=$!
  step server env MEMCACHED_PORT_FILENAME="$OUT/port" memcached -u root -l 127.0.0.1 -p -1 -t 4 -m 64
  wait $client || problem "the client: $(tail -n 3 "$OUT/load")"
  same "$OUT/load" "$REF/load" 'what the client counted differs'
}
