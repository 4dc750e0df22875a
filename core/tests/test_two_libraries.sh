#!/bin/sh
# Two copies of the library in one process are reported when the second is loaded; a copy in a plugin
# that is closed stays, so that threads that have used it can end.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
flags="-std=gnu11 -Wall -Wextra -Werror -fexceptions -I$HAFT_SOURCE_DIR/core/include"
static="$HAFT_BUILD_DIR/core/libhaft.a"
shared="-L$HAFT_BUILD_DIR/core -lhaft -Wl,-rpath,$HAFT_BUILD_DIR/core"
cd "$work" || exit 1

cat > plugin.c << 'END'
#include <haft.h>
HAFT_EFFECT(ask, int, {});
static void *body(void *unused) { (void)unused; return (void *)(long)HAFT_PERFORM(ask); }
int use(void);
int use(void) {
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(body, NULL);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask));
    haft_request_t request = haft_resume(k, HAFT_REPLY(ask, 42), HAFT_HANDLES(ask));
    return (int)(long)((HAFT_PAYLOAD(return) *)request.payload)->result;
}
END
cat > host.c << 'END'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef WITH_HAFT
#include <haft.h>
static void *nothing(void *it) { return it; }
#endif
static pthread_barrier_t closed;
static void *plugin;
static void *run(void *unused) {
    int (*use)(void) = (int (*)(void))(long)dlsym(plugin, "use");
    printf("%d\n", use());
    pthread_barrier_wait(&closed);
    pthread_barrier_wait(&closed);
    return unused;
}
int main(void) {
#ifdef WITH_HAFT
    haft_fiber_drop(haft_fiber_new(nothing, NULL));
#endif
    plugin = dlopen("./plugin.so", RTLD_NOW | RTLD_LOCAL);
    if (plugin == NULL) { puts(dlerror()); return 1; }
    pthread_t thread;
    pthread_barrier_init(&closed, NULL, 2);
    pthread_create(&thread, NULL, run, NULL);
    pthread_barrier_wait(&closed);
    dlclose(plugin);
    pthread_barrier_wait(&closed);
    pthread_join(thread, NULL);
    return system("exit 0");
}
END
failures=0
fail() {
    echo "$1"
    failures=$((failures + 1))
}
two="haft: This process has two copies of the library, in "

$CC $flags -fPIC -shared plugin.c "$static" -o plugin.so -pthread || exit 1
$CC $flags host.c -o host -pthread -ldl || exit 1
output=$(./host 2>&1) && [ "$output" = 42 ] || fail "a plugin with a copy, closed: $output"

$CC $flags -DWITH_HAFT host.c "$static" -o host -pthread -ldl || exit 1
output=$(./host 2>&1) || fail "a program and a plugin, each with a copy: $output"
case $output in
"${two}the program and in "*plugin.so.*) ;;
*) fail "a program and a plugin, each with a copy, say: $output" ;;
esac

$CC $flags -DWITH_HAFT host.c $shared -o host -pthread -ldl || exit 1
output=$(./host 2>&1)
case $output in
"${two}"*libhaft.so*" and in "*plugin.so.*) ;;
*) fail "libhaft.so and a plugin with a copy say: $output" ;;
esac

$CC $flags -fPIC -shared plugin.c $shared -o plugin.so || exit 1
output=$(./host 2>&1) && [ "$output" = 42 ] || fail "libhaft.so for both: $output"

$CC $flags -DWITH_HAFT host.c "$static" -o host -pthread -ldl || exit 1
output=$(./host 2>&1)
case $output in
"${two}the program and in "*libhaft.so*.*) ;;
*) fail "a program with a copy and a plugin with libhaft.so say: $output" ;;
esac
exit $failures
# SPDX-License-Identifier: MIT
