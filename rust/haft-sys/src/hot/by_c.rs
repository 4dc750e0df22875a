// SPDX-License-Identifier: MIT
//! Where there is no assembly C does all: fibers wait in C, and their words go through the room.

use super::{DISTANCE, ENDED, InPlace, Job, NOBODY, NOT_DONE, Resumed, Room, Word, room_of};
use crate::{
    haft_fiber_t, haft_rust_effect_t, haft_rust_fiber_new, haft_rust_perform, haft_rust_resume,
};
use core::ffi::c_void;
use core::mem::{MaybeUninit, transmute};
use core::ptr;

pub(super) struct Reach(());

pub(super) unsafe fn perform(_: *mut haft_rust_effect_t, word: Word) -> (Word, usize) {
    (word, NOT_DONE)
}

pub(super) unsafe fn find(_: *mut haft_rust_effect_t) -> Option<InPlace> {
    None
}

pub(super) unsafe fn handles(_: *mut haft_fiber_t, _: *mut haft_rust_effect_t) -> bool {
    false
}

pub(super) unsafe fn resume(fiber: *mut haft_fiber_t, word: Word) -> Resumed {
    let tag = NOT_DONE;
    Resumed { fiber, word, tag }
}

/// The job that ends a fiber.
pub(super) fn leave() -> Word {
    Word::new(ptr::null_mut())
}

/// The fiber, and the effect that it performs when it is idle.
type Made = (*mut haft_fiber_t, *mut haft_rust_effect_t);

pub(super) fn new_fiber(effect: *mut haft_rust_effect_t) -> *mut haft_fiber_t {
    let mut made: Made = (ptr::null_mut(), effect);
    // SAFETY: the function lets no panic out, and reads its argument in the first resume only.
    unsafe {
        made.0 = haft_rust_fiber_new(0, work, (&raw mut made).cast());
        if !made.0.is_null() {
            resume_by_c(made.0, effect, None);
        }
    }
    made.0
}

/// The function of all fibers. A fiber is idle while it performs with its room as the slot.
unsafe extern "C" fn work(argument: *mut c_void) -> *mut c_void {
    // SAFETY: `new_fiber` waits.
    let (fiber, effect) = unsafe { argument.cast::<Made>().read() };
    let mut around = MaybeUninit::<[u128; DISTANCE / size_of::<u128>()]>::uninit();
    let room = room_of(fiber);
    let frame = (&raw mut around).addr()..(&raw mut around).addr() + DISTANCE;
    assert!(frame.contains(&room.addr()) && room.addr() + size_of::<Room>() <= frame.end);
    // SAFETY: the room lies in this frame. Whoever resumes the fiber has left an effect in it that it
    // handles, and a job or null.
    unsafe {
        (*room).owner = NOBODY;
        (*room).tag = ENDED;
        (*room).effect = effect;
        loop {
            haft_rust_perform((*room).effect, room.cast());
            let Some(job) = transmute::<Word, Option<Job>>((*room).word) else {
                return ptr::null_mut();
            };
            let outcome = job(fiber);
            ((*room).word, (*room).tag) = (outcome.word, outcome.tag);
        }
    }
}

pub(super) unsafe fn resume_by_c(
    fiber: *mut haft_fiber_t,
    effect: *mut haft_rust_effect_t,
    words: Option<(Word, usize)>,
) -> Resumed {
    // SAFETY: as the caller says. Only an idle fiber is given a word: none is suspended here.
    unsafe {
        let room = room_of(fiber);
        if let Some((word, _)) = words {
            (*room).word = word;
            (*room).effect = effect;
        }
        let request = haft_rust_resume(fiber, effect);
        if request.payload == room.cast() {
            let (word, tag) = ((*room).word, (*room).tag);
            return Resumed { fiber, word, tag };
        }
        Resumed {
            fiber,
            word: Word::new(request.payload),
            tag: request.effect.addr(),
        }
    }
}
