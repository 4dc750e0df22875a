/* A program that knows nothing of effects opens plugins that do. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments) {
    for (int i = 1; i < count; i++)
        if (dlopen(arguments[i], RTLD_NOW | RTLD_LOCAL) == NULL) {
            printf("cannot open %s: %s\n", arguments[i], dlerror());
            return 1;
        }
    return 0;
}
/* SPDX-License-Identifier: MIT */
