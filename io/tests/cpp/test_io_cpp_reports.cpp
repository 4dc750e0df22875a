// SPDX-License-Identifier: MIT
// An error handler leaves the call that reported a mistake, by longjmp and by an exception; then
// the objects of the mistake are used as before. The table has the reports that can be left.
#include <haft/io.hpp>

#include "../check_io.h"

#include <csetjmp>
#include <functional>
#include <string>

namespace {

std::jmp_buf before;
std::string told;

struct left {};
void leave_by_jump(const haft_error_t *error) {
    told = error->message;
    std::longjmp(before, 1);
}
void leave_by_exception(const haft_error_t *error) {
    told = error->message;
    throw left();
}
haft_error_handler_t *handler;

/* Objects with which the mistakes are made. */
struct objects {
    haft_io_mutex_t mutex = {};
    haft_io_condition_t condition = {};
    haft_io_rwlock_t rwlock = {};
    haft_io_promise_t promise = {};
    haft_io_channel_t *channel = haft_io_channel_new(sizeof(int), 0);
    haft_io_task_t *task = nullptr;
    const void *bytes = nullptr;
    int value = 0;
    objects() = default;
    objects(const objects &) = delete;
    objects &operator=(const objects &) = delete;
    ~objects() { haft_io_channel_free(channel); }
};

bool leaves(void (*mistake)(objects &), objects &with) {
    told.clear();
    haft_set_error_handler(handler);
    bool has_left = true;
    try {
        if (setjmp(before) == 0) {
            mistake(with);
            has_left = false;
        }
    } catch (const left &) {
    }
    haft_set_error_handler(nullptr);
    return has_left;
}

void *nothing(void *argument) {
    return argument;
}
void *const something = &told;

/* ---- Locks, conditions, promises ---- */

void use_mutex(objects &o) {
    CHECK(haft_io_mutex_try_lock(&o.mutex));
    CHECK(!haft_io_mutex_try_lock(&o.mutex));
    haft_io_mutex_unlock(&o.mutex);
}
void unlock_mutex(objects &o) {
    haft_io_mutex_unlock(&o.mutex);
}

void *wait_for_value(void *argument) {
    objects &o = *static_cast<objects *>(argument);
    haft_io_mutex_lock(&o.mutex);
    while (o.value == 0)
        CHECK_EQUAL(haft_io_condition_wait(&o.condition, &o.mutex), 0);
    haft_io_mutex_unlock(&o.mutex);
    return something;
}
void use_condition(objects &o) {
    haft_io_condition_signal(&o.condition);
    haft_io_condition_broadcast(&o.condition);
    use_mutex(o);
    if (haft_io_self() == nullptr)
        return;
    haft_io_task_t *waiter = haft_io_async(wait_for_value, &o);
    haft_io_yield();
    haft_io_mutex_lock(&o.mutex);
    o.value = 1;
    haft_io_condition_signal(&o.condition);
    haft_io_mutex_unlock(&o.mutex);
    CHECK_EQUAL(haft_io_join(waiter, nullptr), 0);
}
void wait_without_mutex(objects &o) {
    haft_io_condition_wait(&o.condition, &o.mutex);
}
void wait_until_without_mutex(objects &o) {
    haft_io_condition_wait_until(&o.condition, &o.mutex, 1);
}

void use_rwlock(objects &o) {
    CHECK(haft_io_rwlock_try_read_lock(&o.rwlock));
    CHECK(haft_io_rwlock_try_read_lock(&o.rwlock));
    CHECK(!haft_io_rwlock_try_write_lock(&o.rwlock));
    haft_io_rwlock_unlock(&o.rwlock);
    haft_io_rwlock_unlock(&o.rwlock);
    CHECK(haft_io_rwlock_try_write_lock(&o.rwlock));
    haft_io_rwlock_unlock(&o.rwlock);
}
void unlock_rwlock(objects &o) {
    haft_io_rwlock_unlock(&o.rwlock);
}

void keep_first(objects &o) {
    haft_io_promise_set(&o.promise, something);
}
void keep_again(objects &o) {
    haft_io_promise_set(&o.promise, nullptr);
}
void use_promise(objects &o) {
    void *value = nullptr;
    CHECK_EQUAL(haft_io_promise_wait(&o.promise, &value), 0);
    CHECK(value == something);
}

/* ---- Channels ---- */

void *receive_value(void *argument) {
    objects &o = *static_cast<objects *>(argument);
    CHECK_EQUAL(haft_io_channel_receive(o.channel, &o.value), 0);
    return something;
}
void begin_to_receive(objects &o) {
    o.task = haft_io_async(receive_value, &o);
    haft_io_sleep(HAFT_IO_MILLISECOND);
}
void free_channel(objects &o) {
    haft_io_channel_free(o.channel);
}
void use_channel(objects &o) {
    int five = 5;
    CHECK_EQUAL(haft_io_channel_send(o.channel, &five), 0);
    CHECK_EQUAL(haft_io_join(o.task, nullptr), 0);
    CHECK_EQUAL(o.value, 5);
}
void choose_nothing(objects &) {
    haft_io_select(nullptr, 0);
}

/* ---- Tasks and scopes ---- */

void *join_task(void *argument) {
    CHECK_EQUAL(haft_io_join(static_cast<objects *>(argument)->task, nullptr), 0);
    return something;
}
void join_itself(objects &) {
    haft_io_join(haft_io_self(), nullptr);
}
void start_task(objects &o) {
    o.task = haft_io_async(nothing, something);
}
void start_joined_task(objects &o) {
    o.task = haft_io_async(receive_value, &o);
    haft_io_spawn(join_task, &o);
    haft_io_sleep(HAFT_IO_MILLISECOND); /* both wait by then, in whatever order they began */
}
void join_second(objects &o) {
    haft_io_join(o.task, nullptr);
}
void let_task_end(objects &o) {
    int six = 6;
    CHECK_EQUAL(haft_io_channel_send(o.channel, &six), 0);
    haft_io_yield();
    CHECK_EQUAL(o.value, 6);
}
void start_no_task(objects &) {
    haft_io_spawn(nullptr, nullptr);
}
void start_no_joinable_task(objects &) {
    haft_io_async(nullptr, nullptr);
}
void open_no_scope(objects &) {
    haft_io_scope(nullptr, nullptr, nullptr);
}
void call_first_of_none(objects &) {
    haft_io_first(nullptr, 0);
}
void use_tasks(objects &o) {
    start_task(o);
    void *result = nullptr;
    CHECK_EQUAL(haft_io_join(o.task, &result), 0);
    CHECK(result == something);
    haft_io_call_t calls[] = {{nothing, something, nullptr}, {nothing, something, nullptr}};
    CHECK_EQUAL(haft_io_all(calls, 2), 0);
    CHECK(calls[0].result == something && calls[1].result == something);
    CHECK(haft_io_first(calls, 2) >= 0);
    CHECK_EQUAL(haft_io_scope(nothing, something, &result), 0);
    CHECK(result == something);
}
void fail_well(objects &) {
    haft_io_fail(0, "no failure");
}
void note_well(objects &) {
    haft_io_note_failure(5, "no failure");
}

void fail_unwound(objects &) {
    haft_io_fail(-EIO, "lost again");
}
struct fails_unwound {
    objects &o;
    ~fails_unwound() { CHECK(leaves(fail_unwound, o)); }
};
void *fail_with_failing_cleanup(void *argument) {
    fails_unwound cleanup{*static_cast<objects *>(argument)};
    haft_io_fail(-EBADMSG, "lost");
}
void use_failing_scope(objects &o) {
    CHECK_EQUAL(haft_io_scope(fail_with_failing_cleanup, &o, nullptr), -EBADMSG);
    CHECK(told.find("fails while it is unwound") != std::string::npos);
    use_tasks(o);
}

/* ---- Elsewhere ---- */

void *run_first(void *argument) {
    use_tasks(*static_cast<objects *>(argument));
    return something;
}
void use_runs(objects &o) {
    CHECK_EQUAL(haft_io_run(run_first, &o), 0);
}
void run_nothing(objects &) {
    haft_io_run(nullptr, nullptr);
}
void simulate_nothing(objects &) {
    haft_io_simulate(nullptr, nullptr);
}
void spawn_nowhere(objects &) {
    haft_io_spawn(nothing, nullptr);
}
void async_nowhere(objects &) {
    haft_io_async(nothing, nullptr);
}
void all_nowhere(objects &o) {
    haft_io_call_t call = {nothing, &o, nullptr};
    haft_io_all(&call, 1);
}
void first_nowhere(objects &o) {
    haft_io_call_t call = {nothing, &o, nullptr};
    haft_io_first(&call, 1);
}
void set_local_nowhere(objects &o) {
    haft_io_local_set("key", &o);
}
void note_nowhere(objects &) {
    haft_io_note_failure(-EIO, "lost");
}
void set_gate_nowhere(objects &) {
    haft_io_gate_set(nullptr);
}
void count_nowhere(objects &) {
    haft_io_simulated_count();
}

/* ---- Memory and simulations ---- */

#if !CHECK_ADDRESS_SANITIZER /* which reports it itself */
void lend_and_give_back(objects &o) {
    o.bytes = haft_io_lend();
    haft_io_give_back(o.bytes);
}
void give_back_again(objects &o) {
    haft_io_give_back(o.bytes);
}
void use_lent(objects &) {
    void *one = haft_io_lend(), *other = haft_io_lend();
    CHECK(one != nullptr && other != nullptr && one != other);
    haft_io_give_back(one);
    haft_io_give_back(other);
}
#endif

void break_no_end(objects &) {
    haft_io_simulated_break(0);
}
void fail_no_descriptor(objects &) {
    haft_io_simulated_fail(0, -EIO);
}
void crash_without_files(objects &) {
    haft_io_simulated_crash();
}
void open_pair(objects &o) {
    int ends[2];
    CHECK_EQUAL(haft_io_simulated_pair(ends), 0);
    haft_io_close(ends[1]);
    o.value = ends[0];
}
void fail_with_no_error(objects &o) {
    haft_io_simulated_fail(o.value, 5);
}
void use_pair(objects &o) {
    char byte;
    CHECK_EQUAL(haft_io_read(o.value, &byte, 1), 0);
    haft_io_close(o.value);
}

/* ---- The table ---- */

/* On one thread a task that was started waits after a yield. */
enum place { ANYWHERE, IN_TASK, ALONE, OUTSIDE, SIMULATED };

const struct report {
    const char *message;
    place where;
    void (*before)(objects &);
    void (*mistake)(objects &);
    void (*use)(objects &);
} reports[] = {
    {"A mutex that is not locked was unlocked", ANYWHERE, nullptr, unlock_mutex, use_mutex},
    {"A mutex that is not locked was unlocked", ANYWHERE, nullptr, wait_without_mutex,
     use_condition},
    {"A mutex that is not locked was unlocked", ANYWHERE, nullptr, wait_until_without_mutex,
     use_condition},
    {"A lock for readers and writers that is not", ANYWHERE, nullptr, unlock_rwlock, use_rwlock},
    {"A promise was kept twice", ANYWHERE, keep_first, keep_again, use_promise},
    {"A channel was freed while somebody waits", ALONE, begin_to_receive, free_channel,
     use_channel},
    {"haft_io_select needs a choice", ANYWHERE, nullptr, choose_nothing, nullptr},
    {"it would wait for itself", IN_TASK, nullptr, join_itself, use_tasks},
    {"another task joins it", ALONE, start_joined_task, join_second, let_task_end},
    {"A task needs a function to run", ANYWHERE, nullptr, start_no_task, nullptr},
    {"A task needs a function to run", IN_TASK, nullptr, start_no_joinable_task, use_tasks},
    {"A scope needs a body to call", IN_TASK, nullptr, open_no_scope, use_tasks},
    {"haft_io_first needs a call", IN_TASK, nullptr, call_first_of_none, use_tasks},
    {"takes a negative error number", IN_TASK, nullptr, fail_well, use_failing_scope},
    {"takes a negative error number", IN_TASK, nullptr, note_well, use_tasks},
    {"A run needs a function to begin with", OUTSIDE, nullptr, run_nothing, use_runs},
    {"A run needs a function to begin with", OUTSIDE, nullptr, simulate_nothing, use_runs},
    {"A task is spawned outside", OUTSIDE, nullptr, spawn_nowhere, use_runs},
    {"A task is spawned outside", OUTSIDE, nullptr, async_nowhere, use_runs},
    {"Several calls are run as tasks outside", OUTSIDE, nullptr, all_nowhere, use_runs},
    {"Several calls are run as tasks outside", OUTSIDE, nullptr, first_nowhere, use_runs},
    {"haft_io_local_set was called outside", OUTSIDE, nullptr, set_local_nowhere, use_runs},
    {"haft_io_note_failure was called outside", OUTSIDE, nullptr, note_nowhere, use_runs},
    {"haft_io_gate_set was called outside", OUTSIDE, nullptr, set_gate_nowhere, use_runs},
    {"haft_io_simulated_count was called outside", OUTSIDE, nullptr, count_nowhere, use_runs},
#if !CHECK_ADDRESS_SANITIZER
    {"is given back twice", IN_TASK, lend_and_give_back, give_back_again, use_lent},
#endif
    {"haft_io_simulated_break was given no open end", SIMULATED, nullptr, break_no_end, use_tasks},
    {"haft_io_simulated_fail was given no open", SIMULATED, nullptr, fail_no_descriptor, use_tasks},
    {"haft_io_simulated_fail takes a negative", SIMULATED, open_pair, fail_with_no_error, use_pair},
    {"haft_io_simulated_crash was called in a", SIMULATED, nullptr, crash_without_files, use_tasks},
};

const report *current;
void *make_mistake(void *argument) {
    objects o;
    if (current->before != nullptr)
        current->before(o);
    bool has_left = leaves(current->mistake, o);
    if (!has_left || told.find(current->message) == std::string::npos) {
        check_failed(__FILE__, __LINE__, current->message);
        fprintf(stderr, " was not reported, but: %s\n", told.c_str());
    }
    if (current->use != nullptr)
        current->use(o);
    return argument;
}

void in_all_places() {
    for (const report &one : reports) {
        current = &one;
        if (one.where == ANYWHERE || one.where == OUTSIDE)
            make_mistake(nullptr);
        if (one.where == ANYWHERE || one.where == IN_TASK || one.where == ALONE)
            check_everywhere([](const haft_io_run_options_t *options) {
                if (current->where == ALONE && options->threads != 1)
                    return;
                CHECK_EQUAL(haft_io_run_with(options, make_mistake, nullptr), 0);
            });
        haft_io_simulation_options_t simulation = {};
        simulation.seed = 4; // with which a yield lets the task go first that was spawned before it
        if (one.where != OUTSIDE)
            CHECK_EQUAL(haft_io_simulate_with(&simulation, make_mistake, nullptr), 0);
    }
}
void a_report_that_is_left_by_longjmp_has_changed_nothing() {
    handler = leave_by_jump;
    in_all_places();
}
void a_report_that_is_left_by_an_exception_has_changed_nothing() {
    handler = leave_by_exception;
    in_all_places();
}

/* ---- In a child of fork ---- */

void *wait_for_ever(void *) {
    haft_io_sleep_until(HAFT_IO_FOREVER);
    return nullptr;
}
void *spawn_one(void *) {
    haft_io_spawn(wait_for_ever, nullptr);
    return nullptr;
}
void open_scope(objects &) {
    haft_io_scope(spawn_one, nullptr, nullptr);
}
void sleep_a_little(objects &) {
    haft_io_sleep(HAFT_IO_MILLISECOND);
}
void lock_held(objects &o) {
    CHECK(haft_io_mutex_try_lock(&o.mutex));
    haft_io_mutex_lock(&o.mutex);
}
void *leave_waits(void *argument) {
    pid_t child = fork();
    if (child == 0) {
        void (*const waits[])(objects &) = {open_scope, sleep_a_little, lock_held, open_scope};
        objects *o = new objects;
        for (auto wait : waits) {
            CHECK(leaves(wait, *o));
            CHECK(told.find("waits in a child of fork") != std::string::npos);
        }
        haft_io_mutex_unlock(&o->mutex);
        use_mutex(*o);
        _exit(check_failures);
    }
    int status;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
    return argument;
}
void a_wait_in_a_child_of_fork_can_be_left() {
    for (haft_error_handler_t *way : {leave_by_jump, leave_by_exception}) {
        handler = way;
        if (check_follows_children())
            CHECK_EQUAL(haft_io_run(leave_waits, nullptr), 0);
    }
}

/* ---- What cannot be unwound ---- */

void wait_noexcept() noexcept {
    haft::io::sleep_for(std::chrono::seconds(10));
}
struct waits_at_the_end {
    ~waits_at_the_end() { haft::io::sleep_for(std::chrono::seconds(10)); }
};
void *wait_as_c(void *) {
    []() noexcept { haft_io_sleep(10 * HAFT_IO_SECOND); }();
    return nullptr;
}

void cancel_soon(const std::function<void(haft::io::scope_ref)> &spawn) {
    haft::io::run([&] {
        haft::io::scope([&](haft::io::scope_ref scope) {
            spawn(scope);
            haft::io::sleep_for(std::chrono::milliseconds(1));
            scope.cancel();
        });
    });
}
haft::io::task_options stubborn() {
    haft::io::task_options options;
    options.name = "stubborn";
    return options;
}
void cancel_noexcept() {
    cancel_soon([](haft::io::scope_ref scope) { scope.spawn(stubborn(), wait_noexcept); });
}
void cancel_before_a_destructor() {
    cancel_soon([](haft::io::scope_ref scope) {
        scope.spawn(stubborn(), [] {
            waits_at_the_end end;
            haft::io::sleep_for(std::chrono::seconds(10));
        });
    });
}
void cancel_a_task_of_c() {
    cancel_soon([](haft::io::scope_ref) {
        haft_io_task_options_t options = {};
        options.name = "stubborn";
        haft_io_spawn_with(&options, wait_as_c, nullptr);
    });
}
const haft_error_t no_error = {HAFT_ERROR_OF_LIBRARY, "", nullptr, nullptr};
void throw_noexcept() {
    haft::io::run([] { []() noexcept { leave_by_exception(&no_error); }(); });
}
void what_cannot_be_unwound_names_the_task() {
    if (!check_follows_children())
        return;
    const char *rule = "on the task 'stubborn', whose cancel cannot pass a function that is "
                       "noexcept, as every destructor is. Wait there in haft::io::shield";
    CHECK_ABORTS(cancel_noexcept, rule);
    CHECK_ABORTS(cancel_before_a_destructor, rule);
    CHECK_ABORTS(cancel_a_task_of_c, "a function on it is noexcept, which nothing can leave. Let "
                                     "it perform only what is always resumed. It was the task "
                                     "'stubborn'.");
    CHECK_ABORTS(throw_noexcept, "std::terminate was called on the task '', here:");
}

} // namespace

int main() {
    check_backend();
    RUN(a_report_that_is_left_by_longjmp_has_changed_nothing);
    RUN(a_report_that_is_left_by_an_exception_has_changed_nothing);
    RUN(a_wait_in_a_child_of_fork_can_be_left);
    RUN(what_cannot_be_unwound_names_the_task);
    return check_end();
}
