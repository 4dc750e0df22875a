/* SPDX-License-Identifier: MIT */
/* Whole programs that go on twice: processes that fork, checkpoints, queues of choices, and so
   on. */
#include <haft/observe.h>

#include "check.h"

#include <errno.h>
#include <pthread.h>

#define NUMBER(value) ((void *)(intptr_t)(value))
#define VALUE(pointer) ((int)(intptr_t)(pointer))

static size_t stacks(void) {
    return haft_pool_report().stacks;
}
static uint32_t drawn = 12345;
static int random_below(int limit) {
    drawn = drawn * UINT32_C(1103515245) + 12345;
    return (int)(drawn >> 16) % limit;
}

/* ---- Processes that fork ---- */

HAFT_EFFECT(test_fork, int, {});
HAFT_EFFECT(pass, void, {});
HAFT_EFFECT(tell_path, void, { int path; });

typedef struct process {
    haft_resumption_t k;
    haft_effect_t *waits_for;
    int reply;
} process_t;
enum { MOST = 4096 };
static process_t processes[MOST];
static int first_process, process_count, written_count, written[MOST];

static void enqueue(haft_resumption_t k, int reply) {
    processes[(first_process + process_count++) % MOST] =
        (process_t){k, haft_resumption_effect(k), reply};
}
static haft_answer_t fork_it(void *state, HAFT_PAYLOAD(test_fork) * payload, haft_resumption_t k) {
    (void)state, (void)payload;
    enqueue(haft_resumption_copy(k), 0);
    enqueue(k, 1);
    return haft_answer(NULL);
}
static haft_answer_t pass_it(void *state, HAFT_PAYLOAD(pass) * payload, haft_resumption_t k) {
    (void)state, (void)payload;
    enqueue(k, 0);
    return haft_answer(NULL);
}
static void write_it(void *state, HAFT_PAYLOAD(tell_path) * payload) {
    (void)state;
    written[written_count++] = payload->path;
}
HAFT_HANDLER(kernel, NULL, HAFT_GENERAL(test_fork, fork_it), HAFT_GENERAL(pass, pass_it),
             HAFT_TAIL(tell_path, write_it));

/* Each process writes the path on which it was forked, the others in between. */
static int fork_below(int path, int depth) {
    volatile char room[128];
    room[depth] = (char)depth;
    if (depth == 0)
        return path;
    int child = HAFT_PERFORM(test_fork);
    for (int i = 0; i < depth % 3; i++)
        HAFT_PERFORM(pass);
    return fork_below(path * 2 + child, depth - 1) + (room[depth] - depth);
}
static void *fork_often(void *depth) {
    int path = fork_below(0, VALUE(depth));
    HAFT_PERFORM(pass);
    HAFT_PERFORM(tell_path, path);
    return NULL;
}

static void processes_fork_and_take_turns(void) {
    size_t before = stacks();
    enum { DEPTH = 8 };
    written_count = 0;
    haft_handle(&kernel, NULL, fork_often, NUMBER(DEPTH));
    while (process_count != 0) {
        process_t next = processes[first_process];
        first_process = (first_process + 1) % MOST;
        process_count--;
        haft_reply_t fork_reply = HAFT_REPLY(test_fork, next.reply);
        haft_resumption_resume(next.k,
                               next.waits_for == HAFT_ID(pass) ? HAFT_REPLY(pass) : fork_reply);
    }
    CHECK_EQUAL(written_count, 1 << DEPTH);
    int seen[1 << DEPTH] = {0};
    for (int i = 0; i < written_count; i++)
        seen[written[i]]++;
    for (int i = 0; i < 1 << DEPTH; i++)
        CHECK_EQUAL(seen[i], 1);
    CHECK_EQUAL(stacks(), before);
}

/* ---- Checkpoints ---- */

/* `checkpoint` returns how often the program has come back to it; `back` goes back to the last one
   that is left, and gives that up after three times. */
HAFT_EFFECT(checkpoint, int, {});
HAFT_EFFECT(back, void, {});
static haft_resumption_t checkpoints[16];
static int times_back[16], checkpoint_count;

static haft_answer_t keep_checkpoint(void *state, HAFT_PAYLOAD(checkpoint) * payload,
                                     haft_resumption_t k) {
    (void)state, (void)payload;
    times_back[checkpoint_count] = 0;
    checkpoints[checkpoint_count++] = haft_resumption_copy(k);
    return haft_tail_resume(k, HAFT_REPLY(checkpoint, 0));
}
static haft_answer_t go_back(void *state, HAFT_PAYLOAD(back) * payload, haft_resumption_t k) {
    (void)state, (void)payload;
    haft_resumption_drop(k);
    while (checkpoint_count != 0) {
        haft_resumption_t last = checkpoints[checkpoint_count - 1];
        int times = ++times_back[checkpoint_count - 1];
        if (times <= 3)
            return haft_tail_resume(haft_resumption_copy(last), HAFT_REPLY(checkpoint, times));
        haft_resumption_drop(last);
        checkpoint_count--;
    }
    return haft_answer(NUMBER(-1));
}
HAFT_HANDLER(with_checkpoints, NULL, HAFT_GENERAL(checkpoint, keep_checkpoint),
             HAFT_GENERAL(back, go_back));

/* A lock of three digits, which opens at 312. */
static void *try_a_lock(void *tries) {
    int first = HAFT_PERFORM(checkpoint);
    int second = HAFT_PERFORM(checkpoint);
    int third = HAFT_PERFORM(checkpoint);
    ++*(int *)tries;
    if (first != 3 || second != 1 || third != 2)
        HAFT_PERFORM(back);
    return NUMBER(first * 100 + second * 10 + third);
}

static void a_program_goes_back_to_its_checkpoints(void) {
    size_t before = stacks();
    int tries = 0; /* outside of the computation: going back does not undo it */
    CHECK_EQUAL(VALUE(haft_handle(&with_checkpoints, NULL, try_a_lock, &tries)), 312);
    CHECK_EQUAL(tries, 3 * 16 + 1 * 4 + 2 + 1);
    CHECK_EQUAL(checkpoint_count, 3);
    while (checkpoint_count != 0)
        haft_resumption_drop(checkpoints[--checkpoint_count]);
    CHECK_EQUAL(stacks(), before);
}

/* ---- Choices in a queue: in breadth, or in random order ---- */

HAFT_EFFECT(choose, int, { int count; });
typedef struct waiting {
    haft_resumption_t k;
    int choice;
} waiting_t;
static waiting_t *queue;
static int queue_first, queue_end, queue_room;

static haft_answer_t put_in_queue(void *state, HAFT_PAYLOAD(choose) * payload,
                                  haft_resumption_t k) {
    (void)state;
    int count = payload->count;
    for (int i = 0; i < count; i++)
        queue[queue_end++] = (waiting_t){i < count - 1 ? haft_resumption_copy(k) : k, i};
    CHECK(queue_end <= queue_room);
    return haft_answer(NULL);
}
HAFT_HANDLER(queueing, NULL, HAFT_GENERAL(choose, put_in_queue));

/* Frames of different sizes and depths, each with numbers that are to be there again. */
static __attribute__((noinline)) int choose_deep(int depth, int seed) {
    volatile int kept[60];
    int used = 1 + seed % 60;
    for (int i = 0; i < used; i++)
        kept[i] = seed + i;
    int sum = depth == 0 ? HAFT_PERFORM(choose, 3) : choose_deep(depth - 1, seed * 7 + 1);
    for (int i = 0; i < used; i++)
        CHECK_EQUAL(kept[i], seed + i);
    return sum;
}
static void *choose_at_depths(void *levels) {
    int path = 1;
    double product = 0.5;
    for (int level = 0; level < VALUE(levels); level++) {
        int choice = choose_deep((path * 5 + level) % 7, path % 1000);
        path = path * 3 + choice;
        product *= choice + 1.25;
    }
    double expected = 0.5;
    for (int rest = path, level = 0; level < VALUE(levels); level++, rest /= 3)
        expected *= rest % 3 + 1.25;
    CHECK(product > expected * 0.999999 && product < expected * 1.000001);
    return NUMBER(path);
}

static int run_queue(bool at_random) {
    int ended = 0;
    while (queue_first != queue_end) {
        if (at_random) {
            int chosen = queue_first + random_below(queue_end - queue_first);
            waiting_t first = queue[queue_first];
            queue[queue_first] = queue[chosen];
            queue[chosen] = first;
        }
        waiting_t next = queue[queue_first++];
        ended += haft_resumption_resume(next.k, HAFT_REPLY(choose, next.choice)) != NULL;
    }
    return ended;
}
static void choices_wait_in_a_queue(void) {
    size_t before = stacks();
    int levels = check_bare() ? 8 : 5, leaves = 1;
    for (int i = 0; i < levels; i++)
        leaves *= 3;
    queue_room = 3 * leaves;
    queue = calloc((size_t)queue_room, sizeof *queue);
    for (int at_random = 0; at_random < 2; at_random++) {
        queue_first = queue_end = 0;
        haft_handle(&queueing, NULL, choose_at_depths, NUMBER(levels));
        CHECK_EQUAL(run_queue(at_random != 0), leaves);
        CHECK_EQUAL(stacks(), before);
    }
    free(queue);
}

/* ---- Many copies of one place ---- */

static void *choose_once(void *unused) {
    (void)unused;
    return NUMBER(HAFT_PERFORM(choose, 1) + 1);
}
static void many_copies_of_one_place_go_on_in_random_order(void) {
    size_t before = stacks();
    int count = check_times(1000000);
    queue_room = count + 1;
    queue = calloc((size_t)queue_room, sizeof *queue);
    queue_first = queue_end = 0;
    haft_handle(&queueing, NULL, choose_once, NULL);
    haft_resumption_t k = queue[0].k;
    for (int i = 0; i < count; i++)
        queue[i] = (waiting_t){haft_resumption_copy(i % 2 == 0 ? k : queue[i / 2].k), i};
    haft_resumption_drop(k);
    int64_t sum = 0;
    for (int left = count; left > 0; left--) {
        int chosen = (int)(((int64_t)random_below(32768) * 32768 + random_below(32768)) % left);
        waiting_t next = queue[chosen];
        queue[chosen] = queue[left - 1];
        sum += VALUE(haft_resumption_resume(next.k, HAFT_REPLY(choose, next.choice)));
    }
    CHECK_EQUAL(sum, (int64_t)count * (count + 1) / 2);
    free(queue);
    CHECK_EQUAL(stacks(), before);
}

/* ---- Results that no word holds ---- */

typedef struct board {
    int cells[81];
} board_t;
HAFT_EFFECT(next_board, board_t, { board_t board; });
static haft_answer_t with_each_cell(void *state, HAFT_PAYLOAD(next_board) * payload,
                                    haft_resumption_t k) {
    (void)state;
    intptr_t sum = 0;
    board_t board = payload->board;
    for (int i = 0; i < 3; i++) {
        board.cells[i]++;
        sum += (intptr_t)haft_resumption_resume(haft_resumption_copy(k),
                                                HAFT_REPLY(next_board, board));
    }
    board_t last = {{100}};
    haft_resumption_t copy = haft_resumption_copy(k);
    haft_resumption_drop(k);
    if (sum % 2 == 0)
        return haft_answer(
            (void *)(sum + (intptr_t)haft_resumption_resume(copy, HAFT_REPLY(next_board, last))));
    haft_resumption_drop(copy);
    return haft_answer((void *)sum);
}
HAFT_HANDLER(boards, NULL, HAFT_GENERAL(next_board, with_each_cell));
static void *two_boards(void *unused) {
    board_t board = {{1, 2, 3}};
    (void)unused;
    for (int i = 0; i < 2; i++)
        board = HAFT_PERFORM(next_board, board);
    intptr_t sum = 0;
    for (int i = 0; i < 81; i++)
        sum += board.cells[i];
    return (void *)sum;
}
static intptr_t expected_of(int left, board_t board) {
    if (left == 0)
        return board.cells[0] + board.cells[1] + board.cells[2];
    intptr_t sum = 0;
    for (int i = 0; i < 3; i++) {
        board.cells[i]++;
        sum += expected_of(left - 1, board);
    }
    return sum % 2 == 0 ? sum + expected_of(left - 1, (board_t){{100}}) : sum;
}
static void large_results_reach_each_copy(void) {
    size_t before = stacks();
    CHECK_EQUAL((intptr_t)haft_handle(&boards, NULL, two_boards, NULL),
                expected_of(2, (board_t){{1, 2, 3}}));
    CHECK_EQUAL(stacks(), before);
}

/* ---- While another copy is suspended inside ---- */

/* A computation goes on inside of another one, which is copied meanwhile. */
HAFT_EFFECT(inner_keep, int, {});
static haft_resumption_t inner_kept;
static haft_answer_t keep_inner(void *state, HAFT_PAYLOAD(inner_keep) * payload,
                                haft_resumption_t k) {
    (void)state, (void)payload;
    inner_kept = k;
    return haft_answer(NULL);
}
HAFT_HANDLER(keeping_inner, NULL, HAFT_GENERAL(inner_keep, keep_inner));
static void *inner_body(void *unused) {
    (void)unused;
    int kept = HAFT_PERFORM(inner_keep);
    int chosen = HAFT_PERFORM(choose, 3); /* of the handler around, if it is resumed in there */
    return NUMBER(kept * 10 + chosen + 1);
}
static void *resume_inner(void *unused) {
    (void)unused;
    int first = HAFT_PERFORM(choose, 2);
    int inner = VALUE(
        haft_resumption_resume(haft_resumption_copy(inner_kept), HAFT_REPLY(inner_keep, first)));
    int last = HAFT_PERFORM(choose, 2);
    return NUMBER(inner * 10 + last);
}
static haft_answer_t sum_of_choices(void *state, HAFT_PAYLOAD(choose) * payload,
                                    haft_resumption_t k) {
    (void)state;
    intptr_t sum = 0;
    int count = payload->count;
    for (int i = 0; i < count; i++)
        sum += (intptr_t)haft_resumption_resume(haft_resumption_copy(k), HAFT_REPLY(choose, i));
    haft_resumption_drop(k);
    return haft_answer((void *)sum);
}
HAFT_HANDLER(summing, NULL, HAFT_GENERAL(choose, sum_of_choices));

static void a_copy_goes_on_inside_of_a_computation_that_is_copied(void) {
    size_t before = stacks();
    haft_may_copy_frames((haft_function_t *)resume_inner); /* the library's cleanup is in it */
    haft_handle(&keeping_inner, NULL, inner_body, NULL);
    int expected = 0;
    for (int first = 0; first < 2; first++)
        for (int chosen = 0; chosen < 3; chosen++)
            for (int last = 0; last < 2; last++)
                expected += (first * 10 + chosen + 1) * 10 + last;
    for (int i = 0; i < 3; i++) /* the inner one is the same each time */
        CHECK_EQUAL(VALUE(haft_handle(&summing, NULL, resume_inner, NULL)), expected);
    haft_resumption_drop(inner_kept);
    CHECK_EQUAL(stacks(), before);
}

/* ---- A lock in a copied frame ---- */

static pthread_mutex_t checked;
static void *choose_while_locked(void *second) {
    CHECK_EQUAL(pthread_mutex_lock(&checked), 0);
    int chosen = HAFT_PERFORM(choose, 2);
    CHECK_EQUAL(pthread_mutex_unlock(&checked), chosen == 0 ? 0 : EPERM);
    return second;
}
static void a_lock_that_checks_reports_the_second_unlock(void) {
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&checked, &kind);
    CHECK_EQUAL(VALUE(haft_handle(&summing, NULL, choose_while_locked, NUMBER(1))), 2);
    pthread_mutex_destroy(&checked);
    pthread_mutexattr_destroy(&kind);
}

/* ---- Observed, and on several threads ---- */

static int resumes_told, performs_told;
static void count_told(const haft_observed_t *what) {
    resumes_told += what->kind == HAFT_OBSERVED_RESUME;
    performs_told += what->kind == HAFT_OBSERVED_PERFORM;
}
static void *choose_digits(void *count) {
    int number = 0;
    for (int i = 0; i < VALUE(count); i++)
        number = number * 2 + HAFT_PERFORM(choose, 2);
    return NUMBER(number);
}
static void an_observer_is_told_of_copies(void) {
    size_t before = stacks();
    int first = VALUE(haft_handle(&summing, NULL, choose_digits, NUMBER(4)));
    haft_observe(count_told);
    int second = VALUE(haft_handle(&summing, NULL, choose_digits, NUMBER(4)));
    haft_observe(NULL);
    CHECK_EQUAL(first, 15 * 16 / 2);
    CHECK_EQUAL(second, first);
    CHECK_EQUAL(performs_told, 1 + 2 + 4 + 8);
    CHECK_EQUAL(resumes_told, 1 + 2 + 4 + 8 + 16);
    CHECK_EQUAL(VALUE(haft_handle(&summing, NULL, choose_digits, NUMBER(4))), first);
    CHECK_EQUAL(stacks(), before);
}

static void *search_on_a_thread(void *unused) {
    (void)unused;
    for (int i = 0; i < 200; i++)
        CHECK_EQUAL(VALUE(haft_handle(&summing, NULL, choose_digits, NUMBER(5))), 31 * 32 / 2);
    return NULL;
}
static void threads_search_at_the_same_time(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, search_on_a_thread, NULL) != 0)
            abort();
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

/* Copies are handed from thread to thread, one thread at a time, and each goes on where it is. */
static void *resume_the_next(void *next) {
    waiting_t *one = next;
    return haft_resumption_resume(one->k, HAFT_REPLY(choose, one->choice));
}
static void copies_go_on_on_threads_that_end(void) {
    size_t before = stacks();
    queue_room = 3 * 81;
    queue = calloc((size_t)queue_room, sizeof *queue);
    queue_first = queue_end = 0;
    int ended = 0;
    haft_handle(&queueing, NULL, choose_at_depths, NUMBER(4));
    while (queue_first != queue_end) {
        pthread_t thread;
        void *result;
        if (pthread_create(&thread, NULL, resume_the_next, &queue[queue_first++]) != 0)
            abort();
        pthread_join(thread, &result);
        ended += result != NULL;
    }
    CHECK_EQUAL(ended, 81);
    free(queue);
    CHECK_EQUAL(stacks(), before);
}

int main(void) {
    if (CHECK_THREAD_SANITIZER)
        return 77;
    RUN(processes_fork_and_take_turns);
    RUN(a_program_goes_back_to_its_checkpoints);
    RUN(choices_wait_in_a_queue);
    RUN(many_copies_of_one_place_go_on_in_random_order);
    RUN(large_results_reach_each_copy);
    RUN(a_copy_goes_on_inside_of_a_computation_that_is_copied);
    RUN(a_lock_that_checks_reports_the_second_unlock);
    RUN(an_observer_is_told_of_copies);
    RUN(threads_search_at_the_same_time);
    RUN(copies_go_on_on_threads_that_end);
    return check_end();
}
