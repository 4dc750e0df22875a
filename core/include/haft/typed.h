/* SPDX-License-Identifier: MIT */
/* What the macros of haft.h expand to: the functions and types that HAFT_EFFECT generates. */
#ifndef HAFT_TYPED_H
#define HAFT_TYPED_H

#ifdef __cplusplus
HAFT_EXTERN_C_END

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
        return {HAFT_AWAITING(effect, is_void ? 0 : sizeof value), haft_pack(&value, sizeof value)};
    }
};
} // namespace haft::detail

HAFT_EXTERN_C_BEGIN

#    define HAFT_STATIC_ASSERT static_assert
#    define HAFT_COPYABLE(type) __is_trivially_copyable(type)
#    define HAFT_VALUE_TYPE(result) ::haft::detail::value<result>::type
#    define HAFT_RESULT_SIZE(result) (::haft::detail::value_size<result>)
#    define HAFT_PAYLOAD_SIZE(name) (::haft::detail::payload_size<haft_payload_##name>)
#    define HAFT_MAKE_PAYLOAD(name, ...) (haft_payload_##name{__VA_ARGS__})
#    define HAFT_CALL_TAIL(result, value, call) value = (call, ::haft::detail::nothing{})
#    define HAFT_GIVE(result, value) return static_cast<result>(value)
#    define HAFT_TYPED_FUNCTION(effect, function, ...)                                             \
        ((haft_function_t *)static_cast<__VA_ARGS__>(function))
#    define HAFT_TYPED_KIND(effect, function, kind, ...) kind
#    define HAFT_REPLY_(name, ...)                                                                 \
        (::haft::detail::reply<haft_value_##name, HAFT_IS_VOID(name), sizeof(#__VA_ARGS__) == 1>{  \
            __VA_ARGS__}                                                                           \
             .to(HAFT_ID(name)))
#    define HAFT_NO_REPLY_ (haft_reply_t{0, nullptr})
#    define HAFT_IS_VOID(name) (HAFT_RESULT_SIZE(haft_result_##name) == 0)
#else
#    define HAFT_STATIC_ASSERT _Static_assert
#    define HAFT_COPYABLE(type) 1
#    define HAFT_IS_VOID_TYPE(result) __builtin_types_compatible_p(result, void)
#    define HAFT_IS_VOID(name) HAFT_IS_VOID_TYPE(haft_result_##name)
#    define HAFT_VALUE_TYPE(result)                                                                \
        __typeof__(*__builtin_choose_expr(HAFT_IS_VOID_TYPE(result), (char *)0, (result *)0))
#    define HAFT_RESULT_SIZE(result)                                                               \
        (HAFT_IS_VOID_TYPE(result) ? 0 : sizeof(HAFT_VALUE_TYPE(result)))
#    define HAFT_PAYLOAD_SIZE(name) sizeof(haft_payload_##name)
#    define HAFT_MAKE_PAYLOAD(name, ...) (__extension__(haft_payload_##name){__VA_ARGS__})
/* For an effect without a result the value is one byte, set to zero. */
#    define HAFT_CALL_TAIL(result, value, call)                                                    \
        value = __builtin_choose_expr(HAFT_IS_VOID_TYPE(result), ((void)(call), (char)0), call)
#    define HAFT_GIVE(result, value)                                                               \
        return __builtin_choose_expr(HAFT_IS_VOID_TYPE(result), (void)0, value)
#    define HAFT_TYPED_FUNCTION(effect, function, ...) ((haft_function_t *)(function))
/* The kind, in an expression that does not compile when the clause has another type. */
#    define HAFT_TYPED_KIND(effect, function, kind, ...)                                           \
        (kind) +                                                                                   \
            0 * sizeof(struct {                                                                    \
                _Static_assert(__builtin_types_compatible_p(__typeof__(&function), __VA_ARGS__),   \
                               "the clause " #function                                             \
                               " does not have the type for effect " #effect ": " #__VA_ARGS__);   \
                int unused;                                                                        \
            })
#    define HAFT_REPLY_(name, ...)                                                                 \
        haft_reply_to(HAFT_AWAITING(HAFT_ID(name), HAFT_RESULT_SIZE(haft_result_##name)),          \
                      haft_pack((__extension__(haft_value_##name[1]){__VA_ARGS__}),                \
                                sizeof(haft_value_##name) +                                        \
                                    0 * sizeof(struct {                                            \
                                        _Static_assert(                                            \
                                            HAFT_IS_VOID(name) == (sizeof(#__VA_ARGS__) == 1),     \
                                            "HAFT_REPLY(" #name                                    \
                                            ") takes a value exactly if the effect has a "         \
                                            "result");                                             \
                                        int unused;                                                \
                                    })))
#    define HAFT_NO_REPLY_ haft_reply_to(0, (void *)0)
/* A function: a compound literal of a structure would be a variable of the caller's, of which gcc warns in
   functions that call setjmp. */
HAFT_INLINE haft_reply_t haft_reply_to(uintptr_t to, void *word) {
    haft_reply_t reply = {to, word};
    return reply;
}
#endif

/* Every translation unit compares its declaration of an effect with the one that the process goes by. */
#ifdef HAFT_FREESTANDING
#    define HAFT_ON_LOAD(function) __attribute__((unused)) function
#else
#    define HAFT_ON_LOAD(function) __attribute__((constructor)) function
#endif

#ifdef NDEBUG
#    define HAFT_SPOILS 0
#    define HAFT_SPOIL(payload) ((void)0)
#else
/* A handler that reads the payload after it has resumed the fiber finds this pattern; the compiler is
   made to believe that somebody does. After a free the library writes it. */
#    define HAFT_SPOILS 1
#    define HAFT_SPOIL(payload)                                                                    \
        (__builtin_memset((void *)&payload, 0xdb, sizeof payload), haft_seen(&payload))
HAFT_INLINE void haft_seen(const void *memory) {
    __asm__ volatile("" : : "r"(memory) : "memory");
}
#endif

#define HAFT_SHAPE_OF(name)                                                                        \
    HAFT_SHAPE(HAFT_PAYLOAD_SIZE(name), HAFT_RESULT_SIZE(haft_result_##name))

/* What is right in C and is warned of in C++, or where C++ includes it. */
#ifdef __clang__
#    define HAFT_QUIETLY_MORE _Pragma("GCC diagnostic ignored \"-Wextern-c-compat\"")
#else
#    define HAFT_QUIETLY_MORE
#endif
#ifdef __cplusplus
#    define HAFT_QUIETLY                                                                           \
        _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wpedantic\"")            \
            _Pragma("GCC diagnostic ignored \"-Wold-style-cast\"") HAFT_QUIETLY_MORE
#else
#    define HAFT_QUIETLY                                                                           \
        _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wpedantic\"")            \
            HAFT_QUIETLY_MORE
#endif
#define HAFT_EFFECT_(name, result, ...)                                                            \
    HAFT_QUIETLY __extension__ typedef struct haft_payload_##name __VA_ARGS__ haft_payload_##name; \
    HAFT_EXTERN_C_BEGIN                                                                            \
    typedef result haft_result_##name;                                                             \
    typedef HAFT_VALUE_TYPE(result) haft_value_##name;                                             \
    enum { haft_slot_##name = __LINE__ % HAFT_CACHE_SLOTS };                                       \
    extern haft_effect_t haft_id_##name;                                                           \
    static __attribute__((unused))                                                                 \
    haft_result_##name haft_typed_unhandled_##name(void *state, haft_payload_##name *payload) {    \
        (void)state, (void)payload;                                                                \
        haft_unhandled(HAFT_ID(name));                                                             \
    }                                                                                              \
    static __attribute__((unused)) void haft_typed_call_##name(                                    \
        haft_function_t *function, void *state, void *payload, void *result_) {                    \
        haft_value_##name *value = (haft_value_##name *)result_;                                   \
        HAFT_CALL_TAIL(result, *value,                                                             \
                       ((haft_result_##name(*)(void *, haft_payload_##name *))function)(           \
                           state, (haft_payload_##name *)payload));                                \
    }                                                                                              \
    __attribute__((weak, visibility("default"))) haft_effect_t haft_id_##name = {                  \
        #name,                                                                                     \
        __FILE__ ":" HAFT_TEXT(__LINE__),                                                          \
        HAFT_PAYLOAD_SIZE(name),                                                                   \
        HAFT_RESULT_SIZE(result),                                                                  \
        haft_typed_call_##name,                                                                    \
        (haft_function_t *)haft_typed_unhandled_##name,                                            \
        {&haft_id_##name, (haft_function_t *)haft_typed_unhandled_##name, HAFT_CLAUSE_TAIL,        \
         HAFT_SHAPE_OF(name)},                                                                     \
        0,                                                                                         \
        HAFT_SPOILS};                                                                              \
    HAFT_ON_LOAD(static void haft_typed_declare_##name(void)) {                                    \
        haft_declare(HAFT_ID(name), HAFT_SHAPE_OF(name), __FILE__ ":" HAFT_TEXT(__LINE__));        \
    }                                                                                              \
    HAFT_INLINE haft_result_##name haft_typed_perform_##name(haft_payload_##name payload) {        \
        haft_value_##name value;                                                                   \
        haft_here_t here = haft_here();                                                            \
        haft_found_t found =                                                                       \
            haft_find(here, HAFT_ID(name), haft_slot_##name, HAFT_SHAPE_OF(name));                 \
        const haft_clause_t *clause = haft_clause_in_place(found);                                 \
        if (clause != (const haft_clause_t *)0) {                                                  \
            haft_result_##name (*function)(void *, haft_payload_##name *) =                        \
                (haft_result_##name(*)(void *, haft_payload_##name *))haft_clause_function(        \
                    clause);                                                                       \
            void *state = found.scope->state;                                                      \
            __attribute__((unused, cleanup(haft_in_place_end))) haft_in_place_t in_place =         \
                haft_in_place_begin(here, found.scope);                                            \
            HAFT_CALL_TAIL(result, value, function(state, &payload));                              \
        } else {                                                                                   \
            void *word = haft_perform_found(here, found, HAFT_ID(name), &payload,                  \
                                            HAFT_RESULT_SIZE(result));                             \
            haft_unpack(HAFT_ID(name), word, &value, HAFT_RESULT_SIZE(result));                    \
        }                                                                                          \
        HAFT_SPOIL(payload);                                                                       \
        HAFT_GIVE(result, value);                                                                  \
    }                                                                                              \
    HAFT_INLINE haft_result_##name haft_typed_yield_##name(haft_fiber_t *fiber,                    \
                                                           haft_payload_##name payload) {          \
        haft_value_##name value;                                                                   \
        void *word = haft_yield_hot(fiber, HAFT_ID(name), haft_slot_##name, &payload,              \
                                    HAFT_RESULT_SIZE(result));                                     \
        haft_unpack(HAFT_ID(name), word, &value, HAFT_RESULT_SIZE(result));                        \
        HAFT_SPOIL(payload);                                                                       \
        HAFT_GIVE(result, value);                                                                  \
    }                                                                                              \
    HAFT_INLINE                                                                                    \
    __attribute__((noreturn)) void haft_typed_throw_##name(haft_payload_##name payload) {          \
        haft_throw(HAFT_ID(name), &payload, HAFT_PAYLOAD_SIZE(name));                              \
    }                                                                                              \
    HAFT_INLINE __attribute__((noreturn)) void haft_typed_exit_##name(                             \
        haft_fiber_t *fiber, haft_payload_##name payload) {                                        \
        haft_exit(fiber, HAFT_ID(name), &payload, HAFT_PAYLOAD_SIZE(name));                        \
    }                                                                                              \
    HAFT_INLINE void haft_typed_set_default_##name(                                                \
        haft_result_##name (*function)(void *, haft_payload_##name *)) {                           \
        (void)haft_set_default(HAFT_ID(name), (haft_function_t *)function);                        \
    }                                                                                              \
    _Pragma("GCC diagnostic pop") HAFT_EXTERN_C_END HAFT_STATIC_ASSERT(                            \
        HAFT_COPYABLE(haft_value_##name) && HAFT_COPYABLE(haft_payload_##name),                    \
        "payload and result of the effect " #name " are copied as bytes")

/* The empty last argument of these is what lets effects without fields be performed; it ends up as
   the trailing comma of an initialiser. */
#define HAFT_PERFORM_(name, ...) (haft_typed_perform_##name(HAFT_MAKE_PAYLOAD(name, __VA_ARGS__)))
#define HAFT_YIELD_(fiber, name, ...)                                                              \
    (haft_typed_yield_##name(fiber, HAFT_MAKE_PAYLOAD(name, __VA_ARGS__)))
#define HAFT_THROW_(name, ...) (haft_typed_throw_##name(HAFT_MAKE_PAYLOAD(name, __VA_ARGS__)))
#define HAFT_EXIT_(fiber, name, ...)                                                               \
    (haft_typed_exit_##name(fiber, HAFT_MAKE_PAYLOAD(name, __VA_ARGS__)))

#define HAFT_SET_DEFAULT_(name, function) (haft_typed_set_default_##name(function))

#define HAFT_HANDLES_(...)                                                                         \
    (__extension__({                                                                               \
        static const haft_clause_t haft_clauses_[] = {HAFT_FOR_EACH(                               \
            HAFT_HANDLES_ENTRY, __VA_ARGS__){(haft_effect_t *)0, (haft_function_t *)0, 0, 0}};     \
        static haft_handles_t haft_handles_ = {sizeof haft_clauses_ / sizeof haft_clauses_[0] - 1, \
                                               0, HAFT_SET_UNNUMBERED, haft_clauses_};             \
        (const haft_handles_t *)&haft_handles_;                                                    \
    }))
#define HAFT_HANDLES_ENTRY(name)                                                                   \
    {HAFT_ID(name), (haft_function_t *)0, HAFT_CLAUSE_REQUEST, HAFT_SHAPE_OF(name)},

/* A match is a loop of one turn around blocks, each of which is a loop of one turn, too. */
enum haft_match_stage { HAFT_MATCH_OPEN, HAFT_MATCH_TAKEN, HAFT_MATCH_LEFT };
typedef struct haft_match {
    haft_request_t request;
    enum haft_match_stage stage; /* open: no block has taken the request */
    bool ended;
} haft_match_t;
HAFT_INLINE void haft_match_end(haft_match_t *match) {
    if (HAFT_UNLIKELY(match->stage == HAFT_MATCH_OPEN))
        haft_no_case(match->request.effect);
    match->ended = true;
}
/* The request, for the block that takes it. */
HAFT_INLINE haft_request_t haft_match_take(haft_match_t *match) {
    match->stage = HAFT_MATCH_TAKEN;
    return match->request;
}
#define HAFT_MATCH_(request)                                                                       \
    for (haft_match_t haft_match_ = {(request), HAFT_MATCH_OPEN, false}; !haft_match_.ended;       \
         haft_match_end(&haft_match_))
#define HAFT_MATCH_BLOCK(condition, declaration, variable)                                         \
    if (haft_match_.stage == HAFT_MATCH_OPEN && (condition))                                       \
        for (declaration; haft_match_.stage == HAFT_MATCH_TAKEN && ((void)variable, 1);            \
             haft_match_.stage = HAFT_MATCH_LEFT)
#define HAFT_CASE_(name, variable)                                                                 \
    HAFT_MATCH_BLOCK(haft_match_.request.effect == HAFT_ID(name),                                  \
                     haft_payload_##name *variable =                                               \
                         (haft_payload_##name *)haft_match_take(&haft_match_).payload,             \
                     variable)
#define HAFT_RETURN_(variable)                                                                     \
    HAFT_MATCH_BLOCK(haft_match_.request.effect == HAFT_ID(return ),                               \
                     void *variable =                                                              \
                         ((haft_payload_return *)haft_match_take(&haft_match_).payload)->result,   \
                     variable)
#define HAFT_OTHERWISE_(variable)                                                                  \
    HAFT_MATCH_BLOCK(true, haft_request_t variable = haft_match_take(&haft_match_), variable)

#define HAFT_TAIL_(effect, function)                                                               \
    HAFT_CLAUSE_ENTRY(effect, function, HAFT_CLAUSE_TAIL,                                          \
                      haft_result_##effect (*)(void *, haft_payload_##effect *))
#define HAFT_GENERAL_(effect, function)                                                            \
    HAFT_CLAUSE_ENTRY(effect, function, HAFT_CLAUSE_GENERAL,                                       \
                      haft_answer_t (*)(void *, haft_payload_##effect *, haft_resumption_t))
#define HAFT_NEVER_(effect, function)                                                              \
    HAFT_CLAUSE_ENTRY(effect, function, HAFT_CLAUSE_NEVER,                                         \
                      void *(*)(void *, haft_payload_##effect *))
#define HAFT_CLAUSE_ENTRY(effect, function, kind, ...)                                             \
    {                                                                                              \
        HAFT_ID(effect), HAFT_TYPED_FUNCTION(effect, function, __VA_ARGS__),                       \
            HAFT_TYPED_KIND(effect, function, kind, __VA_ARGS__), HAFT_SHAPE_OF(effect)            \
    }

#define HAFT_HANDLER_(name, on_return, ...)                                                        \
    static const haft_clause_t name##_clauses_[] = {__VA_ARGS__};                                  \
    static const haft_handler_t name = {                                                           \
        {sizeof name##_clauses_ / sizeof name##_clauses_[0], 0, HAFT_SET_FIXED, name##_clauses_},  \
        on_return,                                                                                 \
        #name}

#endif
