// SPDX-License-Identifier: MIT
//! A transaction by effects: the transfer reads and writes accounts, and does not know that its
//! writes are kept apart until it commits, nor how it is rolled back.

use haft::{Effect, handle, handle_general, perform};
use std::cell::RefCell;
use std::collections::BTreeMap;

type Accounts = BTreeMap<&'static str, i64>;

struct Balance(&'static str);
impl Effect for Balance {
    type Output = i64;
}
struct SetBalance(&'static str, i64);
impl Effect for SetBalance {
    type Output = ();
}
struct Abort(String);
impl Effect for Abort {
    type Output = ();
}

fn transfer(from: &'static str, to: &'static str, amount: i64) {
    perform(SetBalance(to, perform(Balance(to)) + amount));
    let rest = perform(Balance(from)) - amount;
    if rest < 0 {
        perform(Abort(format!("{from} lacks {}", -rest)));
    }
    perform(SetBalance(from, rest));
}

/// Runs the body on a copy of the accounts, which becomes theirs unless the body aborts.
fn transaction(accounts: &mut Accounts, body: impl FnOnce()) -> Result<(), String> {
    let copy = RefCell::new(accounts.clone());
    handle_general(
        |Abort(reason), _never_resumed| Err(reason),
        || {
            let set = |SetBalance(name, to)| {
                copy.borrow_mut().insert(name, to);
            };
            let balance = |Balance(name)| copy.borrow().get(name).copied().unwrap_or(0);
            handle(balance, || handle(set, body));
            Ok(())
        },
    )?;
    *accounts = copy.into_inner();
    Ok(())
}

fn main() {
    let mut accounts = Accounts::from([("ann", 100), ("bob", 20)]);
    for amount in [70, 50] {
        match transaction(&mut accounts, || transfer("ann", "bob", amount)) {
            Ok(()) => println!("moved {amount}: {accounts:?}"),
            Err(reason) => println!("rolled back, {reason}: {accounts:?}"),
        }
    }
}
