// SPDX-License-Identifier: MIT
//! Memory for objects that live as long as a task. Each thread keeps some blocks of one size, since
//! an allocator that has given back more than a few costs as much as all else of a short task.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::ptr::NonNull;

const BLOCK: Layout = match Layout::from_size_align(192, 16) {
    Ok(layout) => layout,
    Err(_) => unreachable!(),
};
const MOST: usize = 128;

struct Kept(Vec<NonNull<u8>>);
impl Drop for Kept {
    fn drop(&mut self) {
        for block in self.0.drain(..) {
            // SAFETY: it is from `allocate`, and nobody has it.
            unsafe { dealloc(block.as_ptr(), BLOCK) };
        }
    }
}

thread_local! {
    static KEPT: RefCell<Kept> = const { RefCell::new(Kept(Vec::new())) };
}

/// The layout of a type: that of a block, for types that fit into one.
const fn layout_of<T>() -> Layout {
    let layout = Layout::new::<T>();
    if layout.size() <= BLOCK.size() && layout.align() <= BLOCK.align() {
        return BLOCK;
    }
    layout
}

fn take() -> Option<NonNull<u8>> {
    KEPT.try_with(|kept| kept.borrow_mut().0.pop()).ok()?
}

fn keep(block: NonNull<u8>) -> bool {
    let keeps = KEPT.try_with(|kept| {
        let blocks = &mut kept.borrow_mut().0;
        let has_room = blocks.len() < MOST;
        if has_room {
            blocks.push(block);
        }
        has_room
    });
    keeps == Ok(true) // an error: the thread ends
}

/// Moves the value into memory of its own, which is not empty.
pub(crate) fn place<T>(value: T) -> NonNull<T> {
    let layout = const { layout_of::<T>() };
    let kept = if layout == BLOCK { take() } else { None };
    // SAFETY: the layout has bytes, as the caller promises.
    let memory = kept.or_else(|| NonNull::new(unsafe { alloc(layout) }));
    let place = memory
        .unwrap_or_else(|| handle_alloc_error(layout))
        .cast::<T>();
    // SAFETY: it has the size and alignment of the type.
    unsafe { place.write(value) };
    place
}

/// Gives back memory whose value is gone.
///
/// # Safety
/// It is from [`place`], by the same type.
pub(crate) unsafe fn give_back<T>(place: NonNull<T>) {
    let layout = const { layout_of::<T>() };
    if layout != BLOCK || !keep(place.cast()) {
        // SAFETY: it was allocated by this layout.
        unsafe { dealloc(place.as_ptr().cast(), layout) };
    }
}
