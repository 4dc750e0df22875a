/* SPDX-License-Identifier: MIT */
/* Signals and child processes. Both are descriptors to wait for: a signalfd, a pidfd. */
#include "objects.h"
#include "tape/replaying.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Closes the descriptor, also when the task is cancelled while it waits. */
static void close_own(const int *descriptor) {
    if (*descriptor >= 0)
        haft_io_close(*descriptor);
}

/* Whether there is no descriptor, so that the state is polled now and then. */
static bool has_no_descriptor(int descriptor) {
    return hafti_io_lacks_descriptor(descriptor) || hafti_io_is_missing(descriptor);
}

static __attribute__((noinline)) int open_signals(const sigset_t *signals) {
    return HAFTI_IO_RESULT(signalfd(-1, signals, SFD_NONBLOCK | SFD_CLOEXEC));
}
int hafti_io_open_signals(const sigset_t *signals) {
    hafti_io_tape_t *tape = hafti_io_tape_here();
    HAFTI_IO_UNTAPED;
    int descriptor = tape != NULL && tape->replays ? 0 : open_signals(signals);
    if (tape == NULL)
        return descriptor;
    descriptor = (int)hafti_io_tape_number(tape, HAFTI_IO_TAPED_SIGNAL, descriptor);
    if (tape->replays)
        hafti_io_tape_occupy(tape, descriptor);
    return descriptor;
}

/* -EAGAIN: none has come. */
static __attribute__((noinline)) int take_signal(const sigset_t *signals) {
    return HAFTI_IO_RESULT(sigtimedwait(signals, NULL, &(struct timespec){0, 0}));
}

int haft_io_signal_wait(const sigset_t *signals) {
    __attribute__((cleanup(close_own))) int descriptor = -1;
    while (has_no_descriptor(descriptor = hafti_io_open_signals(signals))) {
        int code = take_signal(signals);
        if (code == -EAGAIN || code == -EINTR)
            code = haft_io_sleep(HAFTI_IO_DESCRIPTOR_PAUSE);
        if (code != 0)
            return code;
    }
    if (descriptor < 0)
        return descriptor;
    struct signalfd_siginfo information;
    ssize_t got = haft_io_read(descriptor, &information, sizeof information);
    return got < 0 ? (int)got : (int)information.ssi_signo;
}

/* ---- Processes ---- */

typedef struct start {
    const haft_io_process_options_t *options;
    const char *const *arguments;
    int streams[3];
    pid_t process;
    int code;
} start_t;

static int set_streams(posix_spawn_file_actions_t *actions, const int streams[3]) {
    int code = 0;
    for (int i = 0; i < 3 && code == 0; i++)
        if (streams[i] >= 0)
            code = posix_spawn_file_actions_adddup2(actions, streams[i], i);
    return code;
}

static int set_attributes(posix_spawnattr_t *attributes, bool group) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
    int code = posix_spawnattr_setsigmask(attributes, &none);
    if (code == 0)
        code = posix_spawnattr_setsigdefault(attributes, &all);
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    if (group) /* of its own number, as it is made */
        flags |= POSIX_SPAWN_SETPGROUP;
    return code == 0 ? posix_spawnattr_setflags(attributes, flags) : code;
}

static void call_start(void *argument) {
    start_t *start = argument;
    const haft_io_process_options_t *options = start->options;
    char *const *environment =
        options->environment != NULL ? (char *const *)(uintptr_t)options->environment : environ;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    start->code = set_streams(&actions, start->streams);
    if (start->code == 0 && options->folder != NULL)
        start->code = posix_spawn_file_actions_addchdir_np(&actions, options->folder);
    if (start->code == 0)
        start->code = set_attributes(&attributes, options->group);
    if (start->code == 0)
        start->code = posix_spawnp(&start->process, start->arguments[0], &actions, &attributes,
                                   (char *const *)(uintptr_t)start->arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
}

/* A stream of a low number is moved out of the way of those that are put there. */
static int prepare_stream(int stream) {
    if (hafti_io_is_simulated(stream))
        stream = hafti_io_calls_of(stream)->real_of(stream);
    if (stream < 0)
        return stream;
    int flags = fcntl(stream, F_GETFL);
    if (flags < 0)
        return -errno;
    if ((flags & O_NONBLOCK) != 0)
        fcntl(stream, F_SETFL, flags & ~O_NONBLOCK);
    int copy = fcntl(stream, F_DUPFD_CLOEXEC, 3);
    return copy >= 0 ? copy : -errno;
}

static void close_copies(start_t *start) {
    for (int i = 0; i < 3; i++)
        if (start->streams[i] >= 0)
            close(start->streams[i]);
}

static pid_t start_with(const haft_io_process_options_t *options, const char *const arguments[]) {
    static const haft_io_process_options_t defaults;
    if (arguments == NULL || arguments[0] == NULL)
        return haft_io_refuse(-EINVAL, "haft_io_process_start",
                              "there are no arguments: write the program, its arguments, and NULL "
                              "at the end");
    if (options == NULL)
        options = &defaults;
    __attribute__((cleanup(close_copies)))
    start_t start = {.options = options, .arguments = arguments, .streams = {-1, -1, -1}};
    for (int i = 0; options->streams != NULL && i < 3; i++)
        if (options->streams[i] >= 0) {
            start.streams[i] = prepare_stream(options->streams[i]);
            if (start.streams[i] < 0)
                return start.streams[i];
        }
    int code = hafti_io_call_in_pool(call_start, &start, NULL);
    if (code != 0)
        return code;
    return start.code == 0 ? start.process : -start.code;
}

pid_t haft_io_process_start_with(const haft_io_process_options_t *options,
                                 const char *const arguments[]) {
    const hafti_io_entry_t *entry;
    HAFTI_IO_TAPED_CALL call = hafti_io_tape_begins(HAFTI_IO_TAPED_PROCESS_START, -1, &entry);
    if (HAFTI_IO_UNLIKELY(entry != NULL))
        return (pid_t)hafti_io_tape_result(entry, NULL, 0);
    return (pid_t)hafti_io_tape_ends(&call, start_with(options, arguments), NULL, 0);
}

pid_t haft_io_process_start(const char *const arguments[], const int streams[3]) {
    return haft_io_process_start_with(&(haft_io_process_options_t){.streams = streams}, arguments);
}

/* 0: it has not ended yet. */
static __attribute__((noinline)) int take_status(pid_t process, int *status) {
    int code;
    do
        code = HAFTI_IO_RESULT(waitpid(process, status, WNOHANG));
    while (code == -EINTR);
    return code;
}

static __attribute__((noinline)) int open_process(pid_t process) {
    return HAFTI_IO_RESULT((int)syscall(SYS_pidfd_open, process, 0));
}

/* 0: it may have ended, or a moment has passed. */
static int wait_for_end(pid_t process) {
    __attribute__((cleanup(close_own))) int descriptor = open_process(process);
    if (has_no_descriptor(descriptor))
        return haft_io_sleep(HAFTI_IO_DESCRIPTOR_PAUSE);
    int code = descriptor >= 0 ? haft_io_wait_ready(descriptor, POLLIN) : descriptor;
    return code >= 0 || code == -ESRCH ? 0 : code; /* another has taken its status */
}

static int wait_for(pid_t process, int *status) {
    int code;
    while ((code = take_status(process, status)) == 0)
        if ((code = wait_for_end(process)) != 0)
            break;
    return code > 0 ? 0 : code;
}

int haft_io_process_wait(pid_t process, int *status) {
    if (process <= 0)
        return haft_io_refuse(-EINVAL, __func__,
                              "%d is no process: write the number that haft_io_process_start has "
                              "returned, if that is positive",
                              (int)process);
    const hafti_io_entry_t *entry;
    HAFTI_IO_TAPED_CALL call = hafti_io_tape_begins(HAFTI_IO_TAPED_PROCESS_WAIT, -1, &entry);
    if (HAFTI_IO_UNLIKELY(entry != NULL))
        return (int)hafti_io_tape_result(entry, status, sizeof *status);
    int own = 0, *place = status != NULL ? status : &own, code = wait_for(process, place);
    return (int)hafti_io_tape_ends(&call, code, place, sizeof *place);
}
