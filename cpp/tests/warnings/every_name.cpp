/* Uses every public macro and template of haft.hpp and of the headers of haft/, so that a warning
   of theirs, in any instance, is one here. Compiled only. */
#include <haft.hpp>
#include <haft/actor.hpp>
#include <haft/async.hpp>
#include <haft/binding.hpp>
#include <haft/coroutine.hpp>
#include <haft/generator.hpp>
#include <haft/resource.hpp>
#include <haft/thread.hpp>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

/* ---- haft.hpp ---- */

struct Get : haft::effect<int> {};
struct Put : haft::effect<> {
    int value;
};
struct HAFT_SHARED Log : haft::effect<> {
    std::string text;
    int level = 0;
};
struct Name : haft::effect<std::string> {
    int of;
};
struct Cell : haft::effect<int &> {};
struct Small {
    using effect_result = char;
    short number;
    short other;
};
struct Stop : haft::effect<> {};
template <typename T>
struct Read : haft::effect<T> {};

struct large {
    long words[4];
};
HAFT_EFFECT(adopted, int, { int number; });
HAFT_EFFECT(adopted_large, large, { char letter; });
HAFT_ADOPT(adopted);
HAFT_ADOPT(adopted_large);

static_assert(haft::is_effect<Get> && haft::is_effect<Small> && haft::is_effect<Read<double>>);
static_assert(std::is_same_v<haft::result_of<Name>, std::string>);
static_assert(haft::effect_traits<Get>::native);

struct counter : haft::handler<Get, Put> {
    int count = 0;
    int operator()(Get) { return count; }
    void operator()(Put put) noexcept { count = put.value; }
};
template <typename Answer>
struct logger : haft::handler<Log, haft::never<Stop>> {
    std::vector<std::string> lines;
    template <typename A>
    A operator()(Log log, haft::resumption<A()> k) {
        lines.push_back(log.text);
        return std::move(k).resume();
    }
    std::unique_ptr<Answer> operator()(Stop) { return nullptr; }
    std::unique_ptr<Answer> on_return(Answer answer) { return std::make_unique<Answer>(answer); }
};
struct both : counter, logger<int> {
    using handled_effects = haft::effects_of<counter, logger<int>>;
    using counter::operator();
    using logger<int>::operator();
};
struct final_clause final {
    int operator()(Get) const { return 1; }
};

int get_function(Get);
int get_function(Get) {
    return 2;
}
int stop_function(Stop) noexcept;
int stop_function(Stop) noexcept {
    return -1;
}

int effects_and_handlers();
int effects_and_handlers() {
    auto body = [] {
        haft::perform(Get{});
        haft::perform<Put>(1);
        haft::perform<Log>("text");
        haft::perform<Log>("text", 2);
        haft::perform(Small{.number = 1, .other = 2});
        haft::perform(haft_payload_adopted{.number = 3});
        haft::perform(haft_payload_adopted_large{.letter = 'a'});
        haft::perform(Stop{});
        haft::perform(Cell{}) = 3;
        (void)haft::perform<Read<double>>();
        return static_cast<int>(haft::perform<Name>(4).size());
    };
    counter counting;
    logger<int> logging;
    int cell = 0;
    double some = 0;
    auto rest = haft::clauses(
        [](Name) { return std::string("name"); }, [&](Cell) -> int & { return cell; },
        [](Small small) { return static_cast<char>(small.number); },
        [](haft_payload_adopted given) { return given.number; },
        [](haft_payload_adopted_large) { return large{}; }, [&](Read<double>) { return some; });
    std::unique_ptr<int> answer =
        haft::handle([&] { return haft::handle(body).with(counting, rest); }).with(logging);
    int total = answer == nullptr ? 0 : *answer;
    (void)haft::handle([] { return 1; }).with_new<both>();
    total += haft::handle(body).with(
        [](Name, haft::resumption<int(std::string)> k) { return std::move(k).resume("name"); },
        [&](Cell, haft::resumption<int(int &)> k) { return std::move(k).resume(cell); },
        [](haft_payload_adopted_large, haft::resumption<int(large)> k) {
            return std::move(k).resume(large{});
        },
        [](haft_payload_adopted, haft::resumption<int(int)> k) -> haft::tail<int> {
            return std::move(k).tail_resume(1);
        },
        [](Small, haft::resumption<int(char)> k) {
            return std::move(k).discontinue(std::runtime_error("none"));
        },
        [](Put, haft::resumption<int()> k) -> haft::tail<int> {
            return std::move(k).tail_resume();
        },
        [](Log, haft::resumption<int()> k) { return std::move(k).drop(), 0; },
        [](Read<double>, haft::resumption<int(double)> k) { return std::move(k).resume(1.5); },
        haft::never(stop_function), haft::on_return([](int last) { return last; }), get_function);
    (void)haft::handle([] { return haft::perform(Get{}); }).with(final_clause());
    (void)haft::handle([] { return haft::perform(Get{}); }).with(std::ref(counting));
    haft::handle([] { haft::perform(Stop{}); }).with(haft::never([](Stop) {}));
    haft::handle([] { haft::perform<Put>(1); }).on({}).with(std::make_shared<counter>());
    return total + (haft::name_of<Get>() != nullptr);
}

int resumptions();
int resumptions() {
    haft::resumption<int(int)> kept, other;
    auto keep = [&](Get, haft::resumption<int(int)> k) {
        kept = std::move(k);
        return 0;
    };
    auto body = [] { return haft::perform(Get{}); };
    int total = haft::handle(body).with(keep);
    swap(kept, other);
    kept.swap(other);
    if (kept && kept.fiber() != nullptr)
        total += std::move(kept).resume(1);
    total += haft::handle(body).with(keep);
    total += std::move(kept).resume_with([](Get) { return 5; }, 20);
    total += haft::handle(body).with(keep);
    try {
        total += std::move(kept).discontinue(std::make_exception_ptr(1));
    } catch (int) {
        total++;
    }
    haft::resumption<int()> wrapped = haft::wrap(body).on({}).with([](Get) { return 1; });
    total += std::move(wrapped).resume();
    haft::resumption<std::string(std::string)> argument =
        haft::wrap<std::string>([](std::string text) { return text + text; }).with_new<counter>();
    total += static_cast<int>(std::move(argument).resume("text").size());
    wrapped = haft::wrap(body).with([](Get) { return 1; });
    total += std::move(wrapped).resume_with([](Get) { return 1; });
    return total;
}

static int safe(haft::may<Get, Put> can) {
    can.perform(Put{{}, 1});
    return can.perform(Get{});
}
int instances_and_defaults();
int instances_and_defaults() {
    haft::set_default<Get>([](void *, Get *) { return 1; });
    haft::set_default([](Get) { return 2; });
    haft::set_default<Get>(nullptr);
    counter counting;
    return haft::handle([](haft::instance<Put, Get> cell) {
               haft::instance<Get> part = cell;
               part = cell;
               haft::may<Get, Put> can(cell);
               return part.perform(Get{}) + safe(can) +
                      haft::handle(can, [](haft::may<Get, Put, Name> more) {
                          (void)more.perform(Name{{}, 1});
                          return safe(more);
                      }).with([](Name) { return std::string(); });
           })
        .with(counting);
}

/* ---- haft/generator.hpp, coroutine.hpp ---- */

int generators();
int generators() {
    int sum = 0;
    haft::generator<int> squares([](haft::yielder<int> yield) {
        const int constant = 2;
        yield(1);
        yield(constant);
    });
    for (int each : squares)
        sum += each;
    for (std::string &each : haft::generator<std::string>([] {
             const std::string text = "text";
             haft::yield(text);
             haft::yield(std::string("text"));
         }))
        sum += static_cast<int>(each.size());
    std::string named;
    haft::generator<std::string &> references(
        [&](haft::yielder<std::string &> yield) { yield(named); });
    if (std::string *next = references.next())
        sum += static_cast<int>(next->size());
    haft::generator<const char &> constants([](haft::yielder<const char &> yield) { yield('a'); });
    for (char each : constants)
        sum += each;
    references = haft::generator<std::string &>();

    haft::coroutine<double, int> average([](haft::exchanger<double, int> yield, int value) {
        while (value != 0)
            value = yield(value / 2.0);
    });
    if (double *half = average.resume(1))
        sum += static_cast<int>(*half);
    haft::coroutine<int> innermost([] { haft::exchange(1); }, {});
    while (innermost.resume())
        sum++;
    haft::coroutine<void, std::string, int> length(
        [](haft::exchanger<void, std::string> next, std::string text) {
            text += next();
            return static_cast<int>(text.size());
        });
    while (length.resume("text"))
        continue;
    if (length.finished())
        sum += length.answer();
    (void)average.discontinue(1);
    return sum;
}

/* ---- haft/thread.hpp, async.hpp, actor.hpp ---- */

class by_name {
  public:
    void push(haft::scheduled &thread) { ready.emplace(thread.name(), &thread); }
    haft::scheduled *pop() {
        if (ready.empty())
            return nullptr;
        haft::scheduled *first = ready.begin()->second;
        ready.erase(ready.begin());
        return first;
    }

  private:
    std::multimap<std::string, haft::scheduled *> ready;
};
static_assert(haft::scheduling_policy<by_name>);

struct deposit {
    int amount;
};
struct balance {
    haft::promise<int> reply;
};

int threads();
int threads() {
    int sum = haft::run([] {
        haft::waiting_list waiting;
        haft::thread<int> left = haft::fork([] { return 1; });
        haft::thread<> right = haft::fork({.name = "right"}, [&] { waiting.wait("wait()"); });
        haft::thread<std::string> text = haft::fork([] { return std::string("text"); });
        haft::yield();
        waiting.wake_one();
        waiting.wake_all();
        right.wait();
        text.kill();
        (void)left.joinable();
        (void)left.finished();
        right.join();
        return left.join() + static_cast<int>(haft::current_thread().description().size());
    });
    haft::run(haft::round_robin(), [] {});
    haft::run(haft::last_in_first_out(), [] {});
    haft::run(haft::by_priority(), [] {});
    haft::run(haft::random_order(1), [] {});
    haft::run(by_name(), [] {});

    haft::run([&] {
        auto number = haft::async([] { return 1; });
        auto nothing = haft::async({.priority = 1}, [] {});
        auto text = haft::async([] { return std::string("text"); });
        (void)haft::await_any(number, nothing, text);
        auto [one, none, more] = haft::await_all(number, nothing, text);
        sum += one + static_cast<int>(more.size());
        (void)none;
        std::vector<haft::future<int>> several(3);
        for (haft::future<int> &each : several)
            each = haft::async([] { return 2; });
        (void)haft::await_any(several);
        for (int each : haft::await_all(several))
            sum += each;
        std::vector<haft::future<>> plain;
        plain.push_back(haft::async([] {}));
        haft::await_all(plain);
        haft::promise<int> promise;
        haft::future<int> future = promise.get_future();
        promise.set_value(1);
        sum += haft::await(future) + future.valid() + future.ready();
        haft::promise<> failing;
        failing.set_exception(std::make_exception_ptr(1));
        haft::promise<std::string &>().get_future();
    });

    haft::run([&] {
        using account = haft::address<deposit, balance>;
        account saving = haft::spawn<deposit, balance>([](auto &self) {
            int total = 0;
            self.receive([&](deposit message) { total += message.amount; }, [](balance) {});
            total += self.template receive<deposit>().amount;
            (void)self.receive();
            self.become([](deposit) {}, [](balance message) { message.reply.set_value(1); });
        });
        haft::spawn<haft::down>({.name = "watcher"}, [&](haft::actor<haft::down> &self) {
            self.watch(saving);
            haft::address<deposit> child =
                self.template spawn<deposit>([](haft::actor<deposit> &actor) { actor.stop(); });
            (void)child.alive();
            (void)(child == child);
            sum += static_cast<int>(self.receive<haft::down>().actor + self.address().id());
        });
        haft::address<deposit> part = saving;
        part.send(deposit{1});
        sum += haft::await(haft::ask<balance>(saving));
        saving.kill();
    });
    return sum;
}

/* ---- haft/resource.hpp, binding.hpp ---- */

struct Indent : haft::variable<int> {
    static int initial() { return 0; }
};
struct Out : haft::variable<std::string &> {};
struct timekeeper {
    virtual ~timekeeper() = default;
    virtual int hour() = 0;
};
struct noon : timekeeper {
    int hour() override { return 12; }
};

int resources_and_bindings();
int resources_and_bindings() {
    int sum = haft::scoped([](haft::scope outer) {
        haft::defer([] {});
        outer.defer([] {});
        haft::acquire(1, [](int) {});
        outer.acquire(new int(1), [](int *made) { delete made; });
        outer.keep<std::string>("text");
        return static_cast<int>(haft::keep<std::vector<int>>(std::size_t(3), 1).size());
    });
    haft::scoped([] {});
    sum += haft::bracket([] { return 1; }, [](int used) { return used; }, [](int) {});
    haft::resources kept;
    haft::handle([] { haft::defer([] {}); }).with(kept);
    kept.release();

    std::string text;
    sum += haft::bind<Indent>(2, [] { return haft::bound<Indent>() + haft::is_bound<Indent>(); });
    haft::bind<Out>(text, [] { haft::bound<Out>() += "text"; });
    noon own;
    auto ask = [] { return haft::inject<timekeeper>().hour() + haft::is_provided<timekeeper>(); };
    sum += haft::provide<timekeeper>(own).run(ask) + haft::provide<timekeeper>(noon()).run(ask);
    sum += haft::provide<timekeeper>(std::make_unique<noon>()).run(ask);
    sum += haft::provide<timekeeper>([] { return noon(); }).run(ask);
    sum += haft::substitute<timekeeper>(own, ask);
    return sum;
}
// SPDX-License-Identifier: MIT
