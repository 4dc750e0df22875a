/* The likeliest mistakes. The words behind a case have to stand in the first lines of the message.
 */
#include <haft.hpp>
#include <haft/multi_shot.hpp>
#include <memory>
#include <string>

struct Get : haft::effect<int> {};
struct Put : haft::effect<> {
    int value;
};
struct Name : haft::effect<std::string> {};
struct Ask : haft::effect<int> {
    std::string question;
};
struct Plain {
    int value;
};

struct Reader : haft::handler<Get> {
    int operator()(Get) { return 1; }
};
struct Writer : haft::handler<Put> {
    void operator()(Put) {}
};
class Hidden : haft::handler<Get> {
  public:
    int operator()(Get) { return 1; }
};
struct Twins : Reader, Writer {
    using Reader::operator();
    using Writer::operator();
};
struct Doubled : Reader {
    int on_return(int result) { return result; }
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
#ifdef CASE_wrong_values // Put these_are_not_the_fields_of
    haft::perform<Put>("one");
#endif
#ifdef CASE_too_many_values // Put these_are_not_the_fields_of
    haft::perform<Put>(1, 2);
#endif
#ifdef CASE_private_inheritance // Hidden privately
    haft::handle([] {}).with(Hidden());
#endif
#ifdef CASE_inherits_two_handlers // Twins effects_of
    haft::handle([] {}).with(Twins());
#endif
#ifdef CASE_const_handler // Get const
    const Reader reader;
    haft::handle([] {}).with(reader);
#endif
#ifdef CASE_const_handlers // Get const
    haft::handle([] {}).with(std::make_shared<const Reader>());
#endif
#ifdef CASE_two_handlers_of_one_effect // Get two_clauses_for
    haft::handle([] {}).with(Reader(), Reader());
#endif
#ifdef CASE_handler_and_clause_of_one_effect // Get two_clauses_for
    Reader reader;
    int answer = haft::handle([] { return 1; }).with(reader, Writer(), [](Get) { return 1; });
#endif
#ifdef CASE_two_return_clauses // two_return_clauses_in
    haft::handle([] {
        return 1;
    }).with(Doubled(), haft::on_return([](int result) { return result; }));
#endif
#ifdef CASE_no_clause // clause
    haft::handle([] {}).with(5);
#endif
#ifdef CASE_wrapped // Put lacks_a_clause
    struct Handler : haft::handler<Get, Put> {
        int operator()(Get) { return 1; }
    };
    auto wrapped = haft::wrap([] {}).with(Handler{});
#endif
#ifdef CASE_wrapped_argument // does_not_take
    auto wrapped = haft::wrap<int>([](std::string) {}).with(Reader{});
#endif
#ifdef CASE_put_under_a_wrong_handler // Get wrong_type
    haft::handle([] {
        return haft::perform(Put{.value = 1}), 1;
    }).with([](Put, haft::resumption<int()> k) {
        return std::move(k).resume_with([](Get) { return "one"; });
    });
#endif
#ifdef CASE_copied_result // result copied byte
    haft::handle_multi_shot([] { return static_cast<int>(haft::perform<Name>().size()); },
                            [](Name, haft::multi_shot<int(std::string)>) -> int { return 1; });
#endif
#ifdef CASE_copied_payload // fields copied byte
    haft::handle_multi_shot([] { return haft::perform<Ask>("question"); },
                            [](Ask, haft::multi_shot<int(int)> k) { return k.resume(1); });
#endif
#ifdef CASE_copied_wrong_answer // multi_shot<Answer(Result)>
    haft::handle_multi_shot([] { return haft::perform<Get>(); },
                            [](Get, haft::multi_shot<long(int)> k) { return k.resume(1); });
#endif
#ifdef CASE_copied_nothing // has an answer
    haft::handle_multi_shot([] { haft::perform<Get>(); }, [](Get, haft::multi_shot<void(int)>) {});
#endif
#ifdef CASE_default_of_nothing // clause
    haft::set_default([](auto) { return 1; });
#endif
#ifdef CASE_raising_general // raising discontinue
    haft::handle([] {
        return haft::perform(Get{});
    }).with(haft::raising([](Get, haft::resumption<int(int)> k) {
        return std::move(k).resume(1);
    }));
#endif
}
// SPDX-License-Identifier: MIT
