/* SPDX-License-Identifier: MIT */
/* The functions and types to which HAFT_EFFECT and other macros of haft.h expand. */
#ifndef HAFTI_TYPED_H
#define HAFTI_TYPED_H

#ifdef __cplusplus
HAFTI_EXTERN_C_END

namespace haft::detail {
template <typename T>
struct value {
    using type = T;
};
template <>
struct value<void> {
    using type = char;
};
template <typename T>
constexpr size_t value_size = sizeof(T);
template <>
inline constexpr size_t value_size<void> = 0;
template <typename T>
constexpr size_t payload_size = __is_empty(T) ? 0 : sizeof(T);
template <typename R, typename P>
using tail_function = R (*)(void *, P *);

/* `(call, nothing{})` is the call's value, or zero where the call returns nothing. */
struct nothing {
    operator char() const { return 0; }
};
template <typename T>
T operator,(T &&value, nothing) {
    return static_cast<T &&>(value);
}

template <typename T, bool is_void, bool empty>
struct reply {
    static_assert(is_void == empty, "HAFT_REPLY takes a value exactly if the effect has a result");
    T value;
    haft_reply_t to(const haft_effect_t *effect) const {
        return {HAFTI_AWAITING(effect, is_void ? 0 : sizeof value),
                hafti_pack(&value, sizeof value)};
    }
};
template <typename Result, typename Value>
HAFTI_INLINE Result give(const Value &value) {
    if constexpr (!__is_same(Result, void))
        return value;
    (void)value;
}
} // namespace haft::detail

HAFTI_EXTERN_C_BEGIN

#    define HAFTI_STATIC_ASSERT static_assert
#    define HAFTI_COPYABLE(type) __is_trivially_copyable(type)
#    define HAFTI_VALUE_TYPE(result) ::haft::detail::value<result>::type
#    define HAFTI_RESULT_SIZE(result) (::haft::detail::value_size<result>)
#    define HAFTI_PAYLOAD_SIZE(name) (::haft::detail::payload_size<haft_payload_##name>)
#    define HAFTI_MAKE_PAYLOAD(name, ...) (haft_payload_##name{__VA_ARGS__})
#    define HAFTI_CALL_TAIL(result, value, call) value = (call, ::haft::detail::nothing{})
#    define HAFTI_GIVE(result, value) return ::haft::detail::give<result>(value)
#    define HAFTI_TYPED_FUNCTION(effect, function, ...)                                            \
        ((haft_function_t *)static_cast<__VA_ARGS__>(function))
#    define HAFTI_TYPED_KIND(effect, function, kind, ...) kind
#    define HAFTI_REPLY(name, ...)                                                                 \
        (::haft::detail::reply<hafti_value_##name, HAFTI_IS_VOID(name),                            \
                               sizeof(#__VA_ARGS__) == 1>{__VA_ARGS__}                             \
             .to(HAFT_ID(name)))
#    define HAFTI_NO_REPLY (haft_reply_t{0, nullptr})
#    define HAFTI_IS_VOID(name) (HAFTI_RESULT_SIZE(haft_result_##name) == 0)
#else
#    define HAFTI_STATIC_ASSERT _Static_assert
#    define HAFTI_COPYABLE(type) 1
#    define HAFTI_IS_VOID_TYPE(result) __builtin_types_compatible_p(result, void)
#    define HAFTI_IS_VOID(name) HAFTI_IS_VOID_TYPE(haft_result_##name)
#    define HAFTI_VALUE_TYPE(result)                                                               \
        __typeof__(*__builtin_choose_expr(HAFTI_IS_VOID_TYPE(result), (char *)0, (result *)0))
#    define HAFTI_RESULT_SIZE(result)                                                              \
        (HAFTI_IS_VOID_TYPE(result) ? 0 : sizeof(HAFTI_VALUE_TYPE(result)))
#    define HAFTI_PAYLOAD_SIZE(name) sizeof(haft_payload_##name)
#    define HAFTI_MAKE_PAYLOAD(name, ...) (__extension__(haft_payload_##name){__VA_ARGS__})
/* For an effect without a result the value is one byte, set to zero. */
#    define HAFTI_CALL_TAIL(result, value, call)                                                   \
        value = __builtin_choose_expr(HAFTI_IS_VOID_TYPE(result), ((void)(call), (char)0), call)
#    define HAFTI_GIVE(result, value)                                                              \
        return __builtin_choose_expr(HAFTI_IS_VOID_TYPE(result), (void)0, value)
#    define HAFTI_TYPED_FUNCTION(effect, function, ...) ((haft_function_t *)(function))
/* The kind, in an expression that does not compile when the clause has another type. */
#    define HAFTI_TYPED_KIND(effect, function, kind, ...)                                          \
        (kind) +                                                                                   \
            0 * sizeof(struct {                                                                    \
                _Static_assert(__builtin_types_compatible_p(__typeof__(&function), __VA_ARGS__),   \
                               "the clause " #function                                             \
                               " does not have the type for effect " #effect ": " #__VA_ARGS__);   \
                int unused;                                                                        \
            })
#    define HAFTI_REPLY(name, ...)                                                                 \
        hafti_reply_to(HAFTI_AWAITING(HAFT_ID(name), HAFTI_RESULT_SIZE(haft_result_##name)),       \
                       hafti_pack((__extension__(hafti_value_##name[1]){__VA_ARGS__}),             \
                                  sizeof(hafti_value_##name) +                                     \
                                      0 * sizeof(struct {                                          \
                                          _Static_assert(                                          \
                                              HAFTI_IS_VOID(name) == (sizeof(#__VA_ARGS__) == 1),  \
                                              "HAFT_REPLY(" #name                                  \
                                              ") takes a value exactly if the effect has a "       \
                                              "result");                                           \
                                          int unused;                                              \
                                      })))
#    define HAFTI_NO_REPLY hafti_reply_to(0, (void *)0)
/* A function, since a compound literal would be a variable of the caller's, and gcc warns of those
   in functions that call setjmp. */
HAFTI_INLINE haft_reply_t hafti_reply_to(uintptr_t to, void *word) {
    haft_reply_t reply = {to, word};
    return reply;
}
#endif

/* Every translation unit compares its declaration of an effect with the process's descriptor. */
#ifdef HAFT_FREESTANDING
#    define HAFTI_ON_LOAD(function) __attribute__((unused)) function
#else
#    define HAFTI_ON_LOAD(function) __attribute__((constructor)) function
#endif

#ifdef NDEBUG
#    define HAFTI_SPOILS 0
#    define HAFTI_SPOIL(payload) ((void)0)
#else
/* A handler that reads the payload after it has resumed the fiber finds this pattern; hafti_seen
   keeps the compiler from leaving the write out. When a fiber is dropped, the library writes the
   pattern. */
#    define HAFTI_SPOILS 1
#    define HAFTI_SPOIL(payload)                                                                   \
        (__builtin_memset((void *)&payload, 0xdb, sizeof payload), hafti_seen(&payload))
HAFTI_INLINE void hafti_seen(const void *memory) {
    __asm__ volatile("" : : "r"(memory) : "memory");
}
#endif

#define HAFTI_SHAPE_OF(name)                                                                       \
    HAFTI_SHAPE(HAFTI_PAYLOAD_SIZE(name), HAFTI_RESULT_SIZE(haft_result_##name))

/* Silences warnings in C++, and in C headers that C++ includes, about what is right in C. */
#ifdef __clang__
#    define HAFTI_QUIETLY_MORE _Pragma("GCC diagnostic ignored \"-Wextern-c-compat\"")
#else
#    define HAFTI_QUIETLY_MORE
#endif
#ifdef __cplusplus
#    define HAFTI_QUIETLY                                                                          \
        _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wpedantic\"")            \
            _Pragma("GCC diagnostic ignored \"-Wold-style-cast\"") HAFTI_QUIETLY_MORE
#else
#    define HAFTI_QUIETLY                                                                          \
        _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wpedantic\"")            \
            HAFTI_QUIETLY_MORE
#endif
#if defined(__cplusplus) && __cplusplus >= 201103L
#    define HAFTI_CONSTEXPR constexpr
#else
#    define HAFTI_CONSTEXPR
#endif

/* The slot of an effect that asks for none: by some of the letters of its name. */
#define HAFTI_SLOT_OF(text)                                                                        \
    (((unsigned)sizeof(text) + (unsigned)(text)[(sizeof(text) - 1) / 4] * 3 +                      \
      (unsigned)(text)[(sizeof(text) - 1) / 2] * 5 +                                               \
      (unsigned)(text)[(sizeof(text) - 1) * 3 / 4] * 7 +                                           \
      (unsigned)(text)[sizeof(text) - 2] * 11) %                                                   \
     HAFTI_CACHE_SLOTS)

#define HAFTI_EFFECT(slot, name, result, ...)                                                      \
    HAFTI_QUIETLY __extension__ typedef struct haft_payload_##name __VA_ARGS__                     \
        haft_payload_##name;                                                                       \
    HAFTI_EXTERN_C_BEGIN                                                                           \
    typedef result haft_result_##name;                                                             \
    typedef HAFTI_VALUE_TYPE(result) hafti_value_##name;                                           \
    HAFTI_INLINE HAFTI_CONSTEXPR unsigned hafti_slot_##name(void) {                                \
        return (slot) % HAFTI_CACHE_SLOTS;                                                         \
    }                                                                                              \
    extern haft_effect_t haft_id_##name;                                                           \
    static __attribute__((unused))                                                                 \
    haft_result_##name hafti_typed_unhandled_##name(void *state, haft_payload_##name *payload) {   \
        (void)state, (void)payload;                                                                \
        hafti_unhandled(HAFT_ID(name));                                                            \
    }                                                                                              \
    static __attribute__((unused)) void hafti_typed_call_##name(                                   \
        haft_function_t *function, void *state, void *payload, void *result_) {                    \
        hafti_value_##name *value = (hafti_value_##name *)result_;                                 \
        HAFTI_CALL_TAIL(result, *value,                                                            \
                        ((haft_result_##name(*)(void *, haft_payload_##name *))function)(          \
                            state, (haft_payload_##name *)payload));                               \
    }                                                                                              \
    __attribute__((weak, visibility("default"))) haft_effect_t haft_id_##name = {                  \
        #name,                                                                                     \
        __FILE__ ":" HAFTI_TEXT(__LINE__),                                                         \
        HAFTI_PAYLOAD_SIZE(name),                                                                  \
        HAFTI_RESULT_SIZE(result),                                                                 \
        hafti_typed_call_##name,                                                                   \
        (haft_function_t *)hafti_typed_unhandled_##name,                                           \
        {&haft_id_##name, (haft_function_t *)hafti_typed_unhandled_##name, HAFT_CLAUSE_TAIL,       \
         HAFTI_SHAPE_OF(name)},                                                                    \
        0,                                                                                         \
        HAFTI_SPOILS,                                                                              \
        0};                                                                                        \
    HAFTI_ON_LOAD(static void hafti_typed_declare_##name(void)) {                                  \
        hafti_declare(HAFT_ID(name), HAFTI_SHAPE_OF(name), __FILE__ ":" HAFTI_TEXT(__LINE__));     \
    }                                                                                              \
    HAFTI_INLINE haft_result_##name hafti_typed_perform_##name(haft_payload_##name payload) {      \
        hafti_value_##name value;                                                                  \
        hafti_here_t here = hafti_here();                                                          \
        hafti_found_t found =                                                                      \
            hafti_find(&here, HAFT_ID(name), hafti_slot_##name(), HAFTI_SHAPE_OF(name));           \
        const haft_clause_t *clause = hafti_clause_in_place(found);                                \
        if (clause != (const haft_clause_t *)0) {                                                  \
            haft_result_##name (*function)(void *, haft_payload_##name *) =                        \
                (haft_result_##name(*)(void *, haft_payload_##name *))hafti_clause_function(       \
                    clause);                                                                       \
            void *state = found.scope->state;                                                      \
            __attribute__((unused, cleanup(hafti_in_place_end))) hafti_in_place_t in_place =       \
                hafti_in_place_begin(here, found.scope);                                           \
            HAFTI_CALL_TAIL(result, value, function(state, &payload));                             \
        } else {                                                                                   \
            void *word = hafti_perform_found(here, found, HAFT_ID(name), &payload,                 \
                                             HAFTI_RESULT_SIZE(result));                           \
            hafti_unpack(HAFT_ID(name), word, &value, HAFTI_RESULT_SIZE(result));                  \
        }                                                                                          \
        HAFTI_SPOIL(payload);                                                                      \
        HAFTI_GIVE(result, value);                                                                 \
    }                                                                                              \
    HAFTI_INLINE haft_result_##name hafti_typed_yield_##name(haft_fiber_t *fiber,                  \
                                                             haft_payload_##name payload) {        \
        hafti_value_##name value;                                                                  \
        void *word = hafti_yield_hot(fiber, HAFT_ID(name), hafti_slot_##name(), &payload,          \
                                     HAFTI_RESULT_SIZE(result));                                   \
        hafti_unpack(HAFT_ID(name), word, &value, HAFTI_RESULT_SIZE(result));                      \
        HAFTI_SPOIL(payload);                                                                      \
        HAFTI_GIVE(result, value);                                                                 \
    }                                                                                              \
    HAFTI_INLINE                                                                                   \
    __attribute__((noreturn)) void hafti_typed_throw_##name(haft_payload_##name payload) {         \
        haft_throw(HAFT_ID(name), &payload, HAFTI_PAYLOAD_SIZE(name));                             \
    }                                                                                              \
    HAFTI_INLINE __attribute__((noreturn)) void hafti_typed_exit_##name(                           \
        haft_fiber_t *fiber, haft_payload_##name payload) {                                        \
        haft_exit(fiber, HAFT_ID(name), &payload, HAFTI_PAYLOAD_SIZE(name));                       \
    }                                                                                              \
    HAFTI_INLINE void hafti_typed_set_default_##name(                                              \
        haft_result_##name (*function)(void *, haft_payload_##name *)) {                           \
        (void)haft_set_default(HAFT_ID(name), (haft_function_t *)function);                        \
    }                                                                                              \
    _Pragma("GCC diagnostic pop") HAFTI_EXTERN_C_END HAFTI_STATIC_ASSERT(                          \
        HAFTI_COPYABLE(hafti_value_##name) && HAFTI_COPYABLE(haft_payload_##name),                 \
        "payload and result of the effect " #name " are copied as bytes")

/* The empty last argument of these is what lets effects without fields be performed; it ends up as
   the trailing comma of an initialiser. */
#define HAFTI_PERFORM(name, ...) (hafti_typed_perform_##name(HAFTI_MAKE_PAYLOAD(name, __VA_ARGS__)))
#define HAFTI_YIELD(fiber, name, ...)                                                              \
    (hafti_typed_yield_##name(fiber, HAFTI_MAKE_PAYLOAD(name, __VA_ARGS__)))
#define HAFTI_THROW(name, ...) (hafti_typed_throw_##name(HAFTI_MAKE_PAYLOAD(name, __VA_ARGS__)))
#define HAFTI_EXIT(fiber, name, ...)                                                               \
    (hafti_typed_exit_##name(fiber, HAFTI_MAKE_PAYLOAD(name, __VA_ARGS__)))

#define HAFTI_SET_DEFAULT(name, function) (hafti_typed_set_default_##name(function))

#define HAFTI_HANDLES(...)                                                                         \
    (__extension__({                                                                               \
        static const haft_clause_t haft_clauses_[] = {HAFTI_FOR_EACH(                              \
            HAFTI_HANDLES_ENTRY, __VA_ARGS__){(haft_effect_t *)0, (haft_function_t *)0, 0, 0}};    \
        static haft_handles_t haft_handles_ = {sizeof haft_clauses_ / sizeof haft_clauses_[0] - 1, \
                                               0, HAFTI_SET_UNNUMBERED, haft_clauses_};            \
        (const haft_handles_t *)&haft_handles_;                                                    \
    }))
#define HAFTI_HANDLES_ENTRY(name)                                                                  \
    {HAFT_ID(name), (haft_function_t *)0, HAFT_CLAUSE_REQUEST, HAFTI_SHAPE_OF(name)},

/* A match is a loop of one turn around blocks, each of which is a loop of one turn, too. */
enum hafti_match_stage {
    HAFTI_MATCH_OPEN,  /* no block has taken the request */
    HAFTI_MATCH_TAKEN, /* the block runs */
    HAFTI_MATCH_LEFT,  /* the block has ended */
    HAFTI_MATCH_ENDED
};
typedef struct hafti_match {
    haft_request_t request;
    enum hafti_match_stage stage;
} hafti_match_t;
HAFTI_INLINE void hafti_match_end(hafti_match_t *match) {
    if (HAFTI_UNLIKELY(match->stage == HAFTI_MATCH_OPEN))
        hafti_no_case(match->request.effect);
    match->stage = HAFTI_MATCH_ENDED;
}
/* The request, for the block that takes it. */
HAFTI_INLINE haft_request_t hafti_match_take(hafti_match_t *match) {
    match->stage = HAFTI_MATCH_TAKEN;
    return match->request;
}
#define HAFTI_MATCH(request)                                                                       \
    for (hafti_match_t haft_match_ = {(request), HAFTI_MATCH_OPEN};                                \
         haft_match_.stage != HAFTI_MATCH_ENDED; hafti_match_end(&haft_match_))
#define HAFTI_MATCH_BLOCK(condition, declaration, variable)                                        \
    if (haft_match_.stage == HAFTI_MATCH_OPEN && (condition))                                      \
        for (declaration; haft_match_.stage == HAFTI_MATCH_TAKEN && ((void)variable, 1);           \
             haft_match_.stage = HAFTI_MATCH_LEFT)
#define HAFTI_CASE(name, variable)                                                                 \
    HAFTI_MATCH_BLOCK(haft_match_.request.effect == HAFT_ID(name),                                 \
                      haft_payload_##name *variable =                                              \
                          (haft_payload_##name *)hafti_match_take(&haft_match_).payload,           \
                      variable)
#define HAFTI_RETURN(variable)                                                                     \
    HAFTI_MATCH_BLOCK(haft_match_.request.effect == HAFT_ID(return ),                              \
                      void *variable =                                                             \
                          ((haft_payload_return *)hafti_match_take(&haft_match_).payload)->result, \
                      variable)
#define HAFTI_OTHERWISE(variable)                                                                  \
    HAFTI_MATCH_BLOCK(true, haft_request_t variable = hafti_match_take(&haft_match_), variable)

#define HAFTI_TAIL(effect, function)                                                               \
    HAFTI_CLAUSE_ENTRY(effect, function, HAFT_CLAUSE_TAIL,                                         \
                       haft_result_##effect (*)(void *, haft_payload_##effect *))
#define HAFTI_GENERAL(effect, function)                                                            \
    HAFTI_CLAUSE_ENTRY(effect, function, HAFT_CLAUSE_GENERAL,                                      \
                       haft_answer_t (*)(void *, haft_payload_##effect *, haft_resumption_t))
#define HAFTI_NEVER(effect, function)                                                              \
    HAFTI_CLAUSE_ENTRY(effect, function, HAFT_CLAUSE_NEVER,                                        \
                       void *(*)(void *, haft_payload_##effect *))
#define HAFTI_CLAUSE_ENTRY(effect, function, kind, ...)                                            \
    {                                                                                              \
        HAFT_ID(effect), HAFTI_TYPED_FUNCTION(effect, function, __VA_ARGS__),                      \
            HAFTI_TYPED_KIND(effect, function, kind, __VA_ARGS__), HAFTI_SHAPE_OF(effect)          \
    }

#define HAFTI_HANDLER(name, on_return, ...)                                                        \
    static const haft_clause_t name##_clauses_[] = {__VA_ARGS__};                                  \
    static const haft_handler_t name = {                                                           \
        {sizeof name##_clauses_ / sizeof name##_clauses_[0], 0, HAFTI_SET_FIXED, name##_clauses_}, \
        on_return,                                                                                 \
        #name}

#endif
