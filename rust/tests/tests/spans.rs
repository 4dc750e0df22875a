// SPDX-License-Identifier: MIT
//! Spans of `tracing`, of code that knows nothing of tasks, are those of the task that entered
//! them.

use haft::tracing::PerTask;
use std::sync::{Mutex, Once};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::{Event, Span, Subscriber, info, info_span, instrument};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// The messages, with the spans in which they were made: outer/inner: message.
static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());
static CLOSED: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Message(String);
impl Visit for Message {
    fn record_debug(&mut self, _: &Field, value: &dyn std::fmt::Debug) {
        self.0 = format!("{value:?}");
    }
}

struct Keep;
impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Keep {
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        let spans = context.event_scope(event).into_iter();
        let names: Vec<_> = spans
            .flat_map(|scope| scope.from_root())
            .map(|span| span.name())
            .collect();
        let text = format!("{}: {}", names.join("/"), message.0);
        SEEN.lock().unwrap().push(text);
    }
    fn on_close(&self, id: tracing::span::Id, context: Context<'_, S>) {
        let name = context.span(&id).map_or("", |span| span.name());
        CLOSED.lock().unwrap().push(name.to_owned());
    }
}

/// For the process, and one test after the other: the last element is that of the caller.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    static BEGIN: Once = Once::new();
    BEGIN.call_once(|| {
        let subscriber = PerTask::new(tracing_subscriber::registry().with(Keep));
        tracing::subscriber::set_global_default(subscriber).unwrap();
    });
    let guard = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    SEEN.lock().unwrap().clear();
    CLOSED.lock().unwrap().clear();
    guard
}
fn seen() -> Vec<String> {
    SEEN.lock().unwrap().clone()
}

#[instrument]
fn load() {
    info!("begins");
    haft::yield_now();
    info_span!("disk").in_scope(|| {
        info!("waits");
        std::thread::sleep(Duration::from_millis(1));
        info!("goes on");
    });
    haft::yield_now();
    info!("ends");
}

#[test]
fn a_span_stays_with_its_task_over_waits_and_is_not_the_next_ones() {
    let _alone = alone();
    haft::run(|| {
        let loads = [haft::spawn(load), haft::spawn(load)];
        let other = haft::spawn(|| {
            for _ in 0..5 {
                info!("is in no span");
                haft::yield_now();
            }
        });
        loads.into_iter().for_each(|task| task.join().unwrap());
        other.join().unwrap();
        info!("is in no span");
    });
    let count = |text: &str| seen().iter().filter(|line| *line == text).count();
    assert_eq!(count(": is in no span"), 6, "{:?}", seen());
    for text in ["begins", "ends"] {
        assert_eq!(count(&format!("load: {text}")), 2, "{:?}", seen());
    }
    for text in ["waits", "goes on"] {
        assert_eq!(count(&format!("load/disk: {text}")), 2, "{:?}", seen());
    }
    assert_eq!(seen().len(), 14);
    let closed = CLOSED.lock().unwrap();
    let closed_of = |name| closed.iter().filter(|other| *other == name).count();
    assert_eq!((closed_of("load"), closed_of("disk")), (2, 2));
}

#[test]
fn a_task_takes_the_span_along_that_it_is_spawned_in() {
    let _alone = alone();
    haft::run(|| {
        info_span!("request").in_scope(|| {
            let span = Span::current();
            let inside = haft::spawn(move || span.in_scope(|| info!("inherits")));
            let outside = haft::spawn(|| info!("begins anew"));
            inside.join().unwrap();
            outside.join().unwrap();
            info!("waited");
        });
    });
    assert_eq!(
        seen(),
        ["request: inherits", ": begins anew", "request: waited"]
    );
}

#[test]
fn a_cancel_and_a_panic_leave_their_spans_and_one_that_is_left_behind_is_not_the_next_ones() {
    let _alone = alone();
    haft::run(|| {
        let cut = haft::timeout(Duration::from_millis(1), || {
            info_span!("slow").in_scope(|| haft::sleep(Duration::from_secs(60)));
        });
        assert!(cut.is_err());
        info!("after the cancel");
        let panics = haft::spawn(|| {
            let _entered = info_span!("panics").entered();
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(panics.join().is_err());
        info!("after the panic");
        for _ in 0..3 {
            let forgets = || std::mem::forget(info_span!("forgotten").entered());
            haft::spawn(forgets).join().unwrap();
            haft::spawn(|| info!("a next one")).join().unwrap();
        }
    });
    let expected = [
        ": after the cancel",
        ": after the panic",
        ": a next one",
        ": a next one",
        ": a next one",
    ];
    assert_eq!(seen(), expected);
}
