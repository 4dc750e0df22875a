/*
 * A program of two translation units, a static library, a shared one, and plugins that are opened
 * while it runs: all of them mean the same effect, whichever performs and whichever handles.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "effects.h"

extern part_t part_own, part_static, part_shared;

int main(int count, char **arguments) {
    const char *names[16] = {"own unit", "static library", "shared library"};
    part_t *parts[16] = {&part_own, &part_static, &part_shared};
    int length = 3, failures = 0;
    int mode = count > 1 && strcmp(arguments[1], "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL;
    for (int i = 2; i < count; i++) {
        void *plugin = dlopen(arguments[i], RTLD_NOW | mode);
        part_t *part = plugin != NULL ? (part_t *)dlsym(plugin, "part_plugin") : NULL;
        if (part == NULL) {
            printf("cannot open %s: %s\n", arguments[i], dlerror());
            return 1;
        }
        names[length] = arguments[i];
        parts[length++] = part;
    }
    for (int i = 0; i < length; i++) {
        if (parts[i]->identity() != HAFT_ID(shared_ask)) {
            printf("%s has an effect of its own\n", names[i]);
            failures++;
            continue;
        }
        for (int j = 0; j < length; j++)
            if (parts[j]->identity() == HAFT_ID(shared_ask) &&
                parts[i]->handle(parts[j]->perform, 10 * j) != 10 * j + 1) {
                printf("%s does not handle for %s\n", names[i], names[j]);
                failures++;
            }
    }
    return failures != 0;
}
/* SPDX-License-Identifier: MIT */
