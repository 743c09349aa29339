# Everything that a shell does with processes and signals. What it prints is the same in every run.
# usage: bash shell.sh DATA
set -u
data=$1 work=$(mktemp -d) || exit 1
# A child that is ended before it has become another program may come by here.
trap 'status=$?; [ $BASHPID = $$ ] && { rm -rf "$work"; echo "exit trap, status $status"; }' EXIT

echo '-- pipelines'
seq 20000 | sort -r | sort -n | md5sum
false | true | (exit 3) | true
echo "status of each: ${PIPESTATUS[*]}"
(set -o pipefail; (exit 4) | true; echo "of all: $?")
yes | head -n 3 | tr -d '\n'; echo " ${PIPESTATUS[*]}"

echo '-- threads below'
head -c 3000000 "$data" | xz -0 -T2 --block-size=300000 | xz -dc -T2 | cmp - <(head -c 3000000 "$data") && echo 'xz: the same'

echo '-- background'
for code in 1 2 3; do (sleep 0.0$code; exit $code) & done
sum=0
for _ in 1 2 3; do wait -n; sum=$((sum + $?)); done
echo "wait -n: $sum"
wait -n; echo "nobody left: $?"
sleep 100 & pid=$!
kill -TERM $pid; wait $pid; echo "terminated: $?"
sleep 100 & pid=$!
kill -KILL $pid; wait $pid 2>/dev/null; echo "killed: $?"
(exit 7) & pid=$!
wait $pid; echo "exited: $?"

echo '-- traps'
got=
trap 'got+=U' USR1
trap 'got+=T' TERM
for _ in {1..20}; do kill -USR1 $$; done
kill -TERM $$
echo "handled: $got"
trap '' USR1
kill -USR1 $$; (kill -USR1 $BASHPID; echo 'ignored in a subshell, too')
trap - USR1 TERM
(trap 'echo "its own trap"; exit 5' TERM; kill -TERM $BASHPID; echo 'not here'); echo "subshell: $?"
(kill -INT $BASHPID; echo 'not here'); echo "interrupted: $?"
# A trap while it waits: wait comes back at once, with 128 + the signal.
trap 'got=during' USR2
sleep 100 & pid=$!
(sleep 0.05; kill -USR2 $$) &
wait $pid; echo "wait: $?, $got"
kill $pid; wait $pid 2>/dev/null
wait

echo '-- coprocess and substitution'
coproc calc { while read -r a b; do echo $((a * b)); done; }
calc_pid=$calc_PID
echo '6 7' >&"${calc[1]}"; read -r answer <&"${calc[0]}"; echo "answer $answer"
exec {calc[1]}>&-
wait "$calc_pid"; echo "coprocess: $?"
diff <(seq 5) <(seq 5) && echo 'no difference'
paste -sd+ <(seq 3) | tee >(cat >/dev/null)
echo "$(echo "$(echo nested $(echo deeply))")"

echo '-- limits'
(ulimit -n 64; ulimit -n)
(ulimit -t 100; ulimit -t)
timeout 0.1 sleep 100; echo "timeout: $?"
timeout -s KILL 0.1 sleep 100 2>/dev/null; echo "timeout, kill: $?"
read -t 0.05 -r nothing < <(sleep 1); echo "read: $(($? > 128))"
mkfifo "$work/fifo"
(for i in {1..100}; do echo "$i"; done >"$work/fifo") &
total=0; while read -r i; do total=$((total + i)); done <"$work/fifo"; wait
echo "fifo: $total"
bash -c 'trap "echo last; exit 9" TERM; kill -TERM $$'; echo "last: $?"
(exec bash -c 'kill -HUP $$'); echo "hung up: $?"
