/* SPDX-License-Identifier: MIT */
/*
 * Async: code that waits, written as if it blocked. `fetch` looks like a call that takes a while.
 * With no handler around, its default handler waits; under `concurrently` it suspends the fiber,
 * and three downloads wait at the same time. The code that fetches is the same. (Time is
 * simulated.)
 */
#include <haft.h>
#include <stdio.h>

HAFT_EFFECT(fetch, int, {
    const char *what;
    int takes; /* milliseconds */
});

static int clock_now;

typedef struct download {
    const char *name;
    int takes;
} download_t;

static void *fetch_page(void *argument) {
    const download_t *download = argument;
    int size = HAFT_PERFORM(fetch, download->name, download->takes);
    int images = HAFT_PERFORM(fetch, "its images", download->takes / 2);
    printf("%4d ms: %s has %d KB\n", clock_now, download->name, size + images);
    return NULL;
}

static int fetch_blocking(void *unused, HAFT_PAYLOAD(fetch) * payload) {
    (void)unused;
    clock_now += payload->takes;
    return payload->takes / 10;
}

enum { MOST = 8 };

/* An event loop: starts every fiber, then resumes whichever has its answer first. */
static void concurrently(void *(*function)(void *), download_t *arguments, int count) {
    struct {
        haft_fiber_t *fiber;
        int ready_at, reply;
    } tasks[MOST];
    for (int i = 0; i < count; i++) {
        tasks[i].fiber = haft_fiber_new(function, &arguments[i]);
        tasks[i].ready_at = clock_now;
    }
    for (int live = count; live > 0;) {
        int next = 0;
        for (int i = 1; i < count; i++)
            if (tasks[i].fiber != NULL &&
                (tasks[next].fiber == NULL || tasks[i].ready_at < tasks[next].ready_at))
                next = i;
        clock_now = tasks[next].ready_at;
        bool is_new = haft_fiber_state(tasks[next].fiber) == HAFT_FIBER_NEW;
        haft_request_t request = haft_resume(
            tasks[next].fiber, is_new ? HAFT_NO_REPLY : HAFT_REPLY(fetch, tasks[next].reply),
            HAFT_HANDLES(fetch));
        HAFT_MATCH(request) {
            HAFT_CASE(fetch, payload) {
                tasks[next].ready_at = clock_now + payload->takes;
                tasks[next].reply = payload->takes / 10;
            }
            HAFT_RETURN(result) {
                haft_fiber_drop(tasks[next].fiber);
                tasks[next].fiber = NULL;
                live--;
            }
        }
    }
}

int main(void) {
    download_t downloads[] = {{"news", 400}, {"weather", 100}, {"sport", 220}};
    HAFT_SET_DEFAULT(fetch, fetch_blocking);

    puts("one after the other:");
    for (int i = 0; i < 3; i++)
        fetch_page(&downloads[i]);

    puts("concurrently:");
    clock_now = 0;
    concurrently(fetch_page, downloads, 3);
    return 0;
}
