/* The likeliest mistakes. The words behind a case have to stand in the first lines of the message.
 */
#include <haft.hpp>
#include <memory>
#include <string>

struct Get : haft::effect<int> {};
struct Put : haft::effect<> {
    int value;
};
struct Plain {
    int value;
};

int main() {
    int state = 0;
    (void)state;
#ifdef CASE_fine
    haft::handle([](haft::may<Get, Put> can) {
        can.perform(Put{.value = can.perform(Get{})});
    }).with([&](Get) { return state; }, [&](Put p) { state = p.value; });
#endif
#ifdef CASE_not_an_effect // Plain effect
    haft::perform(Plain{.value = 1});
#endif
#ifdef CASE_wrong_field // Put volume
    haft::perform(Put{.volume = 1});
#endif
#ifdef CASE_missing_clause // Put lacks_a_clause
    struct Handler : haft::handler<Get, Put> {
        int operator()(Get) { return 1; }
    };
    haft::handle([] {}).with(Handler{});
#endif
#ifdef CASE_wrong_resumption // Get the_resumption_of_the_clause_must_be
    haft::handle([] {}).with([](Get, haft::resumption<void()> k) { std::move(k).resume(); });
#endif
#ifdef CASE_wrong_result // Get wrong_type
    haft::handle([] { return 1; }).with([](Get) { return std::string("one"); });
#endif
#ifdef CASE_wrong_answer // Get wrong_type
    haft::handle([] { return 1; }).with([](Get, haft::resumption<int(int)>) { return "one"; });
#endif
#ifdef CASE_two_clauses // Get two_clauses_for
    haft::handle([] {}).with([](Get) { return 1; }, [](Get) { return 2; });
#endif
#ifdef CASE_automatic_clause // auto a_clause_must_be
    haft::handle([] {}).with([](auto) { return 1; });
#endif
#ifdef CASE_clause_without_effect // int first_parameter_of_a_clause
    haft::handle([] { return 1; }).with([](int result) { return result; });
#endif
#ifdef CASE_wrong_return_clause // return_clause_does_not_take
    haft::handle([] {
        return std::string();
    }).with([](Get) { return 1; }, haft::on_return([](std::unique_ptr<int>) { return 1; }));
#endif
#ifdef CASE_resumption_not_moved // resume
    haft::handle([] { return 1; }).with([](Get, haft::resumption<int(int)> k) {
        return k.resume(1);
    });
#endif
#ifdef CASE_resumption_copied // resumption deleted
    haft::handle([] { return 1; }).with([](Get, haft::resumption<int(int)> k) {
        auto copy = k;
        return std::move(copy).resume(1);
    });
#endif
#ifdef CASE_body_with_argument // the_body_cannot_be_called
    haft::handle([](std::string) { return 1; }).with([](Get) { return 1; });
#endif
#ifdef CASE_effect_escapes // Put escapes_its_handlers
    haft::handle([](haft::may<Get, Put> can) { can.perform(Get{}); }).with([](Get) { return 1; });
#endif
#ifdef CASE_effect_not_stated // Put escapes_its_handlers
    haft::handle([](haft::may<Get> can) { can.perform(Put{.value = 1}); }).with([](Get) {
        return 1;
    });
#endif
#ifdef CASE_callee_wants_more // Put escapes_its_handlers
    auto callee = [](haft::may<Get, Put>) {};
    haft::handle([&](haft::may<Get> can) { callee(can); }).with([](Get) { return 1; });
#endif
#ifdef CASE_instance_of_other // Put escapes_its_handlers
    haft::handle([](haft::instance<Get> self) { self.perform(Put{.value = 1}); }).with([](Get) {
        return 1;
    });
#endif
#ifdef CASE_forged // private
    haft::may<Get> can;
#endif
}
