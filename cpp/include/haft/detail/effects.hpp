// SPDX-License-Identifier: MIT
/*
 * Effects, as haft.hpp knows them: their names and descriptors, and how their payloads and results
 * travel.
 *
 * An effect is a type. Its identity is the address of its descriptor, of which the linker makes one
 * for each type in the process. C (haft.h) uses the same descriptors, handler chain and switches:
 * performers in C++ reach handlers in C, and the other way around (HAFT_ADOPT).
 */
#ifndef HAFT_DETAIL_EFFECTS_HPP
#define HAFT_DETAIL_EFFECTS_HPP

namespace haft::detail {

template <typename E>
constexpr auto pretty_name() {
    std::string_view text = __PRETTY_FUNCTION__;
    text.remove_prefix(text.find("E = ") + 4);
    return text.substr(0, text.size() - 1);
}

template <typename E>
struct name_text {
    char text[pretty_name<E>().size() + 1] = {};
    constexpr name_text() {
        for (std::size_t i = 0; i + 1 < sizeof text; i++)
            text[i] = pretty_name<E>()[i];
    }
};
template <typename E>
inline constexpr name_text<E> name_text_of{};

/* The slot of an effect in the caches. A plain sum, so that whether two slots differ depends only
   on the letters in which the names differ: Get and Put have different slots in any namespace, and
   so have Get<S> and Put<S>. */
constexpr unsigned slot_of(std::string_view name) {
    unsigned sum = 0;
    for (char letter : name)
        sum += static_cast<unsigned char>(letter);
    return sum % HAFTI_CACHE_SLOTS;
}

/* Whether a value travels from the handler to the performer in a word, as in C: it does if it fits
   and can be copied as bytes. The handler makes any other value in a slot of the performer's
   frame. */
template <typename T>
inline constexpr bool in_word = std::is_reference_v<T> ||
                                (std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(void *));
template <>
inline constexpr bool in_word<void> = true;

template <typename T>
inline constexpr std::size_t result_size = sizeof(T);
template <>
inline constexpr std::size_t result_size<void> = 0;
template <typename T>
inline constexpr std::size_t result_size<T &> = sizeof(void *);
template <typename T>
inline constexpr std::size_t result_size<T &&> = sizeof(void *);

template <typename E>
inline constexpr std::uint32_t
    shape_of = HAFTI_SHAPE(payload_size<E>, result_size<typename effect_traits<E>::result>);

/* Room for a value of any type that may be a result or answer; references are kept as pointers. It
   has a destructor only if the value has. */
template <typename T, bool Destroys = !std::is_trivially_destructible_v<T>>
struct room_value {
    room_value() noexcept {}
    ~room_value() {
        if (full)
            value.~T();
    }
    union {
        T value;
    };
    bool full = false;
};
template <typename T>
struct room_value<T, false> {
    room_value() noexcept {}
    union {
        T value;
    };
    bool full = false;
};
/* A value that is made at a place. Placement `new` of the value itself would do the same, but has
   an operator delete that gcc calls in a cleanup where it does not optimise: then the frame that
   makes the value could not be copied. */
template <typename T>
struct made_there {
    struct place {
        void *address;
    };
    static void *operator new(std::size_t, place at) { return at.address; }
    template <typename Make>
    explicit made_there(Make &make) : value(static_cast<Make &&>(make)()) {}
    T value;
};
template <typename T>
class room : room_value<T> {
    using kept = room_value<T>;

  public:
    room() noexcept = default;
    room(room &&other) {
        if (other.kept::full)
            fill([&]() -> T { return other.take(); });
    }
    room &operator=(room &&) = delete;
    template <typename Make>
    void fill(Make &&make) {
        (void)new (typename made_there<T>::place{address()}) made_there<T>(make);
        kept::full = true;
    }
    T take() { return static_cast<T &&>(kept::value); }
    void *address() { return static_cast<void *>(std::addressof(this->kept::value)); }
};
template <typename T>
requires std::is_reference_v<T>
class room<T> {
  public:
    template <typename Make>
    void fill(Make &&make) {
        T &&reference = static_cast<Make &&>(make)();
        pointer = std::addressof(reference);
    }
    T take() { return static_cast<T>(*pointer); }

  private:
    std::remove_reference_t<T> *pointer = nullptr;
};
template <>
class room<void> {
  public:
    template <typename Make>
    void fill(Make &&make) {
        static_cast<Make &&>(make)();
    }
    void take() {}
};

/* The value of a reply word. */
template <typename R>
HAFT_DETAIL_INLINE R from_word(void *word) {
    if constexpr (std::is_void_v<R>) {
        (void)word;
    } else if constexpr (std::is_reference_v<R>) {
        return static_cast<R>(*static_cast<std::remove_reference_t<R> *>(word));
    } else {
        union {
            char unused;
            R value;
        } bytes = {0};
        __builtin_memcpy(static_cast<void *>(&bytes), &word, sizeof(R));
        return std::move(bytes.value);
    }
}
/* T: the type of the result, a reference or the type of `value`. */
template <typename T, typename Value>
HAFT_DETAIL_INLINE void *to_word(Value &&value) {
    if constexpr (std::is_reference_v<T>) {
        return const_cast<void *>(static_cast<const volatile void *>(std::addressof(value)));
    } else {
        void *word = nullptr;
        __builtin_memcpy(&word, std::addressof(value), sizeof value);
        return word;
    }
}

/* A perform whose result does not travel in a word. */
template <typename E>
struct call {
    E *payload;
    room<typename effect_traits<E>::result> result;
};

template <typename E>
inline constexpr bool is_call =
    effect_traits<E>::native && !in_word<typename effect_traits<E>::result>;
/* The performed effect, from the payload of a request. */
template <typename E>
HAFT_DETAIL_INLINE E *performed(void *request) {
    if constexpr (is_call<E>)
        return static_cast<call<E> *>(request)->payload;
    else
        return static_cast<E *>(request);
}

/* A clause is given the payload itself, to move from. */
template <typename E>
struct passed {
    using default_t = typename effect_traits<E>::result(void *, E *);
    static HAFT_DETAIL_INLINE E &&on(E &payload) { return static_cast<E &&>(payload); }
    static default_t *to(default_t *chosen) { return chosen; }
};

/* The descriptor of an effect that is declared in C++: one for the process. */
template <typename E>
struct declared {
    using R = std::remove_cv_t<typename E::effect_result>;
    __attribute__((visibility("default"))) static haft_effect_t descriptor;

    static void call_clause(haft_function_t *function, void *state, void *payload, void *result) {
        auto clause = reinterpret_cast<R (*)(void *, E *)>(function);
        if constexpr (std::is_void_v<R>)
            clause(state, static_cast<E *>(payload));
        else if constexpr (std::is_reference_v<R>)
            *static_cast<void **>(result) = to_word<R>(clause(state, static_cast<E *>(payload)));
        else
            ::new (result) R(clause(state, static_cast<E *>(payload)));
    }
    static R unhandled(void *, E *) { hafti_unhandled(&descriptor); }
};

template <typename E>
haft_effect_t declared<E>::descriptor = {
    name_text_of<E>.text,
    "C++",
    payload_size<E>,
    result_size<typename declared<E>::R>,
    &declared<E>::call_clause,
    reinterpret_cast<haft_function_t *>(&declared<E>::unhandled),
    {&declared<E>::descriptor, reinterpret_cast<haft_function_t *>(&declared<E>::unhandled),
     HAFT_CLAUSE_TAIL, HAFTI_SHAPE(payload_size<E>, result_size<typename declared<E>::R>)},
    0,
    false,
    0};

} // namespace haft::detail

namespace haft {

template <typename Effect>
requires requires {
    typename Effect::effect_result;
}
struct effect_traits<Effect> {
    using result = std::remove_cv_t<typename Effect::effect_result>;
    static constexpr bool native = true;
    static constexpr unsigned slot = detail::slot_of(detail::pretty_name<Effect>());
    static constexpr haft_effect_t *id() { return &detail::declared<Effect>::descriptor; }
};

} // namespace haft

#endif
