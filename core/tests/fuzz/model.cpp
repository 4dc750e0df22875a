/*
 * The semantics, as an abstract machine on the heap. It follows the machine of the paper's appendix
 * A (sheep handlers), extended by deep handlers, tail-resumptive and never-resuming clauses,
 * defaults, unwinding and errors. Nothing here is shared with the library.
 *
 * The continuation is one list of frames, the innermost last. Handlers are frames in it:
 *
 *   [root | ..., drive f, border f {handled}, ..., handler h, ..., body]
 *                         ^ what a fiber is resumed on    ^ a handler without a fiber
 *
 * - resume f (M-RESUME): the frames that f has captured are put on the list, their border with the
 * new handled set.
 * - perform (M-PERFORM): the list is cut at the innermost frame that handles the effect; what is
 * cut off is the continuation. A tail-resumptive clause is a general one that ends by resuming: the
 * cut-off part waits in a `clause` frame while the clause runs, out of reach for whatever the
 * clause performs.
 * - A fiber that returns (M-RETHANDLER) meets its border.
 * - Unwinding takes frames off one by one; a frame with a duty (a cleanup; a continuation it holds)
 * is replaced by the code of that duty, with a `pending` frame under it that takes the unwinding up
 *   again. If that code itself is unwound, the pending frame goes like any other: the later one
 * wins.
 */
#include "frames.h"

#include <deque>
#include <utility>

namespace {

using namespace model;

class machine {
  public:
    explicit machine(const program_t *the_program) : program(the_program) {
        for (int effect = 0; effect < EFFECTS; effect++)
            defaults[effect] = effect < 4 ? 1 : 0;
    }

    void run() {
        const statement_t whole = wrap(program->main);
        run_whole(&whole);
        for (bool more = true; more;) {
            more = false;
            for (int i = 0; i < SLOTS; i++)
                if (slots[i] != nullptr && slots[i]->now != status::running) {
                    more = true;
                    start();
                    release(std::exchange(slots[i], nullptr));
                    work();
                }
            for (resumption &k : kept)
                if (k.usable()) {
                    more = true;
                    start();
                    drop(k);
                    work();
                }
        }
    }

  private:
    const program_t *program;
    int fuel = FUEL;
    int fibers_made = 0; /* or named */
    std::deque<fiber> fibers;
    fiber *slots[SLOTS] = {};
    resumption kept[KEPT];
    int defaults[EFFECTS];
    frames list;

    /* ---- The loop of the machine: one of `doing` at a time ---- */
    enum { running, returning, requesting, unwinding } doing = running;
    int64_t returned = 0;
    request asked = {};
    leaving why = {};

    static statement_t wrap(const body_t &body) {
        statement_t statement{};
        statement.operation = TRY;
        statement.body = body;
        return statement;
    }

    void start() { list.push_back({kind::root}); }

    void run_whole(const statement_t *statement) {
        start();
        push_try(statement, 1);
        work();
    }

    void work() {
        for (;;) {
            if (doing == returning && list.size() == 1) {
                list.pop_back();
                doing = running;
                return;
            }
            switch (doing) {
            case running:
                next_statement();
                break;
            case returning:
                on_value(returned);
                break;
            case requesting:
                on_request(asked);
                break;
            case unwinding:
                unwind();
                break;
            }
        }
    }

    void give(int64_t value) {
        doing = returning;
        returned = value;
    }
    void push_body(const body_t *body, int64_t value) {
        frame f{kind::sequence};
        f.body = body;
        f.value = value;
        list.push_back(std::move(f));
        doing = running;
    }
    void push_try(const statement_t *statement, int64_t value) {
        list.push_back({kind::trying});
        push_body(&statement->body, value);
    }
    void leave(leaving reason) {
        doing = unwinding;
        why = reason;
    }
    void fail(int code) {
        if (program->escape == BY_ABORT)
            throw gave_up{};
        leaving reason;
        reason.why = leaving::error;
        reason.number = code;
        leave(reason);
    }
    void raise(int64_t number) {
        leaving reason;
        reason.why = leaving::exception;
        reason.number = number;
        leave(reason);
    }
    void missing(int64_t index, int64_t occupied) { observe(MISSING, index, occupied); }

    void statement_done(int64_t result) {
        frame &sequence = list.back();
        observe(RESULT, sequence.body->statements[sequence.at - 1].operation, result);
        sequence.value = mix(sequence.value, result);
        doing = running;
    }

    void next_statement() {
        frame &sequence = list.back();
        if (sequence.at == sequence.body->count || fuel == 0) {
            int64_t value = sequence.value;
            list.pop_back();
            give(value);
            return;
        }
        fuel--;
        const statement_t &statement = sequence.body->statements[sequence.at++];
        execute(statement, sequence.value);
    }

    /* ---- Finding handlers ---- */

    static bool handles(const frame &f, int effect) {
        if (f.handler != nullptr && (f.is == kind::handler || f.effects == DEEP))
            return f.handler->clauses[effect].kind != ABSENT;
        return (f.is == kind::border || f.is == kind::handler) && (f.effects >> effect & 1);
    }
    static constexpr unsigned DEEP = 1u << 31;

    /* The index of the frame that handles the effect; of the thread's root if none does. */
    size_t find(int effect) const {
        size_t i = list.size() - 1;
        while (list[i].is != kind::root && !handles(list[i], effect))
            i--;
        return i;
    }
    /* The index of the fiber's border, or of the root. */
    size_t find(const fiber *f) const {
        size_t i = list.size() - 1;
        while (list[i].is != kind::root && !(list[i].is == kind::border && list[i].f == f))
            i--;
        return i;
    }
    static clause_kind_t clause_kind(const frame &f, int effect) {
        return f.handler != nullptr && (f.is == kind::handler || f.effects == DEEP)
                   ? f.handler->clauses[effect].kind
                   : ABSENT;
    }
    fiber *locate(int effect) const {
        const frame &f = list[find(effect)];
        return f.is == kind::border && clause_kind(f, effect) != TAIL ? f.f : nullptr;
    }
    const fiber *current() const { return fiber_around(list.size()); }
    /* The fiber around what begins at this index; NULL at the bottom of a thread. */
    const fiber *fiber_around(size_t i) const {
        do
            i--;
        while (list[i].is != kind::root && list[i].is != kind::border);
        return list[i].f;
    }
    /* The fiber around a running one, which may wait for a clause in place, or be inside of one
       that is suspended. */
    const fiber *parent(const fiber *f) const {
        for (size_t i = list.size(); i-- > 0;) {
            if (list[i].is == kind::border && list[i].f == f)
                return fiber_around(i);
            const fiber *found = nullptr;
            if (list[i].cut != nullptr && parent_in(*list[i].cut, f, found))
                return found != nullptr ? found : fiber_around(i);
        }
        const fiber *found = nullptr;
        for (const fiber &other : fibers)
            if (parent_in(other.captured, f, found))
                break;
        return found;
    }
    static bool parent_in(const frames &cut, const fiber *f, const fiber *&found) {
        for (size_t i = cut.size(); i-- > 0;) {
            bool here = cut[i].is == kind::border && cut[i].f == f;
            if (!here && (cut[i].cut == nullptr || !parent_in(*cut[i].cut, f, found)))
                continue;
            while (found == nullptr && i-- > 0)
                if (cut[i].is == kind::border)
                    found = cut[i].f;
            return true;
        }
        return false;
    }
    /* Counts the fibers that are not freed; in the caller's memory, the unfinished ones. */
    int64_t count() const {
        int64_t count = 0;
        for (const fiber &f : fibers)
            count += !f.freed && !(f.fixed && f.now == status::finished);
        return count;
    }
    int64_t look(const fiber *f) const {
        if (f == nullptr)
            return -1;
        const fiber *around = f->now == status::running ? parent(f) : nullptr;
        return static_cast<int>(f->now) + (f->now == status::suspended ? 8 : 0) +
               16 * (around == nullptr ? 0 : around->id + 1);
    }

    frames cut(size_t at) {
        frames off(std::make_move_iterator(list.begin() + static_cast<std::ptrdiff_t>(at)),
                   std::make_move_iterator(list.end()));
        list.resize(at, frame{kind::root});
        return off;
    }
    void append(frames &&more) {
        for (frame &f : more)
            list.push_back(std::move(f));
    }

    /* ---- Effects ---- */

    void perform(int effect, int64_t payload, bool thrown, form_t form) {
        if (form == MISSIZED)
            return fail(wrong_type);
        size_t at = find(effect);
        if (list[at].is == kind::root) {
            if (defaults[effect] == 0)
                return fail(unhandled);
            int variant = defaults[effect] - 1;
            in_place(at + 1, effect, thrown);
            observe(DEFAULTED, effect * 2 + variant, payload);
            return push_body(&program->defaults[effect][variant], payload);
        }
        clause_kind_t clause = clause_kind(list[at], effect);
        if (clause == TAIL) {
            const clause_t &body = list[at].handler->clauses[effect];
            in_place(at, effect, thrown);
            observe(CLAUSE, effect, payload);
            return push_body(&body.body, payload);
        }
        if (thrown && clause == GENERAL)
            return fail(came_back);
        if (thrown || clause == NEVER)
            return exit_to(list[at].f, effect, payload);
        suspend(at, effect, payload);
    }

    void in_place(size_t at, int effect, bool thrown) {
        frame f{kind::clause};
        f.at = effect;
        f.thrown = thrown;
        f.cut = std::make_shared<frames>(cut(at));
        list.push_back(std::move(f));
    }

    void suspend(size_t at, int effect, int64_t payload) {
        fiber *f = list[at].f;
        f->captured = cut(at);
        f->awaits = effect;
        f->now = status::suspended;
        ask({effect, payload, false});
    }

    void exit_to(fiber *f, int effect, int64_t payload) {
        leaving reason;
        reason.why = leaving::throwing;
        reason.target = f;
        reason.effect = effect;
        reason.number = payload;
        if (!careless_up_to(f))
            return leave(reason);
        abandon(find(f));
        ask({effect, payload, true});
    }

    /* ---- Careless fibers ---- */

    /* Whether all fibers from here out to this one, through what waits for clauses in place, are
       careless. */
    bool careless_up_to(const fiber *target) const {
        bool reached = false;
        return careless_up_to(list, target, reached);
    }
    static bool careless_up_to(const frames &some, const fiber *target, bool &reached) {
        for (size_t i = some.size(); i-- > 0 && !reached;) {
            if (some[i].cut != nullptr && !careless_up_to(*some[i].cut, target, reached))
                return false;
            if (some[i].is == kind::border) {
                if (!some[i].f->careless)
                    return false;
                reached = some[i].f == target;
            }
        }
        return true;
    }
    /* Forgets the frames from this one on. */
    void abandon(size_t from) { forget(cut(from)); }
    static void forget(const frames &some) {
        for (const frame &f : some)
            switch (f.is) {
            case kind::border:
                f.f->now = status::finished;
                break;
            case kind::clause:
                forget(*f.cut);
                break;
            case kind::sequence:
            case kind::handler:
            case kind::on_return:
            case kind::trying:
                break;
            case kind::repeat:
                if (!f.k.usable())
                    break;
                [[fallthrough]];
            default:
                throw promise_broken{};
            }
    }

    void send_out(const statement_t &s, int64_t value) {
        bool by_slot = s.operation == YIELD_SLOT || s.operation == EXIT_SLOT;
        bool for_good = s.operation == EXIT || s.operation == EXIT_SLOT;
        fiber *f = by_slot ? slots[s.slot] : locate(s.target);
        if (f == nullptr) {
            missing(by_slot ? s.slot : s.target, 0);
            return statement_done(0);
        }
        if (s.form == MISSIZED)
            return fail(wrong_type);
        size_t at = find(f);
        if (list[at].is == kind::root)
            return fail(not_around);
        clause_kind_t clause = clause_kind(list[at], s.effect);
        bool deep = list[at].effects == DEEP;
        /* A deep handler has to have a clause to give it to. */
        if (deep && (clause == ABSENT || clause == TAIL))
            return fail(unhandled);
        if (for_good && clause == GENERAL)
            return fail(came_back);
        if (for_good || clause == NEVER)
            return exit_to(f, s.effect, as_payload(s.effect, value));
        suspend(at, s.effect, as_payload(s.effect, value));
    }

    void ask(request r) {
        doing = requesting;
        asked = r;
    }

    /* ---- Fibers ---- */

    fiber *make() {
        fibers.emplace_back();
        fibers.back().id = fibers_made++;
        return &fibers.back();
    }

    static frame border_of(fiber *f, unsigned effects) {
        frame border{kind::border};
        border.f = f;
        border.effects = effects;
        border.handler = f->handler;
        return border;
    }

    /* Puts the fiber on the list; what it then gets is up to the caller. */
    void enter(fiber *f, unsigned effects) {
        if (f->now == status::fresh) {
            list.push_back(border_of(f, effects));
            push_body(f->body, f->seed);
        } else {
            f->captured.front().effects = effects;
            append(std::exchange(f->captured, {}));
        }
        f->now = status::running;
    }

    void resume(fiber *f, unsigned effects, int64_t value) {
        bool fresh = f->now == status::fresh;
        enter(f, effects);
        if (!fresh)
            give(as_result(f->awaits, value));
    }

    void resume_raising(fiber *f, unsigned effects, int64_t number) {
        enter(f, effects);
        raise(number);
    }

    /* The fiber is out of its slot. */
    void release(fiber *f) {
        frame freeing{kind::freeing};
        freeing.f = f;
        list.push_back(std::move(freeing));
        unwind_or_finish(f);
    }
    void unwind_or_finish(fiber *f) {
        f->captures++;
        if (f->now != status::suspended) {
            f->now = status::finished;
            return dropped();
        }
        enter(f, 0);
        if (careless_up_to(f)) {
            abandon(find(f));
            return dropped();
        }
        leaving reason;
        reason.why = leaving::dropping;
        reason.target = f;
        leave(reason);
    }
    void dropped() {
        frame f = std::move(list.back());
        list.pop_back();
        if (f.is == kind::freeing)
            f.f->freed = true;
        if (f.at != 0)
            return fail(f.at);
        if (f.is == kind::resetting) {
            f.f->now = status::fresh;
            f.f->body = f.body;
            f.f->seed = f.value;
        }
        give(f.is == kind::resetting ? 0 : f.value);
    }
    void drop(resumption k) {
        k.of->captures++;
        release(k.of);
    }

    /* `again`: the error of what is done with the freed fiber. */
    void free_slot(int index, int64_t result, int again = 0) {
        fiber *f = slots[index];
        if (f == nullptr) {
            missing(index, 0);
            return give(result);
        }
        if (f->now == status::running)
            return fail(in_use);
        slots[index] = nullptr;
        frame freeing{kind::freeing};
        freeing.f = f;
        freeing.value = result;
        freeing.at = f->fixed ? 0 : again; /* of the caller's memory nothing is known then */
        list.push_back(std::move(freeing));
        unwind_or_finish(f);
    }

    void reset(const statement_t &s, int64_t value) {
        fiber *f = slots[s.slot];
        if (f == nullptr) {
            missing(s.slot, 0);
            return statement_done(0);
        }
        if (f->now == status::running)
            return fail(in_use);
        frame resetting{kind::resetting};
        resetting.f = f;
        resetting.body = &s.body;
        resetting.value = value;
        list.push_back(std::move(resetting));
        unwind_or_finish(f);
    }

    void new_fiber(const statement_t &s, int64_t value) {
        if (slots[s.slot] != nullptr) {
            missing(s.slot, 1);
            return statement_done(0);
        }
        fiber *f = make();
        f->body = &s.body;
        f->seed = value;
        f->careless = s.variant == CARELESS;
        f->fixed = s.variant == FIXED;
        slots[s.slot] = f;
        statement_done(f->id + 1);
    }

    /* ---- The loop of requests ---- */

    void next_round(const statement_t *s, int round, int64_t value) {
        if (round == s->round_count)
            return give(value);
        fiber *f = slots[s->slot];
        if (f == nullptr) {
            missing(s->slot, 0);
            return give(value);
        }
        const round_t &r = s->rounds[round];
        bool missized = r.action != DISCONTINUE && r.reply.kind == REPLY_MISSIZED;
        if (f->now != status::fresh && f->now != status::suspended)
            return fail(missized ? wrong_type : not_resumable);
        frame loop{kind::loop};
        loop.statement = s;
        loop.at = round;
        loop.value = value;
        list.push_back(std::move(loop));
        int awaits = f->now == status::suspended ? f->awaits : NOT_STARTED;
        if (r.action == DISCONTINUE)
            return resume_raising(f, r.effects, value);
        if (r.action == VISIT && awaits != NOT_STARTED && is_wrong(r.reply, awaits) &&
            r.reply.kind != REPLY_MISSIZED) {
            /* Told at the perform. */
            enter(f, r.effects);
            return fail(refusal(r.reply));
        }
        bool wrong = r.action == VISIT ? r.reply.kind == REPLY_MISSIZED : is_wrong(r.reply, awaits);
        if (wrong && (r.action == VISIT || !r.again))
            return fail(refusal(r.reply));
        if (wrong)
            refuse(refusal(r.reply));
        resume(f, r.effects, value);
    }

    /* ---- Wrong replies ---- */

    static int refusal(reply_choice_t reply) {
        return reply.kind == REPLY_NOTHING ? no_reply : wrong_type;
    }
    /* An error of which a clause or a loop is told, and goes on. */
    void refuse(int code) {
        if (program->escape == BY_ABORT)
            throw gave_up{};
        observe(ERROR, code, 0);
    }
    void refuse_if_wrong(reply_choice_t reply, resumption k) {
        if (is_wrong(reply, k.of->awaits))
            refuse(refusal(reply));
    }

    void on_request(request r) {
        frame f = std::move(list.back());
        list.pop_back();
        switch (f.is) {
        case kind::loop:
            observe(r.thrown ? THROWN : REQUEST, r.effect, r.payload);
            f.value = mix(f.value, r.payload);
            if (r.thrown)
                return give(f.value);
            f.is = kind::loop_body;
            list.push_back(f);
            return push_body(&f.statement->rounds[f.at].body, f.value);
        case kind::drive:
            return on_deep_request(f.f, r);
        case kind::snatched:
            observe(r.thrown ? THROWN : REQUEST, r.effect, r.payload);
            f.is = kind::freeing;
            [[fallthrough]];
        default: /* freeing and resetting: whatever comes out of the fiber, it is dropped */
            list.push_back(f);
            return r.thrown ? dropped() : unwind_or_finish(f.f);
        }
    }

    /* ---- Deep handlers ---- */

    static bool in_place_only(const handler_t &handler) {
        for (const clause_t &clause : handler.clauses)
            if (clause.kind == GENERAL || clause.kind == NEVER)
                return false;
        return true;
    }

    void handle(const statement_t &s, int64_t value) {
        int id = fibers_made++;
        frame due{kind::on_return};
        due.handler = s.handler;
        list.push_back(std::move(due));
        if (in_place_only(*s.handler)) {
            frame handler{kind::handler};
            handler.handler = s.handler;
            list.push_back(std::move(handler));
            return push_body(&s.body, value);
        }
        /* The return clause goes with the fiber: any thread that drives it runs it. */
        list.pop_back();
        fibers.emplace_back();
        fiber *f = &fibers.back();
        f->id = id;
        f->handler = s.handler;
        f->body = &s.body;
        f->seed = value;
        drive(f);
        resume(f, DEEP, 0);
    }

    void drive(fiber *f) {
        frame due{kind::on_return};
        due.handler = f->handler;
        list.push_back(std::move(due));
        frame drive{kind::drive};
        drive.f = f;
        list.push_back(std::move(drive));
    }

    void on_deep_request(fiber *f, request r) {
        list.pop_back(); /* no return clause: the answer is the clause's */
        const clause_t &clause = f->handler->clauses[r.effect];
        observe(CLAUSE, r.effect, r.payload);
        if (r.thrown) {
            frame owned{kind::owned};
            owned.f = f;
            list.push_back(std::move(owned));
        } else {
            frame general{kind::general};
            general.k = {f, ++f->captures};
            general.clause = &clause;
            list.push_back(std::move(general));
        }
        push_body(&clause.body, r.payload);
    }

    void continue_with(resumption k, int64_t value) {
        k.of->captures++;
        drive(k.of);
        resume(k.of, DEEP, value);
    }
    void continue_raising(resumption k, int64_t number) {
        k.of->captures++;
        drive(k.of);
        resume_raising(k.of, DEEP, number);
    }

    void end_clause(const clause_t &clause, resumption k, int64_t value) {
        resumption &place = kept[clause.slot];
        bool occupied = place.usable();
        auto after = [&] {
            frame f{kind::general_after};
            f.clause = &clause;
            f.value = value;
            return f;
        };
        resumption &next = kept[(clause.slot + 1) % KEPT];
        switch (clause.ending) {
        case END_TAIL_CONTINUE:
            refuse_if_wrong(clause.reply, k);
            return continue_with(k, value);
        case END_PROMISE: {
            refuse_if_wrong(clause.reply, k);
            refuse(used_resumption);
            frame f{kind::promised};
            f.k = {k.of, ++k.of->captures};
            f.value = value;
            list.push_back(std::move(f));
            return push_body(&clause.after, value);
        }
        case END_FREE_PROMISE:
            refuse_if_wrong(clause.reply, k);
            list.push_back(after());
            list.back().thrown = true;
            return drop(k);
        case END_FORGET:
            if (occupied && next.usable()) {
                list.push_back(after());
                list.back().thrown = true;
                return drop(k);
            }
            refuse_if_wrong(clause.reply, k);
            if (occupied)
                refuse_if_wrong(clause.reply, place);
            (occupied ? next : place) = k;
            return fail(bad_argument);
        case END_SNATCH: {
            refuse_if_wrong(clause.reply, k);
            k.of->captures++;
            list.push_back(after());
            list.back().thrown = true;
            frame f{kind::snatched};
            f.f = k.of;
            list.push_back(std::move(f));
            return resume(k.of, ALL_EFFECTS, value);
        }
        case END_EXCHANGE:
            if (occupied) {
                refuse_if_wrong(clause.reply, place);
                return continue_with(std::exchange(place, k), value);
            }
            [[fallthrough]];
        case END_CONTINUE:
            refuse_if_wrong(clause.reply, k);
            list.push_back(after());
            return continue_with(k, value);
        case END_RAISE:
            list.push_back(after());
            return continue_raising(k, value);
        case END_KEEP:
            if (!occupied) {
                place = k;
                return push_body_and_mix(clause.after, value, k);
            }
            [[fallthrough]];
        default:
            list.push_back(after());
            list.back().thrown = true; /* there is no answer */
            return drop(k);
        }
    }
    /* Runs the body and mixes its value into this one. */
    void push_body_and_mix(const body_t &body, int64_t value, resumption k = {}) {
        frame f{kind::repeat};
        f.value = value;
        f.k = k;
        list.push_back(std::move(f));
        push_body(&body, value);
    }

    void use_kept(const statement_t &s, int64_t value) {
        resumption k = kept[s.slot];
        if (k.of == nullptr) {
            missing(s.slot, 0);
            return statement_done(0);
        }
        if (s.variant == 0 || s.operation == DROP)
            kept[s.slot].of = nullptr;
        if (!k.usable())
            return fail(used_resumption);
        switch (s.operation) {
        case CONTINUE:
            refuse_if_wrong(s.reply, k);
            return continue_with(k, value);
        case CONTINUE_RAISE:
            return continue_raising(k, value);
        default:
            return drop(k);
        }
    }

    /* ---- Values arriving at frames ---- */

    void on_value(int64_t value) {
        if (list.back().is == kind::sequence)
            return statement_done(value);
        frame f = std::move(list.back());
        list.pop_back();
        switch (f.is) {
        case kind::border: {
            f.f->now = status::finished;
            /* A never-resuming clause in it ended the unwinding. */
            if (list.back().is == kind::freeing || list.back().is == kind::resetting)
                return dropped();
            frame waits = std::move(list.back());
            list.pop_back();
            if (waits.is == kind::loop) {
                observe(RETURNED, value, 0);
                return give(mix(waits.value, value));
            }
            f.f->freed = true;
            if (waits.is == kind::snatched)
                observe(RETURNED, value, 0);
            return give(value); /* to a drive's return clause */
        }
        case kind::handler:
        case kind::root:
        case kind::trying:
        case kind::thread:
        case kind::cleanup_guard:
            return give(value);
        case kind::on_return:
            if (!f.handler->returns)
                return give(value);
            observe(RETURN_CLAUSE, value, 0);
            return push_body(&f.handler->on_return, value);
        case kind::loop_body: {
            int64_t next = mix(f.value, value);
            if (f.statement->rounds[f.at].action == DISMISS)
                return free_slot(f.statement->slot, next);
            return next_round(f.statement, f.at + 1, next);
        }
        case kind::clause:
            append(std::move(*f.cut));
            if (f.thrown)
                return fail(came_back);
            return give(as_result(f.at, value));
        case kind::general:
            return end_clause(*f.clause, f.k, value);
        case kind::promised:
            return continue_with(f.k, f.value);
        case kind::owned:
            f.f->freed = true;
            return give(value);
        case kind::general_after: {
            int64_t next = f.thrown ? f.value : mix(f.value, value);
            return push_body_and_mix(f.clause->after, next);
        }
        case kind::scoped: {
            frame cleanup{kind::cleanup};
            cleanup.value = value;
            list.push_back(std::move(cleanup));
            return push_cleanup(f);
        }
        case kind::cleanup:
            return give(f.value);
        case kind::pending:
            return leave(f.why);
        case kind::repeat: {
            int64_t next = mix(f.value, value);
            if (f.at == 0)
                return give(next);
            return push_repeat(f.statement, f.at - 1, next);
        }
        default:
            __builtin_trap();
        }
    }

    void push_repeat(const statement_t *s, int more, int64_t value) {
        frame f{kind::repeat};
        f.statement = s;
        f.at = more;
        f.value = value;
        list.push_back(std::move(f));
        push_body(&s->body, value);
    }

    void push_cleanup(const frame &scoped) {
        observe(CLEANUP, scoped.statement->number, 0);
        list.push_back({kind::cleanup_guard});
        push_body(&scoped.statement->other, scoped.value);
    }

    /* ---- Unwinding ---- */

    bool around(const fiber *target) const {
        for (const frame &f : list)
            if (f.is == kind::border && f.f == target)
                return true;
        return false;
    }
    void unwind() {
        if (why.why == leaving::error && list.back().is == kind::sequence) {
            observe(ERROR, why.number, 0);
            return statement_done(why.number);
        }
        frame f = std::move(list.back());
        list.pop_back();
        bool exception = why.why == leaving::exception;
        switch (f.is) {
        case kind::scoped:
            postpone();
            return push_cleanup(f);
        case kind::general:
        case kind::promised:
        case kind::repeat: /* what a clause had not used when it is unwound, even if it is kept */
            if (!f.k.usable())
                return;
            postpone();
            return drop(f.k);
        case kind::clause:
            return append(std::move(*f.cut));
        case kind::owned:
        case kind::drive:
        case kind::snatched:
        case kind::freeing:
            f.f->freed = true;
            return;
        case kind::trying:
        case kind::cleanup_guard:
            if (!exception)
                return;
            observe(CAUGHT, why.number, 0);
            return give(why.number);
        case kind::pending:
            if (cleanups_end_unwinding)
                throw gave_up{};
            return;
        case kind::border:
            f.f->now = status::finished;
            if (why.target != nullptr && f.f != why.target && !around(why.target))
                throw gave_up{};
            if (f.f == why.target) {
                if (why.why == leaving::dropping)
                    return dropped();
                return ask({why.effect, why.number, true});
            }
            return;
        default:
            return;
        }
    }
    void postpone() {
        frame pending{kind::pending};
        pending.why = why;
        list.push_back(std::move(pending));
    }

    /* ---- Statements ---- */

    void execute(const statement_t &s, int64_t value) {
        switch (s.operation) {
        case PERFORM:
            return perform(s.effect, as_payload(s.effect, value), false, s.form);
        case THROW:
            return perform(s.effect, as_payload(s.effect, value), true, s.form);
        case YIELD:
        case YIELD_SLOT:
        case EXIT:
        case EXIT_SLOT:
            return send_out(s, value);
        case HANDLE:
            return handle(s, value);
        case LOOP:
            return next_round(&s, 0, value);
        case NEW:
            return new_fiber(s, value);
        case FREE:
            return free_slot(s.slot, 0,
                             s.variant == 0   ? 0
                             : s.variant == 1 ? in_use
                                              : not_resumable);
        case RESET:
            return reset(s, value);
        case SCOPED: {
            frame f{kind::scoped};
            f.statement = &s;
            f.value = value;
            list.push_back(std::move(f));
            return push_body(&s.body, value);
        }
        case REPEAT:
            return push_repeat(&s, s.variant + 1, value);
        case WHERE: {
            const fiber *here = current(), *there = locate(s.effect);
            return statement_done((here == nullptr ? 0 : here->id + 1) * 1000 +
                                  (there == nullptr ? 0 : there->id + 1));
        }
        case LOOK:
            return statement_done(look(slots[s.slot]));
        case RENAME:
            if (slots[s.slot] == nullptr) {
                missing(s.slot, 0);
                return statement_done(0);
            }
            slots[s.slot]->id = fibers_made++;
            return statement_done(0);
        case DETACH:
            if (slots[s.slot] == nullptr) {
                missing(s.slot, 0);
                return statement_done(0);
            }
            if (slots[s.slot]->now != status::fresh && slots[s.slot]->now != status::suspended)
                return fail(not_resumable);
            return statement_done(0);
        case COUNT:
            return statement_done(count());
        case TRIM:
            return statement_done(0);
        case WANT:
            if (s.variant % 2 != 0 && program->escape != BY_ABORT)
                return fail(no_memory);
            return statement_done(no_memory);
        case MISTAKE:
            return fail(bad_argument);
        case WAITS_ON:
            return statement_done(kept[s.slot].usable() ? kept[s.slot].of->awaits : -1);
        case CONTINUE:
        case CONTINUE_RAISE:
        case DROP:
            return use_kept(s, value);
        case TRY:
            return push_try(&s, value);
        case RAISE:
            return raise(value);
        case SET_DEFAULT:
            return statement_done(std::exchange(defaults[s.effect], s.variant));
        case THREAD:
            list.push_back({kind::thread});
            list.push_back({kind::root});
            return push_try(&s, value);
        default:
            __builtin_trap();
        }
    }
};

} // namespace

outcome_t run_on_model(const program_t *program) {
    try {
        machine(program).run();
        return ENDS;
    } catch (gave_up) {
        return ABORTS;
    } catch (promise_broken) {
        return UNKNOWN;
    }
}
// SPDX-License-Identifier: MIT
