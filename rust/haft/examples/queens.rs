// SPDX-License-Identifier: MIT
//! Queens that do not attack each other: a program that chooses a row for each, and two handlers
//! that go on with every choice. `handle_multi_shot` copies the frames of the computation, in which
//! nothing but numbers lies; `replay` runs it again, and needs no `unsafe`.

use haft::{handle_multi_shot, perform, replay};

haft::effect! {
    /// Any of these many rows; of none, the computation fails.
    struct Choose(usize) -> usize;
}

const MOST: usize = 12;

/// Rows, one a column.
type Board = [usize; MOST];

fn attacks(board: &Board, column: usize, row: usize) -> bool {
    (0..column).any(|other| board[other] == row || board[other].abs_diff(row) == column - other)
}

fn place(size: usize) -> Board {
    let mut board = [0; MOST];
    for column in 0..size {
        let row = perform(Choose(size));
        if attacks(&board, column, row) {
            perform(Choose(0));
        }
        board[column] = row;
    }
    board
}

/// How many boards there are.
fn count(size: usize) -> u64 {
    // SAFETY: where `place` performs, its frame and that of its caller have numbers, and are the
    // only ones between here and there.
    unsafe {
        handle_multi_shot(
            |Choose(count), k| (0..count).map(|row| k.resume(row)).sum(),
            || {
                place(size);
                1
            },
        )
    }
}

/// The first board.
fn first(size: usize) -> Option<Board> {
    replay(
        |Choose(count), k| (0..count).find_map(|row| k.resume(row)),
        || Some(place(size)),
    )
}

fn main() {
    for size in [4, 6, 8] {
        println!("{size} queens: {} boards", count(size));
    }
    let board = first(8).expect("a board of eight queens");
    for row in 0..8 {
        let field = |&column: &usize| if column == row { 'Q' } else { '.' };
        println!("{}", board[..8].iter().map(field).collect::<String>());
    }
}
