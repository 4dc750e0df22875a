/* Every use of a resumption. */
#include "../../../cpp/tests/check.hpp"

#include "cpp-effects/cpp-effects.h"
#include <memory>
#include <string>
#include <type_traits>
#include <vector>
namespace eff = cpp_effects;

struct Ask : eff::command<int> {};
struct Pause : eff::command<> {};
struct Large : eff::command<std::string> {
    std::string text;
};
struct Own : eff::command<std::unique_ptr<int>> {};
struct Cell : eff::command<int &> {};

using Res = eff::resumption<int()>;
static_assert(std::is_nothrow_move_constructible_v<Res> && !std::is_copy_constructible_v<Res>);

class Keeper : public eff::flat_handler<int, Pause> {
  public:
    explicit Keeper(Res *where) : kept(where) {}

  private:
    Res *kept;
    counted life;
    int handle_command(Pause, Res r) override {
        *kept = std::move(r);
        return -1;
    }
};

static int pause_twice() {
    counted local;
    eff::invoke_command(Pause{});
    eff::invoke_command(Pause{});
    return 5;
}

static void resumptions_outlive_the_handle() {
    Res r;
    CHECK(!r && !static_cast<bool>(r));
    CHECK(eff::handle<Keeper>(pause_twice, &r) == -1);
    CHECK(r && !!r && counted::alive == 2);
    CHECK(std::move(r).resume() == -1);
    Res other = std::move(r);
    CHECK(!r && other);
    CHECK(std::move(other).resume() == 5);
    CHECK(!other && counted::alive == 0);
}

static void dropping_unwinds() {
    {
        Res r;
        eff::handle<Keeper>(pause_twice, &r);
        CHECK(counted::alive == 2);
        r = {};
        CHECK(counted::alive == 0);
        eff::handle<Keeper>(pause_twice, &r);
        eff::handle<Keeper>(pause_twice, &r);
        CHECK(counted::alive == 2);
    }
    CHECK(counted::alive == 0);
}

static void release_and_taking_back() {
    Res r;
    CHECK(r.release() == nullptr);
    eff::handle<Keeper>(pause_twice, &r);
    eff::resumption_data<void, int> *data = r.release();
    CHECK(!r && data != nullptr && counted::alive == 2);
    Res again(data);
    CHECK(std::move(again).resume() == -1);
    /* The handler knows nothing of `again`. */
    CHECK(std::move(r).resume() == 5);
    CHECK(!Res(static_cast<eff::resumption_data<void, int> *>(nullptr)));
    eff::handle<Keeper>(pause_twice, &r);
    { Res dropped(r.release()); }
    CHECK(counted::alive == 0);
}

static void functions_become_resumptions() {
    std::function<int(int)> twice = [](int n) { return 2 * n; };
    eff::resumption<int(int)> r(twice);
    CHECK(r && std::move(r).resume(4) == 8 && !r);
    std::vector<Res> queue;
    queue.push_back(std::function<int()>([] { return 1; }));
    queue.push_back(Res([c = counted()] { return 2; }));
    CHECK(std::move(queue[0]).resume() == 1);
    CHECK(std::move(queue[1]).resume() == 2);
    queue.push_back(Res([c = counted()] { return 3; }));
    queue.clear();
    CHECK(counted::alive == 0);
    /* Their commands go to the handlers around the resume. */
    Res kept;
    Res pausing(std::function<int()>{pause_twice});
    CHECK(eff::handle<Keeper>([&] { return std::move(pausing).resume(); }, &kept) == -1);
    CHECK(std::move(kept).resume() == -1);
    CHECK(std::move(kept).resume() == 5);
}

class Adder : public eff::handler<std::string, int, Ask> {
  public:
    explicit Adder(int start = 40) : next(start) {}

  private:
    int next;
    std::string handle_command(Ask, eff::resumption<std::string(int)> r) override {
        return std::move(r).resume(next++);
    }
    std::string handle_return(int sum) override { return std::to_string(sum); }
};

static void wrapped_functions_start_when_resumed() {
    bool started = false;
    auto body = [&] {
        started = true;
        return eff::invoke_command(Ask{}) + eff::invoke_command(Ask{});
    };
    eff::resumption<std::string()> r = eff::wrap<Adder>(body, 10);
    CHECK(!started);
    CHECK(std::move(r).resume() == "21");
    CHECK(eff::wrap<Adder>(3, [] { return eff::invoke_command(3, Ask{}); }).resume() == "40");
    CHECK(eff::wrap_with(body, std::make_shared<Adder>(1)).resume() == "3");
    CHECK(eff::wrap_with(
              3, [] { return eff::invoke_command(3, Ask{}); }, std::make_shared<Adder>(1))
              .resume() == "1");
    {
        auto dropped = eff::wrap<Adder>([c = counted()] { return 1; });
    }
    CHECK(counted::alive == 0);
}

static void wrapped_functions_may_take_an_argument() {
    auto body = [](int n) { return n + eff::invoke_command(Ask{}); };
    eff::resumption<std::string(int)> r = eff::wrap<Adder, int>(body, 10);
    CHECK(std::move(r).resume(100) == "110");
    std::function<int(int)> function = body;
    CHECK(eff::wrap<Adder>(function).resume(1) == "41");
    CHECK(eff::wrap<Adder>(9, function, 2).resume(1) == "3");
    CHECK((eff::wrap<Adder, int>(9, body, 2).resume(1)) == "3");
    CHECK((eff::wrap_with<Adder, int>(body, std::make_shared<Adder>(1)).resume(1)) == "2");
    CHECK((eff::wrap_with<Adder, int>(9, body, std::make_shared<Adder>(1)).resume(1)) == "2");
    auto length = [](std::string text) { return static_cast<int>(text.size()); };
    std::string text = "a text of some length, not in place";
    CHECK((eff::wrap<Adder, std::string>(length).resume(text)) == "35");
}

class Giver : public eff::flat_handler<int, Large, Own, eff::plain<Cell>> {
    int cell = 1;
    int handle_command(Large l, eff::resumption<int(std::string)> r) override {
        return std::move(r).tail_resume(l.text + l.text);
    }
    int handle_command(Own, eff::resumption<int(std::unique_ptr<int>)> r) override {
        return std::move(r).resume(std::make_unique<int>(6));
    }
    int &handle_command(Cell) override { return cell; }
};

static void values_of_any_type_pass() {
    CHECK(eff::handle<Giver>([] {
              std::string text(20, 'x');
              CHECK(eff::invoke_command(Large{{}, text}) == std::string(40, 'x'));
              CHECK(text.size() == 20);
              eff::invoke_command(Cell{}) = 5;
              return *eff::invoke_command(Own{}) + eff::invoke_command(Cell{});
          }) == 11);
}

/* An answer that can only be moved, and one that is a reference. */
class Mover : public eff::flat_handler<std::unique_ptr<int>, Ask> {
    std::unique_ptr<int> handle_command(Ask,
                                        eff::resumption<std::unique_ptr<int>(int)> r) override {
        return std::move(r).tail_resume(3);
    }
};
class Referrer : public eff::flat_handler<int &, Ask> {
    int &handle_command(Ask, eff::resumption<int &(int)> r) override {
        return std::move(r).tail_resume(3);
    }
};
struct Plain {
    explicit Plain(int given) : value(given) {}
    int value;
};
class NoDefault : public eff::flat_handler<Plain, Ask> {
    Plain handle_command(Ask, eff::resumption<Plain(int)> r) override {
        return std::move(r).tail_resume(3);
    }
};

static void answers_of_any_type_pass() {
    CHECK(*eff::handle<Mover>([] { return std::make_unique<int>(eff::invoke_command(Ask{})); }) ==
          3);
    int variable = 0;
    int &same = eff::handle<Referrer>([&]() -> int & {
        variable = eff::invoke_command(Ask{});
        return variable;
    });
    CHECK(&same == &variable && variable == 3);
    CHECK(eff::handle<NoDefault>([] { return Plain(eff::invoke_command(Ask{})); }).value == 3);
}

int main() {
    resumptions_outlive_the_handle();
    dropping_unwinds();
    release_and_taking_back();
    functions_become_resumptions();
    wrapped_functions_start_when_resumed();
    wrapped_functions_may_take_an_argument();
    values_of_any_type_pass();
    answers_of_any_type_pass();
}
// SPDX-License-Identifier: MIT
