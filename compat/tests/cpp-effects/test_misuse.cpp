/* Misuse that is undefined in cpp-effects is an error here, whose message has what is wrong. */
#include "../../../core/tests/check.h"

#include "cpp-effects/cpp-effects.h"
#include <memory>
#include <stdexcept>
namespace eff = cpp_effects;

struct Ask : eff::command<int> {};
struct Tell : eff::command<> {};

static eff::resumption<int(int)> kept;
class Keeper : public eff::flat_handler<int, Ask> {
    int handle_command(Ask, eff::resumption<int(int)> r) override {
        kept = std::move(r);
        return 0;
    }
};
class Asker : public eff::flat_handler<int, eff::plain<Ask>> {
    int handle_command(Ask) override { return 1; }
};
class Twice : public eff::flat_handler<int, Ask> {
    int handle_command(Ask, eff::resumption<int(int)> r) override {
        auto other = eff::wrap<Asker>([] { return 1; });
        std::move(r).tail_resume(1);
        return std::move(other).tail_resume();
    }
};
static int ask() {
    return eff::invoke_command(Ask{});
}

static void resume_twice() {
    eff::handle<Keeper>(ask);
    std::move(kept).resume(1);
    std::move(kept).resume(1);
}
static void resume_nothing() {
    eff::resumption<int(int)>().resume(1);
}
static void tail_resume_twice() {
    eff::handle<Keeper>(ask);
    std::move(kept).tail_resume(1);
    std::move(kept).tail_resume(1);
}
static void tail_resume_two() {
    eff::handle<Twice>(ask);
}
static void no_handler() {
    ask();
}
static void no_handler_inside() {
    eff::handle<Asker>([] {
        eff::invoke_command(Tell{});
        return 1;
    });
}
static void no_label() {
    eff::handle<Asker>(3, [] { return eff::invoke_command(4, Ask{}); });
}
static void no_label_at_all() {
    eff::handle<Asker>([] { return eff::invoke_command(-2, Ask{}); });
}
static void left_label() {
    eff::handle<Asker>(4, ask);
    eff::invoke_command(4, Ask{});
}
static void label_of_another_handler() {
    eff::handle<Asker>(3, [] {
        eff::invoke_command(3, Tell{});
        return 1;
    });
}
static void left_reference() {
    eff::handler_ref left;
    eff::handle_ref<Asker>([&](eff::handler_ref ref) {
        left = ref;
        return 1;
    });
    eff::invoke_command(left, Ask{});
}
static void empty_reference() {
    eff::handle<Asker>([] { return eff::invoke_command(eff::handler_ref(), Ask{}); });
}
static void reference_to_another_handler() {
    eff::handle_ref<Asker>([](eff::handler_ref ref) {
        eff::invoke_command(ref, Tell{});
        return 1;
    });
}
static void no_label_to_find() {
    eff::handle<Asker>(3, [] { return (void)eff::find_handler(4), 1; });
}
static void no_command_to_find() {
    eff::handle<Asker>(3, [] { return (void)eff::find_handler<Tell>(), 1; });
}
static void no_existing_handler() {
    eff::handle_with(ask, std::shared_ptr<Asker>());
}
static void no_existing_handler_to_wrap() {
    (void)eff::wrap_with(ask, std::shared_ptr<Asker>());
}
static void no_existing_handler_with_ref() {
    eff::handle_with_ref([](eff::handler_ref) { return 1; }, std::shared_ptr<Asker>());
}

static void misuse_is_reported() {
    CHECK_ABORTS(resume_twice, "A resumption of the effect 'Ask' cannot be resumed: it has been");
    CHECK_ABORTS(resume_nothing, "cannot be resumed");
    CHECK_ABORTS(tail_resume_twice, "A resumption of the effect 'Ask' cannot be resumed");
    CHECK_ABORTS(tail_resume_two, "has called tail_resume twice");
    CHECK_ABORTS(no_handler, "Nobody handles the effect 'Ask'");
    CHECK_ABORTS(no_handler_inside, "Nobody handles the effect 'Tell'");
    CHECK_ABORTS(no_label, "'Ask' cannot be invoked at label 4: no handler with that label");
    CHECK_ABORTS(no_label_at_all, "'Ask' cannot be invoked at label -2");
    CHECK_ABORTS(left_label, "'Ask' cannot be invoked at label 4");
    CHECK_ABORTS(label_of_another_handler,
                 "'Tell' cannot be invoked at label 3: the handler with that label does not");
    CHECK_ABORTS(left_reference, "'Ask' cannot be performed to that handler: it is not around");
    CHECK_ABORTS(empty_reference, "'Ask' cannot be invoked by an empty handler_ref");
    CHECK_ABORTS(reference_to_another_handler, "Nobody handles the effect 'Tell'");
    CHECK_ABORTS(no_label_to_find, "No handler with the label 4 is around the current code");
    CHECK_ABORTS(no_command_to_find, "Nobody handles the effect 'Tell'");
    CHECK_ABORTS(no_existing_handler, "handle_with was given no handler");
    CHECK_ABORTS(no_existing_handler_to_wrap, "wrap_with was given no handler");
    CHECK_ABORTS(no_existing_handler_with_ref, "handle_with_ref was given no handler");
}

/* An error handler may throw: nothing has happened yet. */
static void throws(const haft_error_t *error) {
    throw std::runtime_error(error->message);
}
static void errors_can_be_caught() {
    haft_set_error_handler(throws);
    int answer = eff::handle<Asker>(3, [] {
        try {
            return eff::invoke_command(4, Ask{});
        } catch (const std::runtime_error &error) {
            CHECK_CONTAINS(error.what(), "label 4");
            return eff::invoke_command(3, Ask{}) + 1;
        }
    });
    haft_set_error_handler(nullptr);
    CHECK_EQUAL(answer, 2);
}

int main() {
    RUN(misuse_is_reported);
    RUN(errors_can_be_caught);
    return check_end();
}
// SPDX-License-Identifier: MIT
