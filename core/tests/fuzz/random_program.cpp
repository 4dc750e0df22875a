#include "random_program.h"

#include <iterator>
#include <ostream>
#include <utility>

/* ---- Making ---- */

namespace {
struct weighted {
    operation_t operation;
    int weight;
    bool nests; /* has a body */
};
constexpr weighted weights[] = {
    {PERFORM, 34, false},       {HANDLE, 14, true},     {LOOP, 16, true},   {NEW, 10, true},
    {SCOPED, 4, true},          {REPEAT, 3, true},      {WHERE, 4, false},  {LOOK, 4, false},
    {YIELD, 4, false},          {YIELD_SLOT, 3, false}, {THROW, 3, false},  {EXIT, 2, false},
    {EXIT_SLOT, 2, false},      {FREE, 3, false},       {RESET, 3, true},   {CONTINUE, 6, false},
    {CONTINUE_RAISE, 1, false}, {DROP, 2, false},       {TRY, 2, true},     {RAISE, 1, false},
    {SET_DEFAULT, 1, false},    {THREAD, 3, true},      {RENAME, 1, false}, {DETACH, 2, false},
    {COUNT, 1, false},          {TRIM, 1, false},       {WANT, 1, false},   {MISTAKE, 1, false},
    {WAITS_ON, 1, false},
};
enum { DEEPEST = 5 };
} // namespace

random_program::random_program(std::vector<uint16_t> the_choices, bool with_signals)
    : choices(std::move(the_choices)) {
    int escape = choose(16);
    program.escape = escape == 15 ? BY_ABORT : escape >= 8 ? BY_LONGJMP : BY_EXCEPTION;
    program.signals = choose(8) == 7 && with_signals;
    program.main = make_body(0, 7);
    for (auto &variants : program.defaults)
        for (body_t &body : variants)
            body = make_body(DEEPEST - 1, 2);
    program.handlers = handler_list.data();
    program.handler_count = static_cast<int>(handler_list.size());
}

int random_program::choose(int below) {
    return next_choice < choices.size() ? choices[next_choice++] % below : 0;
}

/* Effects come in sets that are often the same ones, so that what was found is found again: small
   ones of the first effects, half of all, all but a few. */
unsigned random_program::choose_effects() {
    unsigned number = static_cast<unsigned>(choose(48));
    if (number < 16)
        return number * 5 & ALL_EFFECTS;
    if (number < 36)
        return number * 0x9e3779b9u >> 16 & ALL_EFFECTS;
    return ALL_EFFECTS & ~((47 - number) * 0x0111u);
}

/* Every third reply may be wrong. */
reply_choice_t random_program::choose_reply() {
    reply_choice_t reply{};
    static const reply_kind_t kinds[] = {REPLY_TYPED,   REPLY_TYPED,   REPLY_TYPED,   REPLY_TYPED,
                                         REPLY_TYPED,   REPLY_TYPED,   REPLY_UNTYPED, REPLY_UNTYPED,
                                         REPLY_UNTYPED, REPLY_UNTYPED, REPLY_NOTHING, REPLY_NOTHING,
                                         REPLY_TO,      REPLY_TO,      REPLY_MISSIZED};
    reply.kind = kinds[choose(std::size(kinds))];
    if (reply.kind == REPLY_TO || reply.kind == REPLY_MISSIZED)
        reply.effect = choose_effect();
    return reply;
}

/* The first ones more often than the last. */
int random_program::choose_effect() {
    int one = choose(EFFECTS), other = choose(EFFECTS);
    return one < other ? one : other;
}

operation_t random_program::choose_operation(int depth) {
    int total = 0;
    for (const weighted &w : weights)
        total += w.nests && depth >= DEEPEST ? 0 : w.weight;
    int number = choose(total);
    for (const weighted &w : weights) {
        int weight = w.nests && depth >= DEEPEST ? 0 : w.weight;
        if (number < weight)
            return w.operation;
        number -= weight;
    }
    return PERFORM;
}

body_t random_program::make_body(int depth, int most) {
    /* Caches fail on bodies that run again, later or under other handlers. */
    if (choose(6) == 5 && bodies.size() > 1) {
        const auto &again =
            bodies[bodies.size() - 1 - static_cast<size_t>(choose(8)) % bodies.size()];
        return {again.data(), static_cast<int>(again.size())};
    }
    std::vector<statement_t> statements;
    int count = choose(most + 1);
    int idiom = depth < 2 ? choose(16) : 0;
    if (idiom >= 14)
        add_visits(statements, depth);
    else if (idiom >= 12)
        add_crowd(statements);
    for (int i = 0; i < count; i++)
        statements.push_back(i > 0 && choose(4) == 3 ? statements[static_cast<size_t>(choose(i))]
                                                     : make_statement(depth));
    bodies.push_back(std::move(statements));
    return {bodies.back().data(), static_cast<int>(bodies.back().size())};
}

/* Nothing in it needs unwinding. */
body_t random_program::make_careless_body() {
    static const operation_t operations[] = {PERFORM, PERFORM, YIELD, THROW, EXIT, WHERE, LOOK};
    std::vector<statement_t> statements(static_cast<size_t>(choose(5)));
    for (statement_t &s : statements) {
        s.operation = operations[choose(std::size(operations))];
        s.effect = choose_effect();
        s.target = choose_effect();
        s.slot = choose(SLOTS);
        s.number = numbered++;
    }
    bodies.push_back(std::move(statements));
    return {bodies.back().data(), static_cast<int>(bodies.back().size())};
}

body_t random_program::keep(std::vector<statement_t> list) {
    bodies.push_back(std::move(list));
    return {bodies.back().data(), static_cast<int>(bodies.back().size())};
}

/* More effects than a cache has entries, over and over, on a fiber that is resumed at many places
   with many sets by turns. */
void random_program::add_crowd(std::vector<statement_t> &statements) {
    enum { FEWEST = 7 };
    int slot = choose(SLOTS), first = choose(EFFECTS);
    std::vector<statement_t> performs(static_cast<size_t>(FEWEST + choose(EFFECTS)));
    for (statement_t &s : performs)
        s.effect = first++ % EFFECTS;
    statement_t made{}, old{}, visit{}, performed{}, visited{};
    performed.operation = visited.operation = REPEAT;
    performed.variant = visited.variant = choose(3);
    performed.body = keep(std::move(performs));
    made.operation = NEW;
    old.operation = FREE;
    visit.operation = LOOP;
    made.slot = old.slot = visit.slot = slot;
    made.body = keep({performed});
    std::vector<round_t> turns(static_cast<size_t>(1 + choose(8)));
    for (round_t &turn : turns) {
        turn.effects = choose_effects();
        if (choose(3) == 0)
            turn.effects = ALL_EFFECTS;
        turn.place = static_cast<place_t>(choose(PLACES));
        turn.again = true;
        if (choose(4) == 3)
            turn.reply = choose_reply();
    }
    visit.round_count = static_cast<int>(turns.size());
    rounds.push_back(std::move(turns));
    visit.rounds = rounds.back().data();
    visited.body = keep({visit});
    statements.push_back(old);
    statements.push_back(made);
    statements.push_back(visited);
}

/* One fiber under one handler and then under another, with handlers of its own: what it has found
   the first time must not be believed the second time. */
void random_program::add_visits(std::vector<statement_t> &statements, int depth) {
    auto perform = [&](int effect) {
        statement_t s{};
        s.effect = effect;
        return s;
    };
    auto handled = [&](body_t body) {
        statement_t s{};
        s.operation = HANDLE;
        s.handler = make_handler(depth + 1);
        s.body = body;
        return s;
    };
    int slot = choose(SLOTS), before = choose_effect(), between = choose_effect();
    statement_t made{}, old{}, visit{};
    made.operation = NEW;
    old.operation = FREE;
    made.slot = old.slot = visit.slot = slot;
    body_t inner = keep({perform(before), perform(between), perform(before), perform(between)});
    made.body = keep({handled(inner)});
    visit.operation = LOOP;
    visit.round_count = 1;
    std::vector<round_t> once(1);
    once[0].effects = choose_effects();
    rounds.push_back(std::move(once));
    visit.rounds = rounds.back().data();
    body_t visited = keep({visit});
    statements.push_back(old);
    statements.push_back(made);
    statements.push_back(handled(visited));
    statements.push_back(handled(visited));
}

statement_t random_program::make_statement(int depth) {
    statement_t s{};
    s.operation = choose_operation(depth);
    s.effect = choose_effect();
    s.target = choose_effect();
    s.slot = choose(s.operation == CONTINUE || s.operation == CONTINUE_RAISE ||
                            s.operation == DROP || s.operation == WAITS_ON
                        ? KEPT
                        : SLOTS);
    if (choose(2) == 1)
        s.slot = 0;
    s.variant = choose(3);
    int form = choose(16);
    if (s.operation == PERFORM || s.operation == YIELD || s.operation == YIELD_SLOT ||
        s.operation == THROW || s.operation == EXIT || s.operation == EXIT_SLOT)
        s.form = form == 15 ? MISSIZED : form >= 10 ? UNTYPED : TYPED;
    s.number = numbered++;
    switch (s.operation) {
    case HANDLE:
        s.handler = make_handler(depth + 1);
        s.body = make_body(depth + 1, 5);
        break;
    case LOOP:
        make_rounds(s, depth + 1);
        break;
    case SCOPED:
        s.body = make_body(depth + 1, 3);
        s.other = make_body(depth + 2, 2);
        break;
    case NEW:
        /* The error handler may jump only on stacks whose every frame is left in turn. */
        if (program.escape != BY_LONGJMP && choose(8) == 7) {
            s.variant = CARELESS;
            s.body = make_careless_body();
            break;
        }
        s.body = make_body(depth + 1, 4);
        break;
    case FREE:
        if (choose(4) != 3)
            s.variant = 0;
        break;
    case MISTAKE:
        s.variant = choose(MISTAKES);
        break;
    case WANT:
        s.variant = choose(WANTS);
        break;
    case CONTINUE:
        s.reply = choose_reply();
        break;
    case RESET:
    case TRY:
    case REPEAT:
    case THREAD:
        s.body = make_body(depth + 1, 4);
        break;
    default:
        break;
    }
    return s;
}

void random_program::make_rounds(statement_t &s, int depth) {
    std::vector<round_t> list;
    s.round_count = choose(5);
    unsigned effects = choose_effects();
    for (int i = 0; i < s.round_count; i++) {
        round_t round{};
        if (choose(3) == 2)
            effects = choose_effects();
        round.effects = effects;
        static const action_t unusual[] = {VISIT, DISCONTINUE, DISMISS};
        int action = choose(13);
        round.action = action < 10 ? REPLY : unusual[action - 10];
        round.reply = choose_reply();
        round.again = choose(2) == 1;
        round.place = static_cast<place_t>(choose(PLACES));
        round.body = make_body(depth, 2);
        list.push_back(round);
    }
    rounds.push_back(std::move(list));
    s.rounds = rounds.back().data();
}

/* Half of the handlers are there already. */
const handler_t *random_program::make_handler(int depth) {
    if (choose(2) == 1 && !handler_list.empty())
        return handler_list[static_cast<size_t>(choose(static_cast<int>(handler_list.size())))];
    handlers.emplace_back();
    handler_t &h = handlers.back();
    unsigned effects = choose_effects();
    bool tails = choose(2) == 1;
    enum { MOST_CLAUSES = 4 }; /* of its own; the others are copies */
    std::vector<clause_t> made;
    for (int effect = 0; effect < EFFECTS; effect++) {
        if (!(effects >> effect & 1))
            continue;
        clause_t &clause = h.clauses[effect];
        if (made.size() == MOST_CLAUSES) {
            clause = made[static_cast<size_t>(effect % MOST_CLAUSES)];
            continue;
        }
        clause.kind = tails ? TAIL : static_cast<clause_kind_t>(1 + choose(3));
        if (clause.kind == NEVER && choose(2) == 0)
            clause.kind = GENERAL;
        clause.ending = static_cast<ending_t>(choose(ENDINGS));
        clause.slot = choose(KEPT);
        clause.body = make_body(depth + 1, 2);
        if (clause.kind == GENERAL) {
            clause.reply = choose_reply();
            clause.after = make_body(depth + 1, 1);
        }
        made.push_back(clause);
    }
    h.returns = choose(3) == 1;
    if (h.returns)
        h.on_return = make_body(depth + 1, 1);
    h.index = static_cast<int>(handler_list.size());
    handler_list.push_back(&h);
    return &h;
}

/* ---- Printing ---- */

namespace {

const char *const operation_names[OPERATIONS] = {"perform",
                                                 "handle",
                                                 "loop",
                                                 "new",
                                                 "scoped",
                                                 "repeat",
                                                 "where",
                                                 "look",
                                                 "rename",
                                                 "detach",
                                                 "count",
                                                 "trim",
                                                 "want",
                                                 "mistake",
                                                 "yield",
                                                 "yield",
                                                 "throw",
                                                 "exit",
                                                 "exit",
                                                 "free",
                                                 "reset",
                                                 "continue",
                                                 "continue-raising",
                                                 "drop",
                                                 "waits-on",
                                                 "try",
                                                 "raise",
                                                 "set-default",
                                                 "thread"};

class printer {
  public:
    explicit printer(std::ostream &the_stream) : stream(the_stream) {}

    void body(const body_t &b, int depth) {
        stream << "{";
        for (int i = 0; i < b.count; i++) {
            line(depth + 1);
            statement(b.statements[i], depth + 1);
        }
        if (b.count != 0)
            line(depth);
        stream << "}";
    }

    void handler(const handler_t &h) {
        stream << "handler h" << h.index << " {";
        for (int effect = 0; effect < EFFECTS; effect++)
            if (h.clauses[effect].kind != ABSENT) {
                line(1);
                clause(effect, h.clauses[effect]);
            }
        if (h.returns) {
            line(1);
            stream << "return ";
            body(h.on_return, 1);
        }
        stream << "\n}\n";
    }

  private:
    std::ostream &stream;

    void line(int depth) { stream << "\n" << std::string(static_cast<size_t>(depth) * 2, ' '); }

    void effects(unsigned set) {
        stream << "{";
        for (int effect = 0; effect < EFFECTS; effect++)
            if (set >> effect & 1)
                stream << " e" << effect;
        stream << " }";
    }

    void reply(const reply_choice_t &r) {
        static const char *const kinds[REPLY_KINDS] = {"", " by a call", " with nothing",
                                                       " to another effect, e", " missized"};
        stream << kinds[r.kind];
        if (r.kind == REPLY_TO)
            stream << r.effect;
    }

    void clause(int effect, const clause_t &c) {
        static const char *const kinds[] = {"", "tail", "general", "never"};
        static const char *const endings[ENDINGS] = {"continue",
                                                     "tail-continue",
                                                     "drop",
                                                     "keep k",
                                                     "exchange k",
                                                     "continue-raising",
                                                     "promise, then misuse ",
                                                     "promise, then free",
                                                     "promise and forget k",
                                                     "promise, then snatch"};
        stream << kinds[c.kind] << " e" << effect << " ";
        body(c.body, 1);
        if (c.kind != GENERAL)
            return;
        stream << " " << endings[c.ending];
        if (c.ending == END_KEEP || c.ending == END_EXCHANGE || c.ending == END_PROMISE ||
            c.ending == END_FORGET)
            stream << c.slot;
        reply(c.reply);
        stream << " ";
        body(c.after, 1);
    }

    void statement(const statement_t &s, int depth) {
        static const char *const forms[] = {"", " untyped", " missized"};
        stream << operation_names[s.operation] << forms[s.form];
        switch (s.operation) {
        case PERFORM:
        case THROW:
        case WHERE:
            stream << " e" << s.effect;
            break;
        case YIELD:
        case EXIT:
            stream << " e" << s.effect << " to the handler of e" << s.target;
            break;
        case YIELD_SLOT:
        case EXIT_SLOT:
            stream << " e" << s.effect << " out of f" << s.slot;
            break;
        case HANDLE:
            stream << " h" << s.handler->index << " ";
            body(s.body, depth);
            break;
        case LOOP:
            stream << " f" << s.slot;
            for (int i = 0; i < s.round_count; i++) {
                static const char *const actions[ACTIONS] = {"reply", "raise", "visit",
                                                             "dismiss, reply"};
                static const char *const places[PLACES] = {"", " there", " backwards", " built",
                                                           " rewritten"};
                line(depth + 1);
                stream << actions[s.rounds[i].action];
                reply(s.rounds[i].reply);
                stream << (s.rounds[i].again ? ", again if wrong," : "") << " handling"
                       << places[s.rounds[i].place] << " ";
                effects(s.rounds[i].effects);
                stream << " ";
                body(s.rounds[i].body, depth + 1);
            }
            break;
        case NEW: {
            static const char *const stacks[] = {"", " small", " fixed", " careless"};
            stream << stacks[s.variant] << " f" << s.slot << " ";
            body(s.body, depth);
            break;
        }
        case SCOPED:
            stream << " ";
            body(s.body, depth);
            stream << " finally " << s.number << " ";
            body(s.other, depth);
            break;
        case REPEAT:
            stream << " " << s.variant + 2 << " times ";
            body(s.body, depth);
            break;
        case RESET:
            stream << " f" << s.slot << " ";
            body(s.body, depth);
            break;
        case FREE:
            stream << " f" << s.slot
                   << (s.variant == 0   ? ""
                       : s.variant == 1 ? " twice"
                                        : " and resume it");
            break;
        case LOOK:
        case RENAME:
        case DETACH:
            stream << " f" << s.slot;
            break;
        case WAITS_ON:
            stream << " k" << s.slot;
            break;
        case WANT:
        case MISTAKE:
            stream << " " << s.variant;
            break;
        case CONTINUE:
        case CONTINUE_RAISE:
        case DROP:
            stream << " k" << s.slot
                   << (s.variant != 0 && s.operation != DROP ? ", left in its place" : "");
            reply(s.reply);
            break;
        case THREAD:
            stream << " " << s.target << " ";
            body(s.body, depth);
            break;
        case TRY:
            stream << " ";
            body(s.body, depth);
            break;
        case SET_DEFAULT:
            stream << " e" << s.effect << " " << s.variant;
            break;
        default:
            break;
        }
    }
};

} // namespace

std::ostream &operator<<(std::ostream &stream, const program_t &program) {
    static const char *const escapes[] = {"exceptions", "longjmp", "abort"};
    stream << "errors by " << escapes[program.escape]
           << (program.signals ? ", during signals\n" : "\n");
    printer print(stream);
    for (int i = 0; i < program.handler_count; i++)
        print.handler(*program.handlers[i]);
    for (int effect = 0; effect < EFFECTS; effect++)
        for (int variant = 0; variant < 2; variant++)
            if (program.defaults[effect][variant].count != 0) {
                stream << "default e" << effect << " " << variant + 1 << " ";
                print.body(program.defaults[effect][variant], 0);
                stream << "\n";
            }
    stream << "main ";
    print.body(program.main, 0);
    return stream << "\n";
}
// SPDX-License-Identifier: MIT
