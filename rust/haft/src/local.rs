// SPDX-License-Identifier: MIT
//! Task-local values.
//!
//! A task has a list of values, which those that it spawns share. C keeps for each task one word,
//! and copies it to the tasks that it spawns, also to those of C, which own nothing. So the word is
//! no address but a number, under which [`LISTS`] has the list as long as the task, or the call of
//! [`LocalKey::set`], goes on.

use crate::brief::Brief;
use crate::numbers::ByNumber;
use haft_sys as sys;
use std::any::Any;
use std::cell::Cell;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::Arc;
use std::{fmt, ptr};

/// Declares task-local values, as [`std::thread_local!`] those of threads: each a [`LocalKey`].
///
/// ```
/// haft::task_local! {
///     static USER: String;
/// }
///
/// haft::run(|| {
///     USER.set("ada".to_owned(), || {
///         let task = haft::spawn(|| USER.with(|user| user.len()));
///         assert_eq!(task.join().unwrap(), 3);
///     });
///     assert!(USER.get().is_none());
/// });
/// ```
#[macro_export]
macro_rules! task_local {
    ($($(#[$meta:meta])* $visibility:vis static $name:ident: $type:ty);+ $(;)?) => {
        $($(#[$meta])* $visibility static $name: $crate::LocalKey<$type> = $crate::LocalKey::new();)+
    };
}

/// The key of a task-local value, which [`task_local!`](crate::task_local!) declares.
///
/// ```
/// haft::task_local! { static DEPTH: u32; }
/// haft::run(|| {
///     DEPTH.set(1, || assert_eq!(*DEPTH.get().unwrap(), 1));
/// });
/// ```
pub struct LocalKey<T> {
    /// Makes the address of the key unique.
    _place: u8,
    value: PhantomData<fn() -> T>,
}

/// The innermost value, and those around it.
pub(crate) struct List {
    key: usize,
    value: Arc<dyn Any + Send + Sync>,
    outer: Option<Arc<List>>,
}

struct Lists {
    last: usize,
    all: Option<ByNumber<Arc<List>>>,
}
static LISTS: Brief<Lists> = Brief::new(Lists { last: 0, all: None });

static WORD: u8 = 0;
/// The word of the current task; 0: none, or this is no task.
fn own_word() -> usize {
    // SAFETY: any thread may call it, and a key is any address.
    unsafe { sys::haft_io_local_get(ptr::from_ref(&WORD).cast()) as usize }
}
thread_local! {
    /// The word of the task that blocks the thread, or 0.
    static KEPT: Cell<usize> = const { Cell::new(0) };
}
/// Sets the number of a thread that has no task to C; returns the number before.
pub(crate) fn keep_word(number: usize) -> usize {
    KEPT.replace(number)
}
pub(crate) fn word() -> usize {
    match own_word() {
        0 => KEPT.get(),
        number => number,
    }
}
fn set_word(number: usize) -> bool {
    // SAFETY: as above; nobody reads through the number.
    unsafe { sys::haft_io_local_set(ptr::from_ref(&WORD).cast(), number as *mut c_void) == 0 }
}

/// The list of the current task.
pub(crate) fn current() -> Option<Arc<List>> {
    match word() {
        0 => None,
        number => LISTS.with(|lists| lists.all.as_ref()?.get(&number).cloned()),
    }
}

/// A guard: the current task has the list until this is dropped.
pub(crate) struct Entered {
    number: usize,
    before: usize,
}
impl Entered {
    pub(crate) fn new(list: Arc<List>) -> Self {
        let number = LISTS.with(|lists| {
            lists.last += 1;
            lists.all.get_or_insert_default().insert(lists.last, list);
            lists.last
        });
        let entered = Entered {
            number,
            before: word(),
        };
        assert!(set_word(number), "no memory for a task-local value");
        entered
    }
}
impl Drop for Entered {
    fn drop(&mut self) {
        // (A computation that was suspended here may have ended elsewhere.)
        if own_word() == self.number {
            set_word(self.before); // without memory the number stays, with no list
        }
        let list = LISTS.with(|lists| lists.all.as_mut()?.remove(&self.number));
        drop(list); // without the lock: this may drop the value
    }
}

impl<T: Send + Sync + 'static> LocalKey<T> {
    #[doc(hidden)]
    #[allow(clippy::new_without_default)] // for the macro
    #[must_use]
    pub const fn new() -> Self {
        LocalKey {
            _place: 0,
            value: PhantomData,
        }
    }

    fn address(&self) -> usize {
        ptr::from_ref(self) as usize
    }

    /// Calls the body, in which the current task has the value, and every task that it spawns
    /// there, to that task's end.
    ///
    /// # Panics
    /// Outside of a run.
    ///
    /// ```
    /// haft::task_local! { static DEPTH: u32; }
    /// haft::run(|| {
    ///     DEPTH.set(1, || {
    ///         DEPTH.set(2, || DEPTH.with(|depth| assert_eq!(*depth, 2)));
    ///         DEPTH.with(|depth| assert_eq!(*depth, 1));
    ///     });
    /// });
    /// ```
    pub fn set<R>(&'static self, value: T, body: impl FnOnce() -> R) -> R {
        // SAFETY: any thread may call it.
        let is_outside = unsafe { sys::haft_rust_self() }.is_null();
        assert!(
            !is_outside,
            "a task-local value is set outside of haft::run"
        );
        let _entered = Entered::new(Arc::new(List {
            key: self.address(),
            value: Arc::new(value),
            outer: current(),
        }));
        body()
    }

    /// Calls the function with the value of the current task.
    ///
    /// # Panics
    /// If it has none.
    ///
    /// ```
    /// haft::task_local! { static DEPTH: u32; }
    /// haft::run(|| {
    ///     assert_eq!(DEPTH.set(41, || DEPTH.with(|depth| depth + 1)), 42);
    /// });
    /// ```
    pub fn with<R>(&'static self, function: impl FnOnce(&T) -> R) -> R {
        let value = self.get().expect("the task-local value is not set");
        function(&value)
    }

    /// The value of the current task, if it has one.
    ///
    /// ```
    /// haft::task_local! { static DEPTH: u32; }
    /// haft::run(|| {
    ///     assert!(DEPTH.get().is_none());
    /// });
    /// ```
    #[must_use]
    pub fn get(&'static self) -> Option<Arc<T>> {
        let mut list = current();
        while let Some(entry) = list {
            if entry.key == self.address() {
                return Arc::clone(&entry.value).downcast().ok();
            }
            list = entry.outer.clone();
        }
        None
    }
}

impl<T> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalKey").finish_non_exhaustive()
    }
}
