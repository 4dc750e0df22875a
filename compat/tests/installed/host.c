/* Opens the plugin whose name it is given, and handles its effects. */
#include <dlfcn.h>
#include <seff.h>
#include <stdio.h>

DEFINE_EFFECT(ask, 9, int64_t, { int64_t question; });

static void *calls_plugin(void *name) {
    void *plugin = dlopen(name, RTLD_NOW);
    int64_t (*function)(void) = plugin == NULL ? NULL : (int64_t(*)(void))dlsym(plugin, "answer");
    if (function == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return (void *)function();
}

int main(int count, char **names) {
    seff_coroutine_t *k = seff_coroutine_new(calls_plugin, names[count - 1]);
    int64_t reply = 0;
    while (true) {
        seff_request_t request = seff_resume(k, (void *)reply, HANDLES(ask));
        switch (request.effect) {
            CASE_EFFECT(request, ask, {
                reply = payload.question * 2;
                break;
            })
            CASE_RETURN(request, {
                printf("%ld\n", (long)payload.result);
                seff_coroutine_delete(k);
                return 0;
            })
        }
    }
}
/* SPDX-License-Identifier: MIT */
