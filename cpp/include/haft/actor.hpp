// SPDX-License-Identifier: MIT
/*
 * Actors (§2.3): threads that share nothing and send messages, each with a typed mailbox.
 *
 *     struct deposit { int amount; };
 *     struct balance { haft::promise<int> reply; };
 *
 *     haft::run([] {
 *         haft::address<deposit, balance> account =
 *             haft::spawn<deposit, balance>([](auto &self) {
 *                 for (int total = 0;;)
 *                     self.receive([&](deposit message) { total += message.amount; },
 *                                  [&](balance message) { message.reply.set_value(total); });
 *             });
 *         account.send(deposit{5});
 *         std::cout << haft::await(haft::ask<balance>(account)) << '\n';
 *     });
 *
 * spawn<Messages...>(body) starts an actor that understands these types of message, and returns its
 * address. Sending a message that it does not understand, or receiving without a function for each
 * type, does not compile. A body either receives messages itself, as above, or sets a behaviour
 * with become() and returns; then the behaviour is called for every message, until stop().
 *
 * An actor ends when its body returns or throws, by stop(), when it is killed, and when it waits
 * for a message that cannot come: because no address of it is left, or because all other threads
 * have ended, and run() with them. If the body has not returned, its stack is unwound. Unread
 * messages are destroyed, so a thread that waits for a reply to one gets broken_promise.
 *
 * An actor whose messages include haft::down gets one when an actor that it watches ends, with the
 * exception that has left that actor, if any; it watches the actors that it has spawned by
 * self.spawn. The exception of an unwatched actor leaves run() (thread.hpp).
 *
 * Messages arrive in the order in which they were sent, and are moved, not copied, on the way.
 * Mailboxes are not bounded. Threads: as in thread.hpp. Other threads of the system may send to
 * actors that are tasks, in a program that includes haft/io_threads.hpp.
 */
#ifndef HAFT_ACTOR_HPP
#define HAFT_ACTOR_HPP

#include "async.hpp"

#include <atomic>

namespace haft {

template <typename... Messages>
class address;
template <typename... Messages>
class actor;

/* The number of an actor: unique in the process, never reused. */
using actor_id = unsigned long;

/* The message that tells of the end of an actor; see actor::watch. */
struct down {
    actor_id actor;
    std::exception_ptr reason; /* its exception, or thread_killed; NULL: it has returned or
                                  stopped */
};

namespace detail {

/* ---- Mailboxes ---- */

template <typename Message>
struct accepts {
    virtual bool deliver(Message message) = 0;

  protected:
    ~accepts() = default;
};

/* The part that does not depend on the messages. Counted by addresses, and by the actor while it
   runs. */
struct mailbox {
    counter references;
    counter addresses;
    published<bool> open = true;
    bool stopping = false;
    mutable lock guard; /* of the messages, the watchers and the end */
    const actor_id id = next_id();
    std::exception_ptr reason;
    reference<thread_of<void>> thread;
    std::vector<address<down>> watchers;

    mailbox();
    mailbox(const mailbox &) = delete;
    mailbox &operator=(const mailbox &) = delete;
    virtual ~mailbox();
    virtual std::size_t size() const = 0;
    virtual void clear() = 0;

    /* Called after a message has come, and when the last address is gone. */
    void wake() { readers.wake_one(); }

    /* Waits until there are more messages than `seen`; false if the actor has to end. */
    HAFT_DETAIL_INLINE bool wait(std::size_t seen = 0) {
        auto comes = [&] { return has_more(seen) || addresses == 0; };
        while (!stopping && !has_more(seen) && addresses != 0)
            readers.wait_unless(comes, here("receive()"), "receive()", nullptr, true);
        return !stopping && has_more(seen);
    }
    HAFT_DETAIL_INLINE bool has_more(std::size_t seen) const {
        locked by(guard);
        return size() > seen;
    }
    HAFT_DETAIL_INLINE void wait_or_end(std::size_t seen = 0) {
        if (wait(seen))
            return;
        stopping = true;
        scheduler::kill(thread->thread);
        throw std::logic_error("haft: receive() was called for an actor that has ended");
    }

    /* Ends the mailbox. True: a watcher was told. */
    bool close(std::exception_ptr why);
    /* False: the actor has ended. */
    bool add_watcher(address<down> watcher);

  private:
    static actor_id next_id() {
        static std::atomic<actor_id> last = 0;
        return ++last;
    }
    waiting_list readers;
};

template <typename... Messages>
struct mailbox_of;

template <typename Mailbox, typename Message>
struct inlet : accepts<Message> {
    bool deliver(Message message) override {
        Mailbox &self = static_cast<Mailbox &>(*this);
        {
            locked by(self.guard);
            if (!self.open)
                return false;
            self.messages.emplace_back(std::in_place_type<Message>, std::move(message));
        }
        self.wake();
        return true;
    }
};

template <typename... Messages>
struct mailbox_of final : mailbox, inlet<mailbox_of<Messages...>, Messages>... {
    std::deque<std::variant<Messages...>> messages;

    std::size_t size() const override { return messages.size(); }
    void clear() override {
        std::deque<std::variant<Messages...>> unread;
        {
            locked by(guard);
            unread.swap(messages);
        }
    }

    std::variant<Messages...> take() {
        locked by(guard);
        std::variant<Messages...> message = std::move(messages.front());
        messages.pop_front();
        return message;
    }
    /* Moves the earlier messages up by one, by construction: messages need not be assignable. */
    std::variant<Messages...> take(std::size_t index) {
        std::variant<Messages...> message = std::move(messages[index]);
        for (; index > 0; index--)
            std::visit(
                [&]<typename Message>(Message &earlier) {
                    messages[index].template emplace<Message>(std::move(earlier));
                },
                messages[index - 1]);
        messages.pop_front();
        return message;
    }
};

/* ---- Checks ---- */

template <typename Message, typename... Understood>
struct the_actor_does_not_understand {
    static_assert(count_of<Message, Understood...> != 0,
                  "haft: this actor does not understand the message, the first of the types above; "
                  "the others are what it understands.");
};
template <typename Message, typename... Messages>
struct the_actor_lists_twice {
    static_assert(count_of<Message, Messages...> == 1,
                  "haft: a type of message is listed twice, the first of the types above.");
};
template <typename Message, typename... Functions>
struct nothing_receives {
    static_assert((std::is_invocable_v<Functions &, Message> || ...),
                  "haft: no function receives the message, the first of the types above, which the "
                  "actor understands.");
};

template <typename... Functions>
struct overloaded : Functions... {
    using Functions::operator()...;
};
template <typename... Functions>
overloaded(Functions...) -> overloaded<Functions...>;

} // namespace detail

/* ---- Addresses ------------------------------------------------------------------------------ */

/*
 * The address of an actor that understands these messages, and perhaps others. It may be copied
 * freely, converts to an address for fewer messages, and may outlive the actor and the run().
 */
template <typename... Messages>
class address {
  public:
    /* An empty address, nobody's. */
    address() = default;
    address(const address &other) : box(other.box), inlets(other.inlets) { count(); }
    address(address &&other) noexcept : box(std::move(other.box)), inlets(other.inlets) {}
    template <typename... More>
    requires(!std::same_as<address<More...>, address>) address(const address<More...> &other)
        : box(other.box), inlets(other.template inlet<Messages>()...) {
        count();
    }
    address &operator=(address other) noexcept {
        std::swap(box, other.box);
        std::swap(inlets, other.inlets);
        return *this;
    }
    ~address() {
        if (box && --box->addresses == 0)
            box->wake();
    }

    /* Puts a message into the mailbox without waiting. False: the actor has ended, and the message
       is destroyed. Throws std::logic_error if the address is empty. */
    template <typename Message>
    bool send(Message message) const {
        check("send()");
        return inlet<Message>()->deliver(std::move(message));
    }

    /* Ends the actor: its stack is unwound. An actor may kill itself; then kill() does not
       return. */
    void kill() const {
        check("kill()");
        detail::reference<detail::mailbox> kept(box);
        detail::scheduler::kill(kept->thread->thread);
    }

    /* Whether the actor has not ended. */
    bool alive() const { return box && box->open; }
    /* The number of the actor; 0: the address is empty. */
    actor_id id() const { return box ? box->id : 0; }
    friend bool operator==(const address &one, const address &other) {
        return one.id() == other.id();
    }

  private:
    address(detail::mailbox *to, detail::accepts<Messages> *...by) : box(to), inlets(by...) {
        count();
    }
    void count() {
        if (box)
            box->addresses++;
    }
    void check(const char *what) const {
        if (!box)
            throw std::logic_error(std::string("haft: ") + what +
                                   " was called on an address that is nobody's");
    }
    template <typename Message>
    detail::accepts<Message> *inlet() const {
        (void)sizeof(detail::the_actor_does_not_understand<Message, Messages...>);
        return std::get<detail::accepts<Message> *>(inlets);
    }

    detail::reference<detail::mailbox> box;
    std::tuple<detail::accepts<Messages> *...> inlets;
    template <typename...>
    friend class address;
    template <typename...>
    friend class actor;
};

/* ---- Actors --------------------------------------------------------------------------------- */

template <typename... Messages, typename Body>
address<Messages...> spawn(thread_options options, Body body);

/* The actor itself, which its body gets by reference. The reference is valid until the actor
   ends. */
template <typename... Messages>
class actor {
  public:
    actor(const actor &) = delete;
    actor &operator=(const actor &) = delete;

    /* Its own address, for sending to others. */
    haft::address<Messages...> address() const {
        return haft::address<Messages...>(&*box,
                                          static_cast<detail::accepts<Messages> *>(&*box)...);
    }

    /*
     * Waits for the next message, and
     * receive(functions...)  calls the function that takes it; returns what that returns
     * receive<Message>()     the next of that type, which it returns; others stay in the mailbox
     * receive()              returns it, as a variant
     */
    template <typename... Functions>
    requires(sizeof...(Functions) > 0) decltype(auto) receive(Functions &&...functions) {
        (void)(sizeof(detail::nothing_receives<Messages, Functions...>) + ... + 0);
        detail::overloaded overloads{detail::as_clause(std::forward<Functions>(functions))...};
        return std::visit(overloads, receive());
    }
    template <typename Message>
    HAFT_DETAIL_INLINE Message receive() {
        (void)sizeof(detail::the_actor_does_not_understand<Message, Messages...>);
        for (std::size_t seen = 0;; seen++) {
            box->wait_or_end(seen);
            detail::locked by(box->guard);
            if (std::holds_alternative<Message>(box->messages[seen]))
                return std::get<Message>(box->take(seen));
        }
    }
    HAFT_DETAIL_INLINE std::variant<Messages...> receive() {
        box->wait_or_end();
        return box->take();
    }

    /*
     * Sets the functions that handle messages after the body has returned, or after this message;
     * each type needs one. The functions are kept, so what they refer to must outlive the body.
     */
    template <typename... Functions>
    requires(sizeof...(Functions) > 0) void become(Functions... functions) {
        (void)(sizeof(detail::nothing_receives<Messages, Functions...>) + ... + 0);
        struct behaving final : behaviour {
            explicit behaving(Functions &&...all)
                : overloads{detail::as_clause(std::move(all))...} {}
            void call(std::variant<Messages...> message) override {
                std::visit(overloads, std::move(message));
            }
            detail::overloaded<detail::clause_type<Functions>...> overloads;
        };
        next = std::make_unique<behaving>(std::move(functions)...);
    }

    /* Ends the actor when it would receive the next message, or after this message. */
    void stop() { box->stopping = true; }

    /* Asks for a haft::down when the other actor ends, or at once if it has ended already. */
    template <typename... Others>
    void watch(const haft::address<Others...> &other) {
        (void)sizeof(detail::the_actor_does_not_understand<down, Messages...>);
        other.check("watch()");
        if (!other.box->add_watcher(address()))
            address().send(down{other.id(), other.box->reason});
    }

    /* Spawns an actor, and watches it. */
    template <typename... Others, typename Body>
    haft::address<Others...> spawn(thread_options options, Body body) {
        haft::address<Others...> child =
            haft::spawn<Others...>(std::move(options), std::move(body));
        watch(child);
        return child;
    }
    template <typename... Others, typename Body>
    haft::address<Others...> spawn(Body body) {
        return spawn<Others...>(thread_options{}, std::move(body));
    }

  private:
    struct behaviour {
        virtual ~behaviour() = default;
        virtual void call(std::variant<Messages...> message) = 0;
    };

    explicit actor(detail::reference<detail::mailbox_of<Messages...>> with)
        : box(std::move(with)) {}

    /* A replaced behaviour lives until its function has returned. */
    void serve() {
        while (next != nullptr && box->wait()) {
            std::unique_ptr<behaviour> now = std::move(next);
            now->call(box->take());
            if (next == nullptr)
                next = std::move(now);
        }
    }

    detail::reference<detail::mailbox_of<Messages...>> box;
    std::unique_ptr<behaviour> next;
    template <typename... Others, typename Body>
    friend haft::address<Others...> haft::spawn(thread_options, Body);
};

namespace detail {

inline mailbox::mailbox() = default;
inline mailbox::~mailbox() = default;

inline bool mailbox::close(std::exception_ptr why) {
    std::vector<address<down>> all;
    {
        locked by(guard);
        reason = why;
        open = false;
        all.swap(watchers);
    }
    clear();
    bool told = false;
    for (const address<down> &watcher : all)
        told |= watcher.send(down{id, why});
    return told;
}
inline bool mailbox::add_watcher(address<down> watcher) {
    locked by(guard);
    if (open)
        watchers.push_back(std::move(watcher));
    return open;
}

/* Belongs to the body of an actor; closes the mailbox if the body is unwound or was never
   called. */
class end_of_actor {
  public:
    explicit end_of_actor(mailbox *of) : box(of) {}
    end_of_actor(end_of_actor &&) noexcept = default;
    ~end_of_actor() {
        if (!box || !box->open)
            return;
        std::exception_ptr why;
        if (box->thread && !box->stopping)
            why = std::make_exception_ptr(
                thread_killed("haft: " + box->thread->thread.description() + " was killed"));
        box->close(why);
    }

  private:
    reference<mailbox> box;
};

} // namespace detail

/*
 * Starts an actor that understands `Messages`, in a thread with these options, and returns its
 * address. `body` is called with an actor<Messages...> &. Throws as fork() does.
 */
template <typename... Messages, typename Body>
address<Messages...> spawn(thread_options options, Body body) {
    (void)(sizeof(detail::the_actor_lists_twice<Messages, Messages...>) + ... + 0);
    using mailbox = detail::mailbox_of<Messages...>;
    detail::scheduler &scheduler = detail::forking("spawn()");
    detail::reference<mailbox> box(new mailbox);
    auto run_actor = [box, end = detail::end_of_actor(&*box),
                      function = std::move(body)]() mutable {
        actor<Messages...> self(box);
        try {
            function(self);
            self.serve();
        } catch (...) {
            if (!box->close(detail::caught_exception()))
                throw;
            return;
        }
        box->close(nullptr);
    };
    address<Messages...> result = actor<Messages...>(box).address();
    auto thread = detail::scheduler::make(std::move(run_actor));
    box->thread = thread;
    try {
        scheduler.launch(thread->thread, std::move(options));
    } catch (...) {
        thread->discard(); /* each holds a count of the other */
        box->thread = {};
        throw;
    }
    return result;
}
template <typename... Messages, typename Body>
address<Messages...> spawn(Body body) {
    return spawn<Messages...>(thread_options{}, std::move(body));
}

/*
 * Sends a message that asks for a reply, and returns the reply's future. Message is a struct whose
 * last field is `haft::promise<R> reply`; `fields` are those before it. If the actor ends without
 * replying, awaiting throws broken_promise.
 */
template <typename Message, typename... Known, typename... Fields>
auto ask(const address<Known...> &whom, Fields &&...fields) {
    decltype(Message::reply) reply;
    auto result = reply.get_future();
    whom.send(Message{std::forward<Fields>(fields)..., std::move(reply)});
    return result;
}

} // namespace haft

#endif
