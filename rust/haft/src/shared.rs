// SPDX-License-Identifier: MIT
//! Effects that a header of C declares: performed in one language and handled in the other.

use crate::effects::once_for;
use crate::wait::Call;
use haft_sys as sys;
use std::any::{TypeId, type_name};
use std::cell::RefCell;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, size_of};
use std::ptr;

/// An effect that C knows, too. [`shared_effect!`](crate::shared_effect!) makes a type one.
///
/// # Safety
/// `descriptor` returns the descriptor of an effect whose payload is laid out as this type, and
/// whose result as `Output`. No handler drops a computation that has frames of Rust, nor resumes it
/// on another thread.
///
/// ```
/// haft::shared_effect! {
///     unsafe struct Now {} = haft_id_haft_io_now -> i64;
/// }
/// fn answer<E: haft::SharedEffect>(effect: E) -> E::Output {
///     haft::perform_shared(effect)
/// }
/// assert!(answer(Now {}) > 0);
/// ```
pub unsafe trait SharedEffect: Copy + 'static {
    /// The type of a handler's answer.
    type Output: Copy + 'static;
    #[doc(hidden)]
    fn descriptor() -> *mut sys::haft_effect_t;
}

/// Names effects that headers of C declare, with the same fields. The sizes are compared with those
/// of C when an effect is used first.
///
/// ```
/// use haft::{handle_shared, perform_shared};
///
/// // HAFT_EFFECT(haft_io_now, int64_t, {}); in haft/io_effects.h
/// haft::shared_effect! {
///     /// The time of the library's clock.
///     unsafe struct Now {} = haft_id_haft_io_now -> i64;
/// }
///
/// assert!(perform_shared(Now {}) > 0); // C answers
/// assert_eq!(handle_shared(|Now {}| 42, || perform_shared(Now {})), 42);
/// ```
///
/// `unsafe` is the promise of [`SharedEffect`](crate::SharedEffect).
#[macro_export]
macro_rules! shared_effect {
    ($($(#[$meta:meta])* $visibility:vis unsafe struct $name:ident { $($field:ident: $type:ty),* $(,)? }
       = $descriptor:ident -> $result:ty);+ $(;)?) => {$(
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy)]
        $visibility struct $name { $($visibility $field: $type),* }
        // SAFETY: the author of the `unsafe` promises it.
        unsafe impl $crate::SharedEffect for $name {
            type Output = $result;
            fn descriptor() -> *mut $crate::__sys::haft_effect_t {
                unsafe extern "C" {
                    static mut $descriptor: $crate::__sys::haft_effect_t;
                }
                &raw mut $descriptor
            }
        }
    )+};
}

/// The key under which the handler for an effect of C is kept; a type may also be an effect of
/// Rust.
struct Shared<E>(PhantomData<E>);

fn make<E: SharedEffect>() -> *mut c_void {
    let clause: unsafe extern "C" fn(*mut c_void, *mut E) -> E::Output = in_place::<E>;
    // SAFETY: the descriptor is valid, and the clause has the type that C calls it with, once the
    // sizes are right.
    let made = unsafe {
        sys::haft_rust_shared_new(
            E::descriptor(),
            clause as *const c_void,
            size_of::<E>(),
            size_of::<E::Output>(),
        )
    };
    assert!(
        !made.is_null(),
        "the effect {} is not of these sizes in C, or there is no memory",
        type_name::<E>()
    );
    made.cast()
}

fn handler<E: SharedEffect>() -> *const sys::haft_rust_shared_t {
    once_for(TypeId::of::<Shared<E>>(), make::<E>).cast()
}

struct State<'a, E: SharedEffect> {
    clause: RefCell<&'a mut dyn FnMut(E) -> E::Output>,
}

/// A panic of the clause ends the process here, as C calls this.
unsafe extern "C" fn in_place<E: SharedEffect>(state: *mut c_void, payload: *mut E) -> E::Output {
    // SAFETY: the state is that of `handle_shared`, whose frame is around the performer's; the
    // payload is the performer's, which waits.
    let (state, effect) = unsafe { (&*state.cast::<State<'_, E>>(), *payload) };
    // (The clause is outside of its handler, so it does not come here from inside.)
    (state.clause.borrow_mut())(effect)
}

/// Performs an effect of C: returns the answer of its innermost handler, in C or in Rust; without
/// one the default of C answers, or reports the mistake.
///
/// # Panics
/// If the effect has other sizes in C.
///
/// ```
/// haft::shared_effect! {
///     unsafe struct Now {} = haft_id_haft_io_now -> i64;
/// }
/// assert!(haft::perform_shared(Now {}) > 0); // C's default answers
/// ```
pub fn perform_shared<E: SharedEffect>(mut effect: E) -> E::Output {
    handler::<E>(); // which has compared the sizes
    let mut answer = MaybeUninit::<E::Output>::uninit();
    // SAFETY: the payload and the answer are of the effect's sizes. Nothing is unwound through
    // this, as the implementation of the trait promises, and when the call returns, a handler has
    // answered.
    unsafe {
        sys::haft_perform(
            E::descriptor(),
            ptr::from_mut(&mut effect).cast(),
            size_of::<E>(),
            answer.as_mut_ptr().cast(),
            size_of::<E::Output>(),
        );
        answer.assume_init()
    }
}

/// Like [`handle`](crate::handle), for an effect of C: the clause answers the effects that Rust or
/// C performs in the body, at once, on the performer's stack. A panic of the clause ends the
/// process.
///
/// # Panics
/// If the body panics, or the effect has other sizes in C.
///
/// ```
/// haft::shared_effect! {
///     unsafe struct Now {} = haft_id_haft_io_now -> i64;
/// }
/// let time = haft::handle_shared(|Now {}| 42, || haft::perform_shared(Now {}));
/// assert_eq!(time, 42);
/// ```
pub fn handle_shared<E: SharedEffect, R>(
    mut clause: impl FnMut(E) -> E::Output,
    body: impl FnOnce() -> R,
) -> R {
    let state: State<'_, E> = State {
        clause: RefCell::new(&mut clause),
    };
    let mut body = Call::new(body);
    let (function, argument) = (body.body(), body.argument());
    // SAFETY: the state and the body live in this frame until the call returns; the handler's
    // clause knows the state's type. The body lets no panic out.
    unsafe {
        let state = ptr::from_ref(&state).cast_mut().cast();
        sys::haft_rust_shared_handle(handler::<E>(), state, function, argument);
    }
    body.result()
}
