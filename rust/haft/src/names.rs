// SPDX-License-Identifier: MIT
//! Default names of tasks: a task that is spawned without a name is named after its function and
//! the place of its spawn, `shop::serve (main.rs:31)`, unless its spawner has a name to pass on.
//!
//! Names are made once for each place, and stay: C has their addresses. All lie in one area, by
//! which they are told from names that programs give.

use crate::brief::Brief;
use haft_sys as sys;
use std::any::type_name;
use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char};
use std::panic::Location;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

const ROOM: usize = 1 << 16;
const PLACES: usize = 1024;
const LOOKS: usize = 8;
/// haft-top shows as many bytes.
const LONGEST: usize = 63;

struct Area(UnsafeCell<[u8; ROOM]>);
// SAFETY: a byte is written once, under the lock, before its address is given away.
unsafe impl Sync for Area {}
static AREA: Area = Area(UnsafeCell::new([0; ROOM]));
/// Bytes that are in use.
static USED: Brief<usize> = Brief::new(0);

struct Place {
    /// 0: it is free. Stored last, and never changed.
    location: AtomicUsize,
    function: AtomicUsize,
    name: AtomicPtr<c_char>,
}
static KNOWN: [Place; PLACES] = [const {
    Place {
        location: AtomicUsize::new(0),
        function: AtomicUsize::new(0),
        name: AtomicPtr::new(ptr::null_mut()),
    }
}; PLACES];

fn is_made_here(name: *const c_char) -> bool {
    (name.addr()).wrapping_sub(AREA.0.get().addr()) < ROOM
}

/// `shop::serve` of `shop::serve::{{closure}}`, and of `shop::<impl shop::A>::serve`: without what
/// stands in brackets.
fn path_of(function: &str) -> String {
    let mut function = function;
    while let Some(outer) = function.strip_suffix("::{{closure}}") {
        function = outer;
    }
    let (mut path, mut depth, mut before) = (String::new(), 0, ' ');
    for letter in function.chars() {
        let is_arrow = before == '-' && letter == '>';
        match letter {
            '<' => depth += 1,
            '>' if !is_arrow => depth -= 1,
            _ if depth == 0 => path.push(letter),
            _ => {}
        }
        before = letter;
    }
    path.replace("::::", "::").trim_matches(':').to_owned()
}

fn text_of(location: &Location<'_>, function: &str) -> String {
    let file = location.file();
    let file = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let place = format!(" ({file}:{})", location.line());
    let path = path_of(function);
    let mut path = path.as_str();
    while path.len() + place.len() > LONGEST {
        match path.split_once("::") {
            Some((_, rest)) => path = rest,
            None => return place.trim_start().trim_matches(['(', ')']).to_owned(),
        }
    }
    path.to_owned() + &place
}

/// Null: there is no room.
#[cold]
fn make(location: &'static Location<'static>, function: &'static str) -> *const c_char {
    let text = text_of(location, function);
    USED.with(|used| keep(location, function, &text, used))
}

/// Null: there is no room. `used`: how many bytes of the area are.
fn keep(
    location: &'static Location<'static>,
    function: &'static str,
    text: &str,
    used: &mut usize,
) -> *const c_char {
    let Some(place) = places(location, function).find(|place| {
        matches!(place.location.load(Ordering::Acquire), 0) || place.is(location, function)
    }) else {
        return ptr::null();
    };
    if place.is(location, function) {
        return place.name.load(Ordering::Relaxed);
    }
    if text.len() + 1 > ROOM - *used {
        return ptr::null();
    }
    // SAFETY: the bytes are within the area, and nobody has them yet; the byte behind them is 0.
    let name = unsafe {
        let name = AREA.0.get().cast::<u8>().add(*used);
        ptr::copy_nonoverlapping(text.as_ptr(), name, text.len());
        name.cast::<c_char>()
    };
    *used += text.len() + 1;
    place
        .function
        .store(function.as_ptr().addr(), Ordering::Relaxed);
    place.name.store(name, Ordering::Relaxed);
    let at = ptr::from_ref(location).addr();
    place.location.store(at, Ordering::Release);
    name
}

impl Place {
    fn is(&self, location: &'static Location<'static>, function: &'static str) -> bool {
        self.location.load(Ordering::Acquire) == ptr::from_ref(location).addr()
            && self.function.load(Ordering::Relaxed) == function.as_ptr().addr()
    }
}

fn places(
    location: &'static Location<'static>,
    function: &'static str,
) -> impl Iterator<Item = &'static Place> {
    let address = ptr::from_ref(location).addr() ^ function.as_ptr().addr().rotate_left(32);
    let first = address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48;
    (0..LOOKS).map(move |look| &KNOWN[(first + look) % PLACES])
}

/// The name of a task that runs such a function, if its spawner has been given none.
#[track_caller]
pub(crate) fn name_of<F>() -> Option<&'static CStr> {
    // SAFETY: any code may ask this.
    let inherited = unsafe { sys::haft_io_inherited_name() };
    if !inherited.is_null() && !is_made_here(inherited) {
        return None;
    }
    let (location, function) = (Location::caller(), type_name::<F>());
    let known = places(location, function).find(|place| place.is(location, function));
    let name = match known {
        Some(place) => place.name.load(Ordering::Relaxed),
        None => make(location, function).cast_mut(),
    };
    // SAFETY: it ends with '\0', and stays.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })
}

#[cfg(test)]
mod tests {
    use super::text_of;
    use std::panic::Location;

    #[test]
    fn a_name_has_the_function_and_the_place_of_the_spawn() {
        let here = Location::caller();
        let place = format!(" (names.rs:{})", here.line());
        let named = |function: &str| text_of(here, function);
        assert_eq!(
            named("shop::serve::{{closure}}"),
            format!("shop::serve{place}")
        );
        assert_eq!(
            named("shop::serve<u8>::{{closure}}"),
            format!("shop::serve{place}")
        );
        assert_eq!(
            named("<shop::A as shop::B>::serve"),
            format!("serve{place}")
        );
        assert_eq!(
            named("shop::<impl shop::B for shop::A<u8>>::serve<fn(u8) -> u8>::{{closure}}"),
            format!("shop::serve{place}")
        );
        assert_eq!(
            named("<shop::A<u8> as shop::B>::serve<u8>"),
            format!("serve{place}")
        );
        let long = "a".repeat(60);
        assert_eq!(named(&format!("{long}::serve")), format!("serve{place}"));
        assert_eq!(named(&long), place[2..place.len() - 1]);
    }
}
