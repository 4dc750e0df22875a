#!/bin/sh
# A walk over a stack does not use what it remembers of a function for another that is loaded in its place.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
flags="-std=gnu11 -O0 -Wall -Wextra -Werror -fexceptions -I$HAFT_SOURCE_DIR/core/include"
static="$HAFT_BUILD_DIR/core/libhaft.a"
cd "$work" || exit 1

cat > plugin.c << 'END'
#if defined(__x86_64__)
#define SAVED "rbx"
#else
#define SAVED "x19"
#endif
extern void wait_here(void *);
extern int cleaned;
void clean(void *unused);
void clean(void *unused) { (void)unused; cleaned++; }
/* The calls return to the same addresses, with cleanups and without. */
__attribute__((aligned(4096))) void *body(void *unused);
void *body(void *unused) {
    __asm__ volatile("" : : : SAVED);
#if CLEANS
    __attribute__((cleanup(clean)))
#endif
    char memory[SIZE];
    wait_here(memory);
    wait_here(memory);
    return unused;
}
END
cat > host.c << 'END'
#include <dlfcn.h>
#include <haft.h>
#include <stdio.h>
#include <stdlib.h>
HAFT_EFFECT(pause, void, {});
extern void wait_here(void *);
extern int cleaned;
int cleaned;
static void *returns_to;
void wait_here(void *unused) {
    (void)unused;
    returns_to = __builtin_return_address(0);
    HAFT_PERFORM(pause);
}
int main(int count, char **plugins) {
    void *last = NULL;
    int again = 0;
    for (int i = 1; i < count; i++) {
        if (rename(plugins[i], "./loaded.so") != 0) return 1;
        void *plugin = dlopen("./loaded.so", RTLD_NOW | RTLD_LOCAL);
        if (plugin == NULL) { puts(dlerror()); return 1; }
        void *(*body)(void *) = (void *(*)(void *))(size_t)dlsym(plugin, "body");
        for (int j = 0; j < 3; j++) {
            haft_fiber_t *k = haft_fiber_new(body, NULL);
            haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(pause));
            haft_fiber_drop(k);
        }
        printf("%d ", cleaned);
        again += returns_to == last;
        last = returns_to;
        dlclose(plugin);
    }
    fprintf(stderr, "the next at the same address: %d\n", again);
    return 0;
}
END
$CC $flags -rdynamic host.c "$static" -o host -pthread -ldl || exit 1
number=0
for variant in '0 8' '1 8' '0 8' '1 2000' '0 2000' '1 8' '1 2000' '0 8'; do
    number=$((number + 1))
    $CC $flags -fPIC -shared -DCLEANS="${variant% *}" -DSIZE="${variant#* }" plugin.c -o "$number.so" ||
        exit 1
done
output=$(./host 1.so 2.so 3.so 4.so 5.so 6.so 7.so 8.so) && [ "$output" = "0 3 3 6 6 9 12 12 " ] && exit 0
echo "cleanups after each: $output"
exit 1
# SPDX-License-Identifier: MIT
