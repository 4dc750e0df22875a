// SPDX-License-Identifier: MIT
/*
 * Schedulers on haft/turns.h. A random program runs twice, once with a loop that resumes each task
 * itself and once with tasks that hand over, and what is observed must be the same.
 *
 *   root, on either of two threads, under one handler of `number` or another
 *     loop, on a fiber: resumes its tasks in turn, drops some, raises exceptions in others
 *       task, on a fiber: yields, asks, throws; under handlers, on fibers inside, in loops inside
 */
#include <haft/turns.h>

#include <cfenv>
#include <deque>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "check.h"

HAFT_EFFECT(take_turns, int64_t, {});             // to the loop
HAFT_EFFECT(answer, int64_t, { int64_t value; }); // to the loop, which replies at once
HAFT_EFFECT(give_up, void, { int number; });      // thrown to the loop
HAFT_EFFECT(in_place, int64_t, { int64_t value; });
HAFT_EFFECT(number, int64_t, {}); // to a handler around the loop, in place
HAFT_EFFECT(outside, void, {});   // suspends the loop
#define OF_LOOP HAFT_HANDLES(take_turns, answer, give_up)

namespace {

struct random_numbers {
    uint64_t state;
    unsigned below(unsigned end) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return static_cast<unsigned>(state >> 33) % end;
    }
};

struct loop;
struct task {
    haft_fiber_t *fiber = nullptr;
    int number;
    random_numbers choices;
    loop *on;
    bool begun = false;
    int steps = 0;
};

enum event { RESUMED, GOT, ANSWERED, ENDED, LEFT, DROPPED, CLEANED, SPAWNED };
using events = std::vector<std::pair<event, int64_t>>;

/* The state of one run. */
struct run {
    bool hands_over;
    uint64_t seed;
    events seen = {};
    int64_t turns = 0;
    int tasks = 0, live = 0, handed_over = 0;
    void note(event what, int64_t value) { seen.emplace_back(what, value); }
    /* The same at every turn, on whichever thread it begins. */
    unsigned chance(unsigned end) const {
        return random_numbers{seed * 1000003 + static_cast<uint64_t>(turns) * 977}.below(end);
    }
};
run *now;

struct cleaned {
    int64_t value;
    ~cleaned() { now->note(CLEANED, value); }
};
struct leaving {};

void release(const task *ended) {
    now->live--;
    haft_fiber_drop(ended->fiber);
    delete ended;
}

struct loop {
    haft_turn_t turn = {nullptr};
    std::deque<task *> ready = {};
    task *running = nullptr;
    loop() = default;
    loop(const loop &) = delete;
    loop &operator=(const loop &) = delete;
    ~loop() { /* it may be unwound while one runs */
        if (running != nullptr)
            release(running);
        for (const task *left : ready)
            release(left);
    }
};

void *run_task(void *self);
void spawn(loop &on, uint64_t choices) {
    task *made = new task{.number = ++now->tasks, .choices = {choices}, .on = &on};
    made->fiber = haft_fiber_new(run_task, made);
    on.ready.push_back(made);
    now->live++;
    now->note(SPAWNED, made->number);
}

/* The action of the loop on the next task that has begun. */
enum turn_kind { DROP, DISCONTINUE, RESUME };
turn_kind next_turn() {
    unsigned chosen = now->chance(40);
    return chosen == 0 ? DROP : chosen < 3 ? DISCONTINUE : RESUME;
}

__attribute__((noinline)) void yield(task *self) {
    loop &on = *self->on;
    int64_t value = now->turns + 1, got;
    int rounding = fegetround();
    task *next = on.ready.empty() || !on.ready.front()->begun ? nullptr : on.ready.front();
    if (now->hands_over && next != nullptr && next_turn() == RESUME &&
        HAFT_IS_FOR_LOOP(&on.turn, take_turns) &&
        haft_claim_next(&on.turn, next->fiber, HAFT_REPLY(take_turns, value))) {
        on.ready.pop_front();
        on.ready.push_back(self);
        on.running = next;
        now->turns++;
        now->handed_over++;
        now->note(RESUMED, next->number);
        got = HAFT_HAND_OVER(&on.turn, take_turns, next->fiber, HAFT_REPLY(take_turns, value));
    } else {
        got = HAFT_PERFORM(take_turns);
    }
    CHECK(self->on->running == self);
    CHECK_EQUAL(fegetround(), rounding);
    now->note(GOT, got);
}

int64_t answer_and_yield(void *self, HAFT_PAYLOAD(in_place) * asked) {
    if (asked->value % 2 == 0)
        yield(static_cast<task *>(self));
    return asked->value + 1;
}
HAFT_HANDLER(answers_and_yields, nullptr, HAFT_TAIL(in_place, answer_and_yield));
int64_t answer_by_default(void *, HAFT_PAYLOAD(in_place) * asked) {
    return asked->value + 2;
}
int64_t answer_number(void *of_handler, HAFT_PAYLOAD(number) *) {
    return reinterpret_cast<intptr_t>(of_handler);
}
HAFT_HANDLER(answers_number, nullptr, HAFT_TAIL(number, answer_number));

void run_loop(loop &on);
void act(task *self, int depth);

struct inside {
    task *self;
    int depth;
};
void *act_inside(void *argument) {
    const inside *in = static_cast<inside *>(argument);
    cleaned here{in->depth};
    act(in->self, in->depth);
    return nullptr;
}

void act_once(task *self, int depth) {
    inside in{self, depth + 1};
    random_numbers &choices = self->choices;
    switch (choices.below(depth < 3 ? 16 : 11)) {
    default:
        yield(self);
        break;
    case 5:
        now->note(ANSWERED, HAFT_PERFORM(answer, choices.below(100)));
        break;
    case 6:
        now->note(ANSWERED, HAFT_PERFORM(in_place, choices.below(100)));
        break;
    case 7:
        now->note(ANSWERED, HAFT_PERFORM(number));
        break;
    case 8:
        HAFT_PERFORM(outside);
        break;
    case 9:
        fesetround(choices.below(2) == 0 ? FE_UPWARD : FE_TONEAREST);
        break;
    case 10:
        if (choices.below(4) == 0)
            throw leaving();
        if (choices.below(4) == 0)
            HAFT_THROW(give_up, self->number);
        if (now->tasks < 40)
            spawn(*self->on, choices.below(1u << 30));
        break;
    case 11:
        haft_handle(&answers_and_yields, self, act_inside, &in);
        break;
    case 12: {
        HAFT_SCOPED haft_fiber_t *fiber = haft_fiber_new(act_inside, &in);
        CHECK(haft_finished(haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES())));
        break;
    }
    case 13: {
        loop nested;
        for (unsigned i = choices.below(4); i != 0; i--)
            spawn(nested, choices.below(1u << 30));
        run_loop(nested);
        break;
    }
    case 14:
    case 15:
        try {
            cleaned here{self->number};
            act(self, depth + 1);
            throw leaving();
        } catch (const leaving &) {
            act(self, depth + 1); /* with an exception being handled */
        }
        break;
    }
}

void act(task *self, int depth) {
    for (unsigned left = 1 + self->choices.below(6); left != 0 && self->steps < 40; left--) {
        self->steps++;
        act_once(self, depth);
    }
}

void *run_task(void *argument) {
    task *self = static_cast<task *>(argument);
    cleaned here{self->number};
    act(self, 0);
    return self;
}

haft_reply_t leave(void *) {
    throw leaving();
}

haft_request_t resume(loop &on, haft_fiber_t **fiber, haft_reply_t reply) {
    if (!now->hands_over)
        return haft_resume(*fiber, reply, OF_LOOP);
    haft_request_t request = haft_resume_turn(&on.turn, fiber, reply, OF_LOOP);
    CHECK(on.turn.fiber == nullptr);
    return request;
}

/* Until the task is suspended by its turn, or has ended; or another that it has handed over to. */
haft_request_t run_turn(loop &on, haft_fiber_t **fiber, turn_kind kind) {
    task *begins = on.running;
    now->note(RESUMED, begins->number);
    bool is_new = !std::exchange(begins->begun, true);
    haft_request_t request =
        kind == DISCONTINUE
            ? haft_discontinue(*fiber, leave, nullptr, OF_LOOP)
            : resume(on, fiber, is_new ? HAFT_NO_REPLY : HAFT_REPLY(take_turns, now->turns));
    while (request.effect == HAFT_ID(answer)) {
        CHECK(*fiber == on.running->fiber);
        int64_t value = static_cast<HAFT_PAYLOAD(answer) *>(request.payload)->value + 3;
        request = resume(on, fiber, HAFT_REPLY(answer, value));
    }
    return request;
}

void run_loop(loop &on) {
    while (!on.ready.empty()) {
        task *next = on.ready.front();
        on.ready.pop_front();
        turn_kind kind = next->begun ? next_turn() : RESUME;
        now->turns++;
        if (kind == DROP) {
            now->note(DROPPED, next->number);
            release(next);
            continue;
        }
        on.running = next;
        haft_fiber_t *fiber = next->fiber;
        event ended = ENDED;
        try {
            haft_request_t request = run_turn(on, &fiber, kind);
            if (request.effect == HAFT_ID(take_turns)) {
                on.ready.push_back(std::exchange(on.running, nullptr));
                continue;
            }
            CHECK(haft_finished(request) || request.effect == HAFT_ID(give_up));
        } catch (const leaving &) {
            CHECK(on.turn.fiber == nullptr);
            ended = LEFT;
        }
        task *last = std::exchange(on.running, nullptr); /* perhaps not the one that was resumed */
        CHECK(last->fiber == fiber);
        CHECK_EQUAL(haft_fiber_state(fiber), HAFT_FIBER_FINISHED);
        now->note(ended, last->number);
        release(last);
    }
}

void *run_whole_loop(void *argument) {
    run_loop(*static_cast<loop *>(argument));
    return argument;
}

struct step {
    haft_fiber_t *fiber;
    bool finished;
};
void *resume_loop(void *argument) {
    step *one = static_cast<step *>(argument);
    one->finished = haft_finished(haft_resume(one->fiber, HAFT_NO_REPLY, HAFT_HANDLES(outside)));
    return nullptr;
}

void run_program(run *one) {
    now = one;
    fesetround(FE_TONEAREST);
    random_numbers choices{one->seed};
    loop whole;
    for (unsigned tasks = 1 + choices.below(8); tasks != 0; tasks--)
        spawn(whole, choices.below(1u << 30));
    step next = {haft_fiber_new(run_whole_loop, &whole), false};
    for (intptr_t i = 0; !next.finished; i++) {
        void *number = reinterpret_cast<void *>(i % 3);
        auto on_this_thread = [&] { haft_handle(&answers_number, number, resume_loop, &next); };
        if (one->chance(8) == 0)
            std::thread(on_this_thread).join();
        else
            on_this_thread();
    }
    haft_fiber_drop(next.fiber);
    CHECK_EQUAL(one->live, 0);
}

void what_hands_over_does_what_the_loop_would_do() {
    HAFT_SET_DEFAULT(in_place, answer_by_default);
    int handed_over = 0;
    const uint64_t seeds = static_cast<uint64_t>(check_times(500));
    for (uint64_t seed = 1; seed <= seeds && check_failures == 0; seed++) {
        run by_loop{.hands_over = false, .seed = seed}, by_tasks{.hands_over = true, .seed = seed};
        run_program(&by_loop);
        run_program(&by_tasks);
        CHECK(by_loop.seen == by_tasks.seen);
        if (check_failures != 0)
            fprintf(stderr, "the seed is %d\n", static_cast<int>(seed));
        handed_over += by_tasks.handed_over;
    }
    CHECK((handed_over > 1000) == check_bare());
}

} // namespace

int main() {
    RUN(what_hands_over_does_what_the_loop_would_do);
    return check_end();
}
