# usage: build.sh FOLDER: what make -j4 makes of it, says, and answers; lines that may come in any order are sorted.
cd "$1" || exit 1
make -j4 all; echo "all: $?"
./program; echo "program: $?"
xz -dc -T2 packed | cksum
make -j4 all; echo "nothing left: $?"
rm -f good*
make -j4 -k failing 2>&1 | sed 's/^make\[[0-9]*\]/make/' | sort; echo "failing: ${PIPESTATUS[0]}"
set -m  # a group of its own, for the interrupt
make -j4 endless 2>/dev/null &
until [ -e begun ]; do sleep 0.02; done
kill -INT -- -$!
wait $!; echo "interrupted: $?"
[ -e endless ] && echo 'left half-made' || echo 'deleted'
