/* Dynamic binding and dependency injection. */
#include "check.hpp"

#include <haft/binding.hpp>
#include <haft/generator.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

struct Indent : haft::variable<int> {
    static int initial() { return 0; }
};
struct User : haft::variable<std::string> {};
struct Sink : haft::variable<std::string &> {};
struct Token : haft::variable<std::unique_ptr<int>> {};
struct Pause : haft::effect<> {};

static void the_innermost_binding_counts() {
    CHECK(haft::bound<Indent>() == 0);
    int deepest = haft::bind<Indent>(2, [] {
        int inner =
            haft::bind<Indent>(haft::bound<Indent>() + 2, [] { return haft::bound<Indent>(); });
        CHECK(haft::bound<Indent>() == 2);
        return inner;
    });
    CHECK(deepest == 4 && haft::bound<Indent>() == 0);
}

static void values_are_not_copied() {
    haft::bind<User>("ada", [] {
        const std::string &first = haft::bound<User>();
        CHECK(&first == &haft::bound<User>() && first == "ada");
    });
    haft::bind<Token>(std::make_unique<int>(3), [] { CHECK(*haft::bound<Token>() == 3); });
    std::string text;
    haft::bind<Sink>(text, [] { haft::bound<Sink>() += "written"; });
    CHECK(text == "written");
}

static void an_initial_value_is_made_once() {
    struct Shared : haft::variable<std::vector<int>> {
        static std::vector<int> initial() { return {1, 2}; }
    };
    CHECK(&haft::bound<Shared>() == &haft::bound<Shared>() && haft::bound<Shared>().size() == 2);
    CHECK(!haft::is_bound<Shared>());
    haft::bind<Shared>({},
                       [] { CHECK(haft::is_bound<Shared>() && haft::bound<Shared>().empty()); });
}

static void an_unbound_variable_is_an_error_that_names_it() {
    CHECK(!haft::is_bound<User>());
    std::string what = thrown_by<haft::missing_binding>([] { haft::bound<User>(); }).what();
    CHECK(what.find("variable User ") != what.npos && what.find("haft::bind<User>") != what.npos);
    /* It is thrown where the variable is used, and can be caught there, whatever is around. */
    haft::bind<Indent>(1, [] {
        (void)thrown_by<haft::missing_binding>([] { haft::bound<User>(); });
        CHECK(haft::bound<Indent>() == 1);
    });
}

static void a_binding_ends_with_an_exception_and_with_a_drop() {
    struct Guard : haft::variable<std::shared_ptr<counted>> {};
    CHECK(thrown_by<int>([] {
              haft::bind<Guard>(std::make_shared<counted>(), [] {
                  CHECK(counted::alive == 1);
                  throw 3;
              });
          }) == 3);
    CHECK(counted::alive == 0 && !haft::is_bound<Guard>());
    haft::handle([] {
        haft::bind<Guard>(std::make_shared<counted>(), [] { haft::perform(Pause{}); });
    }).with([](Pause, haft::resumption<void()> k) {
        CHECK(counted::alive == 1 && !haft::is_bound<Guard>());
        std::move(k).drop();
        CHECK(counted::alive == 0);
    });
}

static void a_fiber_sees_the_bindings_around_its_resumer() {
    haft::generator<int> indents([](haft::yielder<int> yield) {
        for (;;)
            yield(int(haft::bound<Indent>()));
    });
    CHECK(*indents.next() == 0);
    CHECK(haft::bind<Indent>(7, [&] { return *indents.next(); }) == 7);
    CHECK(*indents.next() == 0);
    /* One that is suspended with its own binding keeps that. */
    haft::generator<int> own([](haft::yielder<int> yield) {
        haft::bind<Indent>(1, [&] {
            for (;;)
                yield(int(haft::bound<Indent>()));
        });
    });
    CHECK(*own.next() == 1);
    CHECK(haft::bind<Indent>(7, [&] { return *own.next(); }) == 1);
}

/* ---- Injection ---- */

struct Clock {
    virtual ~Clock() = default;
    virtual int now() = 0;
};
struct FixedClock : Clock {
    int time;
    counted life;
    explicit FixedClock(int at) : time(at) {}
    int now() override { return time; }
};
struct Store {
    virtual ~Store() = default;
    virtual std::string name() const = 0;
};
struct StampedStore : Store {
    int made_at = haft::inject<Clock>().now();
    counted life;
    std::string name() const override { return std::string("made at ") + std::to_string(made_at); }
};

static void objects_are_found_by_the_type_of_their_interface() {
    FixedClock clock(3);
    haft::provide<Clock>(clock).run([&] { CHECK(&haft::inject<Clock>() == &clock); });
    CHECK(haft::provide<Clock>(FixedClock(4)).run([] { return haft::inject<Clock>().now(); }) == 4);
    CHECK(haft::provide<Clock>(std::make_unique<FixedClock>(5)).run([] {
        return haft::inject<Clock>().now();
    }) == 5);
    auto shared = std::make_shared<FixedClock>(6);
    haft::provide<Clock>(shared).run([&] { CHECK(&haft::inject<Clock>() == shared.get()); });
    CHECK(haft::provide<const Clock>(std::as_const(clock)).run([] {
        return haft::is_provided<const Clock>() && !haft::is_provided<Clock>();
    }));
    shared.reset();
    CHECK(counted::alive == 1);
}

static void functions_make_objects_once_when_first_needed() {
    int made = 0;
    haft::provide<Clock>([&] {
        made++;
        return FixedClock(made);
    }).run([&] {
        CHECK(made == 0);
        CHECK(haft::inject<Clock>().now() == 1 && haft::inject<Clock>().now() == 1 && made == 1);
        CHECK(counted::alive == 1);
    });
    CHECK(counted::alive == 0);
    haft::provide<Clock>([&]() -> Clock & { CHECK(false); }).run([] {});
    FixedClock clock(2);
    haft::provide<Clock>([&]() -> Clock & { return clock; }).run([&] {
        CHECK(&haft::inject<Clock>() == &clock);
    });
    /* An object that can neither be copied nor moved. */
    struct Pinned : Clock {
        Pinned() = default;
        Pinned(const Pinned &) = delete;
        int now() override { return 9; }
    };
    CHECK(haft::provide<Clock>([] { return Pinned(); }).run([] {
        return haft::inject<Clock>().now();
    }) == 9);
}

static std::string application() {
    return haft::provide<Clock>(FixedClock(3))
        .provide<Store>([] { return std::make_unique<StampedStore>(); })
        .run([] { return haft::inject<Store>().name(); });
}

static void objects_are_made_from_those_further_out() {
    CHECK(application() == "made at 3");
    CHECK(counted::alive == 0);
    /* A binding that hides a dependency further in does not change objects made further out. */
    CHECK(haft::provide<Clock>(FixedClock(3)).provide<Store>([] { return StampedStore(); }).run([] {
        return haft::provide<Clock>(FixedClock(8)).run([] {
            return haft::inject<Store>().name() + std::to_string(haft::inject<Clock>().now());
        });
    }) == "made at 38");
}

static void a_substitute_stands_for_all_that_is_provided_inside() {
    CHECK(haft::substitute<Clock>(FixedClock(1), application) == "made at 1");
    struct FakeStore : Store {
        std::string name() const override { return "fake"; }
    } fake;
    CHECK(haft::substitute<Store>(fake, application) == "fake");
    /* The nearest substitute counts; and it provides, where nothing else does. */
    CHECK(haft::substitute<Clock>(FixedClock(1), [] {
              return haft::substitute<Clock>([] { return FixedClock(2); },
                                             [] {
                                                 return application() + ", " +
                                                        std::to_string(haft::inject<Clock>().now());
                                             });
          }) == "made at 2, 2");
    CHECK(counted::alive == 0);
    CHECK(application() == "made at 3");
}

static void a_missing_dependency_is_an_error_that_names_the_type() {
    CHECK(!haft::is_provided<Clock>());
    std::string what = thrown_by<haft::missing_binding>([] { haft::inject<Clock>(); }).what();
    CHECK(what.find("nothing provides Clock ") != what.npos);
    what = thrown_by<haft::missing_binding>([] {
               haft::provide<Store>([] { return StampedStore(); }).run([] {
                   CHECK(haft::is_provided<Store>());
                   haft::inject<Store>();
               });
           }).what();
    CHECK(what.find("Clock") != what.npos && what.find("to make Store") != what.npos);
    /* A provider does not find itself: no cycles. */
    (void)thrown_by<haft::missing_binding>([] {
        haft::provide<Clock>([]() -> Clock & { return haft::inject<Clock>(); }).run([] {
            haft::inject<Clock>();
        });
    });
}

static void a_null_pointer_is_an_error_that_names_the_type() {
    for (auto provide : {+[] { haft::provide<Clock>(std::unique_ptr<Clock>()).run([] {}); },
                         +[] {
                             haft::provide<Clock>([] { return std::shared_ptr<Clock>(); }).run([] {
                                 haft::inject<Clock>();
                             });
                         }}) {
        std::string what = thrown_by<haft::missing_binding>(provide).what();
        CHECK(what.find("provides Clock gave a null pointer") != what.npos);
    }
}

static void an_exception_of_a_function_comes_out_of_inject() {
    int calls = 0;
    haft::provide<Clock>([&] {
        if (calls++ == 0)
            throw std::string("not yet");
        return FixedClock(calls);
    }).run([] {
        counted local;
        CHECK(thrown_by<std::string>([] { haft::inject<Clock>(); }) == "not yet");
        CHECK(haft::inject<Clock>().now() == 2); /* it is asked again */
    });
    CHECK(thrown_by<int>(
              [] { haft::substitute<Clock>([]() -> FixedClock { throw 4; }, application); }) == 4);
    CHECK(counted::alive == 0);
}

static void a_function_may_be_suspended_and_dropped() {
    auto program = [] {
        return haft::provide<Clock>([] {
                   haft::perform(Pause{});
                   return FixedClock(5);
               })
            .run([] {
                counted local;
                return haft::inject<Clock>().now();
            });
    };
    CHECK(haft::handle(program).with(
              [](Pause, haft::resumption<int()> k) { return std::move(k).resume() + 1; }) == 6);
    CHECK(haft::handle(program).with([](Pause, haft::resumption<int()>) { return 7; }) == 7);
    CHECK(counted::alive == 0);
}

static void any_type_is_an_interface() {
    using Greeting = std::function<std::string()>;
    CHECK(haft::provide<Greeting>(Greeting([] { return "hello"; })).run([] {
        return haft::inject<Greeting>()();
    }) == "hello");
    int number = 3;
    haft::provide<int>(number).provide<const int>(4).run([] { haft::inject<int>()++; });
    CHECK(number == 4);
}

static void objects_end_in_reverse_order() {
    static std::string trace;
    trace.clear();
    struct A {
        ~A() { trace += "A"; }
    };
    struct B {
        ~B() { trace += "B"; }
    };
    haft::provide<A>([] { return std::make_unique<A>(); })
        .provide<B>([] {
            haft::inject<A>();
            return std::make_unique<B>();
        })
        .run([] { haft::inject<B>(); });
    CHECK(trace == "BA");
}

int main() {
    the_innermost_binding_counts();
    values_are_not_copied();
    an_initial_value_is_made_once();
    an_unbound_variable_is_an_error_that_names_it();
    a_binding_ends_with_an_exception_and_with_a_drop();
    a_fiber_sees_the_bindings_around_its_resumer();
    objects_are_found_by_the_type_of_their_interface();
    functions_make_objects_once_when_first_needed();
    objects_are_made_from_those_further_out();
    a_substitute_stands_for_all_that_is_provided_inside();
    a_missing_dependency_is_an_error_that_names_the_type();
    a_null_pointer_is_an_error_that_names_the_type();
    an_exception_of_a_function_comes_out_of_inject();
    a_function_may_be_suspended_and_dropped();
    any_type_is_an_interface();
    objects_end_in_reverse_order();
}
// SPDX-License-Identifier: MIT
