// SPDX-License-Identifier: MIT
//! Spans of the crate `tracing`, carried by tasks (feature `tracing`).
//!
//! Subscribers keep the spans that have been entered for each thread. Where several tasks take
//! turns on a thread, a span that one of them has entered would be around the work of the others
//! while it waits. [`PerTask`] stands before a subscriber and keeps them for each task, so code
//! that was written for threads, `#[instrument]`, `Span::enter`, works on tasks as it is.
//!
//! ```
//! use haft::tracing::PerTask;
//! # struct Printer;
//! # impl tracing_core::Subscriber for Printer {
//! #     fn enabled(&self, _: &tracing_core::Metadata<'_>) -> bool { true }
//! #     fn new_span(&self, _: &tracing_core::span::Attributes<'_>) -> tracing_core::span::Id {
//! #         tracing_core::span::Id::from_u64(1)
//! #     }
//! #     fn record(&self, _: &tracing_core::span::Id, _: &tracing_core::span::Record<'_>) {}
//! #     fn record_follows_from(&self, _: &tracing_core::span::Id, _: &tracing_core::span::Id) {}
//! #     fn event(&self, _: &tracing_core::Event<'_>) {}
//! #     fn enter(&self, _: &tracing_core::span::Id) {}
//! #     fn exit(&self, _: &tracing_core::span::Id) {}
//! # }
//! # let subscriber = Printer; // in place of:
//! // let subscriber = tracing_subscriber::fmt().finish();
//! tracing_core::dispatcher::set_global_default(PerTask::new(subscriber).into()).unwrap();
//! ```
//!
//! A task begins without spans, as a thread does. To have one that it is spawned in, it takes the
//! span along:
//!
//! ```ignore
//! let span = tracing::Span::current();
//! haft::spawn(move || span.in_scope(work));
//! ```

use crate::blocking::this_task;
use crate::numbers::ByNumber;
use std::any::TypeId;
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use tracing_core::span::{Attributes, Current, Id, Record};
use tracing_core::subscriber::Interest;
use tracing_core::{Dispatch, Event, LevelFilter, Metadata, Subscriber};

/// A subscriber whose spans are entered by tasks, not by threads.
///
/// The subscriber behind it learns that a task has left its spans only when another task of the
/// thread has something to record, not when the first begins to wait: so the times in spans that it
/// measures include waits. It is to be the default of the process, as by `init` of
/// `tracing-subscriber`, whose registry does not count the spans of a default that a thread has for
/// a time (`with_default`) where they change hands within an event.
///
/// ```
/// use tracing_core::subscriber::NoSubscriber;
///
/// let dispatch = tracing_core::Dispatch::new(haft::tracing::PerTask::new(NoSubscriber::new()));
/// assert!(dispatch.is::<haft::tracing::PerTask<NoSubscriber>>());
/// ```
#[derive(Debug)]
pub struct PerTask<S> {
    subscriber: S,
    /// The number of this subscriber, different for each.
    number: usize,
}

/// The spans of one thread and one subscriber.
#[derive(Default)]
struct Spans {
    /// The task, by its address, whose spans the subscriber behind takes for the thread's; 0: none.
    shown: usize,
    entered: ByNumber<Vec<Id>>,
}

thread_local! {
    /// The spans by the number of the subscriber. Tasks stay on their thread.
    static SPANS: RefCell<ByNumber<Spans>> = RefCell::default();
}

/// Changes the spans; not to be used while the subscriber is called, which may come back here.
/// None: the thread ends.
fn with_spans<T>(number: usize, change: impl FnOnce(&mut Spans) -> T) -> Option<T> {
    let changed = SPANS.try_with(|all| change(all.borrow_mut().entry(number).or_default()));
    changed.ok()
}

/// Stands for the address of a task that has ended: no address is odd.
const ENDED: usize = 1;

/// Forgets a task that has ended: another may get its address. (A guard that was forgotten has left
/// its span.)
pub(crate) fn forget_task() {
    let task = this_task().addr();
    let _ = SPANS.try_with(|all| {
        for spans in all.borrow_mut().values_mut() {
            let left = spans.entered.remove(&task);
            if spans.shown == task {
                spans.shown = ENDED;
                spans.entered.insert(ENDED, left.unwrap_or_default());
            }
        }
    });
}

impl<S: Subscriber> PerTask<S> {
    /// Puts this in front of the subscriber.
    ///
    /// ```
    /// let before_nothing = haft::tracing::PerTask::new(tracing_core::subscriber::NoSubscriber::new());
    /// tracing_core::dispatcher::with_default(&before_nothing.into(), || ());
    /// ```
    pub fn new(subscriber: S) -> Self {
        static LAST: AtomicUsize = AtomicUsize::new(0);
        PerTask {
            subscriber,
            number: LAST.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Returns the subscriber, after making the spans of the current task those of the thread.
    fn here(&self) -> &S {
        let task = this_task().addr();
        let change = with_spans(self.number, |spans| {
            let before = spans.shown;
            if before == task {
                return None;
            }
            spans.shown = task;
            let of = |task| spans.entered.get(&task).cloned().unwrap_or_default();
            Some((of(before), of(task)))
        });
        if let Some(Some((before, now))) = change {
            before
                .iter()
                .rev()
                .for_each(|span| self.subscriber.exit(span));
            now.iter().for_each(|span| self.subscriber.enter(span));
        }
        &self.subscriber
    }
}

impl<S: Subscriber> Subscriber for PerTask<S> {
    fn on_register_dispatch(&self, subscriber: &Dispatch) {
        self.subscriber.on_register_dispatch(subscriber);
    }
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        self.subscriber.register_callsite(metadata)
    }
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.here().enabled(metadata)
    }
    fn max_level_hint(&self) -> Option<LevelFilter> {
        self.subscriber.max_level_hint()
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.here().new_span(span)
    }
    fn record(&self, span: &Id, values: &Record<'_>) {
        self.here().record(span, values);
    }
    fn record_follows_from(&self, span: &Id, follows: &Id) {
        self.here().record_follows_from(span, follows);
    }
    fn event_enabled(&self, event: &Event<'_>) -> bool {
        self.here().event_enabled(event)
    }
    fn event(&self, event: &Event<'_>) {
        self.here().event(event);
    }
    fn enter(&self, span: &Id) {
        self.here().enter(span);
        with_spans(self.number, |spans| {
            spans
                .entered
                .entry(spans.shown)
                .or_default()
                .push(span.clone());
        });
    }
    fn exit(&self, span: &Id) {
        self.here().exit(span);
        with_spans(self.number, |spans| {
            let Some(entered) = spans.entered.get_mut(&spans.shown) else {
                return;
            };
            if let Some(at) = entered.iter().rposition(|other| other == span) {
                entered.remove(at);
            }
            if entered.is_empty() {
                spans.entered.remove(&spans.shown);
            }
        });
    }
    fn clone_span(&self, span: &Id) -> Id {
        self.here().clone_span(span)
    }
    fn try_close(&self, span: Id) -> bool {
        self.here().try_close(span)
    }
    fn current_span(&self) -> Current {
        self.here().current_span()
    }
    // SAFETY: the pointer is to this, or the one of the subscriber behind.
    unsafe fn downcast_raw(&self, id: TypeId) -> Option<*const ()> {
        if id == TypeId::of::<Self>() {
            return Some(std::ptr::from_ref(self).cast());
        }
        // SAFETY: as the caller promises.
        unsafe { self.subscriber.downcast_raw(id) }
    }
}
