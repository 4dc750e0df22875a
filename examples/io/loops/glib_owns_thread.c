/* SPDX-License-Identifier: MIT */
/* Tasks in a program whose thread is GLib's, as that of every GTK program is: a source of GLib steps
   the run when its descriptor is readable, or its first timer is due. */
#include <haft/io.h>

#include <glib-unix.h>
#include <stdio.h>

typedef struct {
    GSource source; /* must be first */
    haft_io_stepper_t *stepper;
    gpointer watched;
    int descriptor; /* that is watched */
    GMainLoop *loop;
} tasks_t;

/* Sets what the source waits for, which each step may change. */
static void wait_again(tasks_t *tasks) {
    int descriptor = haft_io_stepper_descriptor(tasks->stepper);
    int64_t deadline = haft_io_stepper_deadline(tasks->stepper), left = deadline - haft_io_now();
    if (descriptor != tasks->descriptor && tasks->watched != NULL)
        g_source_remove_unix_fd(&tasks->source, tasks->watched), tasks->watched = NULL;
    if (descriptor >= 0 && tasks->watched == NULL)
        tasks->watched = g_source_add_unix_fd(&tasks->source, descriptor, G_IO_IN);
    tasks->descriptor = descriptor;
    g_source_set_ready_time(&tasks->source, deadline == HAFT_IO_FOREVER ? -1
                                            : left <= 0                 ? 0
                                                        : g_get_monotonic_time() + left / 1000 + 1);
}

static gboolean step(GSource *source, GSourceFunc unused, gpointer unused_too) {
    tasks_t *tasks = (tasks_t *)source;
    (void)unused, (void)unused_too;
    int code = haft_io_stepper_step(tasks->stepper, 0);
    wait_again(tasks);
    if (code == 1)
        return G_SOURCE_CONTINUE;
    g_main_loop_quit(tasks->loop);
    return G_SOURCE_REMOVE;
}

static void *count_down(void *name) {
    for (int i = 2; i > 0; i--) {
        printf("%s %d\n", (const char *)name, i);
        haft_io_sleep(10 * HAFT_IO_MILLISECOND);
    }
    return NULL;
}

static void *begin(void *unused) {
    haft_io_spawn(count_down, "left");
    haft_io_spawn(count_down, "right");
    return unused;
}

int main(void) {
    static GSourceFuncs functions = {.dispatch = step};
    tasks_t *tasks = (tasks_t *)g_source_new(&functions, sizeof *tasks);
    tasks->stepper = haft_io_stepper_new(begin, NULL);
    tasks->loop = g_main_loop_new(NULL, FALSE);
    tasks->watched = NULL;
    tasks->descriptor = -1;
    wait_again(tasks); /* its deadline is now */
    g_source_attach(&tasks->source, NULL);
    g_main_loop_run(tasks->loop);
    int code = haft_io_stepper_end(tasks->stepper);
    g_main_loop_unref(tasks->loop);
    g_source_unref(&tasks->source);
    return code != 0;
}
