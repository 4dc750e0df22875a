#!/bin/sh
# SPDX-License-Identifier: MIT
# haft-threads runs programs that know nothing of it: of C, C++, Python and, where they are installed, Redis and
# memcached. Each has one thread of the system where it would have many, or as many as it is told, beside the library's
# own.
set -eu
work=$(mktemp -d)
server=
trap 'test -z "$server" || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
HAFT_THREADS_LIBRARIES=$HAFT_BUILD_DIR/io/posix
export HAFT_THREADS_LIBRARIES
tasks="sh $HAFT_BUILD_DIR/io/posix/haft-threads"
here=$(cd "$(dirname "$0")" && pwd)
expect() {
  expected=$1
  shift
  printed=$("$@" 2>"$work/said") || { echo "$* has failed:"; cat "$work/said"; exit 1; }
  [ "$printed" = "$expected" ] || { echo "$*: $printed instead of $expected"; cat "$work/said"; exit 1; }
}

# wait_for COMMAND...: until it succeeds.
wait_for() {
  tries=0
  until "$@" >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || { echo "this does not succeed: $*"; exit 1; }
    sleep 0.1
  done
}

"$CC" -std=gnu11 -O1 -Wall -Wextra "$here/program.c" -o "$work/program" -pthread
# Where the option is refused, the program's threads are threads, and it is told why.
if $tasks "$work/program" refused 2>&1 | grep -q 'threads of the system are used'; then
  $tasks "$work/program" refused
  exit 77
fi
expect '50 threads, 50 numbers of the system' "$work/program" numbers
expect '50 threads, 1 number of the system' $tasks "$work/program" numbers
expect 'the last thread' $tasks "$work/program" exits
expect 'no preload' $tasks "$work/program" starts
printf '#!/bin/sh\nexec %s "$@"\n' "$work/program" >"$work/script"
chmod +x "$work/script"
expect '50 threads, 1 number of the system' $tasks "$work/script" numbers
expect 'main is 7 deep' $tasks "$work/program" recursion
echo 'static __thread int zero[20]; int *place(void) { return &zero[10]; }' >"$work/library.c"
"$CC" -shared -fPIC -ftls-model=initial-exec "$work/library.c" -o "$work/library.so"
expect '0 in the new variable' $tasks "$work/program" loads "$work/library.so"
# A library's constructor comes before those of libraries that are loaded first.
echo '#include <stdio.h>
__attribute__((constructor)) static void begin(void) { puts("early"); }' >"$work/library.c"
"$CC" -shared -fPIC "$work/library.c" -o "$work/libearly.so"
"$CC" -std=gnu11 -O1 "$here/program.c" -o "$work/early" -pthread -L"$work" -Wl,--no-as-needed,-rpath,"$work" -learly
expect 'early
50 threads, 1 number of the system' $tasks "$work/early" numbers
echo 'static __thread int seven = 7; int *place(void) { return &seven; }' >"$work/library.c"
"$CC" -shared -fPIC "$work/library.c" -o "$work/library.so"
expect '350 in the variables of a library that is loaded again' "$work/program" 'loads again' "$work/library.so"
expect '350 in the variables of a library that is loaded again' $tasks "$work/program" 'loads again' "$work/library.so"
expect 'one line
another
nothing' $tasks "$work/program" lines
expect 'not mixed
with this' $tasks "$work/program" locks
code=0
$tasks "$work/program" fails || code=$?
[ "$code" = 42 ] || { echo "the status of the program is $code and not 42"; exit 1; }
$tasks -t 2 "$work/program" numbers >/dev/null
# A thread that lets no other run is reported.
$tasks -w 1 "$work/program" spins >"$work/said" 2>&1 &
server=$!
wait_for grep -q 'a task has held its thread' "$work/said"
kill -9 "$server"
wait "$server" 2>/dev/null || true
server=
$tasks --help | grep -q '^usage: haft-threads'
# Nothing can be preloaded into a program that is linked statically, which is told.
if "$CC" -std=gnu11 -O1 -static "$here/program.c" -o "$work/static" -pthread 2>/dev/null; then
  expect '50 threads, 50 numbers of the system' $tasks "$work/static" numbers
  grep -qx "haft-threads: $work/static is linked statically: its threads are threads of the system" "$work/said"
fi
for wrong in '-w many' '-t 0' '-t many' '-x' ''; do
  # shellcheck disable=SC2086 # several words
  if $tasks $wrong >/dev/null 2>&1; then echo "haft-threads $wrong is accepted"; exit 1; fi
done

"$CC" -std=gnu11 -O1 "$HAFT_SOURCE_DIR/examples/posix/threads/server.c" -o "$work/server" -pthread
expect "$(cat "$HAFT_SOURCE_DIR/examples/posix/threads/server.expected")" $tasks "$work/server"
# A connection for each descriptor that there may be, each with a thread of its own.
"$CC" -std=gnu11 -O1 -D_GNU_SOURCE -Wall -Wextra "$here/load.c" -o "$work/load"
connections=1000
[ "${HAFT_CAMPAIGN:-}" != long ] || connections=50000
most=$((connections + 100))
(ulimit -n $most) 2>/dev/null || { most=$(ulimit -Hn) && connections=$((most - 100)); }
(ulimit -n "$most" && exec $tasks "$work/server" 0) >"$work/port" 2>"$work/said" &
server=$!
wait_for grep -q port "$work/port"
expect "$connections connections, $((3 * connections)) answers" \
  sh -c "ulimit -n $most && exec $work/load $(sed 's/port //' "$work/port") $connections 3"
wait "$server"
server=

if [ -n "${CXX:-}" ]; then
  "$CXX" -std=c++20 -O1 "$here/program.cpp" -o "$work/program_of_cpp" -pthread
  expect '50 ids, sum 1225, 50 destroyed, 1 initialised' $tasks "$work/program_of_cpp"
fi

# ---- Programs of the system ----

python=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null) || python=
if [ -n "$python" ]; then
  expect "$(cat "$here/python.expected")" $tasks "$python" "$here/python.py"
  pages=$HAFT_SOURCE_DIR/examples/posix/threads/pages
  expect "$(cat "$pages.expected")" $tasks "$python" "$pages.py"
  expect "$(cat "$pages.expected")" "$python" "$pages.py"
  # CPython's own tests, of the package libpython3-testsuite.
  modules='test_queue test_thread test_threading_local'
  [ "${HAFT_CAMPAIGN:-}" != long ] ||
    modules="$modules test_threading test_threadsignals test_socketserver test_httpservers test_concurrent_futures"
  for module in $modules; do
    if "$python" -c "import test.$module" 2>/dev/null; then
      (cd "$work" && $tasks "$python" "$here/cpython.py" "$module") >"$work/said" 2>&1 ||
        { echo "$module of CPython has failed:"; tail -40 "$work/said"; exit 1; }
    else
      echo "left out: $module of CPython is not installed"
    fi
  done
fi

if command -v redis-server >/dev/null && command -v redis-cli >/dev/null; then
  $tasks redis-server --port 0 --unixsocket "$work/redis" --save '' --dir "$work" >"$work/said" 2>&1 &
  server=$!
  wait_for redis-cli -s "$work/redis" ping
  expect OK redis-cli -s "$work/redis" set name value
  expect value redis-cli -s "$work/redis" get name
  expect OK redis-cli -s "$work/redis" flushall async
  redis-cli -s "$work/redis" shutdown nosave
  wait "$server"
  server=
else
  echo 'left out: Redis is not installed'
fi
if command -v memcached >/dev/null; then
  $tasks memcached -u "$(id -un)" -t 4 -s "$work/memcached" >"$work/said" 2>&1 &
  server=$!
  wait_for test -S "$work/memcached"
  "$CC" -std=gnu11 "$here/ask.c" -o "$work/ask"
  expect 'STORED' "$work/ask" "$work/memcached" 'set name 0 0 5
value'
  kill "$server"
  wait "$server" || true
  server=
else
  echo 'left out: memcached is not installed'
fi
if command -v mariadbd >/dev/null && command -v mariadb >/dev/null; then
  mkdir "$work/data"
  # (Its io_uring waits by system calls of its own.)
  $tasks mariadbd --no-defaults --user="$(id -un)" --datadir="$work/data" --socket="$work/mariadb" --skip-networking \
    --pid-file="$work/pid" --skip-grant-tables --innodb-use-native-aio=0 --innodb-buffer-pool-size=32M \
    >"$work/said" 2>&1 &
  server=$!
  sql="mariadb --no-defaults -N -S $work/mariadb -e"
  wait_for $sql 'select 1'
  $sql 'create database d; create table d.c (n int) engine=innodb; insert into d.c values (0)'
  clients=
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    $sql 'begin; update d.c set n = n + 1; do sleep(0.01); commit' &
    clients="$clients $!"
  done
  # shellcheck disable=SC2086 # several numbers
  wait $clients
  expect 10 $sql 'select n from d.c'
  kill "$server"
  wait "$server"
  server=
else
  echo 'left out: MariaDB is not installed'
fi
