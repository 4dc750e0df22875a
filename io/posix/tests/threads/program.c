/* SPDX-License-Identifier: MIT */
/* A program with threads, for run.sh; the argument says what it does. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 50 };

static pthread_barrier_t all;
static long numbers[THREADS];

static void *tell_number(void *place) {
    usleep(100);
    *(long *)place = syscall(SYS_gettid);
    pthread_barrier_wait(&all);
    return NULL;
}
static void count_numbers(void) {
    pthread_t threads[THREADS];
    int different = 0;
    pthread_barrier_init(&all, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, tell_number, &numbers[i]) != 0)
            exit(1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        int j = 0;
        while (numbers[j] != numbers[i])
            j++;
        different += j == i;
    }
    printf("%d threads, %d number%s of the system\n", THREADS, different,
           different == 1 ? "" : "s");
}

static void *ends_last(void *main_thread) {
    pthread_join(*(pthread_t *)main_thread, NULL);
    usleep(1000);
    puts("the last thread");
    return NULL;
}

static void *spins(void *flag) {
    while (*(volatile int *)flag == 0) {
    }
    return NULL;
}

static int depth(int more) {
    volatile char frame[900 << 10];
    memset((void *)(size_t)frame, more, sizeof frame);
    return more == 0 ? 0 : 1 + depth(more - 1) + frame[5] - more;
}

int main(int count, char **arguments) {
    static pthread_t self;
    pthread_t thread;
    const char *what = count > 1 ? arguments[1] : "";
    self = pthread_self();
    if (strcmp(what, "numbers") == 0)
        count_numbers();
    if (strcmp(what, "exits") == 0) {
        pthread_create(&thread, NULL, ends_last, &self);
        pthread_exit(NULL);
    }
    if (strcmp(what, "starts") == 0) {
        fflush(stdout);
        return system("test -z \"$LD_PRELOAD$HAFT_THREADS_WITHOUT\" && echo no preload");
    }
    if (strcmp(what, "spins") == 0) {
        int flag = 0;
        pthread_create(&thread, NULL, spins, &flag);
        usleep(1);
        flag = 1; /* which nobody comes to */
        pthread_join(thread, NULL);
    }
    if (strcmp(what, "recursion") == 0)
        printf("main is %d deep\n", depth(7));
    return strcmp(what, "fails") == 0 ? 42 : 0;
}
