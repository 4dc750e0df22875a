// SPDX-License-Identifier: MIT
// With several threads, main may begin on another one.
fn main() {
    let shared = std::rc::Rc::new(1);
    haft::run_with(haft::Options::new().threads(2), || *shared).unwrap();
}
// error[E0277]
