/* SPDX-License-Identifier: MIT */
/* A program with threads, for run.sh; the argument selects what it does. */
#define _GNU_SOURCE
#include <dlfcn.h>
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

/* ---- A library that is loaded by a thread, with variables at a fixed place ---- */

static void *loads(void *path) {
    usleep(1);
    void *library = dlopen(path, RTLD_NOW);
    int *(*place)(void);
    *(void **)&place = library != NULL ? dlsym(library, "place") : NULL;
    printf("%d in the new variable\n", place != NULL ? *place() : -1);
    return NULL;
}
static void load(char *path) {
    enum { COUNT = 500 };
    pthread_t thread;
    void *memory[COUNT]; /* in which the thread's variables come to lie */
    for (size_t i = 0; i < COUNT; i++)
        if ((memory[i] = malloc(1000 + i * 20)) != NULL)
            memset(memory[i], 0xaa, 1000 + i * 20);
    for (int i = 0; i < COUNT; i++)
        free(memory[i]);
    pthread_create(&thread, NULL, loads, path);
    pthread_join(thread, NULL);
}

/* ---- One that is closed while threads have used its variables, and loaded again ---- */

static pthread_barrier_t used, loaded;
static int *(*variable_of)(void);

static void *open_library(const char *path) {
    void *library = dlopen(path, RTLD_NOW);
    *(void **)&variable_of = library != NULL ? dlsym(library, "place") : NULL;
    if (variable_of == NULL)
        exit(1);
    return library;
}
static void *uses_twice(void *sum) {
    *variable_of() += 5;
    pthread_barrier_wait(&used);
    pthread_barrier_wait(&loaded);
    __atomic_fetch_add((int *)sum, *variable_of(), __ATOMIC_RELAXED);
    return NULL;
}
static void load_again(const char *path) {
    pthread_t threads[THREADS];
    int sum = 0;
    void *library = open_library(path);
    pthread_barrier_init(&used, NULL, THREADS + 1);
    pthread_barrier_init(&loaded, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, uses_twice, &sum);
    pthread_barrier_wait(&used);
    dlclose(library);
    open_library(path);
    pthread_barrier_wait(&loaded);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%d in the variables of a library that is loaded again\n", sum);
}

/* ---- Streams ---- */

static FILE *from;
static char words[2][64];
static void *reads_a_line(void *place) {
    if (fgets(place, sizeof words[0], from) == NULL)
        strcpy(place, "nothing\n");
    return NULL;
}
/* Two threads read from one stream, whose lines come in pieces. */
static void read_lines(void) {
    pthread_t threads[2];
    int ends[2];
    if (pipe(ends) != 0 || (from = fdopen(ends[0], "r")) == NULL)
        exit(1);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, reads_a_line, words[i]);
    static const char *const pieces[] = {"one", " line\n", "an", "other\n"};
    for (int i = 0; i < 4; i++) {
        usleep(1000);
        if (write(ends[1], pieces[i], strlen(pieces[i])) < 0)
            exit(1);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%s%s", words[0], words[1]);
    pthread_create(&threads[0], NULL, reads_a_line, words[0]);
    usleep(1000);
    fclose(from);
    pthread_join(threads[0], NULL);
    printf("%s", words[0]);
    fflush(stdout);
}

static void *prints_in_pieces(void *unused) {
    flockfile(stdout);
    printf("not ");
    usleep(2000);
    puts("mixed");
    funlockfile(stdout);
    return unused;
}
static void *prints(void *unused) {
    usleep(1000);
    printf("with %s\n", "this");
    return unused;
}
static void lock_stream(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, prints_in_pieces, NULL);
    pthread_create(&threads[1], NULL, prints, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    fflush(stdout);
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
    if (strcmp(what, "loads") == 0)
        load(arguments[2]);
    if (strcmp(what, "loads again") == 0)
        load_again(arguments[2]);
    if (strcmp(what, "lines") == 0)
        read_lines();
    if (strcmp(what, "locks") == 0)
        lock_stream();
    if (strcmp(what, "recursion") == 0)
        printf("main is %d deep\n", depth(7));
    return strcmp(what, "fails") == 0 ? 42 : 0;
}
