/* SPDX-License-Identifier: MIT */
/* The floor of fibers: making, resetting and freeing them. */
#ifndef HAFT_FIBER_H
#define HAFT_FIBER_H

#include "resuming.h"

/* Makes the fiber run `function(argument)` from the top of its empty stack. */
HAFTI_INLINE void haft_wind_up(haft_fiber_t *fiber, void *(*function)(void *), void *argument) {
    fiber->context = (hafti_context_t){
        .fp = &fiber->resumer, .pc = (void *)(uintptr_t)haft_fiber_start, .sp = fiber->high};
#ifdef __x86_64__
    uint16_t control;
    __asm__("fnstcw %0" : "=m"(control));
    fiber->context.control = control;
#else
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    fiber->context.control = (uint32_t)control;
#endif
    fiber->function = function;
    fiber->argument = argument;
    fiber->result = NULL;
    fiber->awaits = HAFTI_AWAITS_NOTHING;
    fiber->state = HAFT_FIBER_NEW;
    fiber->scope.handles = NULL;
    fiber->set = HAFTI_SET_NONE;
    fiber->scope.outer = NULL;
    fiber->top = &fiber->scope;
    fiber->within = NULL;
    bool ordinary = fiber->kind == HAFT_KIND_POOL && !haft_resume_slowly;
    __atomic_store_n(&fiber->context.gate, ordinary ? HAFTI_GATE_NEW : HAFTI_GATE_SLOW,
                     __ATOMIC_RELEASE);
}

/* Fills the fields that fibers of all kinds have when they are made; `kind` is set before. */
HAFTI_INLINE void haft_furnish(haft_fiber_t *fiber, const char *name) {
    fiber->scope.kind = HAFTI_SCOPE_FIBER;
    fiber->scope.slow = 0;
    fiber->scope.state = NULL;
    fiber->name = name;
    fiber->thrown = NULL;
    fiber->handler = NULL;
    fiber->tools = NULL;
    fiber->language = NULL;
    fiber->cleanups = 1;
    fiber->checked = fiber->kind == HAFT_KIND_FIXED || fiber->kind == HAFT_KIND_UNGUARDED;
    size_t room = (size_t)((char *)fiber - fiber->low);
    fiber->resumer.room =
        room < HAFTI_ROOM_MOST ? (uint32_t)room & HAFTI_ROOM_MOST : HAFTI_ROOM_MOST;
    fiber->resumer.room |= fiber->checked ? HAFTI_ROOM_LOOK : 0;
}

#endif
