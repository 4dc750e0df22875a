/* Telling the user: every message of the library is made here. */
#include "internal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

static haft_error_handler_t *error_handler;

haft_error_handler_t *haft_set_error_handler(haft_error_handler_t *handler) {
    return __atomic_exchange_n(&error_handler, handler, __ATOMIC_ACQ_REL);
}

/* In one write, so that messages of several threads do not mix. */
static void print(const char *message) {
    char line[640];
    int length = snprintf(line, sizeof line, "haft: %s\n", message);
    if (length >= (int)sizeof line)
        length = (int)sizeof line - 1;
    if (write(STDERR_FILENO, line, (size_t)length) < 0)
        return;
}

static HAFT_COLD void report(haft_error_code_t code, const haft_effect_t *effect,
                             const haft_fiber_t *fiber, const char *format, va_list arguments) {
    char message[600];
    vsnprintf(message, sizeof message, format, arguments);
    haft_error_t error = {code, message, effect, fiber};
    haft_error_handler_t *handler = __atomic_load_n(&error_handler, __ATOMIC_ACQUIRE);
    if (handler != NULL)
        handler(&error);
    else
        print(message);
}

void haft_report(haft_error_code_t code, const haft_effect_t *effect, const haft_fiber_t *fiber,
                 const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    report(code, effect, fiber, format, arguments);
    va_end(arguments);
}

void haft_fail(haft_error_code_t code, const haft_effect_t *effect, const haft_fiber_t *fiber,
               const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    report(code, effect, fiber, format, arguments);
    va_end(arguments);
    abort();
}
