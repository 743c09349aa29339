# shellcheck shell=bash disable=SC2154
# Network servers, one function each, as in cases.sh. The server runs plain and on Upcall; what loads it runs on kernel
# threads both times, beside it. Its answers must be right and it must end by itself; what it answered in a second is a figure.

NGINX=/usr/sbin/nginx
SIZES='0 1 100 4000 70000 1000000'

free_port() {
  "$PYTHON" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# serve [OPTION VALUE]... LABEL LOAD COMMAND...: LOAD, a function and its arguments, has what COMMAND serves, and ends it. Options
# of step.
serve() {
  local options=() label load client
  while [[ $1 = -* ]]; do options+=("$1" "$2"); shift 2; done
  label=$1 load=$2
  shift 2
  $load >"$OUT/$label.load" 2>&1 &
  client=$!
  step "${options[@]}" "$label" "$@"
  wait $client || problem "$label: the client: $(tail -n 5 "$OUT/$label.load" | tr '\n' ' ')"
  same "$OUT/$label.load" "$REF/$label.load" "$label: what the client found differs"
  [ "$MODE" = plain ] || compare_figures
}

# figure VALUE WHAT: of a load, which `serve` runs beside the server.
figure() { echo "$*" >>"$OUT/$label.figures"; }

# counter NAME: what the processes of the server have counted together.
counter() {
  find "$OUT/$label.stats" -name '*.json' -exec grep -hoE "\"$1\": *[0-9]+" {} + | awk -F: '{ sum += $2 } END { print sum + 0 }'
}

compare_figures() {
  local value what plain
  [ -s "$OUT/$label.figures" ] || return
  while read -r value what; do
    plain=$(grep -F " $what" "$REF/$label.figures" | cut -d ' ' -f 1)
    note "$(awk -v p="${plain:-0}" -v u="$value" -v what="$what" 'BEGIN {
      printf "%s: plain %.0f, Upcall %.0f, %.2f times as many", what, p, u, (p > 0 ? u / p : 0) }')"
  done <"$OUT/$label.figures"
  note "$label: $(counter blocking_calls) calls that may block, $(counter event_waits) waits for descriptors"
}

# --- HTTP -------------------------------------------------------------------------------------------

# announced FILE: the line that a server writes when it listens: `PORT PID`, or less.
announced() {
  local line i
  for ((i = 0; i < 400; i++)); do
    [ -s "$1" ] && read -r line <"$1" && { echo "$line"; return 0; }
    sleep 0.05
  done
  return 1
}

# wrk_load PORT WHAT CONNECTIONS SECONDS PREFIX SIZE...
wrk_load() {
  local port=$1 what=$2 connections=$3 seconds=$4 prefix=$5
  shift 5
  timeout 60 prlimit --nofile=8192: wrk -t 1 -c "$connections" -d "$seconds" --timeout 20 -s "$WORK/src/paths.lua" \
    "http://127.0.0.1:$port" -- "${@/#/$prefix/}" >"$OUT/wrk" 2>&1 || { cat "$OUT/wrk"; return 1; }
  if grep -E 'Socket errors|Non-2xx' "$OUT/wrk"; then return 1; fi
  figure "$(awk '/^Requests\/sec/ { print $2 }' "$OUT/wrk")" "$what"
}

# http_load ANNOUNCED CONNECTIONS: four seconds of small answers, then every answer checked; then the server is to end.
http_load() {
  local port pid status=0
  read -r port pid < <(announced "$1") || { echo 'the server does not say where it listens'; return 1; }
  wrk_load "$port" "requests/s, $2 connections" "$2" 4 '' 100 || status=1
  # shellcheck disable=SC2086
  timeout 60 "$PYTHON" "$WORK/src/http_check.py" "$port" "$DATA" '' $SIZES || status=1
  kill -TERM "$pid"
  return $status
}

build_http_threads() { cc -O2 -Wall -Wextra -pthread -o "$WORK/http_threads" "$WORK/src/http_threads.c"; }
case_http_threads() {
  serve server "http_load $OUT/port 1000" prlimit --nofile=8192: "$WORK/http_threads" "$OUT/port" "$DATA"
}

case_python_http() {
  serve server "http_load $OUT/port 1000" prlimit --nofile=8192: "$PYTHON" "$WORK/src/python_http.py" "$OUT/port" "$DATA"
}

# nginx_files MASTER_PROCESS PORT: files of several sizes; what is not in the kernel's cache is read, or sent, by a pool of threads.
nginx_files() {
  local size
  mkdir -p "$OUT/files"
  for size in $SIZES; do head -c "$size" "$DATA" >"$OUT/files/$size"; done
  cat >"$OUT/nginx.conf" <<CONF
daemon off;
master_process $1;
pid $OUT/pid;
thread_pool default threads=8;
env COUNT_THREADS_FILE;
events { worker_connections 1024; }
http {
  access_log off;
  keepalive_requests 10000000;
  aio threads;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  server {
    listen 127.0.0.1:$2 backlog=1024;
    location /read/ { alias $OUT/files/; sendfile off; }
    location /send/ { alias $OUT/files/; sendfile on; }
  }
}
CONF
}

nginx_load() {  # PORT MASTER_PROCESS
  local pid way status=0
  pid=$(announced "$OUT/pid") || { echo 'the server does not say that it listens'; return 1; }
  for way in read send; do
    # shellcheck disable=SC2086
    wrk_load "$1" "requests/s, files by $way, master process $2" 100 2 "/$way" $SIZES || status=1
    # shellcheck disable=SC2086
    timeout 60 "$PYTHON" "$WORK/src/http_check.py" "$1" "$DATA" "/$way" $SIZES || status=1
  done
  kill -QUIT "$pid"
  return $status
}

# nginx MASTER_PROCESS [OPTION VALUE]
nginx() {
  local master=$1 port
  shift
  port=$(free_port)
  rm -f "$OUT/pid"
  nginx_files "$master" "$port"
  serve "$@" "master_$master" "nginx_load $port $master" "$NGINX" -p "$OUT" -c "$OUT/nginx.conf" -e "$OUT/errors"
}

# The threads are those of the worker, which is a child of the master process, if there is one.
case_nginx() {
  nginx off
  nginx on -c 8
}

# --- redis ------------------------------------------------------------------------------------------

# redis_figure WHAT: from the lines `"TEST","REQUESTS PER SECOND",...` of tests of the same length, over all of them.
redis_figure() {
  figure "$(tr -d '"' | awk -F, '$2 + 0 > 0 { tests++; time += 1 / $2 } END { print time ? tests / time : 0 }')" "requests/s, $1"
}

redis_cli() { timeout 20 redis-cli -h 127.0.0.1 -p "$port" "$@"; }
redis_benchmark() { timeout 60 redis-benchmark -h 127.0.0.1 -p "$port" --csv -c 64 "$@"; }

# redis_load PORT THREADS NUMBER: so many commands of each kind, ten times as many sent ahead, then what they must have left behind.
redis_load() {
  local port=$1 figure status=0 i
  for ((i = 0; i < 400; i++)); do
    [ "$(redis_cli ping 2>/dev/null)" = PONG ] && break
    sleep 0.05
  done
  redis_benchmark -n "$3" -d 500 -t set,get,incr,lpush,sadd,hset | redis_figure "io-threads $2, one at a time"
  redis_benchmark -n "${3}0" -d 500 -P 20 -t set,get,incr | redis_figure "io-threads $2, twenty at a time"
  redis_cli get counter:__rand_int__
  redis_cli strlen key:__rand_int__
  redis_cli llen mylist
  redis_cli dbsize
  redis_cli scard myset
  head -c 3000000 "$DATA" | redis_cli -x set blob
  redis_cli get blob | cmp - <(head -c 3000000 "$DATA"; echo)
  # By a thread of its own; then by a child.
  redis_cli unlink mylist blob
  redis_cli bgsave
  for ((i = 0; i < 200; i++)); do
    redis_cli info persistence | grep -q 'rdb_bgsave_in_progress:0' && break
    sleep 0.05
  done
  redis_cli info persistence | grep 'rdb_last_bgsave_status'
  redis-check-rdb "$OUT/dump.rdb" | grep -E 'keys read|OK'
  redis_cli info stats | grep total_error_replies
  for figure in reads writes; do
    [ "$2" -gt 1 ] || break
    redis_cli info stats | grep -q "io_threaded_${figure}_processed:[1-9]" || { echo "its threads do not do $figure"; status=1; }
  done
  redis_cli shutdown nosave
  return $status
}

# redis THREADS MOST NUMBER: threads that it says it makes, for what may take long and for sockets; its allocator makes some too.
redis() {
  local port
  port=$(free_port)
  serve -t "$(($1 + 2))-$2" "io_threads_$1" "redis_load $port $1 $3" redis-server --port "$port" --bind 127.0.0.1 --save '' \
    --dir "$OUT" --io-threads "$1" --io-threads-do-reads yes
}

# The second begins with what the first has left in its file. Its io-threads and its first thread wait for each other in loops, at
# the cost of time slices: few commands.
case_redis() {
  redis 1 8 20000
  redis 3 10 1000
}

# --- Python's own tests -----------------------------------------------------------------------------

# The test of sockets between virtual machines waits for ever on some, on kernel threads as well.
case_test_socket() { python_tests test_socket-VSOCK 400; }
case_test_selectors() { python_tests test_selectors 60 3; }
case_test_socketserver() { python_tests test_socketserver 15; }
