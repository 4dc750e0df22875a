/* SPDX-License-Identifier: MIT */
/* GLib's loop in a task. GLib asks haft_io_poll in place of poll(2), so while the loop waits, the
   other tasks go on; its callbacks are code of that task. Here a task sends lines to the loop. */
#include <haft/io.h>

#include <glib-unix.h>
#include <poll.h>
#include <stdio.h>

static GMainLoop *loop;
static int ends[2];

static gint poll_as_task(GPollFD *entries, guint count, gint milliseconds) {
    int64_t deadline =
        milliseconds < 0 ? HAFT_IO_FOREVER : haft_io_now() + milliseconds * HAFT_IO_MILLISECOND;
    struct pollfd all[count + 1];
    for (guint i = 0; i < count; i++)
        all[i] = (struct pollfd){entries[i].fd, (short)entries[i].events, 0};
    int ready = haft_io_poll(all, count, deadline);
    for (guint i = 0; i < count; i++)
        entries[i].revents = (gushort)all[i].revents;
    return ready < 0 ? 0 : ready;
}

static gboolean hear(gint descriptor, GIOCondition unused, gpointer unused_too) {
    char line[100];
    (void)unused, (void)unused_too;
    ssize_t size = haft_io_read(descriptor, line, sizeof line);
    if (size <= 0)
        return g_main_loop_quit(loop), G_SOURCE_REMOVE;
    printf("%.*s", (int)size, line);
    return G_SOURCE_CONTINUE;
}

static void *talk(void *unused) {
    for (int i = 3; i > 0; i--) {
        char line[20];
        int size = snprintf(line, sizeof line, "%d left\n", i);
        haft_io_sleep(10 * HAFT_IO_MILLISECOND); /* for as long the loop waits in haft_io_poll */
        haft_io_write_all(ends[1], line, (size_t)size);
    }
    haft_io_close(ends[1]);
    return unused;
}

static void *run_loop(void *unused) {
    if (haft_io_pipe(ends) != 0)
        return NULL;
    haft_io_spawn(talk, NULL);
    loop = g_main_loop_new(NULL, FALSE);
    g_main_context_set_poll_func(NULL, poll_as_task);
    g_unix_fd_add(ends[0], G_IO_IN | G_IO_HUP, hear, NULL);
    g_main_loop_run(loop);
    g_main_loop_unref(loop);
    haft_io_close(ends[0]);
    puts("the loop has ended");
    return unused;
}

int main(void) {
    return haft_io_run(run_loop, NULL) != 0;
}
