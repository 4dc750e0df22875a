/* Clauses, and parts of a handler: functions and function objects of every kind,
 * templates, references, handlers beside clauses and each other. */
#include "check.hpp"

#include <functional>
#include <haft.hpp>
#include <memory>
#include <string>

struct Get : haft::effect<int> {};
struct Put : haft::effect<> {
    int value;
};
struct Name : haft::effect<std::string> {};
struct Stop : haft::effect<> {
    int value;
};

static int get() {
    return haft::perform(Get{});
}
static int increment() {
    haft::perform(Put{.value = get() + 1});
    return get();
}

/* ---- Functions ---- */

static int nine(Get) noexcept {
    return 9;
}
static int resumed(Get, haft::resumption<int(int)> k) noexcept {
    return std::move(k).resume(10);
}
struct functions {
    static int eight(Get) { return 8; }
    static int stopped(Stop stop) noexcept { return stop.value; }
};

static void functions_are_clauses_whether_they_may_throw_or_not() {
    CHECK(haft::handle(get).with(nine) == 9);
    CHECK(haft::handle(get).with(&nine) == 9);
    CHECK(haft::handle(get).with(resumed) == 10);
    CHECK(haft::handle(get).with(functions::eight) == 8);
    CHECK(haft::handle(get).with(haft::clauses(&functions::eight)) == 8);
    CHECK(haft::handle([] {
              haft::perform(Stop{.value = 5});
              return 0;
          }).with(haft::never(functions::stopped)) == 5);
    CHECK(haft::handle(get).with([](Get) noexcept { return 3; }) == 3);
}

/* ---- Function objects ---- */

struct reference_qualified {
    int value;
    int operator()(Get) & { return value++; }
};
struct const_reference_qualified {
    int value;
    int operator()(Get) const &noexcept { return value; }
};
struct last final {
    int value;
    int operator()(Get) { return value++; }
};
struct last_general final {
    int operator()(Get, haft::resumption<int(int)> k) const { return std::move(k).resume(21); }
};
struct alignas(256) wide {
    int value;
    int operator()(Get, haft::resumption<int(int)> k) const {
        CHECK(reinterpret_cast<std::uintptr_t>(this) % 256 == 0);
        return std::move(k).resume(value);
    }
};

static void function_objects_are_clauses_whatever_their_qualifiers() {
    auto twice = [] { return get() * 10 + get(); };
    CHECK(haft::handle(twice).with(reference_qualified{3}) == 34);
    CHECK(haft::handle(get).with(const_reference_qualified{4}) == 4);
    CHECK(haft::handle(twice).with(last{5}) == 56);
    CHECK(haft::handle(get).with(last_general{}, [](Put) {}) == 21);
    CHECK(haft::handle([] {
              haft::perform(Stop{.value = 1});
              return 0;
          }).with([](Get) { return 1; }, haft::never([](Stop) { return 2; })) == 2);
    CHECK(haft::handle(get).with(wide{7}) == 7);
    struct alignas(128) wide_body {
        int operator()() const {
            CHECK(reinterpret_cast<std::uintptr_t>(this) % 128 == 0);
            return get();
        }
    };
    CHECK(haft::handle(wide_body{}).with(last_general{}) == 21);
}

#ifdef __cpp_static_call_operator
static void static_call_operators_are_clauses() {
    CHECK(haft::handle(get).with([](Get) static { return 6; }) == 6);
    CHECK(haft::handle(get).with([](Get, haft::resumption<int(int)> k) static {
        return std::move(k).resume(7);
    }) == 7);
}
#endif

static void a_clause_may_be_referred_to() {
    int calls = 0;
    auto clause = [calls](Get) mutable { return ++calls; };
    auto twice = [] { return get() * 10 + get(); };
    CHECK(haft::handle(twice).with(std::ref(clause)) == 12);
    CHECK(haft::handle(twice).with(std::ref(clause), [](Put) {}) == 34);
    CHECK(haft::handle(get).with(std::ref(nine)) == 9);
    const auto constant = [](Get) { return 4; };
    CHECK(haft::handle(get).with(std::cref(constant)) == 4);
    last final_clause{6};
    CHECK(haft::handle(twice).with(std::ref(final_clause)) == 67);
    CHECK(final_clause.value == 8);
}

/* A call operator that is const does not fix what a mutable member does. */
struct counting {
    mutable int calls = 0;
    int operator()(Get, haft::resumption<int(int)> k) const { return std::move(k).resume(++calls); }
};
struct counting_stops {
    mutable int calls = 0;
    int operator()(Stop) const { return ++calls; }
};

static void a_clause_keeps_its_state_from_call_to_call() {
    auto thrice = [] { return get() * 100 + get() * 10 + get(); };
    CHECK(haft::handle(thrice).with(counting{}) == 123);
    CHECK(haft::handle(thrice).with([inner = counting()](Get, haft::resumption<int(int)> k) {
        return inner(Get{}, std::move(k));
    }) == 123);
    auto handler = haft::clauses(counting{});
    CHECK(haft::handle(thrice).with(handler) == 123);
    CHECK(haft::handle(get).with(handler) == 4);
}

/* ---- Templates ---- */

struct Generic : haft::handler<Get, Put> {
    int puts = 0;
    template <typename A>
    A operator()(Get, haft::resumption<A(int)> k) {
        return std::move(k).resume(5);
    }
    template <typename A>
    haft::tail<A> operator()(Put, haft::resumption<A()> k) {
        puts++;
        return std::move(k).tail_resume();
    }
};
template <typename T>
struct Any : haft::handler<Get> {
    auto operator()(Get, auto k) { return std::move(k).resume(T(6)); }
};

static void a_general_clause_may_be_a_template_over_the_answer() {
    Generic generic;
    CHECK(haft::handle(increment).with(generic) == 5);
    CHECK(haft::handle([] { return std::to_string(increment()); }).with(generic) == "5");
    haft::handle([] { increment(); }).with(generic);
    CHECK(generic.puts == 3);
    CHECK(haft::handle(increment).with(
              Generic{}, haft::on_return([](int n) { return std::to_string(n) + "!"; })) == "5!");
    auto later = haft::wrap([] { return std::to_string(get()); }).with(Generic{});
    CHECK(std::move(later).resume() == "5");
}

/* ---- Handlers as parts ---- */

struct Cell : haft::handler<Get, Put> {
    int state = 0;
    explicit Cell(int initial = 0) : state(initial) {}
    int operator()(Get) noexcept { return state; }
    void operator()(Put put) noexcept { state = put.value; }
};
struct Stopper : haft::handler<haft::never<Stop>> {
    int operator()(Stop stop) { return -stop.value; }
    int on_return(int result) { return result * 2; }
};
struct Named final : haft::handler<Name> {
    std::string text = "Haft";
    std::string operator()(Name) { return text; }
};

static int named() {
    return increment() + static_cast<int>(haft::perform(Name{}).size());
}
static int stopping() {
    haft::perform(Stop{.value = increment()});
    return 0;
}

static void handlers_and_clauses_are_parts_of_one_handler() {
    Cell cell(1);
    Stopper stopper;
    /* By reference, by value, by pointer; handlers and clauses in any order. */
    CHECK(haft::handle(named).with(cell, Named{}) == 6);
    CHECK(cell.state == 2);
    CHECK(haft::handle(named).with([](Name) { return "four"; }, cell) == 7);
    CHECK(haft::handle(named).with(std::make_shared<Cell>(5), std::make_unique<Named>()) == 10);
    CHECK(haft::handle(stopping).with(cell, stopper) == -4);
    CHECK(haft::handle(increment).with(cell, stopper) == 10);
    CHECK(haft::handle(stopping).with(Cell(6), haft::never([](Stop stop) { return stop.value; })) ==
          7);
    CHECK(haft::handle(increment).with(cell, haft::on_return([](int n) { return n + 0.5; })) ==
          6.5);
    CHECK(haft::handle(named).with(haft::clauses([](Get) { return 1; }, [](Put) {}), Named{}) == 5);
    auto later = haft::wrap(increment).with(cell, [](Name) { return ""; });
    CHECK(std::move(later).resume() == 7);
    CHECK(haft::handle([] {
              int first = get();
              return first * 10 + get();
          }).with([&](Get, haft::resumption<int(int)> k) {
        return std::move(k).resume_with(haft::clauses(std::ref(cell)), 3);
    }) == 37);
}

struct Greeter : haft::handler<Name> {
    std::string operator()(Name) { return "hello"; }
};
struct Both : Cell, Greeter {
    using handled_effects = haft::effects_of<Cell, Greeter>;
    using Cell::operator();
    using Greeter::operator();
};

static void a_class_may_inherit_two_handlers() {
    Both both;
    CHECK(haft::handle(named).with(both) == 6);
    CHECK(both.state == 1);
    CHECK(haft::handle([] {
              return named() + stopping();
          }).with(both, haft::never([](Stop stop) { return stop.value; })) == 3);
}

struct Constant : haft::handler<Get> {
    int operator()(Get) const { return 12; }
};

static void a_handler_may_be_const() {
    const Constant constant;
    CHECK(haft::handle(get).with(constant) == 12);
    CHECK(haft::handle(named).with(constant, Named{}, [](Put) {}) == 16);
    CHECK(haft::handle(get).with(std::make_shared<const Constant>()) == 12);
    const auto set = haft::clauses([](Get) { return 13; });
    CHECK(haft::handle(get).with(set) == 13);
}

static void a_null_pointer_in_place_of_a_handler_is_reported() {
    haft_set_error_handler([](const haft_error_t *error) {
        CHECK(std::string(error->message).find("pointer that is null") != std::string::npos);
        throw error->code;
    });
    std::shared_ptr<Cell> shared;
    CHECK(thrown_by<haft_error_code_t>([&] { haft::handle(increment).with(shared); }) ==
          HAFT_ERROR_BAD_ARGUMENT);
    CHECK(thrown_by<haft_error_code_t>([&] {
              haft::handle(increment).with(std::unique_ptr<Cell>());
          }) == HAFT_ERROR_BAD_ARGUMENT);
    CHECK(thrown_by<haft_error_code_t>([&] { haft::handle(named).with(shared, Named{}); }) ==
          HAFT_ERROR_BAD_ARGUMENT);
    CHECK(thrown_by<haft_error_code_t>([&] { (void)haft::wrap(increment).with(shared); }) ==
          HAFT_ERROR_BAD_ARGUMENT);
    haft_set_error_handler(nullptr);
}

static void an_instance_is_one_of_fewer_effects_and_in_any_order() {
    Cell cell(3);
    CHECK(haft::handle([](haft::instance<Put, Get> self) {
              self.perform(Put{.value = 4});
              return self.perform(Get{});
          }).with(cell) == 4);
    CHECK(haft::handle([](haft::instance<Get> self) { return self.perform(Get{}); }).with(cell) ==
          4);
    auto reads = [](haft::instance<Get> of) { return of.perform(Get{}); };
    CHECK(haft::handle([&](haft::instance<Get, Put> self) {
              return haft::handle([&] { return reads(self); }).with([](Get) { return 0; });
          }).with(cell) == 4);
}

/* ---- The stack that was asked for ---- */

static void a_stack_that_is_chosen_is_used_though_all_clauses_are_in_place() {
    alignas(64) static char memory[64 * 1024];
    const char *name = nullptr;
    bool inside = false;
    CHECK(haft::handle([&] {
              char local = 0;
              inside = &local >= memory && &local < memory + sizeof memory;
              name = haft_fiber_name(haft_fiber_current());
              return increment();
          })
              .on({.memory = memory, .memory_size = sizeof memory, .name = "chosen"})
              .with(Cell(1)) == 2);
    CHECK(inside && name == std::string("chosen"));
    /* More than a stack of the pool has. */
    CHECK(haft::handle([] {
              volatile char large[4 << 20];
              for (std::size_t i = 0; i < sizeof large; i += 4096)
                  large[i] = 1;
              return large[4096] + get();
          })
              .on({.stack_size = 8 << 20})
              .with([](Get) { return 1; }) == 2);
    /* An exception of a clause in place leaves it, too. */
    CHECK(thrown_by<int>([] {
              haft::handle(get).on({.name = "left"}).with([](Get) -> int { throw 3; });
          }) == 3);
}

int main() {
    functions_are_clauses_whether_they_may_throw_or_not();
    function_objects_are_clauses_whatever_their_qualifiers();
#ifdef __cpp_static_call_operator
    static_call_operators_are_clauses();
#endif
    a_clause_may_be_referred_to();
    a_clause_keeps_its_state_from_call_to_call();
    a_general_clause_may_be_a_template_over_the_answer();
    handlers_and_clauses_are_parts_of_one_handler();
    a_class_may_inherit_two_handlers();
    a_handler_may_be_const();
    a_null_pointer_in_place_of_a_handler_is_reported();
    an_instance_is_one_of_fewer_effects_and_in_any_order();
    a_stack_that_is_chosen_is_used_though_all_clauses_are_in_place();
}
// SPDX-License-Identifier: MIT
