/* §3.5 of the paper, as printed: a clause that uses its handler after the resume. */
/* clang-format off */
#include "cpp-effects/cpp-effects.h"
#include <iostream>
#include <string>
namespace eff = cpp_effects;

struct Log : eff::command<> { std::string msg; };
class Logger : public eff::handler<std::string, void, Log> {
public:
    Logger(std::string separator) : separator(separator) { }
private:
    const std::string separator;
    std::string handle_return() override
    {
        return "";
    }
    std::string handle_command(Log l, eff::resumption<std::string()> r) override
    {
        return l.msg + this->separator + std::move(r).resume();
    }
};

int main()
{
    std::cout << eff::handle<Logger>([]() {
        for (auto word : {"one", "two", "three"}) {
            eff::invoke_command(Log{{}, word});
        }
    }, " and, at some length, ") << std::endl;
}
// SPDX-License-Identifier: MIT
