// SPDX-License-Identifier: MIT
// An effect may go to any handler further out, so it borrows nothing.
struct Ask<'a>(&'a str);
impl<'a> haft::Effect for Ask<'a> {
    type Output = u32;
}

fn main() {}
// error[E0478]
