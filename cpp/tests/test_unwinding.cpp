// SPDX-License-Identifier: MIT
/*
 * A computation is unwound under its own handler, whatever ends it: what a destructor or a catch
 * block performs comes to the handler's clauses. Every way to end x every kind of clause. (The same
 * in C: core/tests/test_unwinding.c.)
 */
#include "check.hpp"

#include <cstdio>
#include <haft.hpp>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

struct InPlace : haft::effect<int> {
    int number;
};
struct Resumed : haft::effect<int> {
    int number;
};
struct TailResumed : haft::effect<int> {
    int number;
};
struct Kept : haft::effect<int> {
    int number;
};
struct LetGo : haft::effect<int> {
    int number;
};
struct Stops : haft::effect<> {
    std::string how;
};
struct Leave : haft::effect<> {
    std::string reason;
};
struct Wait : haft::effect<> {};
struct Fail : haft::effect<> {};

enum way {
    returns,
    throws,
    performs_never,
    is_dropped,
    is_let_go,
    is_dropped_later,
    is_discontinued,
    its_clause_throws,
    its_clause_in_place_throws
};
enum kind { in_place, resumed, tail_resumed, kept, let_go, stops };

static std::string told;

static void clean(kind how) {
    told += "(";
    switch (how) {
    case in_place:
        told += std::to_string(haft::perform(InPlace{.number = 1}));
        break;
    case resumed:
        told += std::to_string(haft::perform(Resumed{.number = 1}));
        break;
    case tail_resumed:
        told += std::to_string(haft::perform(TailResumed{.number = 1}));
        break;
    case kept:
        told += std::to_string(haft::perform(Kept{.number = 1}));
        break;
    case let_go:
        told += std::to_string(haft::perform(LetGo{.number = 1}));
        break;
    case stops:
        haft::perform(Stops{.how = "!"});
        break;
    }
    told += ")";
}

struct cleaner {
    kind how;
    ~cleaner() { clean(how); }
};
struct outermost {
    ~outermost() { told += "."; }
};

static std::string body(way how) {
    if (how == throws)
        throw std::runtime_error("thrown");
    if (how == performs_never)
        haft::perform(Leave{.reason = "p"});
    if (how == its_clause_in_place_throws)
        haft::perform(Fail{});
    if (how != returns)
        haft::perform(Wait{});
    return "body";
}
static std::string with_destructor(way how, kind what) {
    outermost last;
    cleaner local{what};
    return body(how);
}
static std::string with_catch(way how, kind what) {
    outermost last;
    std::string result;
    try {
        result = body(how);
    } catch (...) {
        clean(what);
        throw;
    }
    clean(what);
    return result;
}

struct Handler : haft::handler<InPlace, Resumed, TailResumed, Kept, LetGo, haft::never<Stops>,
                               haft::never<Leave>, Wait, Fail> {
    way how;
    std::optional<haft::resumption<std::string(int)>> last;
    std::optional<haft::resumption<std::string()>> waiting;
    explicit Handler(way chosen) : how(chosen) {}

    int operator()(InPlace e) { return e.number + 10; }
    std::string operator()(Resumed e, haft::resumption<std::string(int)> k) {
        std::string answer = std::move(k).resume(e.number + 20);
        told += "[" + answer + "]";
        return answer;
    }
    haft::tail<std::string> operator()(TailResumed e, haft::resumption<std::string(int)> k) {
        return std::move(k).tail_resume(e.number + 30);
    }
    std::string operator()(Kept, haft::resumption<std::string(int)> k) {
        last = std::move(k);
        return "keeps";
    }
    std::string operator()(LetGo, haft::resumption<std::string(int)>) { return "lets go"; }
    std::string operator()(Stops e) {
        told += e.how;
        return "stops";
    }
    std::string operator()(Leave e) {
        told += e.reason;
        return "leaves";
    }
    std::string operator()(Wait, haft::resumption<std::string()> k) {
        if (how == is_discontinued)
            return std::move(k).discontinue(std::runtime_error("thrown"));
        if (how == its_clause_throws)
            throw std::runtime_error("thrown");
        if (how == is_dropped)
            std::move(k).drop();
        if (how == is_dropped_later)
            waiting = std::move(k);
        return "waits";
    }
    void operator()(Fail) { throw std::runtime_error("thrown"); }
};

/* Returns what the whole computation notes, answers or throws. */
static std::string outcome(way how, kind what, bool by_destructor) {
    told.clear();
    Handler handler(how);
    std::string answer;
    auto outer = [](InPlace) { return told += "OUTER", 0; };
    auto make = [&] { return by_destructor ? with_destructor(how, what) : with_catch(how, what); };
    haft::handle([&] {
        try {
            answer = haft::handle(make).with(handler);
        } catch (const std::runtime_error &error) {
            answer = error.what();
        }
        if (handler.waiting)
            std::move(*handler.waiting).drop();
        if (handler.last) {
            told += "...";
            try {
                std::string resumed = std::move(*handler.last).resume(41);
                told.append("[").append(resumed).append("]");
            } catch (const std::runtime_error &error) {
                told += std::string("[") + error.what() + "]";
            } catch (const haft::dropped &) {
                told += "[none]";
            }
        }
    }).with(outer);
    return told + " " + answer;
}

static const struct row {
    way how;
    const char *expected[6];
} rows[] = {
    {returns,
     {"(11). body", "(21).[body] body", "(31). body", "(...41).[body] keeps", "(. lets go",
      "(.! stops"}},
    {throws,
     {"(11). thrown", "(21). thrown", "(31). thrown", "(...41).[thrown] keeps", "(. lets go",
      "(.! stops"}},
    {performs_never,
     {"(11).p leaves", "(21).p[leaves] leaves", "(31).p leaves", "(...41).p[leaves] keeps",
      "(. lets go", "(.! stops"}},
    {is_dropped,
     {"(11). waits", "(21). waits", "(31). waits", "(...41).[none] waits", "(. waits",
      "(.! waits"}},
    {is_let_go,
     {"(11). waits", "(21). waits", "(31). waits", "(...41).[none] waits", "(. waits",
      "(.! waits"}},
    {is_dropped_later,
     {"(11). waits", "(21). waits", "(31). waits", "(...41).[none] waits", "(. waits",
      "(.! waits"}},
    {is_discontinued,
     {"(11). thrown", "(21). thrown", "(31). thrown", "(...41).[thrown] keeps", "(. lets go",
      "(.! stops"}},
    {its_clause_throws,
     {"(11). thrown", "(21). thrown", "(31). thrown", "(...41).[none] thrown", "(. thrown",
      "(.! thrown"}},
    {its_clause_in_place_throws,
     {"(11). thrown", "(21). thrown", "(31). thrown", "(...41).[thrown] keeps", "(. lets go",
      "(.! stops"}},
};

static void what_a_cleanup_performs_comes_to_its_own_handler_however_the_computation_ends() {
    for (const row &expected : rows)
        for (kind what : {in_place, resumed, tail_resumed, kept, let_go, stops})
            for (bool by_destructor : {false, true}) {
                if (by_destructor && (what == let_go || what == stops))
                    continue; /* nothing may leave a destructor */
                std::string found = outcome(expected.how, what, by_destructor);
                if (found != expected.expected[what])
                    std::fprintf(stderr, "way %d, kind %d, %s: %s\n", expected.how, what,
                                 by_destructor ? "destructor" : "catch", found.c_str());
                CHECK(found == expected.expected[what]);
            }
}

/* Computations whose answer is a word, none, and a reference. */
template <typename Answer, typename Make>
static void answers_are_of_any_type(Make make) {
    int done = 0;
    std::optional<haft::resumption<Answer(int)>> last;
    auto run = [&](bool drops, bool keeps) -> Answer {
        return haft::handle([&]() -> Answer {
                   outermost guard;
                   cleaner local{keeps ? kept : resumed};
                   if (drops)
                       haft::perform(Wait{});
                   haft::perform(Leave{.reason = "p"});
                   return make();
               })
            .with([&](Resumed,
                      haft::resumption<Answer(int)> k) -> Answer { return std::move(k).resume(1); },
                  [&](Kept, haft::resumption<Answer(int)> k) -> Answer {
                      last = std::move(k);
                      return make();
                  },
                  haft::never([&](Leave) -> Answer { return done++, make(); }),
                  [&](Wait, haft::resumption<Answer()>) -> Answer { return make(); });
    };
    run(true, false);
    CHECK(done == 0);
    run(false, false);
    CHECK(done == 1);
    run(false, true);
    std::move(*last).resume(1);
    CHECK(done == 2);
    run(true, true);
    bool has_answer = true;
    try {
        std::move(*last).resume(1);
    } catch (const haft::dropped &none) {
        has_answer = false;
        CHECK(std::string(none.what()) == "haft: the computation was dropped, so it has no answer");
    }
    CHECK(done == 2 && has_answer == std::is_void_v<Answer>);
}
static void every_type_of_answer_may_be_missing() {
    static std::string text;
    answers_are_of_any_type<int>([] { return 1; });
    answers_are_of_any_type<void>([] {});
    answers_are_of_any_type<std::string>([] { return std::string(60, 'x'); });
    answers_are_of_any_type<std::string &>([]() -> std::string & { return text; });
    answers_are_of_any_type<std::unique_ptr<int>>([] { return std::make_unique<int>(3); });
}

/* The unwinding goes on under another handler, from where a cleanup waits. */
static void a_cleanup_goes_on_under_another_handler() {
    auto run = [](auto other, bool drops) {
        return haft::handle([drops] {
                   cleaner local{resumed};
                   if (drops)
                       haft::perform(Wait{});
                   haft::perform(Leave{.reason = "p"});
                   return 1;
               })
            .with(
                [&](Resumed, haft::resumption<int(int)> k) -> int {
                    try {
                        return static_cast<int>(std::move(k).resume_with(other, 21) + 100);
                    } catch (const std::logic_error &error) {
                        CHECK(std::string(error.what()).find("resume_with") != std::string::npos);
                        return -1;
                    }
                },
                haft::never([](Leave) { return 5; }),
                [](Wait, haft::resumption<int()>) { return 6; });
    };
    CHECK(run([](InPlace) { return 1; }, false) == 105);
    std::string text(50, 't');
    CHECK(run([text](InPlace) { return static_cast<int>(text.size()); }, false) == 105);
    CHECK(run([](InPlace) { return 1; }, true) == 6);
    auto other_answer =
        haft::clauses([](InPlace) { return 1; }, haft::on_return([](int) { return 2.5; }));
    CHECK(run(other_answer, false) == -1);
}

/* A replaced handler does not change whose clause ends the computation and gets the exception: also
   if more than one handler came since, and if they are of one type. */
struct Replaced : haft::handler<haft::never<Leave>, Resumed, Fail> {
    std::string name;
    int swaps;
    std::string *seen;
    Replaced(std::string called, int more, std::string *told_to)
        : name(std::move(called)), swaps(more), seen(told_to) {}
    std::string operator()(Leave e) { return *seen += name + e.reason, name; }
    void operator()(Fail) { throw std::runtime_error(name + std::string(40, '!')); }
    std::string operator()(Resumed, haft::resumption<std::string(int)> k) {
        Replaced next(name + "'", swaps - 1, seen);
        if (swaps == 0)
            return std::move(k).resume(1);
        if (swaps % 2 == 0)
            return std::move(k).resume_with(std::move(next), 1);
        return std::move(k).resume_with(next, 1);
    }
};
static void a_clause_that_ends_the_computation_stays_the_one_of_its_handler() {
    for (int swaps : {0, 1, 2, 3, 64})
        for (bool fails : {false, true}) {
            std::string seen, found;
            const std::string name(50, 'n');
            try {
                found = haft::handle([fails] {
                            cleaner first{resumed};
                            cleaner second{resumed};
                            cleaner third{resumed};
                            if (fails)
                                haft::perform(Fail{});
                            haft::perform(Leave{.reason = std::string(60, 'r')});
                            return std::string();
                        }).with(Replaced(name, swaps, &seen));
            } catch (const std::runtime_error &error) {
                found = error.what();
            }
            CHECK(found == (fails ? name + std::string(40, '!') : name));
            CHECK(seen == (fails ? "" : name + std::string(60, 'r')));
        }
}

/* A cleanup performs what is kept in the place whose destructor runs: that is dropped, too. */
static void a_resumption_that_is_destroyed_takes_with_it_what_is_put_in_its_place() {
    told.clear();
    {
        haft::resumption<void(int)> place;
        haft::handle([] {
            outermost last;
            try {
                haft::perform(Kept{.number = 1});
            } catch (...) {
                told += "(";
                haft::perform(Kept{.number = 2});
                told += ")";
                throw;
            }
        }).with([&](Kept, haft::resumption<void(int)> k) { place = std::move(k); });
        CHECK(told.empty());
    }
    CHECK(told == "(.");
}

int main() {
    what_a_cleanup_performs_comes_to_its_own_handler_however_the_computation_ends();
    every_type_of_answer_may_be_missing();
    a_cleanup_goes_on_under_another_handler();
    a_clause_that_ends_the_computation_stays_the_one_of_its_handler();
    a_resumption_that_is_destroyed_takes_with_it_what_is_put_in_its_place();
}
