// SPDX-License-Identifier: MIT
// Only C can tell that an arm of `select!` has its value.
use haft::__select::{Arm, Receives};

fn main() {
    let (_sender, receiver) = haft::channel::<String>(1);
    let mut arm = Receives::new(&receiver);
    arm.is_chosen(true);
    drop(arm.finish());
}
// error[E0133]
