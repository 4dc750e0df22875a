// SPDX-License-Identifier: MIT
// A received value lives as long as the receiver's type demands, so a sender takes nothing shorter.
fn main() {
    let (sender, receiver) = haft::channel::<&'static str>(1);
    {
        let text = String::from("short");
        let shorter: haft::Sender<&str> = sender;
        shorter.send(&text).unwrap();
    }
    println!("{}", receiver.recv().unwrap());
}
// error[E0597]
