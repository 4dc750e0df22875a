/* SPDX-License-Identifier: MIT */
/* Replies: whether one is what a fiber waits for, and the messages when it is not. */
#include "resuming.h"

static HAFTI_COLD __attribute__((noreturn)) void
wrong_reply(const haft_fiber_t *fiber, uintptr_t awaits_, haft_reply_t given) {
    const haft_effect_t *awaits = hafti_effect_in(awaits_), *reply = hafti_effect_in(given.to);
    if (awaits == NULL)
        haft_fail(
            HAFT_ERROR_WRONG_TYPE, reply, fiber,
            "%s was resumed with a reply to the effect '%s' (%s), but it has not started. Give "
            "it HAFT_NO_REPLY.",
            haft_fiber_label(fiber), reply->name, reply->where);
    if (reply == NULL)
        hafti_no_reply(awaits);
    haft_fail(
        HAFT_ERROR_WRONG_TYPE, awaits, fiber,
        "%s waits for a reply to the effect '%s' (%s), and was resumed with one to '%s' (%s). "
        "Give it HAFT_REPLY(%s...).",
        haft_fiber_label(fiber), awaits->name, awaits->where, reply->name, reply->where,
        awaits->name);
}

void haft_check_reply(const haft_fiber_t *fiber, uintptr_t awaits, haft_reply_t reply) {
    if (HAFTI_UNLIKELY(!hafti_is_reply_to(awaits, reply.to)))
        wrong_reply(fiber, awaits, reply);
}

void *haft_raise(void *argument) {
    haft_raising_t raising =
        *(const haft_raising_t *)argument; /* the frame that holds it goes on if `raise` performs */
    /* Not before the fiber was claimed: until then another thread may have resumed it. */
    uintptr_t awaits = raising.fiber->awaits;
    haft_reply_t reply = raising.raise(raising.argument);
    haft_check_reply(raising.fiber, awaits, reply);
    return reply.word;
}

haft_reply_t haft_reply(const haft_effect_t *effect, const void *value, size_t size) {
    haft_check_given(effect, "haft_reply", "effect");
    if (size != effect->result_size)
        haft_fail(HAFT_ERROR_WRONG_TYPE, effect, NULL,
                  "The effect '%s' (%s) has a result of %zu bytes; the reply has %zu.",
                  effect->name, effect->where, effect->result_size, size);
    if (size == 0)
        return (haft_reply_t){haft_awaiting(effect), NULL};
    haft_check_given(value, "haft_reply", "value");
    return (haft_reply_t){haft_awaiting(effect), hafti_pack(value, size)};
}

void hafti_no_case(const haft_effect_t *effect) {
    haft_check_given(effect, "HAFT_MATCH", "request");
    bool returned = effect == HAFT_ID(return );
    haft_fail(
        HAFT_ERROR_NO_CASE, effect, NULL,
        "No case of a HAFT_MATCH takes the %s '%s' (%s). Add %s%s%s, or HAFT_OTHERWISE(request) "
        "{ } to ignore the rest.",
        returned ? "request" : "effect", effect->name, effect->where,
        returned ? "HAFT_RETURN(result" : "HAFT_CASE(", returned ? "" : effect->name,
        returned ? ") { ... }" : ", payload) { ... }");
}

void hafti_no_reply(const haft_effect_t *effect) {
    haft_fail(
        HAFT_ERROR_NO_REPLY, effect, NULL,
        "The effect '%s' (%s) has a result of %zu bytes, but its handler resumed without one. "
        "Reply with HAFT_REPLY(%s, value).",
        effect->name, effect->where, effect->result_size, effect->name);
}
