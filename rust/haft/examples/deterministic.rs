// SPDX-License-Identifier: MIT
//! A race that one order of tasks in many has, found by seeds, and shown again by the seed.

use std::sync::Mutex;
use std::time::Duration;

/// Looks, and then leaves: between the two another task may come.
fn withdraw(account: &Mutex<i32>, amount: i32) {
    let balance = *account.lock().unwrap();
    if balance >= amount {
        haft::sleep(Duration::from_secs(60)); // the bank is slow; the test is not
        *account.lock().unwrap() -= amount;
    }
}

fn balance_after_two_withdrawals(seed: u64) -> i32 {
    haft::simulate(seed, || {
        let account = Mutex::new(100);
        haft::scope(|s| {
            for hour in 0..2 {
                let account = &account;
                s.spawn(move || {
                    // Mostly at other times.
                    haft::sleep(Duration::from_secs(hour * 60));
                    withdraw(account, 80);
                });
            }
        });
        *account.lock().unwrap()
    })
}

fn main() {
    let overdrawn = (1..).find(|seed| balance_after_two_withdrawals(*seed) < 0);
    let seed = overdrawn.expect("some order of the tasks");
    println!("overdrawn: {}", balance_after_two_withdrawals(seed));
    assert_eq!(balance_after_two_withdrawals(seed), -60); // as often as you like
    assert!((1..50).any(|seed| balance_after_two_withdrawals(seed) == 20));
}
