// SPDX-License-Identifier: MIT
//! Maps by numbers, with a hash of their own. std's hash has keys that std draws for each thread,
//! and the order of a program's own maps would depend on how many maps this library has made.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

#[derive(Default)]
pub(crate) struct Spread(u64);
impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.write_usize(usize::from(*byte)));
    }
    fn write_usize(&mut self, number: usize) {
        // (Of the product the upper bits depend on all bits of the number, and the map uses both
        // ends.)
        let product = (self.0 ^ number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

pub(crate) type ByNumber<T> = HashMap<usize, T, BuildHasherDefault<Spread>>;
