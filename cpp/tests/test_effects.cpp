/* Effects and performing: how they are made, and what travels as payload and as result. */
#include "check.hpp"

#include <cstring>
#include <haft.hpp>
#include <memory>
#include <string>
#include <vector>

struct Get : haft::effect<int> {};
struct Put : haft::effect<> {
    int value;
};
struct Pair : haft::effect<> {
    int first;
    int second = 5;
};
struct Tagged {
    using effect_result = int;
    int value;
};
template <typename S>
struct Read : haft::effect<S> {};
template <typename S>
struct Write : haft::effect<> {
    S value;
};
struct Element : haft::effect<int &> {
    std::size_t index;
};
struct Expiring : haft::effect<std::string &&> {};
struct ticket { /* move-only, though its bytes could be copied */
    explicit ticket(int the_number) : number(the_number) {}
    ticket(ticket &&) = default;
    ticket &operator=(ticket &&) = default;
    int number;
};
struct Draw : haft::effect<ticket> {};
struct Open : haft::effect<std::unique_ptr<int>> {
    std::unique_ptr<int> wish;
};
struct big {
    long words[12];
};
struct Big : haft::effect<big> {
    big value;
};
struct odd {
    explicit odd(int value) : number(value) {}
    int number;
};
struct Odd : haft::effect<odd> {};

HAFT_EFFECT(c_get, int64_t, {});
HAFT_EFFECT(c_put, void, { int64_t value; });
HAFT_EFFECT(c_big, big, { int first; });
HAFT_ADOPT(c_get);
HAFT_ADOPT(c_put);
HAFT_ADOPT(c_big);

static void are_made_without_empty_braces() {
    int got = 0;
    haft::handle([] {
        haft::perform(Put{.value = 1});
        haft::perform<Put>(2);
        haft::perform<Put>({.value = 3});
        Put put{.value = 4};
        haft::perform(put);
        haft::perform<Pair>(1);
        haft::perform(Pair{.first = 1});
        haft::perform<Pair>(1, 2);
        CHECK(haft::perform(Tagged{7}) == 8);
        CHECK(haft::perform<Tagged>(8) == 9);
    })
        .with([&](Put p) { got = got * 10 + p.value; }, [&](Pair p) { got = got * 10 + p.second; },
              [](Tagged t) { return t.value + 1; });

    CHECK(got == 1234552);
}

static void templates_of_effects_are_effects_of_their_own() {
    std::string text = "a";
    int number = 1;
    auto body = [] {
        haft::perform(Write<int>{.value = haft::perform(Read<int>{}) + 1});
        haft::perform(Write<std::string>{.value = haft::perform(Read<std::string>{}) + "b"});
    };
    haft::handle(body).with([&](Read<int>) { return number; },
                            [&](Read<std::string>) { return text; },
                            [&](Write<int> w) { number = w.value; },
                            [&](Write<std::string> w) { text = std::move(w.value); });
    CHECK(number == 2 && text == "ab");
    haft::handle(body).with(
        [&](Read<int>, haft::resumption<void(int)> k) { std::move(k).resume(number); },
        [&](Read<std::string>, haft::resumption<void(std::string)> k) {
            return std::move(k).tail_resume(text);
        },
        [&](Write<int> w, haft::resumption<void()> k) {
            number = w.value;
            std::move(k).resume();
        },
        [&](Write<std::string> &&w, haft::resumption<void()> k) {
            text = std::move(w.value);
            return std::move(k).tail_resume();
        });
    CHECK(number == 3 && text == "abb");
}

static void results_may_be_references() {
    int cells[3] = {};
    auto body = [] {
        haft::perform(Element{.index = 1}) = 4;
        int &cell = haft::perform(Element{.index = 2});
        cell++;
        return &cell;
    };
    CHECK(haft::handle(body).with([&](Element e) -> int & { return cells[e.index]; }) == &cells[2]);
    CHECK(haft::handle(body).with([&](Element e, haft::resumption<int *(int &)> k) {
        return std::move(k).resume(cells[e.index]);
    }) == &cells[2]);
    CHECK(haft::handle(body).with([&](Element e, haft::resumption<int *(int &)> k) {
        return std::move(k).tail_resume(cells[e.index]);
    }) == &cells[2]);
    CHECK(cells[0] == 0 && cells[1] == 4 && cells[2] == 3);
}

static void results_may_be_references_to_what_expires() {
    std::string text = "long enough to lie on the heap";
    auto take = [] { return std::string(haft::perform(Expiring{})); };
    CHECK(haft::handle(take).with([&](Expiring, haft::resumption<std::string(std::string &&)> k) {
        return std::move(k).resume(std::move(text));
    }) == "long enough to lie on the heap");
    CHECK(text.empty());
    text = "and another one for the clause in place";
    CHECK(haft::handle(take).with([&](Expiring) -> std::string && { return std::move(text); }) ==
          "and another one for the clause in place");
}

static void results_may_be_move_only_and_small() {
    auto draw = [] { return haft::perform(Draw{}).number; };
    CHECK(haft::handle(draw).with([](Draw) { return ticket(3); }) == 3);
    CHECK(haft::handle(draw).with([](Draw, haft::resumption<int(ticket)> k) {
        return std::move(k).resume(ticket(4));
    }) == 4);
}

static void answers_may_be_references_and_move_only() {
    int cell = 0;
    int &same = haft::handle([&]() -> int & {
                    haft::perform(Get{});
                    return cell;
                }).with([](Get, haft::resumption<int &(int)> k) -> int & {
        return std::move(k).resume(1);
    });
    CHECK(&same == &cell);
    std::unique_ptr<int> owned = haft::handle([] {
                                     return std::make_unique<int>(haft::perform(Get{}));
                                 }).with([](Get, haft::resumption<std::unique_ptr<int>(int)> k) {
        auto answer = std::move(k).resume(6);
        ++*answer;
        return answer;
    });
    CHECK(*owned == 7);
}

static void payloads_and_results_may_be_move_only() {
    auto body = [] {
        auto got = haft::perform(Open{.wish = std::make_unique<int>(4)});
        return *got;
    };
    CHECK(haft::handle(body).with([](Open o) {
        ++*o.wish;
        return std::move(o.wish);
    }) == 5);
    CHECK(haft::handle(body).with([](Open o, haft::resumption<int(std::unique_ptr<int>)> k) {
        *o.wish += 2;
        return std::move(k).resume(std::move(o.wish));
    }) == 6);
    CHECK(haft::handle(body).with([](Open o, haft::resumption<int(std::unique_ptr<int>)> k) {
        *o.wish += 3;
        return std::move(k).tail_resume(std::move(o.wish));
    }) == 7);
    /* A tail resume that comes to nothing gives up the result, too. */
    CHECK(haft::handle(body).with([](Open o, haft::resumption<int(std::unique_ptr<int>)> k) {
        { auto unused = std::move(k).tail_resume(std::move(o.wish)); }
        return 9;
    }) == 9);
}

static void results_may_be_large_or_without_default() {
    auto body = [] {
        big b = haft::perform(Big{.value = {{1, 2, 3}}});
        return b.words[0] + b.words[11] + haft::perform(Odd{}).number;
    };
    auto answer = [](Big b) {
        b.value.words[11] = 10;
        return b.value;
    };
    CHECK(haft::handle(body).with(answer, [](Odd) { return odd(100); }) == 111);
    CHECK(haft::handle(body).with(
              [&](Big b, haft::resumption<long(big)> k) {
                  return std::move(k).tail_resume(answer(b));
              },
              [](Odd, haft::resumption<long(odd)> k) { return std::move(k).resume(odd(200)); }) ==
          211);
}

static void effects_of_c_are_effects_here() {
    int64_t state = 3;
    auto body = [] {
        HAFT_PERFORM(c_put, haft::perform(HAFT_PAYLOAD(c_get){}) + 1);
        haft::perform(HAFT_PAYLOAD(c_put){HAFT_PERFORM(c_get) + 1});
        return haft::perform(HAFT_PAYLOAD(c_big){2}).words[1] + HAFT_PERFORM(c_big, 3).words[1];
    };
    auto get = [&](HAFT_PAYLOAD(c_get)) { return state; };
    auto put = [&](HAFT_PAYLOAD(c_put) p) { state = p.value; };
    CHECK(haft::handle(body).with(get, put, [](HAFT_PAYLOAD(c_big) p) {
        return big{{0, p.first}};
    }) == 5);
    CHECK(state == 5);
    CHECK(haft::handle(body).with(
              [&](HAFT_PAYLOAD(c_get), haft::resumption<long(int64_t)> k) {
                  return std::move(k).tail_resume(state);
              },
              put,
              [](HAFT_PAYLOAD(c_big) p, haft::resumption<long(big)> k) {
                  return std::move(k).tail_resume(big{{0, p.first * 2}});
              }) == 10);
    CHECK(state == 7);
}

static void names_are_readable() {
    CHECK(std::strcmp(haft::name_of<Get>(), "Get") == 0);
    CHECK(std::strcmp(haft::name_of<Read<int>>(), "Read<int>") == 0);
}

static void defaults_are_for_effects_that_nobody_handles() {
    haft::set_default<Get>([](void *, Get *) { return 77; });
    CHECK(haft::perform(Get{}) == 77);
    CHECK(haft::handle([] { return haft::perform(Get{}); }).with([](Get) { return 1; }) == 1);
    CHECK(haft::handle([] { return haft::perform(Get{}); }).with([](Put) {}) == 77);
    haft::set_default<Get>(nullptr);
}

static void an_effect_that_nobody_handles_is_an_error_that_names_it() {
    haft_set_error_handler([](const haft_error_t *error) {
        CHECK(error->code == HAFT_ERROR_UNHANDLED);
        CHECK(std::strstr(error->message, "Read<int>") != nullptr);
        throw error->code;
    });
    CHECK(thrown_by<haft_error_code_t>([] { haft::perform(Read<int>{}); }) == HAFT_ERROR_UNHANDLED);
    CHECK(thrown_by<haft_error_code_t>([] {
              haft::handle([] {
                  haft::perform(Read<int>{});
              }).with([](Get, haft::resumption<void(int)>) {});
          }) == HAFT_ERROR_UNHANDLED);
    haft_set_error_handler(nullptr);
}

/* Made from values by the constructor that they choose. */
struct Constructed : haft::effect<int> {
    int which;
    Constructed() : which(0) {}
    explicit Constructed(int) : which(1) {}
    Constructed(haft::effect<int>, int) : which(2) {}
    Constructed(int, int) : which(3) {}
};
struct Baseless {
    using effect_result = int;
    std::string first, second;
};
struct Sized : haft::effect<std::size_t> {
    std::vector<int> values;
    explicit Sized(std::size_t size) : values(size) {}
};

static void values_choose_the_constructor_of_an_effect() {
    auto which = [](auto body) {
        return haft::handle(body).with([](Constructed made) { return made.which; });
    };
    CHECK(which([] { return haft::perform<Constructed>(); }) == 0);
    CHECK(which([] { return haft::perform<Constructed>(5); }) == 1);
    CHECK(which([] { return haft::perform<Constructed>(5, 6); }) == 3);
    CHECK(haft::handle([] { return haft::perform<Baseless>("first"); }).with([](Baseless made) {
        return made.first == "first" && made.second.empty() ? 1 : 0;
    }) == 1);
    CHECK(haft::handle([] { return haft::perform<Sized>(std::size_t(3)); }).with([](Sized made) {
        return made.values.size();
    }) == 3);
}

struct Constant : haft::effect<const int> {};
struct Text : haft::effect<const std::string> {};

static void a_result_may_be_const() {
    CHECK(haft::handle([] { return haft::perform(Constant{}); }).with([](Constant) { return 4; }) ==
          4);
    CHECK(haft::handle([] {
              return haft::perform(Constant{});
          }).with([](Constant, haft::resumption<int(const int)> k) {
        return std::move(k).resume(5);
    }) == 5);
    CHECK(haft::handle([] {
              return haft::perform(Text{}) + "!";
          }).with([](Text, haft::resumption<std::string(const std::string)> k) {
        return std::move(k).resume("six");
    }) == "six!");
}

struct Default : haft::effect<int> {};
static int by_default(Default) noexcept {
    return 3;
}

static void a_default_is_a_clause() {
    int calls = 0;
    haft::set_default([&calls](Default) { return ++calls; });
    CHECK(haft::perform(Default{}) == 1);
    haft::set_default<Default>([](auto) { return 10; });
    CHECK(haft::perform(Default{}) == 10);
    haft::set_default(by_default);
    CHECK(haft::perform(Default{}) == 3);
    CHECK(haft::handle([] { return haft::perform(Default{}); }).with([](Default) { return 5; }) ==
          5);
    haft::set_default([&calls](Default) -> int { throw calls; });
    CHECK(thrown_by<int>([] { haft::perform(Default{}); }) == 1);
    haft::set_default<Default>(nullptr);
}

static void resumptions_are_exchanged_without_throwing() {
    using kept = haft::resumption<int(int)>;
    static_assert(std::is_nothrow_swappable_v<kept>);
    static_assert(std::is_nothrow_swappable_v<haft::resumption<void()>>);
    auto made = [](int tens) {
        return haft::wrap<int>([tens](int number) { return tens + number; }).with([](Default) {
            return 0;
        });
    };
    kept one = made(10), two = made(20);
    swap(one, two);
    CHECK(std::move(one).resume(1) == 21);
    std::swap(one, two);
    CHECK(!two && std::move(one).resume(2) == 12);
}

static void an_error_handler_that_throws_leaves_the_handlers_as_they_were() {
    haft_set_error_handler([](const haft_error_t *error) { throw error->code; });
    auto perform_twice = [] {
        for (int i = 0; i < 3; i++) {
            CHECK(thrown_by<haft_error_code_t>([] { haft::perform(Read<int>{}); }) ==
                  HAFT_ERROR_UNHANDLED);
            CHECK(haft::perform(Get{}) == 1);
        }
    };
    haft::handle([&] {
        perform_twice();
        haft::set_default<Read<int>>([](void *, Read<int> *) { return 5; });
        CHECK(haft::perform(Read<int>{}) == 5);
        haft::set_default<Read<int>>(nullptr);
        perform_twice();
        haft::handle(perform_twice).with([](Put, haft::resumption<void()>) {});
    }).with([](Get) { return 1; });
    haft_set_error_handler(nullptr);
}

int main() {
    are_made_without_empty_braces();
    templates_of_effects_are_effects_of_their_own();
    results_may_be_references();
    results_may_be_references_to_what_expires();
    results_may_be_move_only_and_small();
    answers_may_be_references_and_move_only();
    payloads_and_results_may_be_move_only();
    results_may_be_large_or_without_default();
    effects_of_c_are_effects_here();
    names_are_readable();
    defaults_are_for_effects_that_nobody_handles();
    an_effect_that_nobody_handles_is_an_error_that_names_it();
    values_choose_the_constructor_of_an_effect();
    a_result_may_be_const();
    a_default_is_a_clause();
    resumptions_are_exchanged_without_throwing();
    an_error_handler_that_throws_leaves_the_handlers_as_they_were();
}
// SPDX-License-Identifier: MIT
